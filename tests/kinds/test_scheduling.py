"""PriorityClasses: reserved names and values, what is immutable."""

from __future__ import annotations

import pytest

from noxu.values import Object
from tests.kinds.typed_objects import errors, filled, kind_of, prepared

CLASS = kind_of("scheduling.k8s.io/v1", "PriorityClass")
RESERVED = "priority class names with 'system-' prefix are reserved for system use only. error: "


def named(name: str, **more: object) -> Object:
    return {"metadata": {"name": name}, **more}


CASES: list[tuple[str, Object, Object | None, list[str]]] = [
    ("a class", named("high", value=1000), None, []),
    (
        "too high",
        named("high", value=1_000_000_001),
        None,
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
    ),
    ("one of the system", named("system-node-critical", value=2_000_001_000), None, []),
    (
        "one of the system, with another value",
        named("system-node-critical", value=1),
        None,
        [f"metadata.name: Forbidden: {RESERVED}value of system-node-critical PriorityClass must be 2000001000"],
    ),
    (
        "one of the system, as default",
        named("system-node-critical", value=2_000_001_000, globalDefault=True),
        None,
        [f"metadata.name: Forbidden: {RESERVED}globalDefault of system-node-critical PriorityClass must be false"],
    ),
    (
        "a reserved name",
        named("system-mine"),
        None,
        [f"metadata.name: Forbidden: {RESERVED}system-mine is not a known system priority class"],
    ),
    (
        "an unknown policy",
        named("a", preemptionPolicy="X"),
        None,
        ['preemptionPolicy: Unsupported value: "X": supported values: "Never", "PreemptLowerPriority"'],
    ),
    (
        "another value and policy",
        named("a", value=2, preemptionPolicy="Never"),
        named("a", value=1),
        [
            "value: Forbidden: may not be changed in an update.",
            'preemptionPolicy: Invalid value: "Never": field is immutable',
        ],
    ),
]


@pytest.mark.parametrize(("new", "old", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_priority_classes_are_validated(new: Object, old: Object | None, expected: list[str]) -> None:
    assert errors(CLASS, new, old) == expected


def test_the_generation_of_a_class_remains_one() -> None:
    assert prepared(CLASS, named("a"))["metadata"]["generation"] == 1
    old = {"metadata": {"name": "a", "generation": 1}}
    assert prepared(CLASS, named("a", description="b"), old)["metadata"]["generation"] == 1
    assert filled(CLASS, named("a"))["preemptionPolicy"] == "PreemptLowerPriority"
