"""Values of a type: validation, and their field sets (structured-merge-diff's package typed).

There are two sets for a value. `to_set` has the fields that its applier claims: leaves, map keys and items of lists, but
not the structs around them. `whole` has the fields that an update adds with it: the same, and everything around them.

    {"spec": {"a": 1}}      to_set  {f:spec: {f:a}}         whole  {., f:spec: {., f:a}}

These functions recurse along types, which are bounded; where types end and the data's depth begins, they loop.

The fast path of ownership: one pass over a value checks that it is of its type, and returns its `typed.whole`.

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

from collections.abc import Callable, Collection
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from noxu.api.errors import reported, shortened
from noxu.apply.fieldset import EMPTY, MEMBER, SELF, Element, FieldSet, describe, difference, field, item, text, value
from noxu.apply.fieldset import value as value_element
from noxu.apply.types import DEDUCED, MAX_KEPT, MAX_KEPT_KEY, UNTYPED, ListType, MapType, Type
from noxu.go.text import default_format, go_syntax, go_type
from noxu.values import Json, Object


class BadItem(ValueError):
    """An item that an associative list cannot identify; the message is upstream's."""


def item_of(kind: ListType, value: Json) -> Element:
    """The path element of an associative list's item. Raises BadItem."""
    if not kind.keys:
        if isinstance(value, dict):
            raise BadItem("associative list without keys has an element that's a map type")
        if isinstance(value, list):
            raise BadItem("not supported: associative list with lists as elements")
        if value is None:
            raise BadItem("associative list without keys has an element that's an explicit null")
        return value_element(value)
    if value is None:
        raise BadItem("associative list with keys may not have a null element")
    if not isinstance(value, dict):
        raise BadItem("associative list with keys may not have non-map elements")
    if kind.only_key and kind.keys[0] in value:
        key = value[kind.keys[0]]
        element = kind.elements.get(key) if type(key) is str else None
        return _only_element(kind, key) if element is None else element
    present = [(key, value.get(key, kind.defaults.get(key))) for key in sorted(kind.keys) if _has_key(kind, value, key)]
    if not present:
        keys = " ".join(f'"{key}"' for key in kind.keys)
        raise BadItem(
            f"associative list with keys has an element that omits all key fields [{keys}]"
            " (and doesn't have default values for any key fields)"
        )
    return item(present)


def identified(kind: ListType, items: list[Json]) -> Callable[[Json], Element]:
    """`item_of` for the items of one list, in their order. The first of numbers that Go compares as equal names the others.

    That are 0 and -0.0, and an integer beyond 2^53 and the float that is nearest to it; integers differ from each other.
    """
    if not any(type(key) is float for value in items for key in _keys_of(kind, value)):
        return partial(item_of, kind)
    seen: dict[tuple[float | str, ...], list[tuple[list[Json], Element]]] = {}

    def first_equal(value: Json) -> Element:
        element, keys = item_of(kind, value), _keys_of(kind, value)
        alike = seen.setdefault(tuple(float(key) if type(key) in _NUMBERS else text(key) for key in keys), [])
        for others, equal_item in alike:
            if all(type(key) is not type(other) or key == other for key, other in zip(keys, others, strict=True)):
                return equal_item
        alike.append((keys, element))
        return element

    return first_equal


_NUMBERS: Final = (int, float)


def _keys_of(kind: ListType, value: Json) -> list[Json]:
    if not kind.keys:
        return [value]
    return [value.get(key, kind.defaults.get(key)) for key in kind.keys] if type(value) is dict else []


def _only_element(kind: ListType, key: Json) -> Element:
    element = f"{kind.only_key}{text(key)}}}"
    if type(key) is str and len(key) <= MAX_KEPT_KEY:
        if len(kind.elements) >= MAX_KEPT:
            kind.elements.clear()
        kind.elements[key] = element
    return element


def _has_key(kind: ListType, value: Json, key: str) -> bool:
    return key in value or kind.defaults.get(key) is not None


NO_ELEMENT: Final[Element] = "?"
"""Stands for an item that cannot be identified, as Go's empty PathElement."""


def _element_of(element_of: Callable[[Json], Element], value: Json) -> Element:
    """As `identified`; an item that cannot be identified is NO_ELEMENT. Removing an item's fields may leave a null."""
    try:
        return element_of(value)
    except BadItem:
        return NO_ELEMENT


# --- validation ---

