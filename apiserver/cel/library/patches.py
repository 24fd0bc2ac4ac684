"""What mutating admission policies write: `Object{…}`, `JSONPatch{…}`, and `jsonpatch.escapeKey`.

Upstream's apiserver/pkg/cel/mutation. `Object.spec.ports{…}` is an object whose type is named after where it belongs;
its fields may be anything, only their names are compared with the place, once the expression has run. A patch's value
is whatever can be written as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from apiserver.cel import types
from apiserver.cel.environment import MessageType
from apiserver.cel.equality import equal
from apiserver.cel.errors import CelError
from apiserver.cel.library.declarations import Function, overload
from apiserver.cel.numbers import Uint
from apiserver.cel.types import Kind, Type
from apiserver.cel.values import ABSENT, MapValue, Opaque, UntypedList, UntypedMap, Value, type_of

OBJECT: Final = Type(Kind.STRUCT, "Object")
JSON_PATCH: Final = Type(Kind.STRUCT, "JSONPatch")
_TEXTS: Final = ("op", "from", "path")
_NO_TYPE: Final = Type(Kind.OPAQUE, "")
"""Of the fields that a patch has not: upstream has none for them."""


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

    def field(self, name: Value) -> Value:
        return self.fields.get(name, ABSENT)


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

    def field(self, name: Value) -> Value:
        op, path, source, value = self.operation
        known = {"op": op, "path": path, "from": source}
        return next(iter(value), ABSENT) if name == "value" else known.get(name) or ABSENT


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


_PATCH_FIELDS: Final = {**dict.fromkeys(_TEXTS, types.STRING), "value": types.DYN}
_PATCH_MESSAGE: Final = MessageType(JSON_PATCH, lambda name: _PATCH_FIELDS.get(name, _NO_TYPE), _operation)


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
