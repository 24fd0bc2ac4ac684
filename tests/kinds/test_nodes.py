"""Nodes and RuntimeClasses: what is new, validation, what is immutable."""

from __future__ import annotations

import pytest

from noxu.values import Object
from tests.kinds.typed_objects import errors, filled, kind_of, prepared, typed
from tests.rows import rows

NODE, RUNTIME = kind_of("v1", "Node"), kind_of("node.k8s.io/v1", "RuntimeClass")
TAINT = {"key": "a", "effect": "NoSchedule"}
CIDR_CHANGED = 'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'

NODES: list[tuple[str, Object, Object | None, list[str]]] = [
    ("nothing", {}, None, []),
    (
        "an unknown effect",
        {"spec": {"taints": [{"key": "a", "effect": "X"}, {"key": "b"}]}},
        None,
        [
            'metadata.taints[0].effect: Unsupported value: "X": supported values: "NoSchedule", "PreferNoSchedule", '
            '"NoExecute"',
            "metadata.taints[1].effect: Required value",
        ],
    ),
    (
        "a taint twice",
        {"spec": {"taints": [TAINT, {**TAINT, "value": "b"}]}},
        None,
        [
            'metadata.taints[1]: Duplicate value: {"key":"a","value":"b","effect":"NoSchedule"}: '
            "taints must be unique by key and effect pair"
        ],
    ),
    (
        "a fraction of a pod",
        {"status": {"capacity": {"pods": "1500m"}}},
        None,
        [f'status.{kind}.pods: Invalid value: "1500m": must be an integer' for kind in ("capacity", "allocatable")],
    ),
    (
        "two networks of one family",
        {"spec": {"podCIDRs": ["10.0.0.0/24", "10.1.0.0/24"]}},
        None,
        [
            'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: '
            "may specify no more than one CIDR for each IP family"
        ],
    ),
    ("a network", {"spec": {"podCIDR": "10.0.0.0/24"}}, {}, []),
    ("another network", {"spec": {"podCIDR": "10.0.0.0/24"}}, {"spec": {"podCIDR": "10.1.0.0/24"}}, [CIDR_CHANGED]),
    ("an identity", {"spec": {"providerID": "a"}}, {}, []),
    (
        "another identity",
        {"spec": {"providerID": "b"}},
        {"spec": {"providerID": "a"}},
        ["spec.providerID: Invalid value: null: field cannot be modified once set"],
    ),
    (
        "an address twice",
        {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}] * 2}},
        {},
        ['status.addresses[1]: Duplicate value: {"type":"InternalIP","address":"10.0.0.1"}'],
    ),
]


@rows(("new", "old", "expected"), [row[1:] for row in NODES], ids=[row[0] for row in NODES])
def test_nodes_are_validated(new: Object, old: Object | None, expected: list[str]) -> None:
    assert errors(NODE, new, old) == expected


def test_a_new_node_keeps_its_status() -> None:
    value = prepared(NODE, {"status": {"capacity": {"cpu": "2"}}})
    assert (value["status"]["capacity"], value["status"]["allocatable"]) == ({"cpu": "2"}, {"cpu": "2"})
    assert "capacity" not in prepared(NODE, {"status": {"capacity": {"cpu": "2"}}}, {})["status"]


def test_the_networks_of_a_node_have_two_fields() -> None:
    assert filled(NODE, {"spec": {"podCIDR": "10.0.0.0/24"}})["spec"]["podCIDRs"] == ["10.0.0.0/24"]
    assert filled(NODE, {"spec": {"podCIDRs": ["10.0.0.0/24"]}})["spec"]["podCIDR"] == "10.0.0.0/24"


def test_fields_without_effect_are_warned_of() -> None:
    node = typed(NODE, {"spec": {"externalID": "a"}})
    assert NODE.warnings(node, None) == ["spec.externalID: this field is deprecated, and is unused by Kubernetes"]
    assert NODE.warnings(node, node) == []


CLASSES: list[tuple[str, Object, Object | None, list[str]]] = [
    ("a class", {"handler": "runc"}, None, []),
    ("no handler", {"handler": ""}, None, ["handler: Required value"]),
    ("another handler", {"handler": "b"}, {"handler": "a"}, ['handler: Invalid value: "b": field is immutable']),
    (
        "a negative overhead",
        {"handler": "a", "overhead": {"podFixed": {"cpu": "-1"}}},
        None,
        ['overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
    ),
]


@pytest.mark.parametrize(("new", "old", "expected"), [row[1:] for row in CLASSES], ids=[row[0] for row in CLASSES])
def test_runtime_classes_are_validated(new: Object, old: Object | None, expected: list[str]) -> None:
    assert errors(RUNTIME, new, old) == expected
