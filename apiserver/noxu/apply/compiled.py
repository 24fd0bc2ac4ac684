"""The fast path of ownership: one pass over a value checks that it is of its type, and returns its `typed.whole`.

Objects of a kind have similar shapes. For every map type, the shapes seen so far (the keys, and the Python types of their
values) are cached with their result: the node with all leaves, and the children that have to be visited. So a map of
leaves is one dictionary lookup, and its node is shared by all objects:

    {"name": "a", "port": 80, "args": ["x"]}
    shape     ("name", "port", "args", str, int, list)
    cached    {".": {}, "f:name": {}, "f:port": {}, "f:args": {}}, and the child args with the function for its type

In doubt (a value that does not fit, an item that repeats or has no keys) `Unsure` is raised, and `typed.validate` and
`typed.whole` decide. That they never disagree is a property test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from noxu.apply.fieldset import MEMBER, SELF, Element, FieldSet, value
from noxu.apply.typed import BadItem, deduced, item_of
from noxu.apply.types import DEDUCED, ListType, MapType, Type
from noxu.values import Json, Object

MAX_SHAPES: Final = 1000
"""Cached shapes of a map type."""
MAX_NAMES: Final = 4096
"""Characters in all keys of a cached shape. Clients choose the keys, so the cache is bounded."""

NodeOf: TypeAlias = Callable[[Json], FieldSet]
"""Returns the node of a non-empty map (or list) of a type, itself included. Raises Unsure."""


class Unsure(Exception):
    """The value may not be of its type."""


class NodeFunctions(NamedTuple):
    """The functions of a type."""

    map: NodeOf
    list: NodeOf


def accept(obj: Object, kind: Type) -> FieldSet:
    """The node of an object of the type, itself included. Raises Unsure if it may not be of the type."""
    return _functions(kind).map(obj)


def _functions(kind: Type) -> NodeFunctions:
    """The functions of a type, created once."""
    if kind.node_functions is None:
        if kind.open:
            kind.node_functions = NodeFunctions(deduced if kind is DEDUCED else _leaf, _leaf)
        else:
            kind.node_functions = NodeFunctions(_of_map(kind.map), _of_list(kind.list))
    functions: NodeFunctions = kind.node_functions
    return functions


def _leaf(_: Json) -> FieldSet:
    return MEMBER


def _not_of_type(_: Json) -> FieldSet:
    raise Unsure


_Child: TypeAlias = tuple[str, Element, NodeOf]  # (name, element, function)


def _of_map(kind: MapType | None) -> NodeOf:
    if kind is None:
        return _not_of_type
    shapes: dict[tuple[object, ...], tuple[FieldSet, list[_Child]]] = {}
    atomic = kind.atomic

    def of_map(mapping: Object) -> FieldSet:
        key = (*mapping, *map(type, mapping.values()))
        shape = shapes.get(key)
        if shape is None:
            shape = _shape(mapping, kind)
            if sum(map(len, mapping)) <= MAX_NAMES:
                if len(shapes) == MAX_SHAPES:
                    shapes.clear()
                shapes[key] = shape
        leaves, children = shape
        if not children:
            return MEMBER if atomic else leaves
        node = leaves.copy()
        for name, element, node_of in children:
            if child := mapping[name]:
                node[element] = node_of(child)
        return MEMBER if atomic else node

    return of_map


def _shape(mapping: Object, kind: MapType) -> tuple[FieldSet, list[_Child]]:
    """(a node with every key as a leaf, the children that are containers). Raises Unsure."""
    node: FieldSet = {SELF: MEMBER}
    children: list[_Child] = []
    for name, child in mapping.items():
        known = kind.fields.get(name)
        element, inner = ("f:" + name, kind.values) if known is None else known
        if inner is None:
            raise Unsure
        node[element] = MEMBER
        if type(child) is dict or type(child) is list:
            children.append((name, element, _node_function(inner, child)))
        elif child is not None and type(child) not in inner.scalars:
            raise Unsure
    return node, children


def _node_function(kind: Type, container: Json) -> NodeOf:
    """The function for a map or list of that type. Raises Unsure if the type has none."""
    of_map, of_list = _functions(kind)
    function = of_map if type(container) is dict else of_list
    if function is _not_of_type:
        raise Unsure
    return function


def _of_list(kind: ListType | None) -> NodeOf:
    if kind is None:
        return _not_of_type
    if not kind.associative:
        return _of_atomic_list(kind.items)
    return _of_list_map(kind) if kind.keys else _of_set(kind.items)


def _of_atomic_list(items: Type) -> NodeOf:
    fitting = items.scalars | {type(None)}

    def of_atomic_list(values: Json) -> FieldSet:
        if not fitting.issuperset(map(type, values)):
            for item in values:
                if type(item) is dict or type(item) is list:
                    node_of = _node_function(items, item)
                    if item:
                        node_of(item)
                elif type(item) not in fitting:
                    raise Unsure
        return MEMBER

    return of_atomic_list


def _of_set(items: Type) -> NodeOf:
    fitting = items.scalars

    def of_set(values: Json) -> FieldSet:
        types = {*map(type, values)}
        if float in types or not fitting.issuperset(types):  # numbers may be equal for Go only (see `typed.identified`)
            raise Unsure
        node = dict.fromkeys(map(value, values), MEMBER)
        if len(node) != len(values):
            raise Unsure
        node[SELF] = MEMBER
        return node

    return of_set


def _of_list_map(kind: ListType) -> NodeOf:
    name, elements = kind.keys[0] if kind.only_key else "", kind.elements

    def of_list_map(values: Json) -> FieldSet:
        node_of = _functions(kind.items).map
        node: FieldSet = {SELF: MEMBER}
        for item in values:
            key = item.get(name) if type(item) is dict else None
            element = elements.get(key) if type(key) is str else None
            if element is None:
                if type(item) is not dict or any(type(item.get(key)) is float for key in kind.keys):
                    raise Unsure
                try:
                    element = item_of(kind, item)
                except BadItem:
                    raise Unsure from None
            if element in node:
                raise Unsure
            node[element] = node_of(item) if item else MEMBER
        return node

    return of_list_map
