"""Plans of attributes: base, qualifiers and costs."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.cel.evaluation.selection import is_attribute, plan_attribute
from tests.cel.evaluate import program
from tests.rows import rows

PLANS = [  # expression, name of the base, qualifiers from the last to the first, cost of the attribute
    ("an identifier", "d", "d", [], 1),
    ("selections", "d.a.b", "d", ["b", "a"], 1),
    ("has", "has(d.a.b)", "d", ["has b", "a"], 0),
    ("a constant index", "d.a[0]", "d", [0, "a"], 1),
    ("a computed index", "l[i]", "l", ["computed"], 1),
    ("an optional selection", "d.?a.b", "d", ["b", "?a"], 1),
    ("an optional index", "l[?0]", "l", ["?0"], 1),
    ("of a call", "dyn(d).a", "", ["a"], 1),
    ("of a literal", "[i][0]", "", [0], 1),
    ("of a conditional", "(i > 0 ? l : l)[0]", "", [0], 0),
    ("a conditional", "i > 0 ? i : 1", "", [], 0),
]


@rows(("text", "name", "qualifiers", "cost"), [row[1:] for row in PLANS], ids=[row[0] for row in PLANS])
def test_the_plan_of_an_attribute(text: str, name: str, qualifiers: list[object], cost: int) -> None:
    expression = program(text)
    plan = plan_attribute(expression.tree, expression.instantiate().values)
    shown: list[object] = []
    for one in plan.qualifiers:
        if one.key_node is not None:
            shown.append("computed")
        else:
            shown.append(f"?{one.key}" if one.optional else f"has {one.key}" if one.test else one.key)
    assert (plan.name, shown, plan.cost, plan.qualifier_cost) == (name, qualifiers, cost, 1)


def test_qualifiers_of_a_name_after_a_dot_that_a_macro_hides_cost_nothing() -> None:
    tree: Any = program("l.all(d, .d.a.b)").tree
    plan = plan_attribute(tree.step.args[1], {})
    assert (plan.name, plan.qualifier_cost) == (".d", 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("i", True), ("d.a", True), ("l[0]", True), ("i > 0 ? 1 : 2", True), ("i + 1", False), ("1", False)],
)
def test_what_an_attribute_is(text: str, expected: bool) -> None:
    assert is_attribute(program(text).tree) is expected
