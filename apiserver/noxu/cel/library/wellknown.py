"""Protocol buffers' well-known messages, which cel-go includes: `google.protobuf.Int32Value{value: 1}`.

A message evaluates to the value that it represents: wrappers to a scalar, Timestamp and Duration to a CEL timestamp and
duration, Struct, ListValue and Value to JSON, in which all numbers are doubles. `Any` and `Empty` are not supported: no
other value has these types. The checker accepts some names of other types as messages; making such a message fails.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final

from noxu.cel.errors import CelError
from noxu.cel.library.declarations import MessageType
from noxu.cel.memory import ELEMENT, ENTRY, LIST, MAP, TEXT, allocate
from noxu.cel.types import types
from noxu.cel.types.types import Type, wrapper_of
from noxu.cel.values.conversions import to_string
from noxu.cel.values.equality import list_size
from noxu.cel.values.numbers import Uint
from noxu.cel.values.times import Duration, Timestamp
from noxu.cel.values.values import (
    LISTS,
    MAPS,
    JsonList,
    JsonObject,
    MapValue,
    Optional,
    Value,
    type_of,
)
from noxu.go import base64 as go_base64
from noxu.go.time import SECOND
from noxu.values import MAX_INT64, MIN_INT64

_EXACT: Final = 2**53  # integers from here on are strings in protobuf's JSON
_JSON_MAP: Final = types.map_of(types.STRING, types.DYN)
_JSON_LIST: Final = types.list_of(types.DYN)
_PREFIX: Final = "google.protobuf."

_Reader = Callable[[Value], Value]  # converts a value to the type of a field, or raises CelError


def _native(kind: type, go_type: str, fit: _Reader = lambda value: value) -> _Reader:
    """Accepts values of that class, and optionals of them; `fit` checks or rounds them."""

    def read(value: Value) -> Value:
        if isinstance(value, Optional):
            value = value.get()
        if type(value) is not kind:
            raise CelError(_mismatch(value, go_type))
        return fit(value)

    return read


def _int32(value: Value) -> Value:
    if not -(2**31) <= value < 2**31:
        raise CelError("integer overflow")
    return value


def _uint32(value: Value) -> Value:
    if value >= 2**32:
        raise CelError("unsigned integer overflow")
    return value


def _float32(value: Value) -> Value:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _mismatch(value: Value, go_type: str) -> str:
    """cel-go's error for a value of another type; each type has a wording of its own."""
    match value:
        case str():
            return f"unsupported native conversion from string to '{go_type}'"
        case bool():
            return f"type conversion error from bool to '{go_type}'"
        case int():
            return f"unsupported type conversion from '{type_of(value).name}' to {go_type}"
        case Type():
            return "type conversion not supported for 'type'"
    names = {
        float: "Double", bytes: "Bytes", type(None): "'null_type'", Timestamp: "'Timestamp'", Duration: "'Duration'",
        JsonList: "'list(dyn)'", JsonObject: "'map(dyn, dyn)'", MapValue: "map",
    }  # fmt: skip
    name = names.get(type(value)) or ("list" if isinstance(value, LISTS) else f"'{type_of(value).name}'")
    return f"type conversion error from {name} to '{go_type}'"


def _json(value: Value) -> Value:
    """A value as protobuf's Value represents it."""
    match value:
        case Optional():
            return _json(value.get())
        case None | bool() | float() | str():
            return value
        case int():
            return float(value) if -_EXACT < value < _EXACT else int.__repr__(value)
        case bytes():
            allocate(TEXT + 2 * len(value))
            return go_base64.encode(value)
        case Timestamp():
            return str(Timestamp(value.seconds, value.nanos))
        case Duration():
            return to_string(value)
        case JsonList() | JsonObject():
            raise CelError(_mismatch(value, "*structpb.Value"))
        case list():
            allocate(LIST + ELEMENT * len(value))
            return [_json(item) for item in value]
        case MapValue():
            return _json_map(value)
    raise CelError(_mismatch(value, "*structpb.Value"))


def _json_list(value: Value) -> list[Value]:
    allocate(list_size(value))
    return list(map(_json, value))


def _json_map(value: Value) -> MapValue:
    text = _native(str, "string")
    allocate(MAP + ENTRY * len(value))
    return MapValue((text(key), _json(value.find(key))) for key in value)


def _inside(go_type: str, of: tuple[type, ...], read: _Reader) -> _Reader:
    """Accepts lists or maps (`of`) that have no schema, and optionals of them."""

    def checked(value: Value) -> Value:
        if isinstance(value, Optional):
            value = value.get()
        if not isinstance(value, of) or isinstance(value, (JsonList, JsonObject)):
            raise CelError(_mismatch(value, go_type))
        return read(value)

    return checked


