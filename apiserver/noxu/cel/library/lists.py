"""Functions on lists, sets, maps and optional values.

- Lists: the functions of Kubernetes (sum, min, indexOf …) and of cel-go's extension, version 3 (slice, sort …).
- Sets: functions on lists (ext/sets.go).
- Maps: the functions to which the macros transformMap and transformMapEntry expand (ext/comprehensions.go).
- Optional values (cel/library.go): the interpreter implements `or`, `orValue` and optional selections, because they do
  not evaluate all their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Final

from noxu.cel.errors import CelError, no_such_overload
from noxu.cel.library.declarations import Function, Implementation, Overload, overload
from noxu.cel.library.standard import ADDERS, COMPARERS, add, compare
from noxu.cel.memory import ENTRY, LIST, MAP, allocate
from noxu.cel.values import equality
from noxu.cel.values.conversions import go_value
from noxu.cel.values.equality import contains, list_size
from noxu.cel.values.numbers import Uint
from noxu.cel.values.times import MIN_SECONDS as YEAR_ONE
from noxu.cel.values.times import Duration, Timestamp
from noxu.cel.values.values import (
    ABSENT,
    LISTS,
    NONE,
    JsonObject,
    MapValue,
    Optional,
    UntypedList,
    UntypedMap,
    Value,
    type_of,
)


def contains_all(items: Value, others: Value) -> bool:
    return all(contains(items, other) for other in others)


def equivalent(items: Value, others: Value) -> bool:
    return contains_all(items, others) and contains_all(others, items)


def intersect(items: Value, others: Value) -> bool:
    return any(_contains_or_false(others, item) for item in items)


def _contains_or_false(items: Value, value: Value) -> bool:
    try:
        return contains(items, value)
    except CelError:
        return False


SETS: Final[list[tuple[str, Overload]]] = [
    overload("list_sets_contains_list", "sets::contains(list(T), list(T)) -> bool", contains_all),
    overload("list_sets_equivalent_list", "sets::equivalent(list(T), list(T)) -> bool", equivalent),
    overload("list_sets_intersects_list", "sets::intersects(list(T), list(T)) -> bool", intersect),
]


def insert(target: MapValue | JsonObject, key: Value, value: Value) -> MapValue:
    """The map with another entry. A map made by the comprehension is changed in place, a map of an object is copied."""
    if target.find(key) is not ABSENT:
        raise CelError(f"insert failed: key {go_value(key)} already exists")
    allocate(ENTRY)
    if not isinstance(target, MapValue):
        allocate(MAP + ENTRY * len(target))
        target = MapValue((name, target.find(name)) for name in target)
    target.set(key, value)
    return target


def insert_all(target: Value, entries: Value) -> Value:
    for key in entries:
        target = insert(target, key, entries.find(key))
    return target


COMPREHENSIONS: Final[list[tuple[str, Overload]]] = [
    overload("@mapInsert_map_key_value", "cel::@mapInsert(map(K, V), K, V) -> map(K, V)", insert),
    overload("@mapInsert_map_map", "cel::@mapInsert(map(K, V), map(K, V)) -> map(K, V)", insert_all),
]


def of_non_zero(value: Value) -> Optional:
    """Empty for null, false, 0, "" and for empty lists and maps, unless these have a schema."""
    match value:
        case None | False | "" | b"":
            zero = True
        case bool():
            zero = False
        case int() | float():
            zero = value == 0
        case list() | MapValue() | UntypedList() | UntypedMap():
            zero = len(value) == 0
        case Duration():
            zero = value.nanos == 0
        case Timestamp():
            zero = (value.seconds, value.nanos) == (YEAR_ONE, 0)
        case _:
            zero = False
    return NONE if zero else Optional(value)


def unwrap(items: Value) -> list[Value]:
    allocate(list_size(items))
    out = []
    for item in items:
        if not isinstance(item, Optional):
            raise CelError(f"value {go_value(item)} is not optional")
        if item.value is not ABSENT:
            out.append(item.value)
    return out


def _at(position: int) -> Implementation:
    """The element at 0, or at -1 from the end; empty if the list is."""
    return lambda items: Optional(items[position if position >= 0 else len(items) - 1]) if len(items) else NONE


OPTIONALS: Final[list[tuple[str, Overload]]] = [
    overload("optional_of", "optional::of(V) -> optional(V)", Optional),
    overload("optional_ofNonZeroValue", "optional::ofNonZeroValue(V) -> optional(V)", of_non_zero),
    overload("optional_none", "optional::none() -> optional(V)", lambda: NONE),
    overload("optional_value", "optional(V).value() -> V", Optional.get),
    overload("optional_hasValue", "optional(V).hasValue() -> bool", lambda optional: optional.value is not ABSENT),
    overload("optional_or_optional", "optional(V).or(optional(V)) -> optional(V)"),
    overload("optional_orValue_value", "optional(V).orValue(V) -> V"),
    overload("select_optional_field", "_?._(dyn, string) -> optional(V)"),
    overload("list_optindex_optional_int", "_[?_](list(V), int) -> optional(V)"),
    overload("optional_list_optindex_optional_int", "_[?_](optional(list(V)), int) -> optional(V)"),
    overload("map_optindex_optional_value", "_[?_](map(K, V), K) -> optional(V)"),
    overload("optional_map_optindex_optional_value", "_[?_](optional(map(K, V)), K) -> optional(V)"),
    overload("optional_list_index_int", "_[_](optional(list(V)), int) -> optional(V)"),
    overload("optional_map_index_value", "_[_](optional(map(K, V)), K) -> optional(V)"),
    overload("list_last", "list(V).last() -> optional(V)", _at(-1)),
    overload("list_first", "list(V).first() -> optional(V)", _at(0)),
    overload("optional_unwrap", "optional::unwrap(list(optional(V))) -> list(V)", unwrap),
    overload("optional_unwrapOpt", "list(optional(V)).unwrapOpt() -> list(V)", unwrap),
]


MAX_RANGE: Final = 1_000_000
_INTEGER: Final = 40  # bytes of an element that is a number
_SORTED: Final = 80  # bytes of an element while it is sorted
_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE: Final = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}
_RUNTIME_NAMES: Final = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}


def _comparable(value: Value) -> Value:
    if type_of(value).name not in COMPARERS:
        raise no_such_overload()
    return value


def is_sorted(items: Value) -> bool:
    previous: Value = ABSENT
    for item in items:
        _comparable(item)
        if previous is not ABSENT:
            try:
                if compare(previous, item) > 0:
                    return False
            except CelError:  # neighbours without an order do not make a list unsorted
                pass
        previous = item
    return True


def _sum(zero: Value) -> Implementation:
    def run(items: Value) -> Value:
        total = zero
        for item in items:
            if type_of(item).name not in ADDERS:
                raise no_such_overload()
            total = add(total, item)
        return total

    return run


def _extreme(name: str, sign: int) -> Implementation:
    """min (sign 1) and max (sign -1)."""

    def run(items: Value) -> Value:
        best: Value = ABSENT
        for item in items:
            _comparable(item)
            try:
                better = best is ABSENT or compare(best, item) == sign
            except CelError:
                better = False
            if better:
                best = item
        if best is ABSENT:
            raise CelError(f"{name} called on empty list")
        return best

    return run


def _same(left: Value, right: Value) -> bool:
    try:
        return equality.same(left, right)
    except CelError:
        return False


def index_of(items: Value, value: Value) -> int:
    return next((n for n, item in enumerate(items) if _same(item, value)), -1)


def last_index_of(items: Value, value: Value) -> int:
    return next((n for n in reversed(range(len(items))) if _same(items[n], value)), -1)


def slice_of(items: Value, start: int, end: int) -> list[Value]:
    prefix = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        raise CelError(f"{prefix}negative indexes not supported")
    if start > end:
        raise CelError(f"{prefix}start index must be less than or equal to end index")
    if len(items) < end:
        raise CelError(f"{prefix}list is length {len(items)}")
    allocate(equality.list_size(items) * (end - start) // max(len(items), 1))
    return [items[n] for n in range(start, end)]


def flatten(items: Value, *depths: Value) -> list[Value]:
    """Lists in the list are replaced by their elements, down to `depths` levels (one if it is not given).

    Does not recurse: `todo` is a stack of (rest of a list, how many levels below it are flattened).
    """
    if not isinstance(items, LISTS) or any(type(depth) is not int for depth in depths):
        names = ", ".join(type_of(depth).name for depth in depths)
        raise CelError(f"no such overload: {type_of(items).name}.flatten({names})")
    depth = depths[0] if depths else 1
    if depth < 0:
        raise CelError("level must be non-negative")
    out: list[Value] = []
    allocate(equality.list_size(items))
    todo = [(iter(items), depth)]
    while todo:
        elements, levels = todo[-1]
        for element in elements:
            if levels and isinstance(element, LISTS):
                allocate(equality.list_size(element))
                todo.append((iter(element), levels - 1))
                break
            out.append(element)
        else:
            todo.pop()
    return out


def sort(items: Value) -> Value:
    return sort_by_keys(items, items)


def sort_by_keys(items: Value, keys: Value) -> Value:
    """The items sorted by the keys at the same indices. Stable, which upstream's sort is not beyond 12 elements."""
    if len(items) != len(keys):
        raise CelError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got "
            f"{len(items)} and {len(keys)} elements respectively"
        )
    if not len(items):
        return items
    kind = type_of(keys[0]).name
    if kind not in COMPARERS:
        raise CelError("list elements must be comparable")
    allocate(_SORTED * len(items) + equality.list_size(items) + equality.list_size(keys))
    ordered = list(keys)
    if len(ordered) > 1 and any(type_of(key).name != kind for key in ordered):
        raise CelError("list elements must have the same type")
    pairs: list[tuple[Value, Value]] = list(zip(ordered, items, strict=True))
    pairs.sort(key=cmp_to_key(_by_key))
    return [item for _, item in pairs]


