"""CBOR (RFC 8949) as upstream's decoder reads it: fxamacker/cbor v2.9 with the options of apimachinery's
pkg/runtime/serializer/cbor/internal/modes, into an untyped value.

- Byte strings are strings, since upstream writes every string as one. Under the tags 21, 22 and 23 they become base64url,
  base64 or hexadecimal text. What is not UTF-8 in them becomes U+FFFD byte by byte, as in JSON; in a text string it is
  an error.
- The tags 0 and 1, times, become RFC 3339 text. Bignums (2 and 3) are refused, all other tags are ignored.
- Keys are strings, and a repeated one is an error, not a complaint of fieldValidation.
- Integers must be int64. NaN, infinities and simple values other than false, true and null are refused.
- Nesting, tags included, is limited to 10,000 levels; a map to 2,097,152 pairs; lengths to the bytes that are there.

There are two kinds of errors. A body that is not well-formed is refused at the first offending byte. If it is well-formed,
the error is that of the first item that cannot be a value; but a repeated key takes precedence in its map. So items behind
an error are still checked for their form:

    82                      an array of two
       c0 01                   0(1): a time that is no text; remembered
       1c                      no item begins so: this is the error

One reader judges and makes the value. It is our own: no library has upstream's error texts and their precedence, and those
that were tried recurse and let no other thread run. It has a stack of its own, so that nothing here recurses, and nothing is
allocated for a declared length.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from struct import unpack_from
from typing import Final, NamedTuple

from noxu.cpu_budget import spend
from noxu.go.text import plain, quote
from noxu.go.time import to_rfc3339_nano
from noxu.values import MAX_INT64, Json

SELF_DESCRIBED: Final = b"\xd9\xd9\xf7"
"""The head of tag 55799, which upstream writes before every item, so that CBOR differs from JSON in its first byte."""
MAX_DEPTH: Final = 10_000
MAX_PAIRS: Final = 2_097_152
MAX_ELEMENTS: Final = 2_147_483_647

TYPES: Final = (
    "positive integer",
    "negative integer",
    "byte string",
    "UTF-8 text string",
    "array",
    "map",
    "tag",
    "primitives",
)
"""The names of the major types in messages."""
UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, PRIMITIVE = range(8)
_MAP: Final = "map[string]interface {}"
_STRING: Final = "string"
_TYPE_META: Final = "v1.TypeMeta"

_EOF: Final = "unexpected EOF"
_BREAK: Final = 0xFF
_BAD_BREAK: Final = 'cbor: unexpected "break" code'
_TIME, _EPOCH = 0, 1
_BIGNUMS: Final = (2, 3)
_BASE64URL, _BASE64, _BASE16 = 21, 22, 23
_LATER_ENCODINGS: Final = (_BASE64URL, _BASE64, _BASE16)
_SELF_DESCRIBED_TAG: Final = 55799
_NEVER: Final = -1  # of `left`: the container ends with a break
_FLOATS: Final = {25: (">e", 2), 26: (">f", 4), 27: (">d", 8)}
_SIMPLE: Final = {20: False, 21: True, 22: None}

_surrogates: Final = re.compile("[\udc80-\udcff]")


class CborError(ValueError):
    """A body that cannot be decoded. The message is upstream's, such as `unexpected EOF`."""


class _Frame:
    """A container that is being read. `left` counts the items until its end, keys included."""

    __slots__ = ("container", "depth", "encoding", "error", "index", "is_dead", "key", "key_error", "last_key", "left")

    def __init__(self, container: list[Json] | dict[str, Json], left: int, depth: int, encoding: int) -> None:
        self.container = container
        self.left = left
        self.depth = depth
        self.encoding = encoding  # the tag that says how byte strings in it become text, 0 if there is none
        self.error = ""
        self.is_dead = False  # its value is not used: only the form of the rest is checked
        self.key: str | None = None  # of the next value, None before a key
        self.key_error = False
        self.last_key = ""
        self.index = 0


def read(data: bytes) -> Json:
    """The value of one item, without a rest. Raises CborError."""
    value, error = _Reader(data).read()
    if error:
        raise CborError(error)
    return value


def read_map(data: bytes) -> dict[str, Json] | None:
    """The value of a map, or None for null. Raises CborError for any other item."""
    value, error = _Reader(data).read(_MAP)
    if error:
        raise CborError(error)
    assert value is None or isinstance(value, dict)
    return value


