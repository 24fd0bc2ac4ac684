"""The Leases of simulated nodes."""

from __future__ import annotations

from datetime import timedelta

from noxu.values import Object
from noxu.workloads.kubelet.heartbeats import RENEW_EVERY, heartbeat, lost_since
from noxu.workloads.nodes import node, node_status
from noxu.workloads.objects import LEASES, NODES
from noxu.workloads.pods import SIMULATE, is_true
from tests.workloads.plays import NOW, Play

LEASE = "kube-node-lease/node-1"


def machine(*, lost: bool = False, ready: bool = True) -> Object:
    made = {**node("node-1", 1), "status": node_status("node-1", 1, NOW)}
    if lost:
        made["metadata"]["annotations"] = {SIMULATE: "node-lost"}
    if not ready:
        unknown = {"status": "Unknown", "reason": "NodeStatusUnknown"}
        made["status"]["conditions"] = [{**each, **unknown} for each in made["status"]["conditions"]]
    return made


def beat(play: Play) -> float | None:
    return play.run(heartbeat, "node-1")


def test_a_node_has_a_lease_which_is_renewed() -> None:
    play = Play((NODES, machine()))
    assert beat(play) == RENEW_EVERY
    play.pass_time(10)
    assert beat(play) == RENEW_EVERY
    assert play.done() == ["create leases node-1", "update leases node-1"]
    lease = play.get(LEASES, LEASE)
    assert lease["spec"] == {
        "holderIdentity": "node-1",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-01T00:00:10.000000Z",
    }
    assert lease["metadata"]["ownerReferences"][0]["kind"] == "Node"
    assert lost_since(lease) is None


def test_time_that_stands_still_writes_nothing() -> None:
    play = Play((NODES, machine()))
    beat(play)
    play.done()
    assert beat(play) == RENEW_EVERY
    assert play.done() == []


def test_a_lost_node_is_silent_from_its_last_heartbeat_on() -> None:
    play = Play((NODES, machine()))
    beat(play)
    play.add(NODES, machine(lost=True))
    play.pass_time(5)
    assert beat(play) is None
    play.pass_time(100)
    assert beat(play) is None
    assert play.done() == ["create leases node-1", "update leases node-1"]
    assert lost_since(play.get(LEASES, LEASE)) == "2026-01-01T00:00:05.000000Z"


def test_a_node_that_is_back_is_healthy_again() -> None:
    play = Play((NODES, machine(lost=True)))
    beat(play)
    play.add(NODES, machine(ready=False))
    play.pass_time(100)
    assert beat(play) == RENEW_EVERY
    assert play.done() == ["create leases node-1", "update leases node-1", "update nodes/status node-1"]
    assert lost_since(play.get(LEASES, LEASE)) is None
    found = play.get(NODES, "node-1")
    assert is_true(found, "Ready")
    ready = next(each for each in found["status"]["conditions"] if each["type"] == "Ready")
    assert ready["lastTransitionTime"] == (NOW + timedelta(seconds=100)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_node_that_is_gone_has_no_heartbeat() -> None:
    play = Play()
    assert beat(play) is None
    assert play.done() == []
