"""Simulated pods and nodes, as the handle of a test has them: one server for all of it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest

from noxu.api.errors import ApiError
from noxu.testing.handle import Noxu
from noxu.values import Object


@pytest.fixture(scope="module")
def noxu() -> Iterator[Noxu]:
    with Noxu(nodes=2) as started:
        started.clock.freeze()
        yield started


@pytest.fixture(autouse=True)
def _clean(noxu: Noxu) -> Iterator[None]:
    yield
    noxu.pods.forget()
    for pod in noxu.list("pods"):
        noxu.delete("pods", pod["metadata"]["name"])
    noxu.idle()


def run(noxu: Noxu, name: str, node: str = "node-1", **labels: str) -> None:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "nginx"}]}
    noxu.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec})
    noxu.idle()


def state(noxu: Noxu, name: str) -> str:
    status = noxu.get("pods", name)["status"]
    [(kind, value)] = status["containerStatuses"][0]["state"].items()
    ready = next(each["status"] for each in status["conditions"] if each["type"] == "Ready")
    return f"{status['phase']} {value.get('reason', kind)} Ready={ready}"


def post(noxu: Noxu, path: str, body: Object | None = None) -> Object:
    request = urllib.request.Request(
        f"{noxu.url}/_noxu/{path}", b"" if body is None else json.dumps(body).encode(), method="POST"
    )
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request) as answer:
        value: Object = json.load(answer)
    return value


def test_pods_are_ready_fail_and_recover(noxu: Noxu) -> None:
    run(noxu, "web-0")
    run(noxu, "web-1")
    assert noxu.pods.fail("web-1", "crash-loop")["concerned"] == ["default/web-1"]
    assert (state(noxu, "web-0"), state(noxu, "web-1")) == (
        "Running running Ready=True",
        "Running CrashLoopBackOff Ready=False",
    )
    noxu.pods.ready("web-*")
    assert state(noxu, "web-1") == "Running running Ready=True"


def test_a_pod_that_recovers_does_what_its_annotation_says_by_then(noxu: Noxu) -> None:
    """Without one it is ready. A stage, or an operator, may have changed it meanwhile."""
    noxu.pods.fail("web-*", "crash-loop")
    for name, said in (("web-0", "never-ready"), ("web-1", None), ("web-2", "oom")):
        run(noxu, name)
        noxu.patch("pods", name, {"metadata": {"annotations": {"noxu.dev/simulate": said}}})
    noxu.patch("pods", "web-2", {"metadata": {"annotations": {"noxu.dev/simulate": None}}})
    noxu.pods.recover("web-*")
    ready, not_ready = "Running running Ready=True", "Running running Ready=False"
    assert [state(noxu, f"web-{n}") for n in range(3)] == [not_ready, ready, ready]


def test_a_pod_that_comes_later_fails_too(noxu: Noxu) -> None:
    noxu.pods.fail("default/late", "image-pull-error")
    run(noxu, "late")
    assert state(noxu, "late") == "Pending ErrImagePull Ready=False"
    noxu.clock.advance("5s")
    assert state(noxu, "late") == "Pending ImagePullBackOff Ready=False"


def test_a_pod_that_is_slow_is_ready_when_the_time_has_come(noxu: Noxu) -> None:
    noxu.pods.fail("slow", "slow-ready=10m")
    run(noxu, "slow")
    noxu.clock.advance("599s")
    assert state(noxu, "slow") == "Running running Ready=False"
    noxu.clock.advance("1s")
    assert state(noxu, "slow") == "Running running Ready=True"


def test_nothing_happens_on_a_lost_node(noxu: Noxu) -> None:
    run(noxu, "here", "node-2")
    noxu.nodes.lose("node-2")
    assert noxu.nodes.list() == [{"name": "node-1", "lost": False}, {"name": "node-2", "lost": True}]
    noxu.delete("pods", "here")
    noxu.idle()
    assert noxu.get("pods", "here")["metadata"]["deletionTimestamp"]
    noxu.nodes.restore("node-2")
    noxu.idle()
    assert noxu.list("pods") == []


def test_a_fault_lets_a_group_of_pods_fail_as_long_as_it_is_on(noxu: Noxu) -> None:
    run(noxu, "web-0", app="web")
    run(noxu, "web-1", app="web")
    run(noxu, "db-0", app="db")
    with noxu.fault(pod={"simulate": "never-ready", "selector": "app=web"}, name="web-1") as fault:
        noxu.idle()
        assert [state(noxu, name)[-4:] for name in ("web-0", "web-1", "db-0")] == ["True", "alse", "True"]
        assert [hit["request"]["name"] for hit in fault.fired] == ["web-1"]
    noxu.idle()
    assert state(noxu, "web-1") == "Running running Ready=True"


def test_a_fault_of_pods_has_a_time_and_a_chance(noxu: Noxu) -> None:
    names = [f"p-{number}" for number in range(8)]
    for name in names:
        run(noxu, name)
    with noxu.fault(pod={"simulate": "never-ready", "pods": "p-*"}, probability=0.5, from_="10s", until="20s"):
        unready = []
        for _ in range(3):
            noxu.idle()
            unready.append(sum(state(noxu, name).endswith("False") for name in names))
            noxu.clock.advance("10s")
    assert (unready[0], unready[2]) == (0, 0)
    assert 0 < unready[1] < 8


def test_rules_are_listed_and_forgotten(noxu: Noxu) -> None:
    noxu.pods.fail("a", "oom")
    noxu.pods.exec("web-*", ["pg_isready"], stdout="ok", code=1)
    assert noxu.pods.rules() == {
        "rules": [{"pods": "a", "simulate": "oom"}],
        "exec": [{"pods": "web-*", "command": ["pg_isready"], "exact": False, "stdout": "ok", "stderr": "", "code": 1}],
    }
    assert noxu.pods.forget() == {"rules": [], "exec": []}


def test_other_languages_call_the_same(noxu: Noxu) -> None:
    run(noxu, "web-0")
    assert post(noxu, "pods", {"pods": "web-0", "simulate": "never-ready"})["concerned"] == ["default/web-0"]
    assert state(noxu, "web-0") == "Running running Ready=False"
    assert post(noxu, "pods/exec", {"pods": "web-0", "command": ["a"]})["code"] == 0
    assert post(noxu, "nodes/node-1/lose") == {"name": "node-1", "lost": True}
    assert post(noxu, "nodes/node-1/restore") == {"name": "node-1", "lost": False}


def test_what_is_wrong_is_said(noxu: Noxu) -> None:
    with pytest.raises(
        ApiError, match=r'simulate: "crash" is not known: there are .* did you mean crash-loop'
    ) as refusal:
        noxu.pods.fail("a", "crash")
    assert (refusal.value.code, refusal.value.reason) == (422, "Invalid")
    with pytest.raises(ApiError, match='nodes "node-9" not found'):
        noxu.nodes.lose("node-9")


def test_a_server_without_nodes_says_so() -> None:
    with Noxu() as without, pytest.raises(ApiError, match="this server has no simulated nodes: start it with --nodes"):
        without.pods.fail("a", "oom")
    with (
        Noxu() as without,
        pytest.raises(ApiError, match="this server has no simulated nodes"),
        without.fault(pod="oom"),
    ):
        pass


async def test_in_a_coroutine_they_are_awaited(noxu: Noxu) -> None:
    assert (await noxu.pods.ready("none"))["concerned"] == []
    assert len(await noxu.nodes.list()) == 2


def test_rules_hold_after_a_restart() -> None:
    noxu = Noxu(nodes=1)
    with noxu:
        noxu.pods.fail("late", "never-ready")
    with noxu:
        run(noxu, "late")
        assert state(noxu, "late") == "Running running Ready=False"
