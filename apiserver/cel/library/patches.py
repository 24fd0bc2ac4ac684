"""What mutating admission policies write: `Object{…}`, `JSONPatch{…}`, and `jsonpatch.escapeKey`.

Upstream's apiserver/pkg/cel/mutation. `Object.spec.ports{…}` is an object whose type is named after where it belongs;
its fields may be anything, only their names are compared with the place, once the expression has run. A patch's value
is whatever can be written as JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from apiserver.api.types import Json
from apiserver.cel import types
from apiserver.cel.conversions import go_value
from apiserver.cel.environment import MessageType
from apiserver.cel.equality import equal
from apiserver.cel.errors import CelError
from apiserver.cel.library.declarations import Function, overload
from apiserver.cel.numbers import Uint
from apiserver.cel.times import Duration, Timestamp
from apiserver.cel.types import Kind, Type
from apiserver.cel.values import LISTS, MAPS, MapValue, Opaque, UntypedList, UntypedMap, Value, type_of

OBJECT: Final = Type(Kind.STRUCT, "Object")
JSON_PATCH: Final = Type(Kind.STRUCT, "JSONPatch")
_TEXTS: Final = ("op", "from", "path")
_SAFE_INTEGER: Final = 2**53 - 1


class NotJson(Exception):
    """A value that cannot be written as JSON."""


class ObjectValue(Opaque):
    """`Object.spec{…}`: a piece of an apply configuration."""

    __slots__ = ("fields", "type")

    def __init__(self, kind: Type, fields: dict[str, Value]) -> None:
        self.type = kind
        self.fields = fields

    def equals(self, other: Value) -> bool:
        if not isinstance(other, ObjectValue) or self.type != other.type or self.fields.keys() != other.fields.keys():
            return False
        return all(_same(value, other.fields[name]) for name, value in self.fields.items())


def _same(one: Value, other: Value) -> bool:
    try:
        return type(one) is type(other) and equal(one, other)
    except CelError:
        return False


class Operation(NamedTuple):
    """One operation of a JSON patch. `value` is the value in a tuple, or empty."""

    op: str = ""
    path: str = ""
    source: str = ""
    value: tuple[Value, ...] = ()


class OperationValue(Opaque):
    """`JSONPatch{…}`."""

    __slots__ = ("operation",)
    type = JSON_PATCH

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def equals(self, other: Value) -> bool:
        if not isinstance(other, OperationValue):
            return False
        mine, its = self.operation, other.operation
        if mine[:3] != its[:3] or len(mine.value) != len(its.value):
            return False
        return not mine.value or equal(mine.value[0], its.value[0])


_GO_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int64",
    Uint: "uint64",
    float: "float64",
    bytes: "[]uint8",
    type(None): "structpb.NullValue",
    UntypedMap: "map[string]interface {}",
    UntypedList: "[]interface {}",
    MapValue: "map[ref.Val]ref.Val",
}


def _operation(fields: dict[str, Value]) -> OperationValue:
    texts = {}
    for name in _TEXTS:
        value = fields.get(name, "")
        if type(value) is not str:
            given = _GO_NAMES.get(type(value), "[]ref.Val" if isinstance(value, list) else type_of(value).name)
            raise CelError(f"unexpected type {given} for JSONPatchType '{name}' field")
        texts[name] = value
    value = (fields["value"],) if "value" in fields else ()
    unknown = next((name for name in fields if name not in (*_TEXTS, "value")), None)
    if unknown is not None:
        raise CelError(f"unexpected JSONPatchType field: {unknown}")
    return OperationValue(Operation(texts["op"], texts["path"], texts["from"], value))


_PATCH_MESSAGE: Final = MessageType(JSON_PATCH, lambda name: types.STRING if name in _TEXTS else types.DYN, _operation)


@lru_cache(1024)
def find_message(name: str) -> MessageType | None:
    """The types of this module."""
    if name == JSON_PATCH.name:
        return _PATCH_MESSAGE
    if name == OBJECT.name or name.startswith(f"{OBJECT.name}."):
        kind = Type(Kind.STRUCT, name)
        return MessageType(kind, lambda _: types.DYN, lambda fields: ObjectValue(kind, fields))
    return None


def escape_key(key: str) -> str:
    """A key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


_ESCAPE_KEY: Final = overload("string_jsonpatch_escapeKey_string", "jsonpatch::escapeKey(string) -> string", escape_key)
FUNCTIONS: Final[Mapping[str, Function]] = {_ESCAPE_KEY[0]: Function(_ESCAPE_KEY[0], [_ESCAPE_KEY[1]])}


def misplaced(value: ObjectValue) -> Iterator[str]:
    """Objects whose type says that they belong elsewhere."""
    todo: list[tuple[Value, str]] = [(value, value.type.name)]
    while todo:
        one, place = todo.pop()
        if isinstance(one, ObjectValue):
            name = one.type.name
            if name != place:
                told = f'unexpected type name "{name}", expected "{place}", '
                yield f"{told}which matches field name path from root Object type"
            todo += [(inner, f"{place}.{field}") for field, inner in reversed(one.fields.items())]
        elif isinstance(one, list):
            todo += [(inner, place) for inner in reversed(one)]
        elif isinstance(one, MapValue):
            todo += [(one.find(key), place) for key in one]


def to_json(value: Value, *, as_protobuf: bool = False) -> Json:
    """A value as JSON. Raises NotJson.

    The values of JSON patches go `as_protobuf`: there all numbers are doubles, and integers that none is equal to are
    texts.
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return str(int(value)) if as_protobuf and abs(value) > _SAFE_INTEGER else int(value)
        case float():
            return int(value) if as_protobuf and value.is_integer() and abs(value) <= _SAFE_INTEGER else value
        case bytes():
            return base64.b64encode(value).decode()
        case Timestamp() | Duration():
            return str(value)
        case UntypedMap() | UntypedList():
            return value.raw
        case ObjectValue():
            return {name: to_json(inner, as_protobuf=as_protobuf) for name, inner in value.fields.items()}
    if isinstance(value, LISTS):
        return [to_json(inner, as_protobuf=as_protobuf) for inner in value]
    if isinstance(value, MAPS):
        return {_name(key): to_json(value.find(key), as_protobuf=as_protobuf) for key in value}
    raise NotJson(f"unsupported conversion of {type_of(value).name} to JSON")


def _name(key: Value) -> str:
    if type(key) is not str:
        raise NotJson(f'map key "{go_value(key)}" is of type {type_of(key).name}, not string')
    return key
