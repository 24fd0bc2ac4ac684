"""When two values are equal, what adding two lists gives, and what contains what.

Equality follows cel-go's Equal methods and upstream's for values with a schema, with their corners: a list written in
an expression takes elements that cannot be compared for equal, a list of an object reports the error; lists of type
set and map compare and add as sets and maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from apiserver.api.types import Json
from apiserver.api.values import equal as json_equal
from apiserver.cel import numbers
from apiserver.cel.errors import CelError, check_patience, no_such_overload
from apiserver.cel.times import Duration, Timestamp
from apiserver.cel.types import Type
from apiserver.cel.values import (
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


def equal(left: Value, right: Value) -> bool:
    """`left == right`. Raises CelError where the two cannot be compared."""
    if left is None or right is None:
        return left is right
    if type(left) in _LARGE:
        check_patience()
    return same(left, right)


_LARGE: Final = frozenset({JsonList, JsonObject, UntypedList, UntypedMap})


def same(left: Value, right: Value) -> bool:
    """`left.Equal(right)`, which a null on the right does not keep from being asked."""
    kind = type(left)
    if kind in NUMBERS:
        return type(right) in NUMBERS and numbers.equal(left, right)
    if kind in _SAME_TYPE:
        return type(right) is kind and left == right
    compare = _COMPARE.get(kind)
    if compare is not None:
        return compare(left, right)
    assert isinstance(left, Opaque)
    return left.equals(right)


_SAME_TYPE: Final = frozenset({str, bool, bytes, Duration, Timestamp, type(None)})


def _types(left: Type, right: Value) -> bool:
    return isinstance(right, Type) and left.name == right.name


def _optionals(left: Optional, right: Value) -> bool:
    if not isinstance(right, Optional):
        return False
    if left.value is ABSENT or right.value is ABSENT:
        return left.value is right.value
    return same(left.value, right.value)


def _lists(left: list[Value] | UntypedList, right: Value) -> bool:
    """A list without a schema: elements that cannot be compared count as equal."""
    if isinstance(left, UntypedList) and isinstance(right, UntypedList):
        return _same_json(left.raw, right.raw)
    if not isinstance(right, LISTS) or len(left) != len(right):
        return False
    for one, other in zip(left, right, strict=True):
        try:
            if not equal(one, other):
                return False
        except CelError:
            continue
    return True


def _concatenations(left: Concatenation, right: Value) -> bool:
    """A sum of lists: a difference beats an error."""
    if not isinstance(right, LISTS) or len(left) != len(right):
        return False
    failed: CelError | None = None
    for one, other in zip(left, right, strict=True):
        try:
            if not equal(one, other):
                return False
        except CelError as error:
            failed = failed or error
    if failed:
        raise failed
    return True


def _json_lists(left: JsonList, right: Value) -> bool:
    if not isinstance(right, LISTS):
        raise no_such_overload()
    if len(left) != len(right):
        return False
    kind = left.schema.list_type
    if kind == "set":
        return _same_set(left, right)
    if kind == "map":
        return _same_json_map_list(left, right)
    return all(same(one, other) for one, other in zip(left, right, strict=True))


def _sets(left: SetList, right: Value) -> bool:
    if not isinstance(right, LISTS):
        raise no_such_overload()
    return len(left) == len(right) and _same_set(left, right)


def _same_set(left: Iterable[Value], right: Iterable[Value]) -> bool:
    members = set(map(_scalar, left))
    seen = set()
    for one in right:
        key = _scalar(one)
        if key not in members:
            return False
        seen.add(key)
    return len(seen) == len(members)


def _scalar(value: Value) -> Value:
    """What tells the members of a set apart: Go's types count."""
    if isinstance(value, (*LISTS, *MAPS)):
        raise CelError("listSet operations are only supported on lists of scalar values")
    return type(value), value


def _same_json_map_list(left: JsonList, right: Value) -> bool:
    keys = left.map_keys
    by_key = {_raw_key(one, keys): one for one in left.raw}
    seen = set()
    for one in right:
        key = _raw_key(one.raw if isinstance(one, JsonObject) else None, keys)
        if key not in by_key:
            return False
        if not same(from_json(by_key[key], left.items), one):
            return False
        seen.add(key)
    return len(seen) == len(by_key)