_Location: TypeAlias = "tuple[_Location | None, str | int, Element]"
"""Where a value is: (its parent's location, its name or index, its path element); None is the root."""
_Error: TypeAlias = tuple[tuple[str | int, ...], str]
"""(names and indexes on the way to the value, by which errors are sorted; message)"""


def validate(root: Json, kind: Type, *, duplicates: bool = False, all_of_it: bool = True) -> list[str]:
    """The errors of a value that should be of the type, sorted by names and indexes. Without `all_of_it`, any of them.

    `duplicates` allows sets and list-maps to have equal items: live objects may, applied ones may not.
    """
    errors: list[_Error] = []
    stack: list[tuple[Json, Type, _Location | None]] = [(root, kind, None)]
    while stack and (all_of_it or not errors):
        value, kind, location = stack.pop()
        if kind.open or value is None:
            continue
        if type(value) is dict and kind.map is not None:
            fields, values = kind.map.fields, kind.map.values
            for name in sorted(value):
                child = value[name]
                declared = fields.get(name)
                expected = declared[1] if declared is not None else values
                if expected is None:  # upstream leaves this map then, which it walks in random order
                    errors.append(_error((location, name, field(name)), "field not declared in schema"))
                    break
                if child is not None and type(child) not in expected.scalars and not expected.open:
                    stack.append((child, expected, (location, name, field(name))))
        elif type(value) is list and kind.list is not None:
            if not all_of_it and (wrong := _wrong_scalar(value, kind.list.items)) is not None:
                return [_mismatch(value[wrong], kind.list.items)]
            stack += _checked_items(value, kind.list, location, duplicates, errors)
        else:
            errors.append(_error(location, _mismatch(value, kind)))
    errors.sort(key=lambda error: error[0])
    return [message for _, message in errors]


def _wrong_scalar(items: list[Json], expected: Type) -> int | None:
    """The index of the first item that is not the scalar it should be."""
    if expected.open or expected.map is not None or expected.list is not None:
        return None
    scalars = expected.scalars
    return next((n for n, item in enumerate(items) if item is not None and type(item) not in scalars), None)


def _checked_items(
    items: list[Json],
    kind: ListType,
    location: _Location | None,
    duplicates: bool,
    errors: list[_Error],
) -> list[tuple[Json, Type, _Location | None]]:
    """The items that have to be checked themselves. An item that cannot be identified ends the check of its list."""
    expected = kind.items
    todo: list[tuple[Json, Type, _Location | None]] = []
    seen: set[Element] = set()
    element_of = identified(kind, items) if kind.associative else None
    for index, child in enumerate(items):
        element = f"i:{index}"
        if element_of is not None:
            try:
                element = element_of(child)
            except BadItem as bad:
                errors.append(_error(location, f"element {index}: {bad}", index))
                break
            if element in seen and not duplicates:
                has_float = any(type(key) is float for key in _keys_of(kind, child))
                key = describe((item_of(kind, child),), stored=has_float)  # numbers are printed as what they are
                errors.append(_error(location, f"duplicate entries for key {key}", index))
            seen.add(element)
        if child is not None and type(child) not in expected.scalars and not expected.open:
            todo.append((child, expected, (location, index, element)))
    return todo


def _error(location: _Location | None, message: str, *index: int) -> _Error:
    """`index` is that of an item which the message is about, in the list at the location."""
    steps: list[str | int] = list(index)
    path: list[Element] = []
    while location is not None:
        location, name, element = location
        steps.insert(0, name)
        path.insert(0, element)
    return tuple(steps), f"{describe(path, stored=False)}: {message}" if path else message


def _mismatch(value: Json, kind: Type) -> str:
    if kind.map is not None:
        return f"expected map, got &{{{default_format(value)}}}"
    if kind.scalar == "numeric":
        return f"expected numeric (int or float), got {go_type(value)}"
    if kind.scalar == "string":
        return f"expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"
    if kind.scalar is not None:
        expected = "boolean" if kind.scalar == "boolean" else "any scalar"
        return f"expected {expected}, got &{{{default_format(value)}}}"
    return f"expected list, got &{{{default_format(value)}}}"


def join_errors(errors: list[str]) -> str:
    """One message for several errors, as structured-merge-diff joins them. Those beyond the limits are only counted."""
    if len(errors) == 1:
        return shortened(errors[0])
    shown, rest = reported(errors)
    return "\n  ".join(["errors:", *shown, *([f"and {rest} more errors"] if rest else [])])


# --- sets of values ---

_CONTAINERS: Final = frozenset({dict, list})


