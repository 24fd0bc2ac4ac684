"""Protobuf messages written along struct tables, byte for byte as Go's generated code writes them.

Fields are in the order of their numbers, map keys are sorted, and a field that is not a pointer is written even if it is
zero.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import NamedTuple, TypeAlias

import orjson

from noxu.go import base64 as go_base64
from noxu.go import protobuf
from noxu.go.protobuf import DURATION, EPOCH, INT_OR_STRING, QUANTITY, RAW_JSON, SCALAR_WIRE_TYPES, TIMESTAMP
from noxu.go.structs import STRING, Field, List, Map, Presence, Scalar, Struct, Type, Union, Wire
from noxu.go.text import compact_json
from noxu.go.time import parse_duration
from noxu.values import Json, Object


class _Message(NamedTuple):
    """A message that is still to be written."""

    kind: Type
    value: Json


_Part: TypeAlias = "tuple[bytes, bytes | _Message | _Layer]"
"""A tag, and either encoded bytes or a message."""


class _Layer(NamedTuple):
    """An embedded struct: its fields by number, and the struct around it, which has the values."""

    fields: _Layers
    value: Object


_Layers: TypeAlias = "dict[int, Field | _Layers]"


def write(kind: Struct, value: Object) -> bytes:
    """Encode a message.

    A length precedes the message that it measures, and is known only afterwards: `chunks` has a placeholder for each
    open message, which is replaced when that ends. `metadata { name: "a", uid: "" }`:

        chunks                                       size   open_messages
        [b""]                                        0      [(0, 0, 0a)]      metadata begins
        [b"", 0a 01 61]                              3      [(0, 0, 0a)]      name
        [b"", 0a 01 61, 2a 00]                       5      [(0, 0, 0a)]      uid
        [0a 05, 0a 01 61, 2a 00]                     7      []                metadata ends: 5 - 0 bytes
    """
    chunks: list[bytes] = []
    size = 0
    open_messages: list[tuple[int, int, bytes]] = []  # (index of the placeholder, size before the message, tag)
    parts: list[Iterator[_Part]] = [_parts(_Message(kind, value))]  # of each open message, those still to be written
    while True:
        part = next(parts[-1], None)
        if part is None:
            parts.pop()
            if not parts:
                return b"".join(chunks)
            place, before, tag = open_messages.pop()
            chunks[place] = tag + protobuf.varint_bytes(size - before)
            size += len(chunks[place])
        elif isinstance(part[1], bytes):
            chunks.append(part[0] + part[1])
            size += len(chunks[-1])
        else:
            open_messages.append((len(chunks), size, part[0]))
            chunks.append(b"")
            parts.append(_parts(part[1]))


@cache
def _layers(kind: Struct) -> _Layers:
    """The fields of a struct by number, in that order, with those of embedded structs in dicts of their own."""
    layers: _Layers = {}
    for field in kind.fields.values():
        inner = layers
        for number in field.within:
            below = inner.setdefault(number, {})
            assert isinstance(below, dict)
            inner = below
        if field.number:
            inner[field.number] = field
    return _sorted(layers)


def _sorted(layers: _Layers) -> _Layers:
    return {
        n: _sorted(layer) if isinstance(layer, dict) else layer
        for n, layer in sorted(layers.items(), key=lambda at: at[0])
    }


def _parts(message: _Message | _Layer) -> Iterator[_Part]:
    """The fields of a message."""
    if isinstance(message, _Layer):
        yield from _struct_parts(message.fields, message.value)
    elif isinstance(message.kind, Struct):
        yield from _struct_parts(_layers(message.kind), message.value or {})
    elif isinstance(message.kind, Union):
        yield from _union_parts(message.kind, message.value)
    elif isinstance(message.kind, Map):
        name, value = message.value
        yield from _field_parts(Field("key", STRING, 1, Presence.ALWAYS), name)
        yield from _field_parts(Field("value", message.kind.element, 2, Presence.ALWAYS), value)
    else:
        assert isinstance(message.kind, List)
        yield from _field_parts(Field("items", List(message.kind.element), 1), message.value)


def _struct_parts(fields: _Layers, value: Object) -> Iterator[_Part]:
    for number, layer in fields.items():
        if isinstance(layer, Field):
            yield from _field_parts(layer, value.get(layer.name))
        else:
            yield protobuf.tag_bytes(number, protobuf.BYTES), _Layer(layer, value)


def _union_parts(kind: Union, value: Json) -> Iterator[_Part]:
    """The boolean of a JSONSchemaPropsOrBool is true together with a schema, as Go's decoder leaves it."""
    word = {dict: "object", list: "array", bool: "bool"}.get(type(value), "")
    for choice in sorted(kind.choices.values(), key=lambda field: field.number):
        if choice is kind.choices.get("bool"):
            yield from _field_parts(choice, bool(value) or word == "object")
        elif choice is kind.choices.get(word):
            yield from _field_parts(choice, value)


