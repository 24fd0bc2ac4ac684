"""Equality of values, addition of lists, and containment (`in`).

Equality follows cel-go's Equal methods, and upstream's for values with a schema, with their peculiarities: a list written
in an expression treats elements that cannot be compared as equal, a list of an object reports the error; lists of type set
and map are compared and added as sets and maps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.cel.errors import CelError, no_such_overload
from noxu.cel.memory import COMPARED, ELEMENT, LIST, LONG_TEXT, MEMBER, WRAPPED, allocate
from noxu.cel.types.types import Type
from noxu.cel.values import numbers
from noxu.cel.values.times import Duration, Timestamp
from noxu.cel.values.values import (
    ABSENT,
    LISTS,
    MAPS,
    NUMBERS,
    Accumulating,
    Concatenation,
    JsonList,
    JsonObject,
    LazyMap,
    MapList,
    MapValue,
    Opaque,
    Optional,
    Preserved,
    SetList,
    UntypedList,
    UntypedMap,
    Value,
    from_json,
)
from noxu.cpu_budget import check_cpu_budget
from noxu.values import Json
from noxu.values import equal as json_equal


def equal(left: Value, right: Value) -> bool:
    """`left == right`. Raises CelError if the two cannot be compared."""
    if left is None or right is None:
        return left is right
    if type(left) in _LARGE:
        check_cpu_budget()
    return same(left, right)


_LARGE: Final = frozenset({JsonList, JsonObject, UntypedList, UntypedMap})


def same(left: Value, right: Value) -> bool:
    """cel-go's `left.Equal(right)`. Unlike `equal`, it does not treat null specially."""
    kind = type(left)
    if kind in NUMBERS:
        return type(right) in NUMBERS and numbers.equal(left, right)
    if kind in _SAME_TYPE:
        return type(right) is kind and left == right
    if kind in _TEXTS:
        if type(right) is not kind or len(left) != len(right):
            return False
        if len(left) > LONG_TEXT and left is not right:
            allocate(len(left) // COMPARED)
        return bool(left == right)
    compare = _COMPARE.get(kind)
    if compare is not None:
        return compare(left, right)
    assert isinstance(left, Opaque)
    return left.equals(right)


_SAME_TYPE: Final = frozenset({bool, Duration, Timestamp, type(None)})
_TEXTS: Final = frozenset({str, bytes})


def _types_equal(left: Type, right: Value) -> bool:
    return isinstance(right, Type) and left.name == right.name


def _optionals_equal(left: Optional, right: Value) -> bool:
    if not isinstance(right, Optional):
        return False
    if left.value is ABSENT or right.value is ABSENT:
        return left.value is right.value
    return same(left.value, right.value)


def _lists_equal(left: list[Value] | UntypedList, right: Value) -> bool:
    """For a list without a schema: elements that cannot be compared count as equal."""
    if isinstance(left, UntypedList) and isinstance(right, UntypedList):
        return _json_equal(left.raw, right.raw)
    if not isinstance(right, LISTS) or len(left) != len(right):
        return False
    allocate(COMPARED * (len(left) + 1))
    for element, other in zip(left, right, strict=True):
        try:
            if not equal(element, other):
                return False
        except CelError:
            continue
    return True


def _concatenations_equal(left: Concatenation, right: Value) -> bool:
    """For a sum of lists: a difference takes precedence over an error."""
    if not isinstance(right, LISTS) or len(left) != len(right):
        return False
    allocate(COMPARED * (len(left) + 1))
    failed: CelError | None = None
    for element, other in zip(left, right, strict=True):
        try:
            if not equal(element, other):
                return False
        except CelError as error:
            failed = failed or error
    if failed:
        raise failed
    return True


def _json_lists_equal(left: JsonList, right: Value) -> bool:
    if not isinstance(right, LISTS):
        raise no_such_overload()
    if len(left) != len(right):
        return False
    allocate(COMPARED * (len(left) + 1))
    kind = left.schema.list_type
    if kind == "set":
        return _same_members(left, right)
    if kind == "map":
        return _json_map_lists_equal(left, right)
    return all(same(element, other) for element, other in zip(left, right, strict=True))


def _sets_equal(left: SetList, right: Value) -> bool:
    if not isinstance(right, LISTS):
        raise no_such_overload()
    return len(left) == len(right) and _same_members(left, right)


def _same_members(left: Value, right: Value) -> bool:
    allocate(MEMBER * (len(left) + len(right)))
    members = set(map(_set_member, left))
    seen = set()
    for element in right:
        key = _set_member(element)
        if key not in members:
            return False
        seen.add(key)
    return len(seen) == len(members)


def _set_member(value: Value) -> Value:
    """What distinguishes the members of a set: type and value, so that 1 and 1u differ."""
    if isinstance(value, (*LISTS, *MAPS)):
        raise CelError("listSet operations are only supported on lists of scalar values")
    return type(value), value


def _json_map_lists_equal(left: JsonList, right: Value) -> bool:
    allocate(MEMBER * (len(left) + len(right)))
    keys = left.map_keys
    by_key = {_raw_key(raw, keys): raw for raw in left.raw}
    seen = set()
    for element in right:
        key = _raw_key(element.raw if isinstance(element, JsonObject) else None, keys)
        if key not in by_key:
            return False
        if not same(from_json(by_key[key], left.items), element):
            return False
        seen.add(key)
    return len(seen) == len(by_key)


def _raw_key(raw: object, keys: tuple[str, ...]) -> Value:
    """The values of the keys in an element of a list of type map. An element that is no object equals no other."""
    if not isinstance(raw, dict):
        return object()
    return tuple((type(value), value) for value in (raw.get(key) for key in keys))


def _map_lists_equal(left: MapList, right: Value) -> bool:
    if not isinstance(right, LISTS):
        raise no_such_overload()
    if len(left) != len(right):
        return False
    allocate(MEMBER * (len(left) + len(right)))
    by_key = {_element_key(element, left.keys): element for element in left}
    seen = set()
    for element in right:
        key = _element_key(element, left.keys)
        if key not in by_key:
            return False
        if not same(by_key[key], element):
            return False
        seen.add(key)
    return len(seen) == len(by_key)


def _element_key(element: Value, keys: tuple[str, ...]) -> Value:
    parts = []
    for key in keys:
        value = element.find(key) if isinstance(element, MAPS) else ABSENT
        parts.append(None if value is ABSENT else (type(value), value))
    return tuple(parts)


def _maps_equal(left: MapValue | UntypedMap, right: Value) -> bool:
    """For a map without a schema: values that cannot be compared count as equal."""
    if isinstance(left, UntypedMap) and isinstance(right, UntypedMap):
        return _json_equal(left.raw, right.raw)
    if not isinstance(right, MAPS) or len(left) != len(right):
        return False
    allocate(COMPARED * (len(left) + 1))
    for key in left:
        value, other = left.find(key), right.find(key)
        if other is ABSENT:
            return False
        try:
            if not equal(value, other):
                return False
        except CelError:
            continue
    return True


def _json_objects_equal(left: JsonObject, right: Value) -> bool:
    if not isinstance(right, MAPS):
        raise no_such_overload()
    if len(left) != len(right):
        return False
    allocate(COMPARED * (len(left) + 1))
    for key, raw in left.raw.items():
        if left.schema_of(key) is not None:
            value, other = left.find(key), right.find(key)
            if (value is ABSENT) is not (other is ABSENT):
                return False
            if value is not ABSENT and not same(value, other):
                return False
        elif not isinstance(right, JsonObject):
            raise no_such_overload()
        elif key in right.raw:
            _announce_json(raw)
            if not json_equal(raw, right.raw[key]):
                return False
    return True


def _json_equal(left: Json, right: Json) -> bool:
    """Compare JSON without a schema. It may be nested deeper than Python's stack, so this does not recurse."""
    todo = [(left, right)]
    while todo:
        value, other = todo.pop()
        if isinstance(value, dict):
            if not isinstance(other, dict) or value.keys() != other.keys():
                return False
            allocate(COMPARED * (len(value) + 1))
            todo += [(inner, other[name]) for name, inner in value.items()]
        elif isinstance(value, list):
            if not isinstance(other, list) or len(value) != len(other):
                return False
            allocate(COMPARED * (len(value) + 1))
            todo += zip(value, other, strict=True)
        elif isinstance(other, (dict, list)) or not equal(value, other):
            return False
    return True


def _announce_json(raw: Json) -> None:
    """Announce that JSON is compared by a function that does not announce it."""
    todo = [raw]
    while todo:
        value = todo.pop()
        if isinstance(value, (dict, list)):
            allocate(COMPARED * (len(value) + 1))
            todo += value.values() if isinstance(value, dict) else value


def _is_same_map(left: LazyMap, right: Value) -> bool:
    if not isinstance(right, LazyMap):
        raise no_such_overload()
    return left is right


def _preserved_equal(left: Preserved, right: Value) -> bool:
    _announce_json(left.raw)
    return json_equal(left.raw, getattr(right, "raw", right))


_COMPARE: Final[dict[type, Callable[[Value, Value], bool]]] = {
    Type: _types_equal,
    Optional: _optionals_equal,
    list: _lists_equal,
    Accumulating: _lists_equal,
    Concatenation: _concatenations_equal,
    SetList: _sets_equal,
    MapList: _map_lists_equal,
    JsonList: _json_lists_equal,
    MapValue: _maps_equal,
    JsonObject: _json_objects_equal,
    UntypedList: _lists_equal,
    UntypedMap: _maps_equal,
    LazyMap: _is_same_map,
    Preserved: _preserved_equal,
}


def add_lists(left: Value, right: Value) -> Value:
    """`left + right`, where `left` is a list."""
    if not isinstance(right, LISTS):
        raise no_such_overload()
    kind = left.schema.list_type if isinstance(left, JsonList) else None
    if kind == "set" or isinstance(left, SetList):
        return _union(left, right)
    if kind == "map":
        return _merge(left, right, left.map_keys)
    if isinstance(left, MapList):
        return _merge(left, right, left.keys)
    if isinstance(left, JsonList):
        return _joined([], left, right)
    if not len(left):
        return right
    if not len(right):
        return left
    return _joined(Concatenation(), left, right)


def _joined(result: list[Value], left: Value, right: Value) -> list[Value]:
    allocate(list_size(left) + list_size(right))
    result += left
    result += right
    return result


def list_size(items: Value) -> int:
    """The bytes of a new list of the same elements. Those of an array in an object are made anew."""
    return LIST + len(items) * (WRAPPED if isinstance(items, (JsonList, UntypedList)) else ELEMENT)


def _union(left: Value, right: Value) -> SetList:
    allocate((ELEMENT + MEMBER) * (len(left) + len(right)))
    elements = SetList(left)
    members = set(map(_set_member, elements))
    for element in right:
        key = _set_member(element)
        if key not in members:
            members.add(key)
            elements.append(element)
    return elements


def _merge(left: Value, right: Value, keys: tuple[str, ...]) -> MapList:
    """An element on the right replaces the one on the left that has the same keys, at its position, or is appended."""
    allocate((WRAPPED + MEMBER) * (len(left) + len(right)))
    elements = MapList(left, keys)
    positions = {_element_key(element, keys): n for n, element in enumerate(elements)}
    for element in right:
        position = positions.get(_element_key(element, keys))
        if position is None:
            elements.append(element)
        else:
            elements[position] = element
    return elements


def contains(container: Value, value: Value) -> bool:
    """`value in container`."""
    if isinstance(container, JsonList):
        failed: CelError | None = None
        for raw in container.raw:
            try:
                if same(from_json(raw, container.items), value):
                    return True
            except CelError as error:
                failed = failed or error
        if failed:
            raise failed
        return False
    if isinstance(container, LISTS):
        return any(_same_or_false(value, element) for element in container)
    if isinstance(container, MAPS):
        return container.find(value) is not ABSENT
    raise no_such_overload()


def _same_or_false(left: Value, right: Value) -> bool:
    try:
        return same(left, right)
    except CelError:
        return False
