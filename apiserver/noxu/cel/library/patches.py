"""The results of mutating admission policies: `Object{…}`, `JSONPatch{…}`, and the function `jsonpatch.escapeKey`.

Upstream's apiserver/pkg/cel/mutation. The type `Object.spec.ports` is named after the place of its objects in the apply
configuration. The checker accepts any fields; `misplaced` compares names with places when the expression has run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from noxu.cel.errors import CelError
from noxu.cel.library.declarations import Function, MessageType, overload
from noxu.cel.memory import COMPARED, PRINTED, allocate, allocate_text
from noxu.cel.types import types
from noxu.cel.types.types import Type, TypeKind
from noxu.cel.values.equality import equal
from noxu.cel.values.numbers import Uint
from noxu.cel.values.values import ABSENT, MapValue, Opaque, UntypedList, UntypedMap, Value, type_of

OBJECT: Final = Type(TypeKind.STRUCT, "Object")
JSON_PATCH: Final = Type(TypeKind.STRUCT, "JSONPatch")
_TEXT_FIELDS: Final = ("op", "from", "path")
_NO_TYPE: Final = Type(TypeKind.OPAQUE, "")
"""The type of fields that a JSONPatch does not have: the checker accepts them, and `_operation` refuses them."""


class ObjectValue(Opaque):
    """`Object.spec{…}`: a part of an apply configuration."""

    __slots__ = ("fields", "type")

    def __init__(self, kind: Type, fields: dict[str, Value]) -> None:
        self.type = kind
        self.fields = fields

    def equals(self, other: Value) -> bool:
        if not isinstance(other, ObjectValue) or self.type != other.type or self.fields.keys() != other.fields.keys():
            return False
        allocate(COMPARED * (len(self.fields) + 1))
        return all(_same(value, other.fields[name]) for name, value in self.fields.items())

    def field(self, name: Value) -> Value:
        return self.fields.get(name, ABSENT)


def _same(value: Value, other: Value) -> bool:
    try:
        return type(value) is type(other) and equal(value, other)
    except CelError:
        return False


class Operation(NamedTuple):
    """An operation of a JSON patch. `from_` is its `from`, "" if it has none; `value` is ABSENT if it has none."""

    op: str = ""
    path: str = ""
    from_: str = ""
    value: Value = ABSENT


class OperationValue(Opaque):
    """`JSONPatch{…}`."""

    __slots__ = ("operation",)
    type = JSON_PATCH

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def equals(self, other: Value) -> bool:
        if not isinstance(other, OperationValue):
            return False
        left, right = self.operation, other.operation
        if left[:3] != right[:3] or (left.value is ABSENT) is not (right.value is ABSENT):
            return False
        return left.value is ABSENT or equal(left.value, right.value)

    def field(self, name: Value) -> Value:
        op, path, from_, value = self.operation
        texts = {"op": op, "path": path, "from": from_}
        return value if name == "value" else texts.get(name) or ABSENT


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
    for name in _TEXT_FIELDS:
        value = fields.get(name, "")
        if type(value) is not str:
            go_type = _GO_NAMES.get(type(value), "[]ref.Val" if isinstance(value, list) else type_of(value).name)
            raise CelError(f"unexpected type {go_type} for JSONPatchType '{name}' field")
        texts[name] = value
    unknown = next((name for name in fields if name not in (*_TEXT_FIELDS, "value")), None)
    if unknown is not None:
        raise CelError(f"unexpected JSONPatchType field: {unknown}")
    return OperationValue(Operation(texts["op"], texts["path"], texts["from"], fields.get("value", ABSENT)))


_PATCH_FIELDS: Final = {**dict.fromkeys(_TEXT_FIELDS, types.STRING), "value": types.DYN}
_PATCH_MESSAGE: Final = MessageType(JSON_PATCH, lambda name: _PATCH_FIELDS.get(name, _NO_TYPE), _operation)


@lru_cache(1024)
def find_message(name: str) -> MessageType | None:
    """The message types of this module."""
    if name == JSON_PATCH.name:
        return _PATCH_MESSAGE
    if name == OBJECT.name or name.startswith(f"{OBJECT.name}."):
        kind = Type(TypeKind.STRUCT, name)
        return MessageType(kind, lambda _: types.DYN, lambda fields: ObjectValue(kind, fields))
    return None


def escape_key(key: str) -> str:
    """A key as a part of a JSON pointer: a/b~c → a~1b~0c."""
    allocate_text(2 * len(key), key)
    return key.replace("~", "~0").replace("/", "~1")


_ESCAPE_KEY: Final = overload("string_jsonpatch_escapeKey_string", "jsonpatch::escapeKey(string) -> string", escape_key)
FUNCTIONS: Final[Mapping[str, Function]] = {_ESCAPE_KEY[0]: Function(_ESCAPE_KEY[0], [_ESCAPE_KEY[1]])}


def misplaced(value: ObjectValue) -> Iterator[str]:
    """The errors of objects whose type names another place than theirs.

    Object{spec: Object.status{}}   →   unexpected type name "Object.status", expected "Object.spec", …
    """
    todo: list[tuple[Value, str]] = [(value, value.type.name)]
    while todo:
        part, place = todo.pop()
        if isinstance(part, (ObjectValue, list, MapValue)):
            allocate(PRINTED * (len(part.fields if isinstance(part, ObjectValue) else part) + 1))
        if isinstance(part, ObjectValue):
            name = part.type.name
            if name != place:
                prefix = f'unexpected type name "{name}", expected "{place}", '
                yield f"{prefix}which matches field name path from root Object type"
            todo += [(inner, f"{place}.{field}") for field, inner in reversed(part.fields.items())]
        elif isinstance(part, list):
            todo += [(inner, place) for inner in reversed(part)]
        elif isinstance(part, MapValue):
            todo += [(part.find(key), place) for key in part]
