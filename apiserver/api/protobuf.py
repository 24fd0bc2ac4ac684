"""application/vnd.kubernetes.protobuf: built-in kinds as client-go and kubectl send them (runtime/serializer/protobuf).

A body is `k8s\\0` and a runtime.Unknown message: apiVersion and kind, then the object as a message of its own. Which
number means what is said by the struct tables; what comes out has the shape of the JSON that Go would write for the
same object, so that the rest of the server need not know.

- Presence counts: an optional string sent as "" is "" (a Lease whose holder let go), one that was not sent is absent.
- Unknown fields are skipped, wherever they stand, groups included. Later occurrences win; messages merge.
- What is malformed raises ValueError, in Go's words where Go has any. Time and memory are linear in the body, nothing
  recurses on it, and messages nest no deeper than `MAX_DEPTH`.

`encode` writes what Go's generated code writes, byte for byte: fields in the order of their numbers, map keys sorted,
whatever is not a pointer even when it is zero.
"""

from __future__ import annotations

import codecs
import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final, NamedTuple, TypeAlias

import orjson

from apiserver.api import gobase64, gojson, wire
from apiserver.api.errors import no_kind_registered
from apiserver.api.gotext import compact_json, plain
from apiserver.api.gotime import MICRO, SECONDS, format_time
from apiserver.api.structs import (
    INT32,
    INT64,
    STRING,
    Field,
    List,
    Map,
    Scalar,
    Struct,
    Type,
    Union,
    Wire,
    Write,
    arrange,
)
from apiserver.api.types import Json, Object

MAGIC: Final = b"k8s\x00"
MAX_DEPTH: Final = 5_000  # messages in messages; in JSON a repeated one counts twice, and JSON ends at 10,000

_SCALAR_WIRE: Final = {
    Wire.BOOL: wire.VARINT,
    Wire.INT32: wire.VARINT,
    Wire.INT64: wire.VARINT,
    Wire.DOUBLE: wire.FIXED64,
}  # everything else has a length
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_TIME: Final = -62_135_596_800  # Go's time.Time{}: the start of the year 1

_TYPE_META: Final = Struct("TypeMeta", package="runtime").define(
    Field("apiVersion", STRING, 1), Field("kind", STRING, 2)
)
_RAW: Final = Scalar("[]uint8", lambda value: value, None, Wire.BYTES)
_UNKNOWN: Final = Struct("Unknown", package="runtime").define(
    Field("typeMeta", _TYPE_META, 1, Write.ALWAYS),
    Field("raw", _RAW, 2),
    Field("contentEncoding", STRING, 3),
    Field("contentType", STRING, 4),
)
_TIMESTAMP: Final = Struct("Timestamp").define(Field("seconds", INT64, 1), Field("nanos", INT32, 2))
_INT_OR_STRING: Final = Struct("IntOrString", package="intstr").define(
    Field("type", INT64, 1), Field("intVal", INT32, 2), Field("strVal", STRING, 3)
)
_JSON: Final = Struct("RawExtension", package="runtime").define(Field("raw", _RAW, 1))
_WATCH_EVENT: Final = Struct("WatchEvent").define(Field("type", STRING, 1), Field("object", _JSON, 2))


class Envelope(NamedTuple):
    """What a body says about itself, and its message."""

    api_version: str
    kind: str
    raw: bytes


def decode(
    body: bytes, lookup: Callable[[str, str], Struct | None], *, api_version: str = "", kind: str = ""
) -> tuple[tuple[str, str], Object]:
    """((apiVersion, kind), the object as JSON would have it); where the body says neither, those expected count.

    `lookup` finds the table of an apiVersion and kind. Raises ValueError.
    """
    envelope = open_envelope(body)
    api_version, kind = envelope.api_version or api_version, envelope.kind or kind
    if not (api_version and kind):
        about = f'runtime.TypeMeta{{APIVersion:"{envelope.api_version}", Kind:"{envelope.kind}"}}'
        raise ValueError(f"Object '{'apiVersion' if kind else 'Kind'}' is missing in '{about}'")
    table = lookup(api_version, kind)
    if table is None:
        version = api_version if api_version.count("/") > 1 else api_version.rpartition("/")[2]
        raise ValueError(no_kind_registered(kind, version))
    value = read(table, envelope.raw)
    return (api_version, kind), {"kind": kind, "apiVersion": api_version} | value