def _raw_key(raw: object, keys: tuple[str, ...]) -> Value:
    """None for what is no object: two such elements are never the same."""
    if not isinstance(raw, dict):
        return object()
    return tuple((type(value), value) for value in (raw.get(key) for key in keys))


def _map_lists(left: MapList, right: Value) -> bool:
    if not isinstance(right, LISTS):
        raise no_such_overload()
    if len(left) != len(right):
        return False
    by_key = {_element_key(one, left.keys): one for one in left}
    seen = set()
    for one in right:
        key = _element_key(one, left.keys)
        if key not in by_key:
            return False
        if not same(by_key[key], one):
            return False
        seen.add(key)
    return len(seen) == len(by_key)


def _element_key(element: Value, keys: tuple[str, ...]) -> Value:
    found = []
    for key in keys:
        value = element.find(key) if isinstance(element, MAPS) else ABSENT
        found.append(None if value is ABSENT else (type(value), value))
    return tuple(found)


def _maps(left: MapValue | UntypedMap, right: Value) -> bool:
    """A map without a schema: values that cannot be compared count as equal."""
    if isinstance(left, UntypedMap) and isinstance(right, UntypedMap):
        return _same_json(left.raw, right.raw)
    if not isinstance(right, MAPS) or len(left) != len(right):
        return False
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


def _json_objects(left: JsonObject, right: Value) -> bool:
    if not isinstance(right, MAPS):
        raise no_such_overload()
    if len(left) != len(right):
        return False
    for key, raw in left.raw.items():
        if left.schema_of(key) is not None:
            value, other = left.find(key), right.find(key)
            if (value is ABSENT) is not (other is ABSENT):
                return False
            if value is not ABSENT and not same(value, other):
                return False
        elif not isinstance(right, JsonObject):
            raise no_such_overload()
        elif key in right.raw and not json_equal(raw, right.raw[key]):
            return False
    return True


def _same_json(left: Json, right: Json) -> bool:
    """Two values of objects without a schema, which may be as deep as clients like; only numbers are of several types."""
    todo = [(left, right)]
    while todo:
        one, other = todo.pop()
        if isinstance(one, dict):
            if not isinstance(other, dict) or one.keys() != other.keys():
                return False
            todo += [(value, other[name]) for name, value in one.items()]
        elif isinstance(one, list):
            if not isinstance(other, list) or len(one) != len(other):
                return False
            todo += zip(one, other, strict=True)
        elif isinstance(other, (dict, list)) or not equal(one, other):
            return False
    return True


def _one_and_the_same(left: LazyMap, right: Value) -> bool:
    if not isinstance(right, LazyMap):
        raise no_such_overload()
    return left is right


def _preserved(left: Preserved, right: Value) -> bool:
    return json_equal(left.raw, getattr(right, "raw", right))


_COMPARE: Final[dict[type, Callable[[Value, Value], bool]]] = {
    Type: _types,
    Optional: _optionals,
    list: _lists,
    Accumulating: _lists,
    Concatenation: _concatenations,
    SetList: _sets,
    MapList: _map_lists,
    JsonList: _json_lists,
    MapValue: _maps,
    JsonObject: _json_objects,
    UntypedList: _lists,
    UntypedMap: _maps,
    LazyMap: _one_and_the_same,
    Preserved: _preserved,
}


def add_lists(left: Value, right: Value) -> Value:
    """`left + right` for a list on the left."""
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
        return [*left, *right]
    if not left:
        return right
    return Concatenation([*left, *right]) if right else left


def _union(left: Iterable[Value], right: Iterable[Value]) -> SetList:
    elements = SetList(left)
    members = set(map(_scalar, elements))
    for one in right:
        key = _scalar(one)
        if key not in members:
            members.add(key)
            elements.append(one)
    return elements


def _merge(left: Iterable[Value], right: Iterable[Value], keys: tuple[str, ...]) -> MapList:
    """What is on the right replaces its namesake on the left, in place."""
    elements = MapList(left, keys)
    places = {_element_key(one, keys): n for n, one in enumerate(elements)}
    for one in right:
        place = places.get(_element_key(one, keys))
        if place is None:
            elements.append(one)
        else:
            elements[place] = one
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
        return any(_equal_or_not(value, one) for one in container)
    if isinstance(container, MAPS):
        return container.find(value) is not ABSENT
    raise no_such_overload()


def _equal_or_not(left: Value, right: Value) -> bool:
    try:
        return same(left, right)
    except CelError:
        return False
