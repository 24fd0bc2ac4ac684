"""Values under a type: are they of it, and which field sets stand for them (structured-merge-diff's package typed).

Two sets stand for a value. `to_set` is what somebody who applies it claims: leaves, map keys, items of lists, but not
the structs on the way to them. `whole` is what an update has added that brings it: the same, and everything on the way.

These functions recurse along types, which are bounded, and loop where types end and the data's depth begins.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from apiserver.api.types import Json
from apiserver.apply.fieldset import EMPTY, MEMBER, SELF, Element, FieldSet, describe, field, item, text, value
from apiserver.apply.goprint import default_format, go_syntax, go_type
from apiserver.apply.types import DEDUCED, UNTYPED, ListType, MapType, Type


class BadItem(ValueError):
    """An item that has no place in its associative list; the message is upstream's."""


def item_of(kind: ListType, one: Json) -> Element:
    """The path element of an item of an associative list. Raises BadItem."""
    if not kind.keys:
        if isinstance(one, dict):
            raise BadItem("associative list without keys has an element that's a map type")
        if isinstance(one, list):
            raise BadItem("not supported: associative list with lists as elements")
        if one is None:
            raise BadItem("associative list without keys has an element that's an explicit null")
        return value(one)
    if one is None:
        raise BadItem("associative list with keys may not have a null element")
    if not isinstance(one, dict):
        raise BadItem("associative list with keys may not have non-map elements")
    if kind.only_key and kind.keys[0] in one:
        return f"{kind.only_key}{text(one[kind.keys[0]])}}}"
    present = [(key, one.get(key, kind.defaults.get(key))) for key in sorted(kind.keys) if _given(kind, one, key)]
    if not present:
        keys = " ".join(f'"{key}"' for key in kind.keys)
        raise BadItem(
            f"associative list with keys has an element that omits all key fields [{keys}]"
            " (and doesn't have default values for any key fields)"
        )
    return item(present)


def _given(kind: ListType, one: Json, key: str) -> bool:
    return key in one or kind.defaults.get(key) is not None


# --- validation ---

_Trail: TypeAlias = "tuple[_Trail | None, str | int, Element]"
"""Where a value stands: its parent's trail, its place among its siblings, its path element."""


def validate(root: Json, kind: Type, *, duplicates: bool = False, all_of_it: bool = True) -> list[str]:
    """What is wrong with a value of that type, in the order of names and indices; or else anything that is wrong.

    `duplicates`: may sets and list-maps have the same item twice? Live objects may, applied ones may not.
    """
    found: list[tuple[tuple[str | int, ...], str]] = []
    stack: list[tuple[Json, Type, _Trail | None]] = [(root, kind, None)]
    while stack and (all_of_it or not found):
        one, kind, trail = stack.pop()
        if kind.open or one is None:
            continue
        if type(one) is dict and kind.map is not None:
            fields, values = kind.map.fields, kind.map.values
            for name in sorted(one):
                child = one[name]
                known = fields.get(name)
                expected = known[1] if known is not None else values
                if expected is None:  # upstream looks no further in this map, and goes through it in random order
                    found.append(_error((trail, name, field(name)), "field not declared in schema"))
                    break
                if child is not None and type(child) not in expected.scalars and not expected.open:
                    stack.append((child, expected, (trail, name, field(name))))
        elif type(one) is list and kind.list is not None:
            if not all_of_it and (wrong := _wrong_scalar(one, kind.list.items)) is not None:
                return [_mismatch(one[wrong], kind.list.items)]
            stack += _checked_items(one, kind.list, trail, duplicates, found)
        else:
            found.append(_error(trail, _mismatch(one, kind)))
    found.sort(key=lambda error: error[0])
    return [message for _, message in found]


def _wrong_scalar(items: list[Json], expected: Type) -> int | None:
    """The first item that is not the scalar it should be."""
    if expected.open or expected.map is not None or expected.list is not None:
        return None
    scalars = expected.scalars
    return next((n for n, one in enumerate(items) if one is not None and type(one) not in scalars), None)


