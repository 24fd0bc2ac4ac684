"""JSON patches and apply configurations that expressions return, as JSON (upstream's cel/mutation and policy/mutating/patch).

Upstream writes the values of a JSON patch as protobuf does: all numbers are doubles, and larger integers become
strings. It converts an apply configuration to Go's values, except null, and lists and maps within other lists and maps:
these stay values of cel-go, which fit no schema. Here they are `GoValue`s, which print as in Go.

The written JSON counts as memory of a separate evaluation: a list that other lists share is written once for each of
them.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from typing import Final, NamedTuple

from noxu.cel.errors import Cancelled
from noxu.cel.library.patches import ObjectValue, Operation, OperationValue, misplaced
from noxu.cel.memory import ENTRY, MAP, PRINTED, TEXT, Memory, allocate, allocate_text, limited_to
from noxu.cel.types.types import Type
from noxu.cel.values.conversions import go_type, go_value
from noxu.cel.values.numbers import Uint
from noxu.cel.values.times import Duration, Timestamp
from noxu.cel.values.values import (
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
from noxu.cpu_budget import CpuBudget
from noxu.go.text import GoValue, quote
from noxu.values import Json, Object

_SAFE_INTEGER: Final = 2**53 - 1
_TOO_DEEP: Final = "the value is nested too deeply"


class PatchError(Exception):
    """The value of an expression is not a patch or apply configuration that can be written as JSON."""


class _NotJson(Exception):
    """A value that cannot be written as JSON."""


class WrittenPatch(NamedTuple):
    """A patch or configuration, and the memory in bytes that it takes where nothing is shared."""

    value: Json
    size: int


def json_patch(operations: list[Value], cpu_budget: CpuBudget | None = None) -> WrittenPatch:
    """The operations of a JSON patch. Raises PatchError, and what `cpu_budget` raises."""
    return _written(lambda: [_operation(value.operation) for value in operations], cpu_budget)


def _written(write: Callable[[], Json], cpu_budget: CpuBudget | None) -> WrittenPatch:
    memory = Memory(cpu_budget)
    try:
        with limited_to(memory):
            return WrittenPatch(write(), memory.used)
    except Cancelled as cancelled:
        raise PatchError(cancelled.message) from None
    except RecursionError:
        raise PatchError(_TOO_DEEP) from None


def _operation(operation: Operation) -> Object:
    allocate(MAP)
    for text in (operation.op, operation.path, operation.from_):
        allocate_text(len(text), text)
    patch: Object = {"op": operation.op, "path": operation.path}
    if operation.from_:
        patch["from"] = operation.from_
    value = operation.value
    if value is ABSENT:
        return patch
    if isinstance(value, ObjectValue):
        _check_places(value)
    try:
        patch["value"] = _patch_value(value)
    except _NotJson as error:
        why = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"
        raise PatchError(f"{why}: {error}") from None
    if operation.op == "test" and value is None:
        patch["value"] = _EQUALS_NOTHING
    return patch


_EQUALS_NOTHING: Final = object()
"""In upstream's patches a test for null always fails, even if the value is null."""


def plain(value: Value) -> Json:
    """A value as JSON, in which large integers are texts. Raises PatchError."""

    def write() -> Json:
        try:
            return _patch_value(value)
        except _NotJson as error:
            raise PatchError(str(error)) from None

    return _written(write, None).value


def apply_configuration(value: ObjectValue, cpu_budget: CpuBudget | None = None) -> WrittenPatch:
    """An apply configuration as JSON, with `GoValue`s for values that have no JSON.

    Raises PatchError, and what `cpu_budget` raises.
    """
    return _written(lambda: _root(value), cpu_budget)


def _root(value: ObjectValue) -> Object:
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
        case str():
            allocate_text(len(value), value)
            return value
        case None | bool():
            return value
        case int():
            return int(value) if abs(value) <= _SAFE_INTEGER else str(int(value))
        case float():
            return _number(value)
        case bytes():
            allocate(TEXT + 2 * len(value))
            return base64.b64encode(value).decode()
        case Timestamp() | Duration():
            return str(value)
        case UntypedMap() | UntypedList():
            return _shared(value.raw)
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
        allocate(PRINTED * (len(value) + 1))
        return [_patch_value(inner) for inner in value]
    if isinstance(value, MAPS):
        allocate(MAP + ENTRY * len(value))
        return {_key(key): _patch_value(value.find(key)) for key in value}
    name = type_of(value).name.rpartition(".")[2]
    raise _NotJson(f"type conversion error from '{name}' to '*structpb.Value'")


def _shared(raw: Json) -> Json:
    """A part of an object. Its size is announced as that of the JSON which the patched object will have there."""
    todo = [raw]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            allocate_text(len(value), value)
        elif isinstance(value, list):
            allocate(PRINTED * (len(value) + 1))
            todo += value
        elif isinstance(value, dict):
            allocate(MAP + ENTRY * len(value))
            todo += value.values()
    return raw


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
    allocate(MAP + ENTRY * len(value.fields))
    return {name: _field(name, inner) for name, inner in value.fields.items()}


def _field(name: str, value: Value) -> Json:
    """The value of a field. Upstream converts the elements of lists and maps in fields, but not those nested deeper."""
    if isinstance(value, list):
        allocate(PRINTED * (len(value) + 1))
        return [_native(inner) for inner in value]
    if not isinstance(value, MapValue):
        return _native(value)
    members = {}
    allocate(MAP + ENTRY * len(value))
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
        case str():
            allocate_text(len(value), value)
            return value
        case bool() | int() | float():
            return value
        case UntypedMap() | UntypedList():
            return _shared(value.raw)
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
            allocate(3 * PRINTED * (len(value) + 1))
            inside = " ".join(f"{go_value(key)}:{go_value(value.find(key))}" for key in value)
            return GoValue(f"map[{inside}]", "map[ref.Val]ref.Val", "map[ref.Val]ref.Val")
    name = type_of(value).name
    return GoValue(name, name, name)