def whole(value: Json, kind: Type) -> FieldSet:
    """The node with all fields of a value, itself included. The value is of the type; lists may have duplicates."""
    if not value or type(value) not in _CONTAINERS:
        return MEMBER
    node: FieldSet = {SELF: MEMBER}
    if type(value) is dict:
        if kind is DEDUCED:
            return deduced(value)
        if kind.map is None or kind.map.atomic:
            return MEMBER
        fields, values = kind.map.fields, kind.map.values or DEDUCED
        for name, child in value.items():
            declared = fields.get(name)
            element, inner = ("f:" + name, values) if declared is None else declared
            node[element] = whole(child, inner) if type(child) in _CONTAINERS else MEMBER
        return node
    if kind.list is None or not kind.list.associative:
        return MEMBER
    element_of = identified(kind.list, value)
    for child in value:
        element = element_of(child)
        node[element] = MEMBER if element in node else whole(child, kind.list.items)  # of equal items, all are one leaf
    return node


def deduced(value: Json) -> FieldSet:
    """`whole` of a value without a declared type: maps are granular, everything else is a leaf. Does not recurse."""
    root: FieldSet = {}
    frames: list[tuple[Json, FieldSet, Element]] = [(value, root, SELF)]
    for value_, parent, element in frames:
        if type(value_) is dict and value_:
            parent[element] = node = {SELF: MEMBER}
            frames += [(child, node, "f:" + name) for name, child in value_.items()]
        else:
            parent[element] = MEMBER
    top: FieldSet = root[SELF]
    return top


def to_set(root: Json, kind: Type) -> FieldSet:
    """The fields that an applied object claims. The object is of the type, except for null items of list-maps."""
    return _claimed(root, kind) or EMPTY


def _claimed(value: Json, kind: Type) -> FieldSet | None:
    """The node of a value, without itself if its parts have owners of their own; None if nothing is claimed."""
    if type(value) is dict:
        if kind.map is None or kind.map.atomic:
            return MEMBER
        node: FieldSet = {}
        fields, values = kind.map.fields, kind.map.values or DEDUCED
        for name, child in value.items():
            if declared := fields.get(name):
                if not child or type(child) not in _CONTAINERS:
                    if child != [] or not _in_parts(declared[1]):
                        node[declared[0]] = MEMBER
                elif (below := _claimed(child, declared[1])) is not None:
                    node[declared[0]] = below
            elif not child or type(child) not in _CONTAINERS:
                node["f:" + name] = MEMBER
            else:
                node["f:" + name] = deduced(child) if values is DEDUCED else _as_member(_claimed(child, values))
        return node or None
    if type(value) is not list or kind.list is None or not kind.list.associative:
        return MEMBER
    node = {}
    element_of = identified(kind.list, value)
    for child in value:
        element = _element_of(element_of, child)
        simple = element in node or not child or type(child) not in _CONTAINERS
        node[element] = MEMBER if simple else _as_member(_claimed(child, kind.list.items))
    return node or None


def _in_parts(kind: Type) -> bool:
    """Whether an empty list of this type claims nothing."""
    return kind.list is not None and kind.list.associative


def _as_member(node: FieldSet | None) -> FieldSet:
    if not node or SELF in node:
        return node or MEMBER
    node[SELF] = MEMBER
    return node


# --- sets under a type ---


def ensure_named(fields: FieldSet, kind: Type) -> FieldSet:
    """The set, extended by every struct field that has members below."""
    root: FieldSet = {}
    frames: list[tuple[FieldSet, Type | None, FieldSet]] = [(fields, kind, root)]
    for node, type_, out in frames:
        map_ = type_.map if type_ is not None else None
        list_ = type_.list if type_ is not None else None
        for element, child in node.items():
            if not child:
                out[element] = MEMBER
                continue
            inner: FieldSet = {}
            below: Type | None = None
            if element[0] == "f" and map_ is not None:
                declared = map_.fields.get(element[2:])
                below = map_.values if declared is None else declared[1]
                if declared is not None:
                    inner[SELF] = MEMBER
            elif element[0] == "k" and list_ is not None:
                below = list_.items
            out[element] = inner
            frames.append((child, below, inner))
    return root


