"""JSON patches and apply configurations that expressions return, as JSON (upstream's cel/mutation and policy/mutating/patch).

Upstream writes the values of a JSON patch as protobuf does: all numbers are doubles, and larger integers become strings. An
apply configuration it converts to Go's values. There it leaves null, and lists and maps within other lists and maps, as
values of cel-go, which fit no schema: here they are `GoValue`s, which know how Go prints them.
"""

from __future__ import annotations

import base64
import sys
from typing import Final

from noxu.apiserver.cel.library.patches import ObjectValue, Operation, OperationValue, misplaced
from noxu.apiserver.cel.types.types import Type
from noxu.apiserver.cel.values.conversions import go_type, go_value
from noxu.apiserver.cel.values.numbers import Uint
from noxu.apiserver.cel.values.times import Duration, Timestamp
from noxu.apiserver.cel.values.values import (
    ABSENT,
    LISTS,
    MAPS,
    MapValue,
    Optional,
    UntypedList,
    UntypedMap,
    Value,
    type_of,
)
from noxu.apiserver.go.fmt import GoValue
from noxu.apiserver.go.text import quote
from noxu.apiserver.values import Json, Object

_SAFE_INTEGER: Final = 2**53 - 1


class PatchError(Exception):
    """The value of an expression is not a patch or apply configuration that can be written as JSON."""


class _NotJson(Exception):
    """A value that cannot be written as JSON."""


def json_patch(operations: list[Value]) -> list[Object]:
    """The operations of a JSON patch. Raises PatchError."""
    return [_operation(value.operation) for value in operations]


def _operation(given: Operation) -> Object:
    operation: Object = {"op": given.op, "path": given.path}
    if given.from_:
        operation["from"] = given.from_
    value = given.value
    if value is ABSENT:
        return operation
    if isinstance(value, ObjectValue):
        _check_places(value)
    try:
        operation["value"] = _patch_value(value)
    except _NotJson as error:
        why = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"
        raise PatchError(f"{why}: {error}") from None
    if given.op == "test" and value is None:
        operation["value"] = _EQUALS_NOTHING
    return operation


_EQUALS_NOTHING: Final = object()
"""In upstream's patches a test for null always fails, even if the value is null."""


def apply_configuration(value: ObjectValue) -> Object:
    """An apply configuration as JSON, with `GoValue`s for values that have no JSON. Raises PatchError."""
    _check_places(value)
    try:
        return _configuration(value)
    except _NotJson:
        raise PatchError("invalid return type: *dynamic.ObjectVal") from None


def _check_places(value: ObjectValue) -> None:
    if errors := list(misplaced(value)):
        raise PatchError("type mismatch: " + "\n".join(errors))


def _patch_value(value: Value) -> Json:
    """The value of an operation in protobuf's JSON. Raises _NotJson."""
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
                raise _NotJson("optional.none() dereference")
            return _patch_value(value.value)
        case ObjectValue():
            return _as_protobuf(_configuration(value))
        case OperationValue():
            raise _NotJson("cannot convert to native type: *structpb.Value")
        case Type():
            raise _NotJson("type conversion not supported for 'type'")
    if isinstance(value, LISTS):
        return [_patch_value(inner) for inner in value]
    if isinstance(value, MAPS):
        return {_key(key): _patch_value(value.find(key)) for key in value}
    name = type_of(value).name.rpartition(".")[2]
    raise _NotJson(f"type conversion error from '{name}' to '*structpb.Value'")


def _number(value: float) -> Json:
    return int(value) if value.is_integer() and abs(value) <= _SAFE_INTEGER + 1 else value


def _key(key: Value) -> str:
    if type(key) is str:
        return key
    if type(key) is bool:
        raise _NotJson("type conversion error from bool to 'string'")
    raise _NotJson(f"unsupported type conversion from '{type_of(key).name}' to string")


def _as_protobuf(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _as_protobuf(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_as_protobuf(inner) for inner in value]
    if isinstance(value, GoValue):
        raise _NotJson(f"proto: invalid type: {value.type}")
    return _number(float(value)) if type(value) in (int, float) else value


def _configuration(value: ObjectValue) -> Object:
    """Raises _NotJson."""
    return {name: _field(name, inner) for name, inner in value.fields.items()}


def _field(name: str, value: Value) -> Json:
    """The value of a field. Upstream converts the elements of lists and maps in fields, but not those nested deeper."""
    if isinstance(value, list):
        return [_native(inner) for inner in value]
    if not isinstance(value, MapValue):
        return _native(value)
    members = {}
    for key in value:
        if type(key) is not str:
            wrong_key = f"map key {_quoted_key(key)} is of type {go_type(key)}, not string"
            raise _NotJson(f'fail to convert field "{name}": {wrong_key}')
        members[key] = _native(value.find(key))
    return members


def _quoted_key(key: Value) -> str:
    """Go's `%q` of a value that is not a string; a number is printed as the character with that code."""
    if isinstance(key, int) and type(key) is not bool:
        return f"'{quote(chr(key) if 0 <= key <= sys.maxunicode else chr(0xFFFD))[1:-1]}'"
    return f"%!q({go_value(key)})"


_NULL: Final = GoValue("NULL_VALUE", "0", "structpb.NullValue")


def _native(value: Value) -> Json:
    """The Go value of a value: JSON, or a GoValue."""
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
                return _configuration(value)
            except _NotJson as error:
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
