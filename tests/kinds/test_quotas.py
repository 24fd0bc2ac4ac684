"""ResourceQuotas and LimitRanges: defaults and validation."""

from __future__ import annotations

import pytest

from noxu.values import Object
from tests.kinds.typed_objects import errors, filled, kind_of
from tests.rows import rows

QUOTA, LIMITS = kind_of("v1", "ResourceQuota"), kind_of("v1", "LimitRange")
NOT_STANDARD = "must be a standard resource type or fully qualified"
NOT_FOR_QUOTA = "must be a standard resource for quota"

QUOTAS: list[tuple[str, Object, Object | None, str, list[str]]] = [
    ("nothing", {}, None, "", []),
    (
        "compute and counts",
        {"spec": {"hard": {"cpu": "1", "pods": "3", "count/widgets.example.com": "2"}}},
        None,
        "",
        [],
    ),
    (
        "an unknown resource",
        {"spec": {"hard": {"foo": "1"}}},
        None,
        "",
        [f'spec.hard[foo]: Invalid value: "foo": {text}' for text in (NOT_STANDARD, NOT_FOR_QUOTA)],
    ),
    (
        "half a pod",
        {"spec": {"hard": {"pods": "500m"}}},
        None,
        "",
        ['spec.hard[pods]: Invalid value: "500m": must be an integer'],
    ),
    (
        "scopes that conflict",
        {"spec": {"scopes": ["Terminating", "NotTerminating"]}},
        None,
        "",
        ['spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes'],
    ),
    (
        "a scope of other resources",
        {"spec": {"hard": {"cpu": "1"}, "scopes": ["BestEffort"]}},
        None,
        "",
        ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
    ),
    (
        "a selector without values",
        {"spec": {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}}},
        None,
        "",
        [
            "spec.scopeSelector.matchExpressions.values: Required value: "
            "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        ],
    ),
    (
        "other scopes",
        {"spec": {"scopes": ["NotBestEffort"]}},
        {"spec": {"scopes": ["BestEffort"]}},
        "",
        ['spec.scopes: Invalid value: ["NotBestEffort"]: field is immutable'],
    ),
    (
        "negative use",
        {"status": {"used": {"pods": "-1"}}},
        {},
        "status",
        ['status.used[pods]: Invalid value: "-1": must be greater than or equal to 0'],
    ),
]


@pytest.mark.parametrize(("new", "old", "sub", "expected"), [row[1:] for row in QUOTAS], ids=[row[0] for row in QUOTAS])
def test_quotas_are_validated(new: Object, old: Object | None, sub: str, expected: list[str]) -> None:
    assert errors(QUOTA, new, old, sub) == expected


def limits(**limit: object) -> Object:
    return {"spec": {"limits": [{"type": "Container", **limit}]}}


LIMIT = "spec.limits[0]"
RANGES: list[tuple[str, Object, list[str]]] = [
    ("a range", limits(min={"cpu": "1"}, max={"cpu": "2"}), []),
    (
        "an unknown type",
        limits(type="Node"),
        [f'{LIMIT}.type: Invalid value: "Node": must be a standard limit type or fully qualified'],
    ),
    ("a type twice", {"spec": {"limits": [{"type": "Pod"}, {"type": "Pod"}]}}, ['spec.limits[1].type: Duplicate value: "Pod"']),
    (
        "a minimum above the maximum",
        limits(type="Pod", min={"cpu": "2"}, max={"cpu": "1"}),
        [f'{LIMIT}.min[cpu]: Invalid value: "2": min value 2 is greater than max value 1'],
    ),
    (
        "a default of pods",
        limits(type="Pod", default={"cpu": "1"}),
        [f"{LIMIT}.default: Forbidden: may not be specified when `type` is 'Pod'"],
    ),
    (
        "a default above the maximum",
        limits(default={"cpu": "3"}, max={"cpu": "2"}),
        [
            f'{LIMIT}.defaultRequest[cpu]: Invalid value: "3": default request value 3 is greater than max value 2',
            f'{LIMIT}.default[cpu]: Invalid value: "2": default value 3 is greater than max value 2',
        ],
    ),
    (
        "a ratio below one",
        limits(maxLimitRequestRatio={"cpu": "500m"}),
        [f'{LIMIT}.maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
    ),
    (
        "a ratio above the range",
        limits(type="Pod", min={"cpu": "1"}, max={"cpu": "2"}, maxLimitRequestRatio={"cpu": "3"}),
        [f'{LIMIT}.maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000'],
    ),
    (
        "claims without size",
        limits(type="PersistentVolumeClaim"),
        [f"{LIMIT}.limits: Required value: either minimum or maximum storage value is required, but neither was provided"],
    ),
    (
        "storage of containers",
        limits(max={"storage": "1"}),
        [
            f'{LIMIT}.{part}[storage]: Invalid value: "storage": must be a standard resource for containers'
            for part in ("max", "default", "defaultRequest")
        ],
    ),
]  # fmt: skip


@rows(("new", "expected"), [row[1:] for row in RANGES], ids=[row[0] for row in RANGES])
def test_limits_are_validated(new: Object, expected: list[str]) -> None:
    assert errors(LIMITS, new) == expected


def test_limits_of_containers_are_defaulted() -> None:
    (limit,) = filled(LIMITS, limits(max={"cpu": "2"}, min={"cpu": "1", "memory": "1Gi"}))["spec"]["limits"]
    assert limit["default"] == {"cpu": "2"}
    assert limit["defaultRequest"] == {"cpu": "2", "memory": "1Gi"}
