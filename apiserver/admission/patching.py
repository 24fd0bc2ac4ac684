"""Patches and apply configurations that expressions write, as JSON (upstream's cel/mutation and policy/mutating/patch).

Upstream writes the values of a JSON patch as protobuf does, where all numbers are doubles. An apply configuration it
takes apart into what Go holds, but lists and maps in other lists and maps it does not: what is left of them, and null,
are no values of any schema. They are told as Go prints them.
"""

from __future__ import annotations

import base64
import sys
from typing import Final

from apiserver.api.gotext import quote
from apiserver.api.types import Json, Object
from apiserver.apply.goprint import GoValue
from apiserver.cel.conversions import go_type, go_value
from apiserver.cel.library.patches import ObjectValue, OperationValue
from apiserver.cel.numbers import Uint
from apiserver.cel.times import Duration, Timestamp
from apiserver.cel.types import Type
from apiserver.cel.values import ABSENT, LISTS, MAPS, MapValue, Optional, UntypedList, UntypedMap, Value, type_of

_SAFE_INTEGER: Final = 2**53 - 1


class NotJson(Exception):
    """A value that cannot be written as JSON."""


def patch_value(value: Value) -> Json:
    """The value of an operation: protobuf's JSON, where all numbers are doubles. Raises NotJson."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value) if abs(value) <= _SAFE_INTEGER else str(int(value))
        case float():
            return _number(value)
        case bytes():
            return base64.b64encode(value).decode()
        case Timestamp() | Duration():
            return str(value)
        case UntypedMap() | UntypedList():
            return value.raw
        case Optional():
            if value.value is ABSENT:
                raise NotJson("optional.none() dereference")
            return patch_value(value.value)
        case ObjectValue():
            return _as_protobuf(configuration(value))
        case OperationValue():
            raise NotJson("cannot convert to native type: *structpb.Value")
        case Type():
            raise NotJson("type conversion not supported for 'type'")
    if isinstance(value, LISTS):
        return [patch_value(inner) for inner in value]
    if isinstance(value, MAPS):
        return {_key(key): patch_value(value.find(key)) for key in value}
    name = type_of(value).name.rpartition(".")[2]
    raise NotJson(f"type conversion error from '{name}' to '*structpb.Value'")


def _number(value: float) -> Json:
    return int(value) if value.is_integer() and abs(value) <= _SAFE_INTEGER + 1 else value


def _key(key: Value) -> str:
    if type(key) is str:
        return key
    if type(key) is bool:
        raise NotJson("type conversion error from bool to 'string'")
    raise NotJson(f"unsupported type conversion from '{type_of(key).name}' to string")


def _as_protobuf(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _as_protobuf(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_as_protobuf(inner) for inner in value]
    if isinstance(value, GoValue):
        raise NotJson(f"proto: invalid type: {value.type}")
    return _number(float(value)) if type(value) in (int, float) else value


def configuration(value: ObjectValue) -> Object:
    """An apply configuration as JSON, with `GoValue`s where upstream is left with something else. Raises NotJson."""
    return {name: _field(name, inner) for name, inner in value.fields.items()}


def _field(name: str, value: Value) -> Json:
    """Upstream takes lists and maps apart that stand in a field, and not those in other lists and maps."""
    if isinstance(value, list):
        return [_native(inner) for inner in value]
    if not isinstance(value, MapValue):
        return _native(value)
    members = {}
    for key in value:
        if type(key) is not str:
            told = f"map key {_rune(key)} is of type {go_type(key)}, not string"
            raise NotJson(f'fail to convert field "{name}": {told}')
        members[key] = _native(value.find(key))
    return members


def _rune(key: Value) -> str:
    """Go's `%q` of what is no text: numbers are taken for characters."""
    if isinstance(key, int) and type(key) is not bool:
        return f"'{quote(chr(key) if 0 <= key <= sys.maxunicode else chr(0xFFFD))[1:-1]}'"
    return f"%!q({go_value(key)})"


_NULL: Final = GoValue("NULL_VALUE", "0", "structpb.NullValue")


def _native(value: Value) -> Json:
    """What Go holds a value as."""
    match value:
        case None:
            return _NULL
        case Uint():
            return GoValue(str(int(value)), hex(value), "uint64")
        case bool() | str() | int() | float():
            return value
        case UntypedMap() | UntypedList():
            return value.raw
        case Optional():
            return None if value.value is ABSENT else _native(value.value)
        case Type():
            return value.name
        case ObjectValue():
            try:
                return configuration(value)
            except NotJson as error:
                return GoValue(str(error), str(error), "*types.Err")
        case bytes():
            return GoValue(go_value(value), f"[]uint8{{{', '.join(map(hex, value))}}}", "[]uint8")
        case Timestamp():
            return GoValue(str(value), str(value), "time.Time")
        case Duration():
            return GoValue(go_value(value), str(value.nanos), "time.Duration")
        case list():
            return GoValue(go_value(value).replace(", ", " "), "[]ref.Val", "[]ref.Val")
        case MapValue():
            inside = " ".join(f"{go_value(key)}:{go_value(value.find(key))}" for key in value)
            return GoValue(f"map[{inside}]", "map[ref.Val]ref.Val", "map[ref.Val]ref.Val")
    name = type_of(value).name
    return GoValue(name, name, name)
