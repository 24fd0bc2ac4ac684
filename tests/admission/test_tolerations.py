"""DefaultTolerationSeconds, TaintNodesByCondition, and how tolerations are merged."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.admission.builtin.pods import merged
from tests.admission.cluster import Cluster, of_kind, pod

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def for_five_minutes(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


BOTH = [for_five_minutes(NOT_READY), for_five_minutes(UNREACHABLE)]
OWN: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
    ("of something else", {"key": "a", "operator": "Exists"}, BOTH),
    ("of one of them", {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}, BOTH[1:]),
    ("of one of them with any effect", {"key": UNREACHABLE, "operator": "Exists"}, BOTH[:1]),
    ("of one of them with another effect", {"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"}, BOTH),
    ("of everything", {"operator": "Exists"}, []),
]


@pytest.mark.parametrize(("own", "added"), [row[1:] for row in OWN], ids=[row[0] for row in OWN])
async def test_what_is_added_to_a_toleration(
    cluster: Cluster, own: dict[str, Any], added: list[dict[str, Any]]
) -> None:
    draft = await cluster.write("DefaultTolerationSeconds", new=pod(tolerations=[own]))
    assert draft.new["spec"]["tolerations"] == [own, *added]


async def test_they_are_added_to_a_pod_without_any_when_it_is_created_and_when_it_is_updated(cluster: Cluster) -> None:
    assert (await cluster.write("DefaultTolerationSeconds", new=pod())).new["spec"]["tolerations"] == BOTH
    assert (await cluster.write("DefaultTolerationSeconds", new=pod(), old=pod())).new["spec"]["tolerations"] == BOTH


async def test_an_update_of_the_status_adds_nothing(cluster: Cluster) -> None:
    draft = await cluster.write("DefaultTolerationSeconds", new=pod(), old=pod(), subresource="status")
    assert "tolerations" not in draft.new["spec"]


TAINT = {"key": NOT_READY, "effect": "NoSchedule"}
OTHER = {"key": "a", "effect": "NoSchedule"}
TAINTS: list[tuple[str, list[Any], list[Any]]] = [
    ("a node without taints", [], [TAINT]),
    ("a node with another one", [OTHER], [OTHER, TAINT]),
    ("a node that has it", [TAINT, OTHER], [TAINT, OTHER]),
]


@pytest.mark.parametrize(("before", "after"), [row[1:] for row in TAINTS], ids=[row[0] for row in TAINTS])
async def test_a_new_node_is_not_ready(cluster: Cluster, before: list[Any], after: list[Any]) -> None:
    node = of_kind("Node", spec={"taints": before})
    assert (await cluster.write("TaintNodesByCondition", new=node)).new["spec"]["taints"] == after


async def test_an_updated_node_is_not_tainted(cluster: Cluster) -> None:
    node = of_kind("Node")
    assert "taints" not in (await cluster.write("TaintNodesByCondition", new=node, old=node)).new["spec"]


A, B = {"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}
A_IS_1 = {"key": "a", "operator": "Equal", "value": "1"}
ALL = {"operator": "Exists"}
SHORT = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
LONG = SHORT | {"tolerationSeconds": 9}
MERGED: list[tuple[str, list[Any], list[Any], list[Any]]] = [
    ("different ones", [A], [B], [A, B]),
    ("equal ones", [A, B], [A], [A, B]),
    ("a value is covered by its key", [A_IS_1], [A], [A]),
    ("everything is covered by the operator without key", [A, B], [ALL], [ALL]),
    ("a short time is covered by a long one", [SHORT], [LONG], [LONG]),
    ("a long time is not covered by a short one", [LONG], [SHORT], [LONG]),
    ("an effect is covered by all effects", [SHORT], [A], [A]),
]


@pytest.mark.parametrize(("first", "second", "all_"), [row[1:] for row in MERGED], ids=[row[0] for row in MERGED])
def test_merging(first: list[Any], second: list[Any], all_: list[Any]) -> None:
    assert merged(first, second) == all_