def reconcile(fields: FieldSet, kind: Type) -> FieldSet:
    """The set adapted to a type that has changed since: fields in a value that is atomic now become the value itself.

    A value that is granular now is unchanged, and so are fields in values of deduced type.
    """
    cached = _reconciled.get(id(fields))
    if cached is not None and cached[0] is fields and cached[1] is kind:
        return fields
    frames = [(fields, kind)]
    elements = 0
    for node, type_ in frames:
        elements += len(node)
        for element, child in node.items():
            if child and (below := _below(type_, element)) is not None:
                if _is_atomic(below):
                    return _collapsed(fields, kind)
                frames.append((child, below))
    if elements <= MAX_ELEMENTS:
        if len(_reconciled) >= MAX_RECONCILED:
            _reconciled.clear()
        _reconciled[id(fields)] = fields, kind
    return fields


MAX_RECONCILED: Final = 256
MAX_ELEMENTS: Final = 500
_reconciled: Final[dict[int, tuple[FieldSet, Type]]] = {}
"""A cache of small sets that needed no change for a type. Equal sets are one object (see `entries`), and recur."""


def _collapsed(fields: FieldSet, kind: Type) -> FieldSet:
    root: FieldSet = {}
    frames: list[tuple[FieldSet, Type | None, FieldSet]] = [(fields, kind, root)]
    for node, type_, out in frames:
        for element, child in node.items():
            below = _below(type_, element) if child and type_ is not None else None
            if not child or (below is not None and _is_atomic(below)):
                out[element] = MEMBER
            else:
                inner: FieldSet = {}
                out[element] = inner
                frames.append((child, below, inner))
    return root


def _below(kind: Type, element: Element) -> Type | None:
    """The type of a part, None if it is not known. Of several types, a map is preferred to a scalar, and that to a list."""
    if kind.map is None:
        return None if kind.scalar is not None or kind.list is None else kind.list.items
    if _is_deduced(kind.map):
        return None
    declared = kind.map.fields.get(element[2:]) if element[0] == "f" else None
    return kind.map.values if declared is None else declared[1]


def _is_atomic(kind: Type) -> bool:
    """Whether values of the type have one owner as a whole."""
    if kind.map is not None:
        return kind.map.atomic and not _is_deduced(kind.map)
    return kind.scalar is None and kind.list is not None and not kind.list.associative


def _is_deduced(kind: MapType) -> bool:
    values = kind.values
    return not kind.fields and values is not None and values.scalar == "untyped" and values is not UNTYPED


# -- compiled ---------------------------------------------------------------------------------------------------------


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
    """The node of an object of the type, itself included. Raises Unsure if it may not be of the type; `of_type`: it is.

    An object that certainly is of its type has its own functions: they do not look into atomic lists and maps, which have one
    owner. A create of a custom resource with 30 objects in such a list takes 6 % less (`benchmarks.http`).
    """
    return _functions(kind, of_type).map(obj)


def owned_fields(kind: Type, never: FieldSet, ignored: Collection[str] = ()) -> Callable[[Object], FieldSet]:
    """A function for objects that certainly are of the type: all fields but those that are never owned, which it does not look at.

    It returns what `difference(accept(obj, kind, of_type=True), never)` does, without fields of the object to be `ignored`.
    `never` has the object itself, and of each field that it has the field itself.
    """
    names = {element[2:] for element in never} | set(ignored)
    parts = {element: _below(kind, element) for element, node in never.items() if node and element[2:] not in ignored}
    below = {element[2:]: owned_fields(part, never[element]) for element, part in parts.items() if part is not None}
    if len(below) < len(parts):  # what is below a field is not declared

        def owned_of_any(obj: Object) -> FieldSet:
            rest = {name: value for name, value in obj.items() if name not in ignored}
            return difference(accept(rest, kind, of_type=True), never)

        return owned_of_any

    def owned(obj: Object) -> FieldSet:
        node = accept({name: value for name, value in obj.items() if name not in names}, kind, of_type=True)
        fields = {element: node[element] for element in node if element != SELF}
        for name, owned_below in below.items():
            part = obj.get(name)
            if part and (found := owned_below(part)):
                fields["f:" + name] = found
        return fields

    return owned


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
        declared = kind.fields.get(name)
        element, inner = ("f:" + name, kind.values) if declared is None else declared
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
                    node_of = _node_function(items, item, of_type=False)
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
        for member in values:
            key = member.get(name) if type(member) is dict else None
            element = elements.get(key) if type(key) is str else None
            if element is None:
                if type(member) is not dict or any(type(member.get(key)) is float for key in kind.keys):
                    raise Unsure
                try:
                    element = item_of(kind, member)
                except BadItem:
                    raise Unsure from None
            if element in node:
                raise Unsure
            node[element] = node_of(member) if member else MEMBER
        return node

    return of_list_map