def open_envelope(body: bytes) -> Envelope:
    """Raises ValueError."""
    if not body:
        raise ValueError("empty data")
    if not body.startswith(MAGIC):
        expected = " ".join(map(str, MAGIC))
        raise ValueError(f"provided data does not appear to be a protobuf message, expected prefix [{expected}]")
    if len(body) == len(MAGIC):
        raise ValueError("empty body")
    unknown = read(_UNKNOWN, body, len(MAGIC))
    meta = unknown["typeMeta"]
    return Envelope(meta.get("apiVersion", ""), meta.get("kind", ""), unknown.get("raw", b""))


# Reading


@dataclass(slots=True, eq=False)
class _Step:
    """What a field number means inside a message. `kind` is what one occurrence holds; None is an embedded struct."""

    name: str
    wire: int
    kind: Type | None
    many: bool = False
    plan: _Plan | None = None  # of the message that one occurrence is; made when there is one


_Plan: TypeAlias = dict[int, _Step]


def _plan(kind: Type) -> _Plan:
    """The numbers of one kind of message."""
    if isinstance(kind, Map):
        return {1: _step(Field("key", STRING)), 2: _step(Field("value", kind.element))}
    if isinstance(kind, List):
        return {1: _step(Field("items", List(kind.element)))}
    assert isinstance(kind, (Struct, Union)), kind
    plan: _Plan = {}
    for one in kind.choices.values() if isinstance(kind, Union) else kind.fields.values():
        inner = plan
        for number in one.within:
            below = inner.setdefault(number, _Step("", wire.BYTES, None, plan={})).plan
            assert below is not None
            inner = below
        if one.number:
            inner[one.number] = _step(one)
    return plan


@cache
def _struct_plan(kind: Struct) -> _Plan:
    return _plan(kind)


def _step(one: Field) -> _Step:
    kind, many = one.type, False
    if isinstance(kind, List) and not kind.wrapped:
        kind, many = kind.element, True
    expected = _SCALAR_WIRE.get(kind.wire, wire.BYTES) if isinstance(kind, Scalar) else wire.BYTES
    return _Step(one.name, expected, kind, many)


def read(kind: Struct, data: bytes, pos: int = 0) -> Object:
    """A message without its envelope. Raises ValueError.

    One loop over all nested messages; `stack` holds those that have not ended. A finished message goes into
    `container[key]`.
    """
    top: Object = {}
    stack: list[tuple[Type | None, _Plan, Object, int, Json, Json]] = []
    current: Type | None = kind
    plan, stop, container, key = _struct_plan(kind), len(data), top, ""
    out: Object = {}
    while True:
        if pos == stop:
            if isinstance(current, Map):
                container[out.get("key", "")] = _unset(current.element) if "value" not in out else out["value"]
            elif current is not None:
                container[key] = _finished(current, out)
            if not stack:
                result: Object = top[""]
                return result
            current, plan, out, stop, container, key = stack.pop()
            continue
        try:
            number, found, pos = wire.tag(data, pos, stop)
        except wire.BadTag as bad:
            raise ValueError(f"proto: {_name(current)}: {bad}") from None
        step = plan.get(number)
        if step is None:
            pos = wire.skip(found, data, pos, stop)
            continue
        if found != step.wire:
            raise ValueError(f"proto: wrong wireType = {found} for field {step.name[:1].upper()}{step.name[1:]}")
        if found != wire.BYTES:
            assert isinstance(step.kind, Scalar)
            value, pos = _number(step.kind, data, pos, stop)
        else:
            after, pos = wire.length(data, pos, stop)
            if not isinstance(step.kind, Scalar):
                if len(stack) == MAX_DEPTH:
                    raise ValueError("exceeded max depth")
                stack.append((current, plan, out, stop, container, key))
                current, stop = step.kind, after
                if step.plan is None:
                    assert current is not None
                    step.plan = _struct_plan(current) if isinstance(current, Struct) else _plan(current)
                plan = step.plan
                if current is not None:
                    container, key, out = _place(step, out)
                continue
            value = _leaf(step.kind, data[pos:after])
            pos = after
        if step.many:
            out.setdefault(step.name, []).append(value)
        else:
            out[step.name] = value