def _checked_items(
    items: list[Json],
    kind: ListType,
    trail: _Trail | None,
    duplicates: bool,
    found: list[tuple[tuple[str | int, ...], str]],
) -> list[tuple[Json, Type, _Trail | None]]:
    """The items that need a closer look. One without a place ends the checking of its list."""
    expected = kind.items
    todo: list[tuple[Json, Type, _Trail | None]] = []
    seen: set[Element] = set()
    for index, child in enumerate(items):
        element = f"i:{index}"
        if kind.associative:
            try:
                element = item_of(kind, child)
            except BadItem as bad:
                found.append(_error(trail, f"element {index}: {bad}", index))
                break
            if element in seen and not duplicates:
                key = describe((element,), stored=False)
                found.append(_error(trail, f"duplicate entries for key {key}", index))
            seen.add(element)
        if child is not None and type(child) not in expected.scalars and not expected.open:
            todo.append((child, expected, (trail, index, element)))
    return todo


def _error(trail: _Trail | None, message: str, *place: int) -> tuple[tuple[str | int, ...], str]:
    """The place by which errors are sorted, and the text."""
    places: list[str | int] = list(place)
    path: list[Element] = []
    while trail is not None:
        trail, name, element = trail
        places.insert(0, name)
        path.insert(0, element)
    return tuple(places), f"{describe(path, stored=False)}: {message}" if path else message


def _mismatch(one: Json, kind: Type) -> str:
    if kind.map is not None:
        return f"expected map, got &{{{default_format(one)}}}"
    if kind.scalar == "numeric":
        return f"expected numeric (int or float), got {go_type(one)}"
    if kind.scalar == "string":
        return f"expected string, got &value.valueUnstructured{{Value:{go_syntax(one)}}}"
    if kind.scalar is not None:
        expected = "boolean" if kind.scalar == "boolean" else "any scalar"
        return f"expected {expected}, got &{{{default_format(one)}}}"
    return f"expected list, got &{{{default_format(one)}}}"


def told(errors: list[str]) -> str:
    """Several errors as structured-merge-diff joins them."""
    return errors[0] if len(errors) == 1 else "\n  ".join(["errors:", *errors])


# --- sets of values ---

_CONTAINERS: Final = frozenset({dict, list})


def whole(one: Json, kind: Type) -> FieldSet:
    """The node of everything in a value, the value itself included. The value is of the type, duplicates allowed."""
    if not one or type(one) not in _CONTAINERS:
        return MEMBER
    node: FieldSet = {SELF: MEMBER}
    if type(one) is dict:
        if kind is DEDUCED:
            return deduced(one)
        if kind.map is None or kind.map.atomic:
            return MEMBER
        fields, values = kind.map.fields, kind.map.values or DEDUCED
        for name, child in one.items():
            known = fields.get(name)
            element, inner = ("f:" + name, values) if known is None else known
            node[element] = whole(child, inner) if type(child) in _CONTAINERS else MEMBER
        return node
    if kind.list is None or not kind.list.associative:
        return MEMBER
    for child in one:
        element = item_of(kind.list, child)
        node[element] = MEMBER if element in node else whole(child, kind.list.items)  # twice: one field, as a whole
    return node


def deduced(one: Json) -> FieldSet:
    """The same where nothing is declared: maps are granular, all else is a leaf. However deep."""
    root: FieldSet = {}
    frames: list[tuple[Json, FieldSet, Element]] = [(one, root, SELF)]
    for value_, parent, element in frames:
        if type(value_) is dict and value_:
            parent[element] = node = {SELF: MEMBER}
            frames += [(child, node, "f:" + name) for name, child in value_.items()]
        else:
            parent[element] = MEMBER
    top: FieldSet = root[SELF]
    return top


def to_set(root: Json, kind: Type) -> FieldSet:
    """The fields that an applied object claims. The object is of the type."""
    return _claimed(root, kind) or EMPTY


