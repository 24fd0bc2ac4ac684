"""The fast path of ownership: one pass over a value says that it is of its type, and gives its `typed.whole`.

Objects of a kind look alike. For every map type the shapes met so far — which keys there are, with values of which
Python types — are remembered with what they come to: the node with all its leaves, and the children that need a look of
their own. A map of leaves is then one dictionary lookup, and its node is shared by all objects.

At any doubt (a value that does not fit, an item twice or without a place) `Unsure` is raised, and `typed.validate` and
`typed.whole` decide. That they never disagree is a property test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from apiserver.api.types import Json, Object
from apiserver.apply.fieldset import MEMBER, SELF, Element, FieldSet, value
from apiserver.apply.typed import BadItem, deduced, item_of
from apiserver.apply.types import DEDUCED, ListType, MapType, Type

MAX_SHAPES: Final = 1000
MAX_NAMES: Final = 4096
"""Of a map type, and characters of all keys of a shape. Keys are the client's to choose: the memory of them ends."""

Look: TypeAlias = Callable[[Json], FieldSet]
"""The node of a non-empty map (or of a non-empty list) of a type, itself included. Raises Unsure."""


class Unsure(Exception):
    """The value may not be of its type."""


class Looks(NamedTuple):
    """How values of a type are looked at."""

    map: Look
    list: Look


def accept(one: Object, kind: Type) -> FieldSet:
    """The node of an object of the type, itself included. Raises Unsure."""
    return _looks(kind).map(one)


def _looks(kind: Type) -> Looks:
    """The functions of a type, made once."""
    if kind.looks is None:
        if kind.open:
            kind.looks = Looks(deduced if kind is DEDUCED else _leaf, _leaf)
        else:
            kind.looks = Looks(_of_map(kind.map), _of_list(kind.list))
    made: Looks = kind.looks
    return made


def _leaf(_: Json) -> FieldSet:
    return MEMBER


def _refused(_: Json) -> FieldSet:
    raise Unsure


_Child: TypeAlias = tuple[str, Element, Look]


def _of_map(kind: MapType | None) -> Look:
    if kind is None:
        return _refused
    shapes: dict[tuple[object, ...], tuple[FieldSet, list[_Child]]] = {}
    atomic = kind.atomic

    def of_map(one: Object) -> FieldSet:
        key = (*one, *map(type, one.values()))
        shape = shapes.get(key)
        if shape is None:
            shape = _shape(one, kind)
            if sum(map(len, one)) <= MAX_NAMES:
                if len(shapes) == MAX_SHAPES:
                    shapes.clear()
                shapes[key] = shape
        leaves, children = shape
        if not children:
            return MEMBER if atomic else leaves
        node = leaves.copy()
        for name, element, look in children:
            if child := one[name]:
                node[element] = look(child)
        return MEMBER if atomic else node

    return of_map


def _shape(one: Object, kind: MapType) -> tuple[FieldSet, list[_Child]]:
    """Every key as a leaf, and the children that are not, unless they are empty. Raises Unsure."""
    node: FieldSet = {SELF: MEMBER}
    children: list[_Child] = []
    for name, child in one.items():
        known = kind.fields.get(name)
        element, inner = ("f:" + name, kind.values) if known is None else known
        if inner is None:
            raise Unsure
        node[element] = MEMBER
        if type(child) is dict or type(child) is list:
            children.append((name, element, _look(inner, child)))
        elif child is not None and type(child) not in inner.scalars:
            raise Unsure
    return node, children


def _look(kind: Type, one: Json) -> Look:
    """The function for a map or a list of that type. Raises Unsure if the type has none."""
    of_map, of_list = _looks(kind)
    look = of_map if type(one) is dict else of_list
    if look is _refused:
        raise Unsure
    return look


def _of_list(kind: ListType | None) -> Look:
    if kind is None:
        return _refused
    if not kind.associative:
        return _of_atomic_list(kind.items)
    return _of_list_map(kind) if kind.keys else _of_set(kind.items)


def _of_atomic_list(items: Type) -> Look:
    fitting = items.scalars | {type(None)}

    def of_atomic_list(many: Json) -> FieldSet:
        if not fitting.issuperset(map(type, many)):
            for one in many:
                if type(one) is dict or type(one) is list:
                    look = _look(items, one)
                    if one:
                        look(one)
                elif type(one) not in fitting:
                    raise Unsure
        return MEMBER

    return of_atomic_list


def _of_set(items: Type) -> Look:
    fitting = items.scalars

    def of_set(many: Json) -> FieldSet:
        if not fitting.issuperset(map(type, many)):
            raise Unsure
        node = dict.fromkeys(map(value, many), MEMBER)
        if len(node) != len(many):
            raise Unsure
        node[SELF] = MEMBER
        return node

    return of_set


def _of_list_map(kind: ListType) -> Look:
    def of_list_map(many: Json) -> FieldSet:
        look = _looks(kind.items).map
        node: FieldSet = {SELF: MEMBER}
        for one in many:
            try:
                element = item_of(kind, one)
            except BadItem:
                raise Unsure from None
            if element in node:
                raise Unsure
            node[element] = look(one) if one else MEMBER
        return node

    return of_list_map