def _name(kind: Type | None) -> str:
    """What errors call a message."""
    return "Message" if kind is None or isinstance(kind, Scalar) else kind.name or kind.go


def _place(step: _Step, out: Object) -> tuple[Json, Json, Object]:
    """Where a message that begins will go, and what it begins with."""
    if step.many:
        items = out.setdefault(step.name, [])
        items.append(None)
        return items, len(items) - 1, {}
    if isinstance(step.kind, Map):
        return out.setdefault(step.name, {}), "", {}
    before = out.get(step.name)
    return out, step.name, dict(before) if isinstance(step.kind, Struct) and before else {}


def _finished(kind: Type, out: Object) -> Json:
    if isinstance(kind, Struct):
        order, kept, always = _shape(kind)
        if not always <= out.keys():
            return arrange(kind, out)
        return {
            name: value
            for name in sorted(out, key=order)
            if (value := out[name]) or name in always or (value is not None and name in kept)
        }
    if isinstance(kind, Union):
        return _chosen(kind, out)
    return out.get("items", [])


@cache
def _shape(kind: Struct) -> tuple[Callable[[str], int], frozenset[str], frozenset[str]]:
    """(where a field stands, those written while they are zero, those written always): `arrange` for few fields."""
    order = {name: n for n, name in enumerate(kind.fields)}
    kept = frozenset(name for name, one in kind.fields.items() if one.write is not Write.OMIT_EMPTY)
    always = frozenset(name for name, one in kind.fields.items() if one.write in (Write.ALWAYS, Write.NULL))
    return order.__getitem__, kept, always


def _chosen(kind: Union, out: Object) -> Json:
    """A list or a struct if there is one, else the boolean: as Go writes such a type."""
    for word in ("array", "object"):
        choice = kind.choices.get(word)
        if choice and out.get(choice.name) not in (None, []):
            return out[choice.name]
    choice = kind.choices.get("bool")
    return out.get(choice.name, False) if choice else None


def _unset(kind: Type) -> Json:
    """A map's value that was not sent."""
    if isinstance(kind, Scalar):
        return "" if kind.wire is Wire.BYTES else kind.zero
    return _finished(kind, {})


def _leaf(kind: Scalar, data: bytes) -> Json:
    form = kind.wire
    if form is Wire.STRING:
        return _text(data)
    if form is Wire.BYTES:
        return data if kind is _RAW else gobase64.encode(data)
    if form in (Wire.TIME, Wire.MICRO_TIME):
        return _time(data, SECONDS if form is Wire.TIME else MICRO)
    if form is Wire.INT_OR_STRING:
        either = read(_INT_OR_STRING, data)
        return either.get("strVal", "") if either.get("type") else either.get("intVal", 0)
    raw = read(_JSON, data).get("raw")
    return kind.read(_json(raw)) if raw else None


def _json(text: bytes) -> Json:
    try:
        return orjson.loads(text)
    except ValueError:  # deeper than orjson goes, no UTF-8, or no JSON: then Go's error
        return gojson.read(text).value


