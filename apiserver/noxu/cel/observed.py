"""The values that an expression used, which explain why a rule failed.

    self.minReplicas <= self.maxReplicas   →   self.minReplicas = 5, self.maxReplicas = 2

These are the values of its attributes: variables with their selections and constant indices, and `size(…)` of these. Parts
that depend on the variable of a macro are left out, because they have a different value in each iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from noxu.cel.cost.runtime import PER_CALL_LIMIT
from noxu.cel.program import Program
from noxu.cel.syntax.ast import Call, Comprehension, Expr, Ident, Literal, Select, children
from noxu.cel.values.conversions import go_value
from noxu.cel.values.values import JsonList, JsonObject, Value
from noxu.go.text import compact_json, quote

MAX_VALUES: Final = 20
MAX_LENGTH: Final = 200  # characters of a value


def observed_values(program: Program, variables: Mapping[str, Value]) -> dict[str, str]:
    """The value of each attribute, or its error, by the text of the attribute, in their order in the expression."""
    found: dict[str, str] = {}
    for node, text in _attributes(program.tree, frozenset()):
        if len(found) == MAX_VALUES:
            break
        if text not in found:
            outcome = program.evaluate_node(node, variables, PER_CALL_LIMIT)
            found[text] = f"error: {outcome.error}" if outcome.error else _shown(outcome.value)
    return found


def _attributes(node: Expr, bound: frozenset[str]) -> Iterator[tuple[Expr, str]]:
    """The attributes in an expression with their texts, except those that depend on `bound` variables."""
    text = _text(node, bound)
    if text and not isinstance(node, Ident):
        yield node, text
        return
    if isinstance(node, Comprehension):
        inside = bound | {node.variable, node.variable2, node.accumulator}
        yield from _attributes(node.range, bound)
        yield from _attributes(node.step, inside)
        return
    if isinstance(node, Ident) and text and node.constant is None:
        yield node, text
    for child in children(node):
        yield from _attributes(child, bound)


def _text(node: Expr, bound: frozenset[str]) -> str:
    """The text of an attribute, "" if the expression is not one."""
    match node:
        case Ident():
            return "" if node.name in bound or node.constant is not None else node.name
        case Select():
            operand = _text(node.operand, bound)
            selection = f"{operand}.{node.field}"
            return operand and (f"has({selection})" if node.test else selection)
        case Call(function="_[_]", args=[operand, Literal(value=index)]):
            container = _text(operand, bound)
            return container and f"{container}[{quote(index) if isinstance(index, str) else index}]"
        case Call(function="size") if len(node.operands) == 1:
            container = _text(node.operands[0], bound)
            return container and f"size({container})"
    return ""


def _shown(value: Value) -> str:
    if isinstance(value, (JsonObject, JsonList)):
        text = compact_json(value.raw)
    elif isinstance(value, str):
        text = quote(value)
    else:
        text = go_value(value)
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}…"
