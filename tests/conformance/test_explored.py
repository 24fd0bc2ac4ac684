"""The file of known bugs of a controller can be read, and its patterns know the bugs."""

from __future__ import annotations

from pathlib import Path

from conformance.explored import KnownBug, read
from noxu.exploration.attempts import Confirmed
from noxu.exploration.findings import RunFinding
from noxu.exploration.plans import RunPlan
from tests.exploration.recordings import clean

FILES = Path(__file__).parents[2] / "conformance" / "explored"


def test_the_file_is_read_with_what_is_given(tmp_path: Path) -> None:
    (tmp_path / "config" / "crd" / "bases").mkdir(parents=True)
    given = {"CHECKOUT": str(tmp_path), "BINARY": "/bin/manager", "METRICS": "--none"}
    exploration, bugs = read(FILES / "rabbitmq.yaml", given)
    assert exploration.controllers[0].command == ("/bin/manager", "--none")
    assert exploration.controllers[0].environment["KUBE_CONFIG"] == "$KUBECONFIG"
    assert [(rule.pods, rule.command, rule.result.code) for rule in exploration.answers] == [("*", (), 0)]
    assert [bug.issue for bug in bugs] == [648, 653, 782, 758]


def test_what_runs_beside_the_controller_is_known(tmp_path: Path) -> None:
    (tmp_path / "deploy" / "crds").mkdir(parents=True)
    exploration, bugs = read(FILES / "zookeeper.yaml", {"CHECKOUT": str(tmp_path), "BINARY": "/bin/manager"})
    assert [(each.command, each.directory) for each in exploration.beside] == [(("python3", "zookeeper.py"), FILES)]
    assert exploration.controllers[0].hosts == {"a-client.default.svc.cluster.local": "127.0.0.1"}
    assert exploration.kinds == ("PodDisruptionBudget.v1beta1.policy",)
    assert [bug.issue for bug in bugs] == [312, 314, 410]


def test_stages_are_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "deploy" / "crds").mkdir(parents=True)
    exploration, bugs = read(FILES / "instaclustr.yaml", {"CHECKOUT": str(tmp_path), "BINARY": "/bin/manager"})
    assert exploration.stages == (FILES / "pods-end-slowly.yaml",)
    assert (exploration.nodes, exploration.beside[0].command) == (0, ("python3", "cassandra_nodes.py", "4567"))
    assert [bug.issue for bug in bugs] == [398, 402, 407]


def test_pods_may_wait_for_the_controller(tmp_path: Path) -> None:
    (tmp_path / "operator" / "deploy" / "crds").mkdir(parents=True)
    exploration, bugs = read(FILES / "cassop.yaml", {"CHECKOUT": str(tmp_path), "BINARY": "/bin/manager"})
    assert exploration.stages == (FILES / "cassandra-starts.yaml",)
    assert exploration.resync == 10
    assert [bug.issue for bug in bugs] == [559, 1023, 1362]


def test_a_bug_is_known_by_its_class_its_plan_and_its_sentence() -> None:
    bug = KnownBug(1, "stale", "deletion began", "deleted statefulsets")
    finding = RunFinding("deleted", "a", "the controller deleted statefulsets.apps default/a at revision 9")
    for klass, title, is_known in (
        ("stale", "when its deletion began", True),
        ("crash", "when its deletion began", False),
        ("stale", "when it was created", False),
    ):
        found = Confirmed(1, finding, (), RunPlan(klass, title), clean().recording(), is_stable=True)
        assert bug.is_shown_by(found) is is_known
