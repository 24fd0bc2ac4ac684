"""Conversions between types (`int(x)`, `string(x)` …), and values as Go's `%v` prints them in error messages."""

from __future__ import annotations

import re
from typing import Final

from noxu.cel.errors import CelError
from noxu.cel.memory import PARSED, PRINTED, allocate, allocate_reading, allocate_text
from noxu.cel.types import types
from noxu.cel.types.types import Type
from noxu.cel.values import numbers, times
from noxu.cel.values.numbers import MAX_UINT64, Uint
from noxu.cel.values.times import Duration, Timestamp
from noxu.cel.values.values import (
    ABSENT,
    Concatenation,
    JsonList,
    JsonObject,
    MapList,
    MapValue,
    Optional,
    SetList,
    UntypedList,
    UntypedMap,
    Value,
    type_of,
)
from noxu.go.text import plain
from noxu.go.time import format_duration, parse_duration

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DIGITS: Final = re.compile(r"[0-9]+")
_GROUPED: Final = r"[0-9](?:_?[0-9])*"  # an underscore is allowed between two digits
_FLOAT: Final = re.compile(rf"[+-]?(?:{_GROUPED}(?:\.(?:{_GROUPED})?)?|\.{_GROUPED})(?:[eE][+-]?{_GROUPED})?")
_GROUPED_HEX: Final = r"[0-9a-fA-F](?:_?[0-9a-fA-F])*"
_HEX_FLOAT: Final = re.compile(
    rf"[+-]?0[xX](?:_?{_GROUPED_HEX}(?:\.(?:{_GROUPED_HEX})?)?|\.{_GROUPED_HEX})[pP][+-]?{_GROUPED}"
)
_NAMED_FLOAT: Final = re.compile(r"[+-]?(?:inf|infinity)|nan", re.IGNORECASE)
_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def _conversion_error(value: Value, to: Type) -> CelError:
    return CelError(f"type conversion error from '{type_of(value).name}' to '{to.name}'")


def to_int(value: Value) -> int:
    match value:
        case str():
            allocate_reading(value)
            if _INTEGER.fullmatch(value) and len(value) < 4000:
                try:
                    return numbers.int_in_range(int(value))
                except CelError:
                    pass
        case Uint() | float():
            return numbers.to_int(value)
        case Timestamp():
            return value.seconds
        case Duration():
            return value.nanos
        case int() if type(value) is int:
            return value
    raise _conversion_error(value, types.INT)


def to_uint(value: Value) -> Uint:
    match value:
        case str():
            allocate_reading(value)
            if _DIGITS.fullmatch(value) and len(value) < 4000 and int(value) <= MAX_UINT64:
                return Uint(value)
        case Uint():
            return value
        case float() | int() if type(value) is not bool:
            return numbers.to_uint(value)
    raise _conversion_error(value, types.UINT)


def to_double(value: Value) -> float:
    if type(value) is str:
        allocate_reading(value, PARSED)
        number = parse_float(value)
        if number is not None:
            return number
    elif type(value) in (int, float, Uint):
        return float(value)
    raise _conversion_error(value, types.DOUBLE)


def parse_float(text: str) -> float | None:
    """Go's strconv.ParseFloat; None for text that it refuses."""
    if _NAMED_FLOAT.fullmatch(text):
        return float(text)
    if _HEX_FLOAT.fullmatch(text):
        try:
            number = float.fromhex(text.replace("_", ""))
        except OverflowError:
            return None
    elif _FLOAT.fullmatch(text):
        number = float(text)  # accepts underscores between digits as well
    else:
        return None
    return None if abs(number) == float("inf") else number


def to_bool(value: Value) -> bool:
    if type(value) is bool:
        return value
    if type(value) is str and value in _BOOLS:
        return _BOOLS[value]
    raise _conversion_error(value, types.BOOL)


def to_bytes(value: Value) -> bytes:
    if type(value) is str:
        allocate_text(len(value), value)
        return value.encode("utf-8", "surrogatepass")
    if type(value) is bytes:
        return value
    raise _conversion_error(value, types.BYTES)


def to_duration(value: Value) -> Duration:
    if isinstance(value, Duration):
        return value
    if type(value) is str:
        allocate_reading(value, PARSED)
        try:
            return Duration(parse_duration(value))
        except ValueError:
            pass
    raise _conversion_error(value, types.DURATION)


def to_timestamp(value: Value) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if type(value) is int:
        return times.in_range(value, 0, 0)
    if type(value) is str:
        allocate_reading(value, PARSED)
        try:
            moment = times.parse_timestamp(value)
        except ValueError:
            pass
        else:
            return times.in_range(moment.seconds, moment.nanos, moment.zone)
    raise _conversion_error(value, types.TIMESTAMP)


def to_string(value: Value) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return plain(value)
        case int():
            return int.__repr__(value)
        case bytes():
            allocate(PRINTED + len(value))
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
        case None:
            return "null"
        case Duration() | Timestamp():
            return str(value)
        case Type():
            return value.name
    raise _conversion_error(value, types.STRING)


def go_value(value: Value) -> str:
    """Go's `%v` of a value."""
    match value:
        case str():
            allocate_text(len(value), value)
            return value
        case float():
            return plain(value)
        case bool() | None:
            return plain(value) if value is not None else "NULL_VALUE"
        case int():
            return int.__repr__(value)
        case bytes():
            allocate(PRINTED + (PRINTED + 4) * len(value))
            return f"[{' '.join(map(str, value))}]"
        case Optional():
            return "optional.none()" if value.value is ABSENT else f"optional({go_value(value.value)})"
        case list() | UntypedList():
            allocate(PRINTED * (len(value) + 1))
            return f"[{', '.join(map(go_value, value))}]"
        case MapValue() | UntypedMap():
            allocate(2 * PRINTED * (len(value) + 1))
            return f"{{{', '.join(f'{go_value(k)}: {go_value(value.find(k))}' for k in value)}}}"
        case Duration():
            return format_duration(value.nanos)
        case Timestamp():
            return str(value)
        case Type():
            return types.display(value)
    return str(value)


_GO_TYPES: Final = {
    "int": "types.Int", "uint": "types.Uint", "double": "types.Double", "string": "types.String", "bool": "types.Bool",
    "bytes": "types.Bytes", "null_type": "types.Null", "google.protobuf.Timestamp": "types.Timestamp",
    "google.protobuf.Duration": "types.Duration", "optional_type": "*types.Optional", "type": "*types.Type",
    "list": "*types.baseList", "map": "*types.baseMap",
}  # fmt: skip
_GO_COLLECTIONS: Final[dict[type, str]] = {
    Concatenation: "*types.concatList",
    SetList: "*common.refValSetList",
    MapList: "*common.refValMapList",
    JsonObject: "*common.unstructuredMap",
}
_GO_LISTS: Final = {"set": "*common.unstructuredSetList", "map": "*common.unstructuredMapList"}


def go_type(value: Value) -> str:
    """The name of the Go type of a value, as `%T` prints it."""
    if isinstance(value, JsonList):
        return _GO_LISTS.get(value.schema.list_type or "", "*common.unstructuredList")
    if type(value) in _GO_COLLECTIONS:
        return _GO_COLLECTIONS[type(value)]
    name = type_of(value).name
    return _GO_TYPES.get(name) or f"cel.{name.rpartition('.')[2]}"
