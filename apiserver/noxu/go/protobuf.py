"""Protobuf messages read along struct tables, into the shape of the JSON that Go would write for the same object.

- Presence matters: an optional string sent as "" is "" (a Lease that its holder gave up), one not sent is absent.
- Unknown fields are skipped wherever they occur, groups included. Later occurrences win; messages are merged.
- Malformed input raises ValueError, with Go's message if Go has one. Time and memory are linear in the input, nothing
  recurses on it, and messages nest no deeper than `MAX_DEPTH`.

A message is a sequence of fields, each a tag and a value. A tag is a varint of `field number << 3 | wire type`; a
varint has seven bits per byte, the lowest first, and the high bit set on all bytes but the last:

    08 96 01         field 1, VARINT: 0x16 | 0x01 << 7 = 150
    12 03 61 62 63   field 2, BYTES: 3 bytes, `abc`

Readers take `(data, pos, end)` and return what they read and the position after it. Positions are absolute in `data`;
`end` is where the message ends. Errors are those of Go's generated code.
"""

from __future__ import annotations

import codecs
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final, TypeAlias

import orjson

from noxu.cpu_budget import spend
from noxu.go import base64 as go_base64
from noxu.go import json as go_json
from noxu.go.structs import INT32, INT64, STRING, Field, List, Map, Presence, Scalar, Struct, Type, Union, Wire, arrange
from noxu.go.text import plain
from noxu.go.time import MICRO, SECONDS, format_duration, format_time
from noxu.values import Json, Object

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)
EOF: Final = "unexpected EOF"
_OVERFLOW: Final = "proto: integer overflow"
_NEGATIVE: Final = "proto: negative length found during unmarshaling"
_64_BITS: Final = (1 << 64) - 1


class BadTag(ValueError):
    """A tag that no field can have; the caller prefixes the name of the message."""


def read_varint(data: bytes, pos: int, end: int) -> tuple[int, int]:
    """(an unsigned 64-bit number, the position after it). Raises ValueError."""
    if pos < end and data[pos] < 0x80:
        return data[pos], pos + 1
    value = shift = 0
    while True:
        if shift >= 64:
            raise ValueError(_OVERFLOW)
        if pos >= end:
            raise ValueError(EOF)
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _64_BITS, pos
        shift += 7


def read_tag(data: bytes, pos: int, end: int) -> tuple[int, int, int]:
    """(field number, wire type, the position after the tag). Raises BadTag or ValueError."""
    value, pos = read_varint(data, pos, end)
    number, wire_type = value >> 3 & 0xFFFF_FFFF, value & 7
    if wire_type == END_GROUP:
        raise BadTag("wiretype end group for non-group")
    if not 0 < number < 1 << 31:
        raise BadTag(f"illegal tag {number - (number >> 31 << 32)} (wire type {value})")
    return number, wire_type, pos


def read_length(data: bytes, pos: int, end: int) -> tuple[int, int]:
    """(the end of a length-delimited value, its beginning): `03 61 62 63` at 0 gives (4, 1). Raises ValueError."""
    size, pos = read_varint(data, pos, end)
    if size >= 1 << 63:
        raise ValueError(_NEGATIVE)
    if pos + size > end:
        raise ValueError(EOF)
    return pos + size, pos


def skip_field(wire_type: int, data: bytes, pos: int, end: int) -> int:
    """The position after a value. A group ends with its own end tag; groups in it are skipped with it."""
    depth = 0
    while True:
        if wire_type == VARINT:
            _, pos = read_varint(data, pos, end)
        elif wire_type == BYTES:
            pos, _ = read_length(data, pos, end)
        elif wire_type in (FIXED64, FIXED32):
            pos += 8 if wire_type == FIXED64 else 4
        elif wire_type == START_GROUP:
            depth += 1
        elif wire_type == END_GROUP:
            depth -= 1
        else:
            raise ValueError(f"proto: illegal wireType {wire_type}")
        if pos > end:
            raise ValueError(EOF)
        if not depth:
            return pos
        value, pos = read_varint(data, pos, end)
        wire_type = value & 7