def _by_key(left: tuple[Value, Value], right: tuple[Value, Value]) -> int:
    return _order(left[0], right[0])


def _order(left: Value, right: Value) -> int:
    try:
        return compare(left, right)
    except CelError:
        return 0


def range_of(count: int) -> list[Value]:
    if count < 0:
        raise CelError(f"lists.range: size must be non-negative, got {count}")
    if count > MAX_RANGE:
        raise CelError(f"lists.range: size {count} exceeds maximum allowed ({MAX_RANGE})")
    allocate(LIST + _INTEGER * count)
    return list(range(count))


def reverse(items: Value) -> list[Value]:
    allocate(equality.list_size(items))
    return [items[n] for n in reversed(range(len(items)))]


def distinct(items: Value) -> Value:
    if not len(items):
        return items
    allocate(equality.list_size(items))
    unique: list[Value] = []
    strings: set[Value] = set()  # strings need not be compared with every other element
    for item in items:
        if type(item) is str:
            if item in strings:
                continue
            strings.add(item)
        elif any(_same(item, other) for other in unique):
            continue
        unique.append(item)
    return unique


def includes(target: Value, value: Value) -> bool:
    """Whether a list contains the value, or a target that is no list equals it."""
    if isinstance(target, LISTS):
        return any(_same(item, value) for item in target)
    return _same(target, value)