def type_meta(data: bytes) -> tuple[str, str]:
    """(apiVersion, kind) of an object, "" if it does not have them; nothing else of it need be a value. Raises CborError."""
    reader = _Reader(data)
    reader.read()
    reader.position = 0
    if error := reader.tags(0, 0)[3]:
        raise CborError(error)
    major, info, pairs = reader.head()
    if major != MAP:
        error = _Reader(data).read(_TYPE_META)[1]
        if error:
            raise CborError(error)
        return "", ""
    identity: dict[str, str] = {"apiVersion": "", "kind": ""}
    seen: set[object] = set()
    first_error = ""
    index = 0
    while not reader.skip_break() if info == 31 else index < pairs:
        key, error = _field_name(reader)
        start = reader.position
        reader.skip()
        first_error = first_error or error
        if key is not None:
            if key in seen:
                shown = quote(key) if isinstance(key, str) else key
                raise CborError(f"cbor: found duplicate map key {shown} at map element index {index}")
            seen.add(key)
        if isinstance(key, str) and key in identity:
            text, error = _Reader(data[start : reader.position]).read(_STRING)
            error = error.replace(
                f"Go value of type {_STRING}", f"Go struct field {_TYPE_META}.{key} of type {_STRING}"
            )
            first_error = first_error or error
            identity[key] = text or ""
        index += 1
    if first_error:
        raise CborError(first_error)
    return identity["apiVersion"], identity["kind"]


class KnownField(NamedTuple):
    """A field of a Go struct: whether it is a pointer, and the fields of its type if that is a struct, too."""

    is_pointer: bool
    fields: Mapping[str, KnownField] | None = None


def read_struct(data: bytes, fields: Mapping[str, KnownField]) -> dict[str, Json] | None:
    """The known fields of a map, or None for null. Raises CborError.

    As when Go decodes into a struct, everything else in the map need only be well-formed, and an undefined pointer is nil.
    The keys are checked by `type_meta`.
    """
    reader = _Reader(data)
    reader.tags(0, 0)
    major, info, pairs = reader.head()
    if major != MAP:
        return read_map(data)
    values: dict[str, Json] = {}
    index = 0
    while not reader.skip_break() if info == 31 else index < pairs:
        name, _ = _field_name(reader)
        start = reader.position
        reader.skip()
        raw = data[start : reader.position]
        field = fields.get(name) if isinstance(name, str) else None
        if isinstance(name, str) and field is not None and not (field.is_pointer and raw == _UNDEFINED):
            is_struct = field.fields is not None and raw[0] >> 5 == MAP
            values[name] = read_struct(raw, field.fields or {}) if is_struct else read(raw)
        index += 1
    return values


_UNDEFINED: Final = b"\xf7"


def _field_name(reader: _Reader) -> tuple[object, str]:
    """(The next key of a map as the name of a struct's field, None if it is none; why it is none)."""
    start, major = reader.position, reader.data[reader.position] >> 5
    reader.skip()
    raw = reader.data[start : reader.position]
    if major in (BYTES, TEXT, UNSIGNED, NEGATIVE):
        value, error = _Reader(raw).read()
        return (None if error else value), error
    why = f"map key is of type {TYPES[major]} and cannot be used to match struct field name"
    return None, f"cbor: cannot unmarshal {TYPES[major]} into Go value of type string ({why})"


_ACCOUNTED: Final = 256  # items between two calls of `spend`
_ITEM_COST: Final = 4  # microseconds, at most