def _message(
    name: str, kind: Type, fields: Mapping[str, tuple[Type, _Reader]], finish: Callable[[dict[str, Value]], Value]
) -> MessageType:
    def make(values: dict[str, Value]) -> Value:
        read = {}
        for field, value in values.items():
            try:
                read[field] = fields[field][1](value)
            except CelError as error:
                why = f"field type conversion error for {_PREFIX}{name}.{field} value type: {error.message}"
                raise CelError(why) from None
        return finish(read)

    return MessageType(kind, lambda field: fields[field][0] if field in fields else None, make)


def _wrapper(name: str, kind: Type, read: _Reader, default: Value) -> MessageType:
    return _message(name, wrapper_of(kind), {"value": (kind, read)}, lambda fields: fields.get("value", default))


def _timestamp(fields: dict[str, Value]) -> Timestamp:
    seconds, nanos = divmod(fields.get("seconds", 0) * SECOND + fields.get("nanos", 0), SECOND)
    return Timestamp(seconds, nanos)


def _duration(fields: dict[str, Value]) -> Duration:
    nanos = fields.get("seconds", 0) * SECOND + fields.get("nanos", 0)
    return Duration(min(max(nanos, MIN_INT64), MAX_INT64))


def _container(name: str, kind: Type, field: str, of: tuple[type, ...], read: _Reader, empty: _Reader) -> MessageType:
    """Struct and ListValue: a message with one field evaluates to the value of that field."""

    def make(values: dict[str, Value]) -> Value:
        if field not in values:
            return empty(None)
        value = values[field]
        where = f"{_PREFIX}{name}.{field}"
        if not isinstance(value, of):
            raise CelError(f"unsupported field type for {where}: {type_of(value).name}")
        try:
            return read(value)
        except CelError as error:
            raise CelError(f"field type conversion error for {where} value type: {error.message}") from None

    return MessageType(kind, lambda requested: kind if requested == field else None, make)


_INT32: Final = _native(int, "int32", _int32)
_INT64: Final = _native(int, "int64")
_MOMENT: Final = {"seconds": (types.INT, _INT64), "nanos": (types.INT, _INT32)}
_MESSAGES: Final = {
    "BoolValue": _wrapper("BoolValue", types.BOOL, _native(bool, "bool"), False),
    "BytesValue": _wrapper("BytesValue", types.BYTES, _native(bytes, "[]uint8"), b""),
    "DoubleValue": _wrapper("DoubleValue", types.DOUBLE, _native(float, "float64"), 0.0),
    "FloatValue": _wrapper("FloatValue", types.DOUBLE, _native(float, "float32", _float32), 0.0),
    "Int32Value": _wrapper("Int32Value", types.INT, _INT32, 0),
    "Int64Value": _wrapper("Int64Value", types.INT, _INT64, 0),
    "StringValue": _wrapper("StringValue", types.STRING, _native(str, "string"), ""),
    "UInt32Value": _wrapper("UInt32Value", types.UINT, _native(Uint, "uint32", _uint32), Uint(0)),
    "UInt64Value": _wrapper("UInt64Value", types.UINT, _native(Uint, "uint64"), Uint(0)),
    "Timestamp": _message("Timestamp", types.TIMESTAMP, _MOMENT, _timestamp),
    "Duration": _message("Duration", types.DURATION, _MOMENT, _duration),
    "Struct": _container("Struct", _JSON_MAP, "fields", MAPS, _json_map, lambda _: MapValue()),
    "ListValue": _container("ListValue", _JSON_LIST, "values", LISTS, _json_list, lambda _: []),
    "Value": _message(
        "Value",
        types.DYN,
        {
            "null_value": (types.INT, lambda _: None),
            "bool_value": (types.BOOL, _native(bool, "bool")),
            "number_value": (types.DOUBLE, _native(float, "float64")),
            "string_value": (types.STRING, _native(str, "string")),
            "struct_value": (_JSON_MAP, _inside("*structpb.Struct", MAPS, _json)),
            "list_value": (_JSON_LIST, _inside("*structpb.ListValue", LISTS, _json)),
        },
        lambda fields: next(reversed(fields.values()), None),
    ),
}


def _not_made(name: str, kind: Type, like: str) -> MessageType:
    def make(_: dict[str, Value]) -> Value:
        raise CelError(f"unknown type '{name}'")

    return MessageType(kind, _MESSAGES[like].field, make)


_ONLY_CHECKED: Final = {
    "list": _not_made("list", _JSON_LIST, "ListValue"),
    "null_type": _not_made("null_type", types.NULL, "Value"),
    "duration": _not_made("duration", types.DURATION, "Duration"),
    "timestamp": _not_made("timestamp", types.TIMESTAMP, "Timestamp"),
}


def find_message(name: str) -> MessageType | None:
    if name.startswith(_PREFIX):
        return _MESSAGES.get(name.removeprefix(_PREFIX))
    return _ONLY_CHECKED.get(name)
