"""What comparing rules costs: users write both sides. `tests/http/test_escalation.py` has what is compared."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noxu.cpu_budget import limited_by
from noxu.kinds.policy_rules import missing
from noxu.registry.turns import LoopBudget, LoopBudgetExceeded
from noxu.values import Object
from tests.timing import cpu_seconds


def rules(count: int, *, same: bool = False) -> list[Object]:
    """Rules about one resource each, or verbs for the same one."""
    if same:
        return [{"verbs": [f"v{n}"], "apiGroups": [""], "resources": ["a"]} for n in range(count)]
    return [{"verbs": ["get"], "apiGroups": [""], "resources": [f"a{n}"]} for n in range(count)]


def names(count: int) -> list[Object]:
    """Rules about one object each."""
    return [{"verbs": ["get"], "apiGroups": [""], "resources": ["a"], "resourceNames": [f"n{n}"]} for n in range(count)]


@pytest.mark.parametrize("of", [rules, names])
def test_rules_about_other_objects_cost_nothing(of: Callable[[int], list[Object]]) -> None:
    few, many = of(500), of(8000)
    once = cpu_seconds(lambda: missing(reversed(few), few))
    assert cpu_seconds(lambda: missing(reversed(many), many)) < 64 * once, (
        "Each with each would take 256 times as long."
    )


@pytest.mark.slow
def test_rules_that_repeat_each_other_cost_what_one_costs() -> None:
    other: list[Object] = [{"verbs": ["list"], "apiGroups": [""], "resources": ["a0"]}]
    repeated = rules(1) * 4000
    assert missing(repeated, other * 4000) == other * 4000
    assert cpu_seconds(lambda: missing(repeated, other * 4000)) < 10 * cpu_seconds(
        lambda: missing(rules(4000), rules(4000))
    )


@pytest.mark.slow
def test_comparing_each_with_each_spends_the_budget() -> None:
    held = rules(10_000, same=True)
    with limited_by(LoopBudget()), pytest.raises(LoopBudgetExceeded):
        missing(held, reversed(held))