def _field_parts(field: Field, value: Json) -> Iterator[_Part]:
    kind = field.type
    if isinstance(kind, Map):
        for name in sorted(value or ()):
            yield protobuf.tag_bytes(field.number, protobuf.BYTES), _Message(kind, (name, value[name]))
        return
    if isinstance(kind, List) and not kind.wrapped:
        for item in value or ():
            yield from _value_parts(field.number, kind.element, item)
        return
    if value is not None or not _may_be_nil(field):
        yield from _value_parts(field.number, kind, value)


def _may_be_nil(field: Field) -> bool:
    """Whether an unset field is left out."""
    if field.write in (Presence.POINTER, Presence.NULL):
        return True
    return isinstance(field.type, List) or (isinstance(field.type, Scalar) and field.type.wire is Wire.BYTES)


def _value_parts(number: int, kind: Type, value: Json) -> Iterator[_Part]:
    if not isinstance(kind, Scalar):
        yield protobuf.tag_bytes(number, protobuf.BYTES), _Message(kind, value)
        return
    form, data = SCALAR_WIRE_TYPES.get(kind.wire, protobuf.BYTES), _leaf_bytes(kind, value)
    yield protobuf.tag_bytes(number, form), protobuf.varint_bytes(len(data)) + data if form == protobuf.BYTES else data


def _leaf_bytes(kind: Scalar, value: Json) -> bytes:
    form = kind.wire
    if form is Wire.STRING:
        return str(value or "").encode("utf-8", "surrogatepass")
    if form in (Wire.INT32, Wire.INT64, Wire.BOOL):
        return protobuf.varint_bytes(int(value or 0) & 0xFFFF_FFFF_FFFF_FFFF)
    if form is Wire.DOUBLE:
        return struct.pack("<d", value or 0)
    if form is Wire.BYTES:
        return value if isinstance(value, bytes) else go_base64.decode(value or "")
    if form in (Wire.TIME, Wire.MICRO_TIME):
        return _time_bytes(value, micro=form is Wire.MICRO_TIME)
    if form is Wire.INT_OR_STRING:
        text = isinstance(value, str)
        either = {"type": int(text), "intVal": 0 if text else value or 0, "strVal": value if text else ""}
        return write(INT_OR_STRING, either)
    if form is Wire.QUANTITY:
        return write(QUANTITY, {"string": value or "0"})
    if form is Wire.DURATION:
        return write(DURATION, {"duration": parse_duration(value or "0s")})
    return b"" if value is None else write(RAW_JSON, {"raw": _json_bytes(value)})


def _json_bytes(value: Json) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # too deep, or a lone surrogate
        return compact_json(value, sort_keys=False).encode("utf-8", "replace")


def _time_bytes(value: Json, *, micro: bool) -> bytes:
    if not value:
        return b""
    since = datetime.fromisoformat(value) - EPOCH
    seconds = since.days * 86_400 + since.seconds
    return write(TIMESTAMP, {"seconds": seconds, "nanos": since.microseconds * 1000 if micro else 0})