def _text(data: bytes) -> str:
    """Bytes that are no UTF-8 become U+FFFD each, as they do when Go writes the string as JSON."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="noxu-each")


codecs.register_error("noxu-each", lambda error: ("\ufffd", error.start + 1))  # type: ignore[attr-defined]


def _time(data: bytes, digits: int) -> str | None:
    if not data:
        return None
    stamp = read(_TIMESTAMP, data)
    seconds = stamp.get("seconds", 0)
    if seconds == _ZERO_TIME and not (digits and stamp.get("nanos")):
        return None
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=stamp.get("nanos", 0) // 1000 if digits else 0)
    except OverflowError:
        raise ValueError(f"proto: timestamp {seconds} is out of range") from None
    return format_time(moment, digits)


def _number(kind: Scalar, data: bytes, pos: int, end: int) -> tuple[Json, int]:
    if kind.wire is Wire.DOUBLE:
        if pos + 8 > end:
            raise ValueError(wire.EOF)
        (number,) = struct.unpack_from("<d", data, pos)
        if not math.isfinite(number):
            raise ValueError(f"json: unsupported value: {plain(number)}")
        return kind.read(number), pos + 8
    value, pos = wire.varint(data, pos, end)
    if kind.wire is Wire.BOOL:
        return value != 0, pos
    bits = 32 if kind.wire is Wire.INT32 else 64
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value, pos


# Writing


class _Message(NamedTuple):
    """A part that is a message: its parts are yet to come."""

    kind: Type
    value: Json


_Part: TypeAlias = "tuple[bytes, bytes | _Message | _Layer]"


class _Layer(NamedTuple):
    """An embedded struct: the fields below it by their numbers, and the struct that has them all."""

    fields: _Layers
    value: Object


_Layers: TypeAlias = "dict[int, Field | _Layers]"


def encode(kind: Struct, value: Object) -> bytes:
    """A body with its envelope; apiVersion and kind are the object's own."""
    meta = {"apiVersion": value.get("apiVersion") or "", "kind": value.get("kind") or ""}
    return MAGIC + write(_UNKNOWN, {"typeMeta": meta, "raw": write(kind, value)})


def watch_event(kind: str, body: bytes) -> bytes:
    """An event in a stream: its length in four bytes, and a message in no envelope. `body` is an object in one."""
    event = write(_WATCH_EVENT, {"type": kind, "object": {"raw": body}})
    return len(event).to_bytes(4, "big") + event


def write(kind: Struct, value: Object) -> bytes:
    """A message without its envelope.

    Lengths stand before what they measure: `chunks` keeps a place for each, which is filled when the message ends.
    """
    chunks: list[bytes] = []
    size = 0
    open_messages: list[tuple[int, int, bytes]] = []  # (its place in chunks, the size before it, its tag)
    parts: list[Iterator[_Part]] = [_parts(_Message(kind, value))]
    while True:
        part = next(parts[-1], None)
        if part is None:
            parts.pop()
            if not parts:
                return b"".join(chunks)
            place, before, tag = open_messages.pop()
            chunks[place] = tag + wire.varint_bytes(size - before)
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
    """The fields of a struct as protobuf nests them, in the order of their numbers."""
    layers: _Layers = {}
    for one in kind.fields.values():
        inner = layers
        for number in one.within:
            below = inner.setdefault(number, {})
            assert isinstance(below, dict)
            inner = below
        if one.number:
            inner[one.number] = one
    return _sorted(layers)


def _sorted(layers: _Layers) -> _Layers:
    return {
        n: _sorted(one) if isinstance(one, dict) else one for n, one in sorted(layers.items(), key=lambda at: at[0])
    }


def _parts(message: _Message | _Layer) -> Iterator[_Part]:
    if isinstance(message, _Layer):
        yield from _struct_parts(message.fields, message.value)
    elif isinstance(message.kind, Struct):
        yield from _struct_parts(_layers(message.kind), message.value or {})
    elif isinstance(message.kind, Union):
        yield from _union_parts(message.kind, message.value)
    elif isinstance(message.kind, Map):
        name, value = message.value
        yield from _field_parts(Field("key", STRING, 1, Write.ALWAYS), name)
        yield from _field_parts(Field("value", message.kind.element, 2, Write.ALWAYS), value)
    else:
        assert isinstance(message.kind, List)
        yield from _field_parts(Field("items", List(message.kind.element), 1), message.value)