class Heads:
    """The heads of items and their strings, one after the other. `position` is that of the next byte."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def head(self) -> tuple[int, int, int]:
        """(major type, additional information, argument) of the next item; the information 31 is an indefinite length."""
        data, position = self.data, self.position
        if position >= len(data):
            raise CborError(_EOF)
        major, info = data[position] >> 5, data[position] & 0x1F
        position += 1
        argument = info
        if 24 <= info <= 27:
            size = 1 << (info - 24)
            if len(data) - position < size:
                raise CborError(_EOF)
            argument = int.from_bytes(data[position : position + size])
            if major == PRIMITIVE:
                _check_primitive(data, position, info, argument)
            position += size
        elif info >= 28:
            if info == 31 and major == PRIMITIVE:
                raise CborError(_BAD_BREAK)
            if info != 31 or major in (UNSIGNED, NEGATIVE, TAG):
                raise CborError(f"cbor: invalid additional information {info} for type {TYPES[major]}")
        self.position = position
        return major, info, argument

    def float(self, info: int) -> float:
        """The number of the head that was read last."""
        form, size = _FLOATS[info]
        value: float = unpack_from(form, self.data, self.position - size)[0]
        return value

    def skip_break(self) -> bool:
        """Whether there is a break, which is skipped."""
        if self.position == len(self.data):
            raise CborError(_EOF)
        if self.data[self.position] != _BREAK:
            return False
        self.position += 1
        return True

    def skip(self) -> None:
        """Skip a well-formed item."""
        open_items = [1]  # of each container: the items until its end, _NEVER if it ends with a break
        while open_items:
            if open_items[-1] == 0 or (open_items[-1] == _NEVER and self.skip_break()):
                open_items.pop()
                continue
            if open_items[-1] > 0:
                open_items[-1] -= 1
            major, info, argument = self.head()
            if major in (BYTES, TEXT):
                self.string(major, info, argument)
            elif major == TAG:
                open_items.append(1)
            elif major in (ARRAY, MAP):
                open_items.append(_NEVER if info == 31 else argument * (2 if major == MAP else 1))

    def string(self, major: int, info: int, size: int) -> list[bytes]:
        """The bytes of a string, in chunks if its length is indefinite."""
        if info != 31:
            return [self._bytes(major, size)]
        chunks: list[bytes] = []
        while True:
            if self.skip_break():
                return chunks
            head = self.data[self.position]
            if head >> 5 != major:
                raise CborError(f"cbor: wrong element type {TYPES[head >> 5]} for indefinite-length {TYPES[major]}")
            if head & 0x1F == 31:
                raise CborError(f"cbor: indefinite-length {TYPES[major]} chunk is not definite-length")
            chunks.append(self._bytes(major, self.head()[2]))

    def _bytes(self, major: int, size: int) -> bytes:
        if size > MAX_INT64:
            raise CborError(f"cbor: {TYPES[major]} length {size} is too large, causing integer overflow")
        start = self.position
        if len(self.data) - start < size:
            raise CborError(_EOF)
        self.position = start + size
        return self.data[start : start + size]


class _Reader(Heads):
    """One pass over the bytes, from heads to values."""

    def read(self, expected: str = "") -> tuple[Json, str]:
        """(The value, the error of the first item that cannot be a value). `expected`: what it is decoded into, if not
        an untyped value. Raises CborError if the data are not well-formed."""
        if not self.data:
            raise CborError("EOF")
        root: _Frame = _Frame([], 1, 0, 0)
        stack: list[_Frame] = []
        frame = root
        items = 0
        while True:
            items += 1
            if items % _ACCOUNTED == 0:
                spend(_ACCOUNTED * _ITEM_COST)
            while frame.left == 0 or (frame.left == _NEVER and self._at_break(frame)):
                if frame is root:
                    break
                closed, frame = frame, stack.pop()
                _deliver(frame, closed.container, closed.error)
            if frame is root and frame.left == 0:
                break
            if frame.left > 0:
                frame.left -= 1
            is_key = frame.key is None and not frame.key_error and type(frame.container) is dict
            into = _STRING if is_key else expected if frame is root else ""
            opened = self._item(frame, into)
            if opened is not None:
                stack.append(frame)
                frame = opened
        rest = len(self.data) - self.position
        if rest:
            raise CborError(f"cbor: {rest} bytes of extraneous data starting at index {self.position}")
        [value] = root.container or [None]
        return value, root.error

    def _at_break(self, frame: _Frame) -> bool:
        """Whether an indefinite container ends here."""
        if not self.skip_break():
            return False
        if frame.key is not None or frame.key_error:
            raise CborError(_BAD_BREAK)
        return True

    def _item(self, frame: _Frame, into: str) -> _Frame | None:
        """Read one item into a frame; the new frame if it is a container."""
        data, position = self.data, self.position
        encoding, depth, error, tag = frame.encoding, frame.depth, "", None
        if position < len(data) and data[position] >> 5 == TAG:
            tag, encoding, depth, error = self.tags(encoding, depth)
        major, info, argument = self.head()
        if major in (ARRAY, MAP):
            if not argument and not into and not error and depth < MAX_DEPTH:
                _deliver(frame, [] if major == ARRAY else {}, "")
                return None
            return self._container(frame, major, info, argument, depth, encoding, into, error)
        value, own_error = self._scalar(frame, major, info, argument, None if error else tag, encoding, into)
        _deliver(frame, value, error or own_error)
        return None

    def tags(self, encoding: int, depth: int) -> tuple[int, int, int, str]:
        """Read the tags before an item: (the last one, the encoding that they require, the depth, the first error)."""
        data = self.data
        error, tag, first = "", -1, True
        described = True  # only tags 55799 until now
        while self.position < len(data) and data[self.position] >> 5 == TAG:
            _, _, tag = self.head()
            if not first:
                depth += 1
                _check_depth(depth)
            first = False
            if self.position == len(data):
                raise CborError(_EOF)
            if tag in _BIGNUMS:
                raise CborError("cbor: data item of cbor type tag is not accepted by protocol: bignum")
            described = described and tag == _SELF_DESCRIBED_TAG
            if not described:
                error = error or _misplaced(tag, data[self.position])
            if tag in _LATER_ENCODINGS:
                encoding = tag
        return tag, encoding, depth, error

    def _container(
        self,
        frame: _Frame,
        major: int,
        info: int,
        count: int,
        depth: int,
        encoding: int,
        into: str,
        error: str,
    ) -> _Frame:
        _check_depth(depth + 1)
        if info == 31:
            left = _NEVER
        else:
            _check_count(major, count)
            left = count if major == ARRAY else 2 * count
        opened = _Frame([] if major == ARRAY else {}, left, depth + 1, encoding)
        if not error and into and (into == _STRING or major != MAP):
            error = f"cbor: cannot unmarshal {TYPES[major]} into Go value of type {into}"
            if into == _TYPE_META:
                error += " (cannot decode CBOR array to struct without toarray option)"
        opened.error = error
        opened.is_dead = bool(error) or frame.is_dead
        return opened

    def _scalar(
        self, frame: _Frame, major: int, info: int, argument: int, tag: int | None, encoding: int, into: str
    ) -> tuple[Json, str]:
        """(The value, why it cannot be one) of an item that is no container. `tag` is the last one before it."""
        text = ""
        if major in (BYTES, TEXT):
            chunks = self.string(major, info, argument)
            try:
                text = _text(chunks, major, encoding)
            except UnicodeDecodeError:
                return None, "cbor: invalid UTF-8 string"
        if into == _STRING and major == PRIMITIVE and argument == 22 and info == 22:
            return frame.last_key, ""  # Go leaves the key as it was
        if into and not (into == _STRING and major in (BYTES, TEXT)):
            return _mismatch(major, info, argument, into)
        if tag in (_TIME, _EPOCH) and not into:
            return (
                _time(text)
                if tag == _TIME
                else _epoch(major, argument, self.float(info) if major == PRIMITIVE else None)
            )
        if major in (BYTES, TEXT):
            return text, ""
        if major == PRIMITIVE:
            if info >= 25:
                return self.float(info), ""
            return (_SIMPLE[argument], "") if argument in _SIMPLE else (None, _unrecognized(argument))
        value = argument if major == UNSIGNED else -1 - argument
        if argument > MAX_INT64:
            return None, _overflow(major, value, "int64")
        return value, ""


def _deliver(frame: _Frame, value: Json, error: str) -> None:
    """Add a finished item to its container: a key, a value or an element."""
    container = frame.container
    if type(container) is list:
        if error:
            frame.error = frame.error or error
        elif not frame.is_dead:
            container.append(value)
        return
    assert type(container) is dict
    if frame.key is None and not frame.key_error:
        if error:
            frame.error, frame.key_error = frame.error or error, True
        else:
            frame.key = frame.last_key = value
        return
    key, frame.key, frame.key_error = frame.key, None, False
    frame.index += 1
    if error:
        frame.error = frame.error or error
    elif key is not None and not frame.is_dead:
        if key in container:
            frame.error = f"cbor: found duplicate map key {quote(key)} at map element index {frame.index - 1}"
            frame.is_dead = True
        container[key] = value


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise CborError(f"cbor: exceeded max nested level {MAX_DEPTH}")


def _check_count(major: int, count: int) -> None:
    if count > MAX_INT64:
        text = f"cbor: {TYPES[major]} length {count} is too large, it would cause integer overflow"
        raise CborError(text)
    if major == ARRAY and count > MAX_ELEMENTS:
        raise CborError(f"cbor: exceeded max number of elements {MAX_ELEMENTS} for CBOR array")
    if major == MAP and count > MAX_PAIRS:
        raise CborError(f"cbor: exceeded max number of key-value pairs {MAX_PAIRS} for CBOR map")


def _check_primitive(data: bytes, position: int, info: int, argument: int) -> None:
    if info == 24:
        if argument < 32:
            raise CborError(f"cbor: invalid simple value {argument} for type primitives")
        return
    value = unpack_from(_FLOATS[info][0], data, position)[0]
    if not math.isfinite(value):
        value_name = "NaN" if math.isnan(value) else "infinity"
        raise CborError(
            f"cbor: data item of cbor type primitives is not accepted by protocol: floating-point {value_name}"
        )


def _text(chunks: list[bytes], major: int, encoding: int) -> str:
    """Raises UnicodeDecodeError for a text string that is not UTF-8."""
    if major == TEXT:
        return "".join([chunk.decode() for chunk in chunks])  # each chunk on its own
    raw = b"".join(chunks)
    if encoding == _BASE64:
        return base64.b64encode(raw).decode()
    if encoding == _BASE64URL:
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    if encoding == _BASE16:
        return raw.hex()
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _surrogates.sub("\ufffd", raw.decode("utf-8", "surrogateescape"))


def _misplaced(tag: int, head: int) -> str:
    """Why a tag cannot stand before an item that begins with `head`; "" if it can."""
    major = head >> 5
    if tag == _TIME and major != TEXT:
        return f"cbor: tag number 0 must be followed by text string, got {TYPES[major]}"
    if tag == _EPOCH and major not in (UNSIGNED, NEGATIVE) and not 0xF9 <= head <= 0xFB:
        return f"cbor: tag number 1 must be followed by integer or floating-point number, got {TYPES[major]}"
    return ""


def _mismatch(major: int, info: int, argument: int, into: str) -> tuple[Json, str]:
    """A scalar where a map or a key is expected; null is a map without pairs."""
    if major == PRIMITIVE and info <= 24:
        if argument not in _SIMPLE:
            return None, _unrecognized(argument)
        if argument == 22:
            return None, ""
    if major == NEGATIVE and argument > MAX_INT64:
        return None, _overflow(major, -1 - argument, into)
    return None, f"cbor: cannot unmarshal {TYPES[major]} into Go value of type {into}"


def _overflow(major: int, value: int, into: str) -> str:
    return f"cbor: cannot unmarshal {TYPES[major]} into Go value of type {into} ({value} overflows Go's int64)"


def _unrecognized(simple: int) -> str:
    text = f"simple value {simple} is not recognized"
    return f"cbor: data item of cbor type primitives is not accepted by protocol: {text}"


def _time(text: str) -> tuple[Json, str]:
    try:
        shown, offset = to_rfc3339_nano(text)
    except ValueError as error:
        return None, f"cbor: cannot set {text} for time.Time: {error}"
    if abs(offset) >= 24 * 60:
        return None, f"{_UNREPRESENTABLE}: Time.MarshalText: timezone hour outside of range [0,23]"
    return shown, ""


_UNREPRESENTABLE: Final = "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision"
_FIRST_SECOND: Final = -62_167_219_200  # of the year 0
_LAST_SECOND: Final = 253_402_300_799  # of the year 9999
_YEAR_1: Final = -62_135_596_800  # Python knows no year 0; the calendar repeats every 400 years
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CYCLE: Final = 146_097 * 86_400


def _epoch(major: int, argument: int, number: float | None) -> tuple[Json, str]:
    """The time of tag 1, in seconds since 1970."""
    nanos = 0
    if number is not None:
        fraction, whole = math.modf(number)
        if not -(2.0**63) <= whole <= 2.0**63:
            shown = plain(number)
            text = f"cbor: cannot unmarshal primitives into Go value of type time.Time ({shown} overflows Go's int64)"
            return None, text
        seconds, nanos = int(whole), int(fraction * 1e9)
    else:
        seconds = argument if major == UNSIGNED else -1 - argument
        if argument > MAX_INT64:
            return None, _overflow(major, seconds, "time.Time")
    seconds, nanos = seconds + nanos // 10**9, nanos % 10**9
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        return None, f"{_UNREPRESENTABLE}: Time.MarshalText: year outside of range [0,9999]"
    in_year_0 = seconds < _YEAR_1
    moment = _START + timedelta(seconds=seconds + (_CYCLE if in_year_0 else 0))
    text = moment.isoformat()
    fraction_text = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{'0000' if in_year_0 else text[:4]}{text[4:19]}{fraction_text}Z", ""
