"""Attributes: an operand with all its selections and indices, which cel-go resolves and charges as one.

self.spec.ports[0].name   →   base self, with the qualifiers spec, ports, 0, name
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from noxu.cel.syntax.ast import Call, Expr, Ident, Select
from noxu.cel.values.values import Value


class Qualifier(NamedTuple):
    """A step of an attribute: the field or constant index `key`, or the expression `key_node`. `test`: it is in a has()."""

    key: Value
    key_node: Expr | None
    optional: bool
    test: bool = False


class AttributePlan(NamedTuple):
    """`name` is that of the base if this is an identifier, else "". `qualifiers` are in reverse order: the last is first.

    `cost` is that of the attribute, `qualifier_cost` that of each qualifier:

        self.a.b                     1 for the attribute, 2 for two qualifiers: 3
        has(self.a.b)                0 + 2: 2
        self.c ? self.a : self.b     0 for the attribute, 2 for self.c, 1 for the qualifier of the branch: 3
    """

    base: Expr
    name: str
    qualifiers: tuple[Qualifier, ...]
    cost: int
    qualifier_cost: int


def is_attribute(node: Expr) -> bool:
    if isinstance(node, Call):
        return node.function in ("_[_]", "_[?_]", "_?._", "_?_:_")
    return isinstance(node, (Ident, Select))


def plan_attribute(node: Expr, constants: Mapping[Expr, Value]) -> AttributePlan:
    """The plan of an attribute, given the values of folded nodes."""
    cost = (0 if _begins_with_conditional(node) else 1) - (1 if isinstance(node, Select) and node.test else 0)
    base, qualifiers = node, []
    while base not in constants:
        match base:
            case Select():
                qualifiers.append(Qualifier(base.field, None, False, base.test))
                base = base.operand
                continue
            case Call(function="_[_]" | "_[?_]" | "_?._"):
                index, optional = base.args[1], base.function != "_[_]"
                is_constant = index in constants
                key, expression = (constants[index], None) if is_constant else (None, index)
                qualifiers.append(Qualifier(key, expression, optional))
                base = base.args[0]
                continue
        break
    name = base.name if isinstance(base, Ident) and base not in constants else ""
    qualifier_cost = 0 if name.startswith(".") else 1  # cel-go does not count those of disambiguated names
    return AttributePlan(base, name, tuple(qualifiers), cost, qualifier_cost)


def _begins_with_conditional(node: Expr) -> bool:
    while True:
        match node:
            case Select():
                node = node.operand
            case Call(function="_[_]" | "_[?_]" | "_?._"):
                node = node.args[0]
            case Call(function="_?_:_"):
                return True
            case _:
                return False
