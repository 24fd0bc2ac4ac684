"""The fast path of ownership: one pass over a value checks that it is of its type, and returns its `typed.whole`.

Objects of a kind have similar shapes. For every map type, the shapes seen so far (the keys, and the Python types of their
values) are cached with their result: the node with all leaves, and the children that have to be visited. So a map of
leaves is one dictionary lookup, and its node is shared by all objects:

    {"name": "a", "port": 80, "args": ["x"]}
    shape     ("name", "port", "args", str, int, list)
    cached    {".": {}, "f:name": {}, "f:port": {}, "f:args": {}}, and the child args with the function for its type

An object that certainly is of its type has its own functions: they do not look into atomic lists and maps, which have one
owner. A create of a custom resource with 30 objects in such a list takes 6 % less (`benchmarks.http`).

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


def accept(obj: Object, kind: Type, *, of_type: bool = False) -> FieldSet:
    """The node of an object of the type, itself included. Raises Unsure if it may not be of the type; `of_type`: it is."""
    return _functions(kind, of_type).map(obj)


def _functions(kind: Type, of_type: bool) -> NodeFunctions:
    """The functions of a type, created once."""
    functions: NodeFunctions | None = kind.node_functions.get(of_type)
    if functions is None:
        if kind.open:
            functions = NodeFunctions(deduced if kind is DEDUCED else _leaf, _leaf)
        else:
            functions = NodeFunctions(_of_map(kind.map, of_type), _of_list(kind.list, of_type))
        kind.node_functions[of_type] = functions
    return functions


def _leaf(_: Json) -> FieldSet:
    return MEMBER


def _not_of_type(_: Json) -> FieldSet:
    raise Unsure


_Child: TypeAlias = tuple[str, Element, NodeOf]  # (name, element, function)


def _of_map(kind: MapType | None, of_type: bool) -> NodeOf:
    if kind is None:
        return _not_of_type
    if kind.atomic and of_type:
        return _leaf
    shapes: dict[tuple[object, ...], tuple[FieldSet, list[_Child]]] = {}
    atomic = kind.atomic

    def of_map(mapping: Object) -> FieldSet:
        key = (*mapping, *map(type, mapping.values()))
        shape = shapes.get(key)
        if shape is None:
            shape = _shape(mapping, kind, of_type)
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


def _shape(mapping: Object, kind: MapType, of_type: bool) -> tuple[FieldSet, list[_Child]]:
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
            node_of = _node_function(inner, child, of_type)
            if node_of is not _leaf:  # else it is a leaf already
                children.append((name, element, node_of))
        elif child is not None and type(child) not in inner.scalars:
            raise Unsure
    return node, children


def _node_function(kind: Type, container: Json, of_type: bool) -> NodeOf:
    """The function for a map or list of that type. Raises Unsure if the type has none."""
    of_map, of_list = _functions(kind, of_type)
    function = of_map if type(container) is dict else of_list
    if function is _not_of_type:
        raise Unsure
    return function


def _of_list(kind: ListType | None, of_type: bool) -> NodeOf:
    if kind is None:
        return _not_of_type
    if not kind.associative:
        return _leaf if of_type else _of_atomic_list(kind.items)
    return _of_list_map(kind, of_type) if kind.keys else _of_set(kind.items)


def _of_atomic_list(items: Type) -> NodeOf:
    fitting = items.scalars | {type(None)}

    def of_atomic_list(values: Json) -> FieldSet:
        if not fitting.issuperset(map(type, values)):
            for item in values:
                if type(item) is dict or type(item) is list:
                    node_of = _node_function(items, item, False)
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


def _of_list_map(kind: ListType, of_type: bool) -> NodeOf:
    name, elements = kind.keys[0] if kind.only_key else "", kind.elements

    def of_list_map(values: Json) -> FieldSet:
        node_of = _functions(kind.items, of_type).map
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