def varint_bytes(value: int) -> bytes:
    """A varint: 150 is `96 01`."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@cache
def tag_bytes(number: int, wire_type: int) -> bytes:
    """A tag: field 2 of type BYTES is `12`."""
    return varint_bytes(number << 3 | wire_type)


MAX_DEPTH: Final = 5_000  # nested messages; in JSON a repeated one counts twice, and JSON's limit is 10,000
MESSAGE_UNITS: Final = 10  # of work for a message in another one, which may take two bytes

SCALAR_WIRE_TYPES: Final = {
    Wire.BOOL: VARINT,
    Wire.INT32: VARINT,
    Wire.INT64: VARINT,
    Wire.DOUBLE: FIXED64,
}
"""All other types are length-delimited (wire.BYTES)."""

RAW: Final = Scalar("[]uint8", lambda value: value, None, Wire.BYTES)
"""Bytes that stay bytes; those of type BYTES become base64."""
TIMESTAMP: Final = Struct("Timestamp").define(Field("seconds", INT64, 1), Field("nanos", INT32, 2))
INT_OR_STRING: Final = Struct("IntOrString", package="intstr").define(
    Field("type", INT64, 1), Field("intVal", INT32, 2), Field("strVal", STRING, 3)
)
QUANTITY: Final = Struct("Quantity", package="resource").define(Field("string", STRING, 1))
DURATION: Final = Struct("Duration").define(Field("duration", INT64, 1))
RAW_JSON: Final = Struct("RawExtension", package="runtime").define(Field("raw", RAW, 1))
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_TIME: Final = -62_135_596_800  # Go's time.Time{}: the start of the year 1


@dataclass(slots=True, eq=False)
class _Step:
    """A field of a message. `kind` is the type of one occurrence, None for an embedded struct; `many`: it may repeat."""

    name: str
    wire: int
    kind: Type | None
    many: bool = False
    plan: _Plan | None = None  # of the message in one occurrence; made by the first one


_Plan: TypeAlias = dict[int, _Step]
"""The fields of a message by number."""


def _plan(kind: Type) -> _Plan:
    """The fields of a message of this type. An embedded struct is a step without a name that has a plan of its own:

    Field("operations", …, 1), Field("apiGroups", …, 1, within=(2,))
    {1: operations, 2: embedded {1: apiGroups}}
    """
    if isinstance(kind, Map):
        return {1: _step(Field("key", STRING)), 2: _step(Field("value", kind.element))}
    if isinstance(kind, List):
        return {1: _step(Field("items", List(kind.element)))}
    assert isinstance(kind, (Struct, Union)), kind
    plan: _Plan = {}
    for field in kind.choices.values() if isinstance(kind, Union) else kind.fields.values():
        inner = plan
        for number in field.within:
            below = inner.setdefault(number, _Step("", BYTES, None, plan={})).plan
            assert below is not None
            inner = below
        if field.number:
            inner[field.number] = _step(field)
    return plan


@cache
def _struct_plan(kind: Struct) -> _Plan:
    return _plan(kind)


def _step(field: Field) -> _Step:
    kind, many = field.type, False
    if isinstance(kind, List) and not kind.wrapped:
        kind, many = kind.element, True
    expected = SCALAR_WIRE_TYPES.get(kind.wire, BYTES) if isinstance(kind, Scalar) else BYTES
    return _Step(field.name, expected, kind, many)


def read(kind: Struct, data: bytes, pos: int = 0) -> Object:
    """Read a message that begins at `pos` and ends with the data. Raises ValueError.

    One loop reads all nested messages; `stack` has the surrounding ones. `out` collects the fields of the innermost
    message, which ends at `stop` and is then put into `container[key]`. A Lease with `metadata { name: "a" }`:

        0a 03 0a 01 61      pos  stop  out            container[key]     stack
                             0    5    {}             top[""]            []
        0a 03                2    5    {}             lease["metadata"]  [Lease]      metadata begins
              0a 01 61       5    5    {"name": "a"}  lease["metadata"]  [Lease]      metadata ends
                             5    5    {"metadata":…} top[""]            []           the Lease ends

    The fields of an embedded struct go into the `out` of the message around it, so that only `plan` and `stop` change.
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
            number, wire, pos = read_tag(data, pos, stop)
        except BadTag as bad:
            raise ValueError(f"proto: {_name(current)}: {bad}") from None
        step = plan.get(number)
        if step is None:
            pos = skip_field(wire, data, pos, stop)
            continue
        if wire != step.wire:
            raise ValueError(f"proto: wrong wireType = {wire} for field {step.name[:1].upper()}{step.name[1:]}")
        if wire != BYTES:
            assert isinstance(step.kind, Scalar)
            value, pos = _number(step.kind, data, pos, stop)
        else:
            after, pos = read_length(data, pos, stop)
            if not isinstance(step.kind, Scalar):
                if len(stack) == MAX_DEPTH:
                    raise ValueError("exceeded max depth")
                spend(MESSAGE_UNITS)
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
    """The name of a message in errors."""
    return "Message" if kind is None or isinstance(kind, Scalar) else kind.name or kind.go


