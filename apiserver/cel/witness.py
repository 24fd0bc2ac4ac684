"""What an expression saw: the values of the attributes in it, for people who ask why a rule failed.

    self.minReplicas <= self.maxReplicas   →   self.maxReplicas = 2, self.minReplicas = 5

An attribute is a variable with its selections and constant indices; `size(…)` of one is told, too. What depends on the
variable of a macro has no value of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.api.gotext import compact_json, quote
from apiserver.cel.ast import Call, Comprehension, Expr, Ident, Literal, Select, children
from apiserver.cel.conversions import go_value
from apiserver.cel.program import Program
from apiserver.cel.spending import PER_CALL_LIMIT
from apiserver.cel.values import JsonList, JsonObject, Value

MOST: Final = 20  # attributes that are told
LONGEST: Final = 200  # characters of a value


def witness(program: Program, variables: Mapping[str, Value]) -> dict[str, str]:
    """By the text of each attribute its value, or what is wrong with it, in the order in which they stand."""
    found: dict[str, str] = {}
    for node, text in _attributes(program.tree, frozenset()):
        if len(found) == MOST:
            break
        if text not in found:
            outcome = program.evaluate_part(node, variables, PER_CALL_LIMIT)
            found[text] = f"error: {outcome.error}" if outcome.error else _shown(outcome.value)
    return found


def _attributes(node: Expr, bound: frozenset[str]) -> Iterator[tuple[Expr, str]]:
    """The attributes of an expression with their texts, without those that hang on the `bound` names."""
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
    for inner in children(node):
        yield from _attributes(inner, bound)


def _text(node: Expr, bound: frozenset[str]) -> str:
    """An attribute as it is written, "" if the expression is none."""
    match node:
        case Ident():
            return "" if node.name in bound or node.constant is not None else node.name
        case Select():
            operand = _text(node.operand, bound)
            told = f"{operand}.{node.field}"
            return operand and (f"has({told})" if node.test else told)
        case Call(function="_[_]", args=[operand, Literal(value=index)]):
            inner = _text(operand, bound)
            return inner and f"{inner}[{quote(index) if isinstance(index, str) else index}]"
        case Call(function="size") if len(node.operands) == 1:
            inner = _text(node.operands[0], bound)
            return inner and f"size({inner})"
    return ""


def _shown(value: Value) -> str:
    if isinstance(value, (JsonObject, JsonList)):
        text = compact_json(value.raw)
    elif isinstance(value, str):
        text = quote(value)
    else:
        text = go_value(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
