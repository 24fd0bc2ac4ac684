"""Selections: the value of `a.b[0]`, and the elements of lists and maps, by index, by key, and in order.

An attribute is an operand with all its selections and indices, which cel-go resolves and charges as one:

    self.spec.ports[0].name   →   base self, with the qualifiers spec, ports, 0, name
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from noxu.cel.errors import CelError
from noxu.cel.syntax.ast import Call, Expr, Ident, Select
from noxu.cel.values.conversions import go_type, go_value
from noxu.cel.values.numbers import Uint
from noxu.cel.values.values import (
    ABSENT,
    LISTS,
    MAPS,
    FailedConversion,
    JsonList,
    JsonObject,
    LazyMap,
    MapValue,
    Opaque,
    UntypedMap,
    Value,
    from_json_or_failed,
    type_of,
)


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


def select(value: Value, key: Value, *, presence: bool) -> Value:
    """`value[key]` or `value.key`. Raises CelError if it does not exist; with `presence`, returns ABSENT instead."""
    if isinstance(value, MAPS):
        item = value.find(key)
        if item is ABSENT and not presence:
            raise CelError(f"no such key: {go_value(key)}")
        return item
    if isinstance(value, LISTS):
        return _element(value, key, presence=presence)
    item = value.field(key) if isinstance(value, Opaque) else ABSENT
    if presence or item is not ABSENT:
        return item
    raise CelError(f"no such key: {go_value(key)}")


def _element(items: Value, key: Value, *, presence: bool) -> Value:
    position = _position(key)
    if not 0 <= position < len(items):
        if presence:
            return ABSENT
        raise CelError(f"index out of bounds: {go_value(key)}")
    if isinstance(items, JsonList) and type(key) is not int:
        raise CelError(f"unsupported index: {go_value(key)}")
    return items[position]


def _position(key: Value) -> int:
    """The index that a number of any type stands for: 1, 1u and 1.0 are the same."""
    if type(key) is int:
        return key
    if type(key) is Uint and key < 2**63:
        return int(key)
    if type(key) is float and key.is_integer() and -(2.0**63) < key < 2.0**63:
        return int(key)
    if type(key) in (float, Uint):
        raise CelError(f"unsupported index value {go_value(key)} in list")
    raise CelError(f"unsupported index type '{type_of(key).name}' in list")


def entries(items: Value, *, two: bool) -> Iterator[tuple[Value, Value]]:
    """The iterations of a comprehension, as the values of its two variables.

        one variable    ['a']  →  ('a', None)     {'k': 1}  →  ('k', None)
        two variables   ['a']  →  (0, 'a')        {'k': 1}  →  ('k', 1)

    Elements that cannot be converted are `Failed`.
    """
    if isinstance(items, JsonList):
        schema = items.items
        elements: Iterator[Value] = (from_json_or_failed(raw, schema) for raw in items.raw)
        return enumerate(elements) if two else ((element, None) for element in elements)
    if isinstance(items, LISTS):
        return enumerate(items) if two else ((element, None) for element in items)
    if isinstance(items, MAPS):
        if not two:
            return ((key, None) for key in items)
        return ((key, _find_or_failed(items, key)) for key in items)
    name = go_type(items)
    if two:
        raise CelError(f"unsupported comprehension range type: {name}")
    raise CelError(f"got '{name}', expected iterable type")


def _find_or_failed(items: MapValue | JsonObject | UntypedMap | LazyMap, key: Value) -> Value:
    try:
        return items.find(key)
    except CelError as error:
        return FailedConversion(error.message)