def _place(step: _Step, out: Object) -> tuple[Json, Json, Object]:
    """(container, key, initial fields) of a message that begins; a repeated struct is merged into the former one."""
    if step.many:
        items = out.setdefault(step.name, [])
        items.append(None)
        return items, len(items) - 1, {}
    if isinstance(step.kind, Map):
        return out.setdefault(step.name, {}), "", {}
    before = out.get(step.name)
    return out, step.name, dict(before) if isinstance(step.kind, Struct) and before else {}


def _finished(kind: Type, out: Object) -> Json:
    """The value of a message that has been read."""
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
    """(position of a field, fields that are written even if zero, fields that are always written).

    With them, a struct is arranged in time proportional to the fields that it has; `arrange` goes through all.
    """
    order = {name: n for n, name in enumerate(kind.fields)}
    kept = frozenset(name for name, field in kind.fields.items() if field.write is not Presence.OMIT_EMPTY)
    always = frozenset(name for name, field in kind.fields.items() if field.write in (Presence.ALWAYS, Presence.NULL))
    return order.__getitem__, kept, always


def _chosen(kind: Union, out: Object) -> Json:
    """The list or the struct, if there is one, else the boolean, as Go writes such a type."""
    for word in ("array", "object"):
        choice = kind.choices.get(word)
        if choice and out.get(choice.name) not in (None, []):
            return out[choice.name]
    choice = kind.choices.get("bool")
    return out.get(choice.name, False) if choice else None


def _unset(kind: Type) -> Json:
    """The value of a map entry that has only a key."""
    if isinstance(kind, Scalar):
        return "" if kind.wire is Wire.BYTES else kind.zero
    return _finished(kind, {})


def _leaf(kind: Scalar, data: bytes) -> Json:
    """A length-delimited scalar."""
    form = kind.wire
    if form is Wire.STRING:
        return _text(data)
    if form is Wire.BYTES:
        return data if kind is RAW else go_base64.encode(data)
    if form in (Wire.TIME, Wire.MICRO_TIME):
        return _time(data, SECONDS if form is Wire.TIME else MICRO)
    if form is Wire.INT_OR_STRING:
        either = read(INT_OR_STRING, data)
        return either.get("strVal", "") if either.get("type") else either.get("intVal", 0)
    if form is Wire.QUANTITY:
        return kind.read(read(QUANTITY, data).get("string", ""))
    if form is Wire.DURATION:
        return format_duration(read(DURATION, data).get("duration", 0))
    raw = read(RAW_JSON, data).get("raw")
    return kind.read(_json(raw)) if raw else None


def _json(text: bytes) -> Json:
    try:
        return orjson.loads(text)
    except ValueError:  # too deep for orjson, not UTF-8, or not JSON: then Go's error
        return go_json.read(text).value


def _text(data: bytes) -> str:
    """Each byte that is not UTF-8 becomes U+FFFD, as when Go writes the string as JSON."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="noxu-each")


codecs.register_error("noxu-each", lambda error: ("\ufffd", error.start + 1))  # type: ignore[attr-defined]


def _time(data: bytes, digits: int) -> str | None:
    if not data:
        return None
    stamp = read(TIMESTAMP, data)
    seconds = stamp.get("seconds", 0)
    if seconds == _ZERO_TIME and not (digits and stamp.get("nanos")):
        return None
    try:
        moment = EPOCH + timedelta(seconds=seconds, microseconds=stamp.get("nanos", 0) // 1000 if digits else 0)
    except OverflowError:
        raise ValueError(f"proto: timestamp {seconds} is out of range") from None
    return format_time(moment, digits)


def _number(kind: Scalar, data: bytes, pos: int, end: int) -> tuple[Json, int]:
    """(a varint or double, the position after it)."""
    if kind.wire is Wire.DOUBLE:
        if pos + 8 > end:
            raise ValueError(EOF)
        (number,) = struct.unpack_from("<d", data, pos)
        if not math.isfinite(number):
            raise ValueError(f"json: unsupported value: {plain(number)}")
        return kind.read(number), pos + 8
    value, pos = read_varint(data, pos, end)
    if kind.wire is Wire.BOOL:
        return value != 0, pos
    bits = 32 if kind.wire is Wire.INT32 else 64
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value, pos