def _each(names: tuple[str, ...], row: Callable[[str], tuple[str, Overload]]) -> list[tuple[str, Overload]]:
    return [row(name) for name in names]


KUBERNETES: Final[list[tuple[str, Overload]]] = [
    *_each(_COMPARABLE, lambda t: overload(f"list_{t}_is_sorted_bool", f"list({t}).isSorted() -> bool", is_sorted)),
    *_each(tuple(_SUMMABLE), lambda t: overload(f"list_{t}_sum_{t}", f"list({t}).sum() -> {t}", _sum(_SUMMABLE[t]))),
    *_each(_COMPARABLE, lambda t: overload(f"list_{t}_max_{t}", f"list({t}).max() -> {t}", _extreme("max", -1))),
    *_each(_COMPARABLE, lambda t: overload(f"list_{t}_min_{t}", f"list({t}).min() -> {t}", _extreme("min", 1))),
    overload("list_a_index_of_int", "list(A).indexOf(A) -> int", index_of),
    overload("list_a_last_index_of_int", "list(A).lastIndexOf(A) -> int", last_index_of),
]


def _id_part(kind: str) -> str:
    """How the ids of the extension's overloads name a type."""
    return _RUNTIME_NAMES.get(kind, kind)


FLATTEN: Final = Function(
    "flatten",
    [
        overload("list_flatten", "list(list(T)).flatten() -> list(T)", flatten)[1],
        overload("list_flatten_int", "list(dyn).flatten(int) -> list(dyn)", flatten)[1],
    ],
    guarded=False,
)
SORT: Final = Function(
    "sort",
    [overload(f"list_{_id_part(kind)}_sort", f"list({kind}).sort() -> list({kind})")[1] for kind in _COMPARABLE],
    sort,
    frozenset({"list"}),
)
SORT_BY: Final = Function(
    "@sortByAssociatedKeys",
    [
        overload(
            f"list_{_id_part(kind)}_sortByAssociatedKeys", f"list(T).@sortByAssociatedKeys(list({kind})) -> list(T)"
        )[1]
        for kind in _COMPARABLE
    ],
    sort_by_keys,
    frozenset({"list"}),
)
EXTENSION: Final[list[tuple[str, Overload]]] = [
    overload("list_slice", "list(T).slice(int, int) -> list(T)", slice_of),
    overload("lists_range", "lists::range(int) -> list(int)", range_of),
    overload("list_reverse", "list(T).reverse() -> list(T)", reverse),
    overload("list_distinct", "list(T).distinct() -> list(T)", distinct),
]
INCLUDES: Final = overload("list_includes_dyn_dyn", "dyn.includes(dyn) -> bool", includes)[1]
