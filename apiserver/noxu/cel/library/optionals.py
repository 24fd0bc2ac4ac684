"""Optional values (cel-go's cel/library.go).

`or`, `orValue` and optional selections do not evaluate all their arguments: the interpreter implements them.
"""

from __future__ import annotations

from typing import Final

from noxu.cel.errors import CelError
from noxu.cel.library.declarations import Implementation, Overload, overload
from noxu.cel.memory import allocate
from noxu.cel.values.conversions import go_value
from noxu.cel.values.equality import list_size
from noxu.cel.values.times import MIN_SECONDS as YEAR_ONE
from noxu.cel.values.times import Duration, Timestamp
from noxu.cel.values.values import ABSENT, NONE, MapValue, Optional, UntypedList, UntypedMap, Value


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


OVERLOADS: Final[list[tuple[str, Overload]]] = [
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
