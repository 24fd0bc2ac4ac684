"""PodDisruptionBudgets: validation, generations."""

from __future__ import annotations

import pytest

from noxu.values import Object
from tests.kinds.typed_objects import errors, kind_of, prepared

BUDGET = kind_of("policy/v1", "PodDisruptionBudget")
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
    "regex used for validation is '[0-9]+%')"
)

CASES: list[tuple[str, Object, str, list[str]]] = [
    ("nothing", {"spec": {}}, "", []),
    ("a number", {"spec": {"minAvailable": 1}}, "", []),
    ("a percentage", {"spec": {"maxUnavailable": "50%"}}, "", []),
    (
        "both",
        {"spec": {"minAvailable": 1, "maxUnavailable": 1}},
        "",
        [
            'spec: Invalid value: {"minAvailable":1,"maxUnavailable":1}: '
            "minAvailable and maxUnavailable cannot be both set"
        ],
    ),
    (
        "a negative number",
        {"spec": {"minAvailable": -1}},
        "",
        ["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"],
    ),
    ("no percentage", {"spec": {"minAvailable": "x"}}, "", [f'spec.minAvailable: Invalid value: "x": {PERCENT}']),
    (
        "more than all",
        {"spec": {"minAvailable": "101%"}},
        "",
        ['spec.minAvailable: Invalid value: "101%": must not be greater than 100%'],
    ),
    (
        "an unknown policy",
        {"spec": {"unhealthyPodEvictionPolicy": "X"}},
        "",
        ['spec.unhealthyPodEvictionPolicy: Unsupported value: "X": supported values: "AlwaysAllow", "IfHealthyBudget"'],
    ),
    (
        "a bad status",
        {"status": {"currentHealthy": -1, "conditions": [{"type": "A", "status": "True", "reason": "b"}]}},
        "status",
        [
            "status.conditions[0].lastTransitionTime: Required value",
            "status.currentHealthy: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
]


@pytest.mark.parametrize(("new", "subresource", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_budgets_are_validated(new: Object, subresource: str, expected: list[str]) -> None:
    assert errors(BUDGET, new, {} if subresource else None, subresource) == expected


def test_budgets_count_generations_and_need_a_version() -> None:
    assert (
        prepared(BUDGET, {"spec": {"minAvailable": 1}}, {"metadata": {"name": "x", "generation": 3}})["metadata"][
            "generation"
        ]
        == 4
    )
    assert not BUDGET.unconditional_update
