"""Priority."""

from __future__ import annotations

from typing import Any

import pytest

from tests.admission.cluster import Cluster, of_kind, pod


def priority_class(name: str, value: int, **fields: Any) -> Any:
    return of_kind("PriorityClass", "scheduling.k8s.io/v1", name, value=value, **fields)


HIGH = priority_class("high", 1000)
QUIET = priority_class("quiet", 5, preemptionPolicy="Never")
DEFAULT = priority_class("normal", 7, globalDefault=True)
LOWER = priority_class("lower", 3, globalDefault=True)
COMPUTED = "must not be provided in pod spec; priority admission controller computed"

POD: list[tuple[str, list[Any], dict[str, Any], tuple[Any, ...]]] = [
    ("without classes it is 0", [], {}, (None, 0, "PreemptLowerPriority")),
    ("the class of the pod", [HIGH], {"priorityClassName": "high"}, ("high", 1000, "PreemptLowerPriority")),
    ("the policy of the class", [QUIET], {"priorityClassName": "quiet"}, ("quiet", 5, "Never")),
    ("the default class", [HIGH, DEFAULT], {}, ("normal", 7, "PreemptLowerPriority")),
    ("of several default classes the lowest", [DEFAULT, LOWER], {}, ("lower", 3, "PreemptLowerPriority")),
    ("the same number may be given", [HIGH], {"priorityClassName": "high", "priority": 1000}, ("high", 1000, "PreemptLowerPriority")),
]  # fmt: skip


@pytest.mark.parametrize(("classes", "spec", "expected"), [row[1:] for row in POD], ids=[row[0] for row in POD])
async def test_a_new_pod_gets(
    cluster: Cluster, classes: list[Any], spec: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    await cluster.put(*classes)
    found = (await cluster.write("Priority", new=pod(**spec))).new["spec"]
    assert (found.get("priorityClassName"), found["priority"], found["preemptionPolicy"]) == expected


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("a class that does not exist", {"priorityClassName": "x"}, "no PriorityClass with name x was found"),
    ("a number", {"priority": 5},
     f"the integer value of priority (5) {COMPUTED} 0 from the given PriorityClass name"),
    ("another number than that of the class", {"priorityClassName": "high", "priority": 5},
     f"the integer value of priority (5) {COMPUTED} 1000 from the given PriorityClass name"),
    ("another policy", {"priorityClassName": "high", "preemptionPolicy": "Never"},
     f"the string value of PreemptionPolicy (Never) {COMPUTED} PreemptLowerPriority from the given PriorityClass name"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_a_pod_is_refused_with(cluster: Cluster, spec: dict[str, Any], why: str) -> None:
    await cluster.put(HIGH)
    assert await cluster.refusal("Priority", new=pod(**spec)) == why


async def test_an_update_that_leaves_out_the_priority_keeps_it(cluster: Cluster) -> None:
    old = pod(priority=9, preemptionPolicy="Never")
    found = (await cluster.write("Priority", new=pod(), old=old)).new["spec"]
    assert (found["priority"], found["preemptionPolicy"]) == (9, "Never")


async def test_there_is_one_default_class(cluster: Cluster) -> None:
    await cluster.put(DEFAULT)
    why = "PriorityClass normal is already marked as default. Only one default can exist"
    assert await cluster.refusal("Priority", new=LOWER) == why
    assert await cluster.refusal("Priority", new=LOWER, old={**LOWER, "globalDefault": False}) == why
    assert await cluster.refusal("Priority", new=DEFAULT, old=DEFAULT) == ""
    assert await cluster.refusal("Priority", new=HIGH) == ""
