"""The values that the expressions of a policy make together are limited, and die with the evaluation."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from noxu.admission.expressions import ConditionError, Evaluation, Inputs, MatchConditions, run_within_budget
from noxu.cel import Composition
from noxu.cpu_budget import CpuBudget
from noxu.registry.turns import LoopBudget, LoopBudgetExceeded
from tests.timing import longest_block

SEEN = Inputs({"metadata": {"name": "w"}, "text": "x" * 1000, "list": [1, 2]}, None, {})
LIMITED = "operation cancelled: memory limit exceeded (16 MiB of values)"


def doubled(start: str, count: int = 28) -> list[tuple[str, str]]:
    """Variables of which each is twice the one before."""
    return [("v0", start), *((f"v{n}", f"variables.v{n - 1} + variables.v{n - 1}") for n in range(1, count))]


def evaluation(variables: list[tuple[str, str]], *texts: str) -> list[Any]:
    """The value of each expression, or its error."""
    composition = Composition(variables, params=False)
    running = Evaluation(SEEN, composition)
    results = [running.run(composition.expression(text)) for text in texts]
    return [result.error or result.value for result in results]


@pytest.mark.parametrize("start", ["[1]", "'x'", "b'x'", "object.list", "object.text"])
def test_variables_that_double_are_limited(start: str) -> None:
    (error,) = evaluation(doubled(start), "variables.v27.size() > 0")
    assert error.endswith(LIMITED)


def test_values_of_variables_count_together() -> None:
    variables = [(f"v{n}", "lists.range(20000)") for n in range(40)]
    *sizes, last = evaluation(variables, *(f"variables.v{n}.size()" for n in range(40)))
    assert sizes[:20] == [20000] * 20
    assert last.endswith(LIMITED)


@pytest.mark.slow
def test_what_only_one_expression_needs_does_not_count_for_the_next() -> None:
    assert evaluation([("v", "lists.range(20000).size()")], *["lists.range(200000).size() > 0"] * 40) == [True] * 40


def test_match_conditions_are_limited() -> None:
    text = "[object.list]" + ".map(l, l + l)" * 30 + "[0].size() > 0"
    conditions = MatchConditions([{"expression": text}])
    with pytest.raises(ConditionError, match="memory limit exceeded"):
        conditions.met_within(None, SEEN, fail=True)


def test_values_die_with_the_evaluation() -> None:
    composition = Composition([*doubled("[1]"), ("missing", "object.missing")], params=False)
    texts = ["variables.v9.size() > 0", "variables.v27.size() > 0", "variables.missing || int(object.text) == 1"]
    expressions = [composition.expression(text) for text in texts]

    def evaluated() -> None:
        running = Evaluation(SEEN, composition)
        for expression in expressions:
            running.run(expression)

    evaluated()
    gc.collect()
    gc.disable()
    try:
        evaluated()
        assert gc.collect() == 0
    finally:
        gc.enable()


async def test_large_values_are_not_made_in_the_loop() -> None:
    composition = Composition(doubled("object.text"), params=False)
    doubling, large = map(composition.expression, ("variables.v27.size() > 0", "lists.range(300000).size() > 0"))
    with pytest.raises(LoopBudgetExceeded):
        Evaluation(SEEN, composition, cpu_budget=LoopBudget()).run(large)

    def work(cpu_budget: CpuBudget | None) -> str:
        return Evaluation(SEEN, composition, cpu_budget=cpu_budget).run(doubling).error

    error, block = await longest_block(lambda: run_within_budget(0, work))
    assert error.endswith(LIMITED)
    assert block < 0.15
