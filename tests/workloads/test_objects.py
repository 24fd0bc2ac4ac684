"""The index of what workload controllers look at: it is right after each change."""

from __future__ import annotations

from noxu.values import Object
from noxu.workloads.objects import PODS, Objects
from noxu.workloads.writes import NamespacedName
from tests.rows import rows
from tests.workloads.replicas import pod, replica_set

OWNER, OTHER = replica_set(name="owner"), replica_set(name="other")
A = NamespacedName("default", "a")


def places(objects: Objects) -> list[str]:
    """Where the pod is found."""
    found = {
        "owner": objects.controlled_by(PODS, "uid-owner"),
        "other": objects.controlled_by(PODS, "uid-other"),
        "orphan": objects.orphans(PODS, "default"),
        "node-1": objects.on_node("node-1"),
        "node-2": objects.on_node("node-2"),
        "namespace": objects.within(PODS, "default"),
        "all": list(objects.all(PODS)),
    }
    return [place for place, values in found.items() if values]


ON_NODE_2: Object = {"nodeName": "node-2"}
NOWHERE: Object = {"nodeName": ""}


@rows(
    "situation, states, expected",
    [
        ("an orphan", [pod("a")], ["orphan", "node-1"]),
        ("it is adopted", [pod("a"), pod("a", OWNER)], ["owner", "node-1"]),
        ("it is released", [pod("a", OWNER), pod("a")], ["orphan", "node-1"]),
        ("it gets another controller", [pod("a", OWNER), pod("a", OTHER)], ["other", "node-1"]),
        ("it is bound", [pod("a", spec=NOWHERE), pod("a", spec=ON_NODE_2)], ["orphan", "node-2"]),
        (
            "another one of its name is on another node",
            [pod("a", OWNER), pod("a", spec=ON_NODE_2)],
            ["orphan", "node-2"],
        ),
    ],
)
def test_a_pod_is_found_where_it_is_now(situation: str, states: list[Object], expected: list[str]) -> None:
    objects = Objects()
    for state in states:
        objects.put(PODS, state)
    assert places(objects) == [*expected, "namespace", "all"], situation
    assert objects.get(PODS, A) is states[-1]
    assert objects.remove(PODS, A) is states[-1]
    assert places(objects) == []
    assert objects.remove(PODS, A) is None


def test_nothing_is_left_after_it_is_cleared() -> None:
    objects = Objects([(PODS, pod("a")), (PODS, pod("b", OWNER))])
    objects.clear()
    assert places(objects) == []
    objects.put(PODS, pod("a"))
    assert places(objects) == ["orphan", "node-1", "namespace", "all"]