def _claimed(one: Json, kind: Type) -> FieldSet | None:
    """The node of a value without itself, if it is a map or a list that is owned in parts; None: nothing is claimed."""
    if type(one) is dict:
        if kind.map is None or kind.map.atomic:
            return MEMBER
        node: FieldSet = {}
        fields, values = kind.map.fields, kind.map.values or DEDUCED
        for name, child in one.items():
            if known := fields.get(name):
                if not child or type(child) not in _CONTAINERS:
                    if child != [] or not _in_parts(known[1]):
                        node[known[0]] = MEMBER
                elif (below := _claimed(child, known[1])) is not None:
                    node[known[0]] = below
            elif not child or type(child) not in _CONTAINERS:
                node["f:" + name] = MEMBER
            else:
                node["f:" + name] = deduced(child) if values is DEDUCED else _as_member(_claimed(child, values))
        return node or None
    if type(one) is not list or kind.list is None or not kind.list.associative:
        return MEMBER
    node = {}
    for child in one:
        element = item_of(kind.list, child)
        simple = element in node or not child or type(child) not in _CONTAINERS
        node[element] = MEMBER if simple else _as_member(_claimed(child, kind.list.items))
    return node or None


def _in_parts(kind: Type) -> bool:
    """Whether an empty list of this type is nothing at all."""
    return kind.list is not None and kind.list.associative


def _as_member(node: FieldSet | None) -> FieldSet:
    if not node or SELF in node:
        return node or MEMBER
    node[SELF] = MEMBER
    return node


# --- sets under a type ---


def ensure_named(fields: FieldSet, kind: Type) -> FieldSet:
    """The set with every struct field in it that has members below."""
    root: FieldSet = {}
    frames: list[tuple[FieldSet, Type | None, FieldSet]] = [(fields, kind, root)]
    for node, one, out in frames:
        map_ = one.map if one is not None else None
        list_ = one.list if one is not None else None
        for element, child in node.items():
            if not child:
                out[element] = MEMBER
                continue
            inner: FieldSet = {}
            below: Type | None = None
            if element[0] == "f" and map_ is not None:
                known = map_.fields.get(element[2:])
                below = map_.values if known is None else known[1]
                if known is not None:
                    inner[SELF] = MEMBER
            elif element[0] == "k" and list_ is not None:
                below = list_.items
            out[element] = inner
            frames.append((child, below, inner))
    return root


def reconcile(fields: FieldSet, kind: Type) -> FieldSet:
    """The set brought into line with a type that was changed since: what is atomic now is owned as one.

    The other way round nothing changes, and nothing is known about the parts of what is deduced.
    """
    known = _in_line.get(id(fields))
    if known is not None and known[0] is fields and known[1] is kind:
        return fields
    frames = [(fields, kind)]
    elements = 0
    for node, one in frames:
        elements += len(node)
        for element, child in node.items():
            if child and (below := _below(one, element)) is not None:
                if _is_one(below):
                    return _collapsed(fields, kind)
                frames.append((child, below))
    if elements <= MAX_ELEMENTS:
        if len(_in_line) >= MAX_IN_LINE:
            _in_line.clear()
        _in_line[id(fields)] = fields, kind
    return fields


MAX_IN_LINE: Final = 256
MAX_ELEMENTS: Final = 500
_in_line: Final[dict[int, tuple[FieldSet, Type]]] = {}
"""Small sets that were found in line with a type lately. Sets that are written alike are one (see `entries`), and come often."""


def _collapsed(fields: FieldSet, kind: Type) -> FieldSet:
    root: FieldSet = {}
    frames: list[tuple[FieldSet, Type | None, FieldSet]] = [(fields, kind, root)]
    for node, one, out in frames:
        for element, child in node.items():
            below = _below(one, element) if child and one is not None else None
            if not child or (below is not None and _is_one(below)):
                out[element] = MEMBER
            else:
                inner: FieldSet = {}
                out[element] = inner
                frames.append((child, below, inner))
    return root


def _below(kind: Type, element: Element) -> Type | None:
    """The type of a part, None where it is not known. A type that is several things counts as the first."""
    if kind.map is None:
        return None if kind.scalar is not None or kind.list is None else kind.list.items
    if _is_deduced(kind.map):
        return None
    known = kind.map.fields.get(element[2:]) if element[0] == "f" else None
    return kind.map.values if known is None else known[1]


def _is_one(kind: Type) -> bool:
    """Whether its values are owned as one."""
    if kind.map is not None:
        return kind.map.atomic and not _is_deduced(kind.map)
    return kind.scalar is None and kind.list is not None and not kind.list.associative


def _is_deduced(kind: MapType) -> bool:
    values = kind.values
    return not kind.fields and values is not None and values.scalar == "untyped" and values is not UNTYPED
