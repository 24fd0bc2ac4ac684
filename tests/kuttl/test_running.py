"""What tests of kuttl say: each is run against a control plane of its own, whose clock stands still."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import yaml

from noxu.control_plane import ControlPlane
from noxu.kuttl import running
from noxu.kuttl.steps import read
from tests.rows import rows

MAP: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "labels": {"app": "shop"}},
    "data": {"b": "c"},
}
PODS: Final = {"apiVersion": "v1", "kind": "Pod"}
DEPLOYMENT: Final = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        },
    },
}
DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "cups.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "cups", "kind": "Cup"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}}
                        },
                    }
                },
            }
        ],
    },
}
CUP: Final = {"apiVersion": "example.com/v1", "kind": "Cup", "metadata": {"name": "a"}}


def changed(value: dict, **fields: object) -> dict:
    return {**value, **fields}


def settings(kind: str, **fields: object) -> dict:
    return {"apiVersion": "kuttl.dev/v1beta1", "kind": kind, **fields}


def named(value: dict, name: str, **labels: str) -> dict:
    return {**value, "metadata": {"name": name, **({"labels": labels} if labels else {})}}


REFERENCE: Final = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "ref": "map"}
ROWS: Final = [
    ("what is applied is there", {"00-a": [MAP], "00-assert": [MAP]}, []),
    ("another value", {"00-a": [MAP], "00-assert": [changed(MAP, data={"b": "d"})]}, [("00-assert", "data.b", 'ConfigMap kuttl-t/a: data.b: it is "c", not "d"')]),
    ("an object that is missing", {"00-a": [MAP], "00-assert": [named(MAP, "b")]}, [("00-assert", "", "ConfigMap kuttl-t/b does not exist: there are a, kube-root-ca.crt")]),
    ("any object of a kind", {"00-a": [MAP], "00-assert": [{"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "c"}}]}, []),
    ("any object with labels", {"00-a": [MAP], "00-assert": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"app": "shop"}}}]}, []),
    ("none with these labels", {"00-a": [MAP], "00-assert": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"app": "web"}}}]}, [("00-assert", "", "no configmaps in namespace kuttl-t have the labels app=web: there are a, kube-root-ca.crt")]),
    ("none of a kind", {"00-assert": [PODS]}, [("00-assert", "", "there are no pods in namespace kuttl-t")]),
    ("the nearest of several", {"00-a": [named(MAP, "a", tier="a"), named(changed(MAP, data={"b": "d", "e": "f"}), "b", tier="a")], "00-assert": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"tier": "a"}}, "data": {"b": "g", "e": "f"}}]}, [("00-assert", "data.b", 'none of 2 configmaps matches, the nearest is ConfigMap kuttl-t/b: data.b: it is "d", not "g"')]),
    ("a namespace of its own is respected", {"00-a": [MAP], "00-assert": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}]}, [("00-assert", "", "ConfigMap default/a does not exist: there are kube-root-ca.crt")]),
    ("what must not be there", {"00-a": [MAP], "00-errors": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]}, [("00-errors", "", "ConfigMap kuttl-t/a matches what must not be there")]),
    ("what must not be like this", {"00-a": [MAP], "00-errors": [changed(MAP, data={"b": "d"}), named(MAP, "b"), PODS]}, []),
    ("a kind that is not served", {"00-errors": [CUP]}, [("00-errors", "kind", 'no matches for kind "Cup" in version "example.com/v1"')]),
    ("a definition and its objects", {"00-a": [DEFINITION], "01-b": [CUP], "01-assert": [changed(CUP, spec={"size": 1})]}, [("01-assert", "spec", "Cup a: spec: it is missing")]),
    ("defaults", {"00-a": [DEFINITION], "01-b": [changed(CUP, spec={})], "01-assert": [changed(CUP, spec={"size": 1})]}, []),
    ("an object that is refused", {"00-a": [DEFINITION], "01-b": [changed(CUP, spec={"size": "x"})]}, [("01-b", "spec.size", 'it is refused: spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"')]),
    ("an object without its definition", {"00-a": [CUP], "00-assert": [CUP]}, [("00-a", "kind", 'no matches for kind "Cup" in version "example.com/v1": apply its CRD in a step before')]),
    ("a second step merges", {"00-a": [MAP], "01-b": [changed(MAP, data={"d": "e"})], "01-assert": [changed(MAP, data={"b": "c", "d": "e"})]}, []),
    ("a deletion by name", {"00-a": [MAP], "01-b": [settings("TestStep", delete=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}])], "01-errors": [MAP]}, []),
    ("a deletion by labels", {"00-a": [MAP, named(MAP, "b")], "01-b": [settings("TestStep", delete=[{"apiVersion": "v1", "kind": "ConfigMap", "labels": {"app": "shop"}}])], "01-errors": [MAP], "01-assert": [named(MAP, "b")]}, []),
    ("a deletion of what is gone", {"00-b": [settings("TestStep", delete=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}])], "00-errors": [MAP]}, []),
    ("a deletion that a finalizer holds", {"00-a": [{**MAP, "metadata": {"name": "a", "finalizers": ["a/b"]}}], "01-b": [settings("TestStep", delete=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}])]}, [("01-b", "delete[0]", "ConfigMap kuttl-t/a still exists 30 s after its deletion")]),
    ("conditions that hold", {"00-a": [MAP], "00-assert": [settings("TestAssert", resourceRefs=[REFERENCE], assertAll=[{"celExpr": "map.data.b == 'c'"}], assertAny=[{"celExpr": "map.data.b == 'd'"}, {"celExpr": "has(map.data)"}])]}, []),
    ("conditions that do not", {"00-a": [MAP], "00-assert": [settings("TestAssert", resourceRefs=[REFERENCE], assertAll=[{"celExpr": "map.data.b == 'd'"}], assertAny=[{"celExpr": "map.x == 1"}])]}, [("00-assert", "assertAll[0].celExpr", "map.data.b == 'd': it is false"), ("00-assert", "assertAny", "none of them is true: map.x == 1: no such key: x")]),
    ("conditions on what is missing", {"00-assert": [settings("TestAssert", resourceRefs=[REFERENCE], assertAll=[{"celExpr": "map.data.b == 'd'"}])]}, [("00-assert", "resourceRefs[0]", "ConfigMap kuttl-t/a does not exist: there are kube-root-ca.crt")]),
    ("steps after one that fails are not run", {"00-assert": [PODS], "01-assert": [PODS]}, [("00-assert", "", "there are no pods in namespace kuttl-t")]),
]  # fmt: skip


def written(directory: Path, files: dict[str, list[dict]]) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name, values in files.items():
        (directory / f"{name}.yaml").write_text(yaml.safe_dump_all(values))
    return directory


def failures(outcome: running.KuttlOutcome) -> list[tuple[str, str, str]]:
    found = [failure for step in outcome.steps for failure in step.failures]
    return [(Path(each.document.file).stem, each.field, each.message) for each in found]


@rows("what, files, expected", ROWS, ids=[row[0] for row in ROWS])
def test_a_test_of_kuttl(what: str, files: dict, expected: list, tmp_path: Path) -> None:
    [outcome] = running.run([read(written(tmp_path / what / "t", files))])
    assert (failures(outcome), list(outcome.problems)) == (expected, [])


def test_a_failure_has_a_diff_of_what_is_named(tmp_path: Path) -> None:
    files = {"00-a": [MAP], "00-assert": [changed(named(MAP, "a"), data={"b": "d"})]}
    [outcome] = running.run([read(written(tmp_path / "t", files))])
    [failure] = outcome.steps[0].failures
    assert [line for line in failure.diff if line[0] in "-+"] == ["-   b: d", "+   b: c"]


def test_pods_of_simulated_nodes_become_ready_and_go_in_object_time(tmp_path: Path) -> None:
    """Slow pods take 20 s of object time, and none of the tester's."""
    slow = {"labels": {"app": "web"}, "annotations": {"noxu.dev/simulate": "slow-ready=20s"}}
    template = {**DEPLOYMENT["spec"]["template"], "metadata": slow}
    files = {
        "00-a": [changed(DEPLOYMENT, spec={**DEPLOYMENT["spec"], "template": template})],
        "00-assert": [changed(DEPLOYMENT, spec={"replicas": 2}, status={"readyReplicas": 2})],
        "01-b": [settings("TestStep", delete=[{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}])],
        "01-errors": [PODS],
    }
    times: list[datetime] = []

    def observe(plane: ControlPlane) -> None:
        planes.append(plane)
        times.append(plane.clock.now())

    planes: list[ControlPlane] = []
    [outcome] = running.run([read(written(tmp_path / "t", files))], 1, (), observe)
    assert failures(outcome) == []
    assert timedelta(seconds=20) <= planes[0].clock.now() - times[0] < timedelta(seconds=60)


def test_a_timeout_is_one_of_object_time(tmp_path: Path) -> None:
    slow = {"labels": {"app": "web"}, "annotations": {"noxu.dev/simulate": "slow-ready=20s"}}
    template = {**DEPLOYMENT["spec"]["template"], "metadata": slow}
    files = {
        "00-a": [changed(DEPLOYMENT, spec={**DEPLOYMENT["spec"], "template": template})],
        "00-assert": [changed(DEPLOYMENT, spec={}, status={"readyReplicas": 2}), settings("TestAssert", timeout=10)],
    }
    [outcome] = running.run([read(written(tmp_path / "t", files))], 1)
    assert [field for _, field, _ in failures(outcome)] == ["status.readyReplicas"]


def test_what_a_test_begins_with_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cup.yaml").write_text(yaml.safe_dump(CUP))
    test = read(written(tmp_path / "t", {"00-assert": [CUP]}), [tmp_path / "cup.yaml"])
    [outcome] = running.run([test])
    assert [problem.message for problem in outcome.problems] == [
        f'{tmp_path / "cup.yaml"}:1:1: no matches for kind "Cup" in version "example.com/v1": load its CRD, too'
    ]