def _struct_parts(fields: _Layers, value: Object) -> Iterator[_Part]:
    for number, one in fields.items():
        if isinstance(one, Field):
            yield from _field_parts(one, value.get(one.name))
        else:
            yield wire.tag_bytes(number, wire.BYTES), _Layer(one, value)


def _union_parts(kind: Union, value: Json) -> Iterator[_Part]:
    """The boolean of a JSONSchemaPropsOrBool says true beside a schema, as Go's decoder leaves it."""
    word = {dict: "object", list: "array", bool: "bool"}.get(type(value), "")
    for choice in sorted(kind.choices.values(), key=lambda one: one.number):
        if choice is kind.choices.get("bool"):
            yield from _field_parts(choice, bool(value) or word == "object")
        elif choice is kind.choices.get(word):
            yield from _field_parts(choice, value)


def _field_parts(one: Field, value: Json) -> Iterator[_Part]:
    kind = one.type
    if isinstance(kind, Map):
        for name in sorted(value or ()):
            yield wire.tag_bytes(one.number, wire.BYTES), _Message(kind, (name, value[name]))
        return
    if isinstance(kind, List) and not kind.wrapped:
        for item in value or ():
            yield from _one(one.number, kind.element, item)
        return
    if value is not None or not _may_be_nil(one):
        yield from _one(one.number, kind, value)


def _may_be_nil(one: Field) -> bool:
    if one.write in (Write.POINTER, Write.NULL):
        return True
    return isinstance(one.type, List) or (isinstance(one.type, Scalar) and one.type.wire is Wire.BYTES)


def _one(number: int, kind: Type, value: Json) -> Iterator[_Part]:
    if not isinstance(kind, Scalar):
        yield wire.tag_bytes(number, wire.BYTES), _Message(kind, value)
        return
    form, data = _SCALAR_WIRE.get(kind.wire, wire.BYTES), _leaf_bytes(kind, value)
    yield wire.tag_bytes(number, form), wire.varint_bytes(len(data)) + data if form == wire.BYTES else data


def _leaf_bytes(kind: Scalar, value: Json) -> bytes:
    form = kind.wire
    if form is Wire.STRING:
        return str(value or "").encode("utf-8", "surrogatepass")
    if form in (Wire.INT32, Wire.INT64, Wire.BOOL):
        return wire.varint_bytes(int(value or 0) & 0xFFFF_FFFF_FFFF_FFFF)
    if form is Wire.DOUBLE:
        return struct.pack("<d", value or 0)
    if form is Wire.BYTES:
        return value if isinstance(value, bytes) else gobase64.decode(value or "")
    if form in (Wire.TIME, Wire.MICRO_TIME):
        return _time_bytes(value, micro=form is Wire.MICRO_TIME)
    if form is Wire.INT_OR_STRING:
        text = isinstance(value, str)
        either = {"type": int(text), "intVal": 0 if text else value or 0, "strVal": value if text else ""}
        return write(_INT_OR_STRING, either)
    return b"" if value is None else write(_JSON, {"raw": _json_bytes(value)})


def _json_bytes(value: Json) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # too deep, or a lone surrogate
        return compact_json(value, sort_keys=False).encode("utf-8", "replace")


def _time_bytes(value: Json, *, micro: bool) -> bytes:
    if not value:
        return b""
    since = datetime.fromisoformat(value) - _EPOCH
    seconds = since.days * 86_400 + since.seconds
    return write(_TIMESTAMP, {"seconds": seconds, "nanos": since.microseconds * 1000 if micro else 0})
