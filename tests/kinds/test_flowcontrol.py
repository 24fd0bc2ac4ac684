"""FlowSchemas and PriorityLevelConfigurations: defaults and validation."""

from __future__ import annotations

import pytest

from noxu.values import Object
from tests.kinds.typed_objects import errors, filled, kind_of

GROUP = "flowcontrol.apiserver.k8s.io/v1"
SCHEMA, LEVEL = kind_of(GROUP, "FlowSchema"), kind_of(GROUP, "PriorityLevelConfiguration")
USER = {"kind": "User", "user": {"name": "ann"}}
PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
RULE = "spec.rules[0]"


def schema(*rules: Object, name: str = "x", **spec: object) -> Object:
    whole = {"priorityLevelConfiguration": {"name": "l"}, "rules": list(rules), **spec}
    return {"metadata": {"name": name}, "spec": whole}


SCHEMAS: list[tuple[str, Object, list[str]]] = [
    ("a schema", schema({"subjects": [USER], "resourceRules": [PODS]}), []),
    (
        "no level",
        schema(priorityLevelConfiguration={}),
        ["spec.priorityLevelConfiguration.name: Required value: must reference a priority level"],
    ),
    (
        "the first",
        schema(matchingPrecedence=1),
        ["spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1"],
    ),
    ("the exempt one", schema(name="exempt", matchingPrecedence=1), []),
    ("too late", schema(matchingPrecedence=10001), ["spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"]),
    (
        "an empty rule",
        schema({}),
        [
            f"{RULE}.subjects: Required value: subjects must contain at least one value",
            f"{RULE}: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
        ],
    ),
    (
        "subjects of other kinds",
        schema({"subjects": [{**USER, "kind": "Group"}, {"kind": "X"}], "resourceRules": [PODS]}),
        [
            f"{RULE}.subjects[0].group: Required value: group is required when subject kind is 'Group'",
            f"{RULE}.subjects[0].user: Forbidden: user is forbidden when subject kind is not 'User'",
            f'{RULE}.subjects[1].kind: Unsupported value: "X": supported values: "Group", "ServiceAccount", "User"',
        ],
    ),
    (
        "resources without namespaces",
        schema({"subjects": [USER], "resourceRules": [{**PODS, "namespaces": [], "resources": ["*", "a"]}]}),
        [
            f'{RULE}.resourceRules[0].resources: Invalid value: ["*","a"]: '
            "if '*' is present, must not specify other resources",
            f"{RULE}.resourceRules[0].namespaces: Required value: "
            "resource rules that are not cluster scoped must supply at least one namespace",
        ],
    ),
    (
        "paths that are none",
        schema({"subjects": [USER], "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["a", "/*/b"]}]}),
        [
            f'{RULE}.nonResourceRules[0].nonResourceURLs[0]: Invalid value: "a": must start with slash',
            f'{RULE}.nonResourceRules[0].nonResourceURLs[1]: Invalid value: "/*/b": wildcard can only do suffix matching',
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("new", "expected"), [row[1:] for row in SCHEMAS], ids=[row[0] for row in SCHEMAS])
def test_schemas_are_validated(new: Object, expected: list[str]) -> None:
    assert errors(SCHEMA, new) == expected


def level(name: str = "x", **spec: object) -> Object:
    return {"metadata": {"name": name}, "spec": spec}


def queued(**queuing: int) -> Object:
    return level(type="Limited", limited={"limitResponse": {"type": "Queue", "queuing": queuing}})


QUEUING = "spec.limited.limitResponse.queuing"
LEVELS: list[tuple[str, Object, list[str]]] = [
    ("queues", queued(), []),
    ("no type", level(), ["spec.type: Required value"]),
    (
        "exempt under another name",
        level(type="Exempt"),
        ["spec.type: Invalid value: \"Exempt\": type must be 'Exempt' if and only if name is 'exempt'"],
    ),
    ("exempt", level("exempt", type="Exempt", exempt={}), []),
    ("limited without limits", level(type="Limited"), ["spec.limited: Required value: must not be empty when type is Limited"]),
    (
        "queues that reject",
        level(type="Limited", limited={"limitResponse": {"type": "Reject", "queuing": {}}}),
        [f"{QUEUING}: Forbidden: must be nil if limited.limitResponse.type is not Limited"],
    ),
    (
        "a hand larger than the deck",
        queued(queues=2, handSize=3),
        [f"{QUEUING}.handSize: Invalid value: 3: should not be greater than queues (2)"],
    ),
    (
        "too many hands",
        queued(queues=1024, handSize=7),
        [
            f"{QUEUING}.handSize: Invalid value: 7: "
            "required entropy bits of deckSize 1024 and handSize 7 should not be greater than 60"
        ],
    ),
    (
        "more than all is lent",
        level(type="Limited", limited={"lendablePercent": 101, "limitResponse": {"type": "Reject"}}),
        ["spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("new", "expected"), [row[1:] for row in LEVELS], ids=[row[0] for row in LEVELS])
def test_levels_are_validated(new: Object, expected: list[str]) -> None:
    assert errors(LEVEL, new) == expected


def test_levels_and_schemas_are_defaulted() -> None:
    assert filled(SCHEMA, schema())["spec"]["matchingPrecedence"] == 1000
    limited = filled(LEVEL, queued())["spec"]["limited"]
    assert (limited["nominalConcurrencyShares"], limited["lendablePercent"]) == (30, 0)
    assert limited["limitResponse"]["queuing"] == {"queues": 64, "handSize": 8, "queueLengthLimit": 50}


def test_conditions_have_types_once() -> None:
    status = {"status": {"conditions": [{"type": "A"}, {"type": "A"}]}}
    assert errors(LEVEL, status, {}, "status") == ['status.conditions[1].type: Duplicate value: "A"']
