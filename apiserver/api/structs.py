"""Go structs as tables: how the built-in kinds are decoded, and written again.

Upstream decodes built-in kinds (ObjectMeta, CustomResourceDefinition, Namespace …) into Go structs with
sigs.k8s.io/json: names are matched case-sensitively, null leaves a field unset, a wrong type is an error that names
struct, field and Go type, unknown fields are dropped and told in strict mode. Writing them gives the fields in the
order of declaration. A kind is therefore data: one `Struct` with its fields; the field numbers are protobuf's.

Protobuf embeds what JSON inlines: a field of an embedded struct has that struct's own numbers, and `Field.within` says
under which number (or numbers, from the outside in) the embedded message stands.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from apiserver.api.gobase64 import canonical, encode
from apiserver.api.gotext import float_json
from apiserver.api.gotime import MICRO, SECONDS, parse_time
from apiserver.api.types import MAX_INT64, MIN_INT64, Json, Object

MAX_STRICT_ERRORS: Final = 100  # sigs.k8s.io/json keeps no more
MAX_DEPTH: Final = 500  # structs in structs; upstream has no limit of its own but JSON's 10 000 levels
_DEEP: Final = 100
_FRAMES: Final = 10_000  # of Python's stack, which such schemas are walked with


def make_room() -> None:
    """Let Python recurse as deep as the deepest schema that is taken; its own limit is that of one of 200 levels."""
    if sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)


class Write(Enum):
    """When a field is written (its Go type and tag decide)."""

    OMIT_EMPTY = "a value with omitempty: not when zero or empty"
    POINTER = "a pointer with omitempty: whenever it is set, even to zero"
    ALWAYS = "no omitempty, or a struct by value: zero, null or {} are written"
    NULL = "a pointer without omitempty: null is written where it is not set"


class Wire(Enum):
    """How protobuf carries a leaf."""

    STRING = "UTF-8 bytes"
    BOOL = "a varint, 0 or 1"
    INT32 = "a varint of 32 bits"
    INT64 = "a varint of 64 bits"
    DOUBLE = "8 bytes"
    BYTES = "bytes; base64 in JSON"
    TIME = "a message of seconds (1) and nanoseconds (2), which are ignored"
    MICRO_TIME = "a message of seconds (1) and nanoseconds (2), cut to microseconds"
    INT_OR_STRING = "a message of type (1), int (2) and string (3)"
    JSON = "a message whose field 1 is JSON text"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf. `go` is its Go type; `read` gives the value or raises `Mismatch`, `Malformed` or `ValueError`."""

    go: str
    read: Callable[[Json], Json]
    zero: Json
    wire: Wire = Wire.STRING


@dataclass(frozen=True, slots=True)
class List:
    """A slice. `name` is its Go type if it has one of its own; `wrapped`: protobuf then has a message of `items` (1)."""

    element: Type
    name: str = ""
    wrapped: bool = False

    @property
    def go(self) -> str:
        return self.name or f"[]{self.element.go}"


@dataclass(frozen=True, slots=True)
class Map:
    """A map with string keys. `name` is its Go type if it has one of its own."""

    element: Type
    name: str = ""

    @property
    def go(self) -> str:
        return self.name or f"map[string]{self.element.go}"


@dataclass(slots=True, eq=False)
class Struct:
    """`package` is how Go's messages qualify the type (`v1`). Fields come in declaration order; `define` allows recursion.

    `atomic` is apply's marker `structType`: the struct is owned as one wherever it stands.
    """

    name: str
    fields: dict[str, Field] = dataclass_field(default_factory=dict, repr=False)
    package: str = "v1"
    atomic: bool = False
    quick: Quick | None = dataclass_field(default=None, repr=False)  # made at the first decoding

    @property
    def go(self) -> str:
        return f"{self.package}.{self.name}"

    def define(self, *fields: Field) -> Struct:
        self.fields = {f.name: f for f in fields}
        self.quick = None
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """A type with an UnmarshalJSON of its own: the JSON type of the value picks the field that takes it.

    What no field takes is the error `otherwise`, or no better than an empty list if that is empty. As in Go a wrong
    type inside ends the decoding, and strict mode does not look inside.
    """

    name: str
    choices: dict[str, Field]
    otherwise: str = ""
    package: str = "v1"

    @property
    def go(self) -> str:
        return f"{self.package}.{self.name}"


Type: TypeAlias = Scalar | List | Map | Struct | Union
Quick: TypeAlias = Callable[[Json, int], Json]  # (value, how many structs it is in) → what decoding gives


class Field(NamedTuple):
    """One struct field. `patch` and `merge_key` are strategic merge patch's tags.

    `list_type` and `list_keys` are apply's markers; on a map or a struct `list_type` is `atomic` or nothing.
    """

    name: str
    type: Type
    number: int = 0
    write: Write = Write.OMIT_EMPTY
    patch: str = ""
    merge_key: str = ""
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    inline: str = ""  # the embedded struct it comes from; Go's error paths name it
    within: tuple[int, ...] = ()  # protobuf's numbers of the embedded structs it comes from


class Mismatch(Exception):
    """The JSON value has another type: `what` is Go's word for it, `go` the type wanted if it is not the field's.

    It is `final` where the type has an UnmarshalJSON of its own: that ends the decoding, whatever went wrong before.
    """

    def __init__(self, what: str, go: str = "", *, final: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.go = go
        self.final = final


class Malformed(Exception):
    """A value of the right JSON type that cannot be read. As after a mismatch decoding goes on, the first error counts."""


def json_type(value: Json) -> str:
    """encoding/json's word for a value of the wrong type."""
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    if isinstance(value, str):
        return "string"
    return "bool" if isinstance(value, bool) else "number"


def _string(value: Json) -> Json:
    if type(value) is not str:
        raise Mismatch(json_type(value))
    return value


def _bool(value: Json) -> Json:
    if type(value) is not bool:
        raise Mismatch(json_type(value))
    return value


def _integer(low: int, high: int) -> Callable[[Json], Json]:
    def read(value: Json) -> Json:
        if type(value) is int and low <= value <= high:
            return value
        if type(value) in (int, float):
            raise Mismatch(f"number {value if type(value) is int else float_json(value)}")
        raise Mismatch(json_type(value))

    return read


def _float(value: Json) -> Json:
    if type(value) in (int, float):
        return value
    raise Mismatch(json_type(value))


def _time(digits: int) -> Callable[[Json], Json]:
    def read(value: Json) -> Json:
        if type(value) is not str:
            raise Mismatch(json_type(value), "string", final=True)
        return parse_time(value, digits)

    return read


def _int_or_string(value: Json) -> Json:
    if type(value) is str:
        return value
    try:
        return _integer(-(2**31), 2**31 - 1)(value)
    except Mismatch as mismatch:
        raise Mismatch(mismatch.what, "int32", final=True) from None


def _bytes(value: Json) -> Json:
    if type(value) is str:
        try:
            return canonical(value)
        except ValueError as error:
            raise Malformed(str(error)) from None
    if type(value) is not list:
        raise Mismatch(json_type(value))
    for item in value:  # an array of numbers is fine with Go
        if item is not None and not (type(item) is int and 0 <= item <= 255):
            raise Mismatch(f"number {item}" if type(item) in (int, float) else json_type(item), "uint8")
    return encode(bytes(item or 0 for item in value))


def named(go: str) -> Scalar:
    """A string with a Go type of its own."""
    return Scalar(go, _string, "")


STRING: Final = named("string")
UID: Final = named("types.UID")
BOOL: Final = Scalar("bool", _bool, False, Wire.BOOL)
INT32: Final = Scalar("int32", _integer(-(2**31), 2**31 - 1), 0, Wire.INT32)
INT64: Final = Scalar("int64", _integer(MIN_INT64, MAX_INT64), 0, Wire.INT64)
FLOAT64: Final = Scalar("float64", _float, 0, Wire.DOUBLE)
BYTES: Final = Scalar("[]uint8", _bytes, None, Wire.BYTES)
TIME: Final = Scalar("v1.Time", _time(SECONDS), None, Wire.TIME)
MICRO_TIME: Final = Scalar("v1.MicroTime", _time(MICRO), None, Wire.MICRO_TIME)
INT_OR_STRING: Final = Scalar("intstr.IntOrString", _int_or_string, 0, Wire.INT_OR_STRING)
JSON: Final = Scalar("interface {}", lambda value: value, None, Wire.JSON)
RAW_EXTENSION: Final = Scalar("runtime.RawExtension", lambda value: value, None, Wire.JSON)


class Decoded(NamedTuple):
    """What decoding gave: the value in declaration order, the first type error, the unknown fields' paths."""

    value: Json
    error: str
    unknown: list[str]


def decode(kind: Type, value: Json) -> Decoded:
    """Decode a JSON value into `kind`. As in Go a type error does not stop the decoding, the first one is told.

    What has no errors and no unknown fields is decoded by `_quick`; at any doubt `_Reader` starts anew and explains.
    """
    try:
        return Decoded(_quick(kind)(value, 0), "", [])
    except (LookupError, ValueError, Mismatch, Malformed):
        pass
    reader = _Reader()
    try:
        result = reader.read(kind, value, "", (), "")
    except ValueError as error:
        return Decoded(None, str(error), reader.unknown)
    return Decoded(result, reader.error, reader.unknown)


def _quick(kind: Type) -> Quick:
    """A function that decodes what is right throughout, and raises at any doubt."""
    if isinstance(kind, Scalar):
        scalar = kind.read
        return lambda value, _: None if value is None else scalar(value)
    if isinstance(kind, Struct):
        return kind.quick or _quick_struct(kind)
    if isinstance(kind, Union):
        choices = {word: _quick(choice.type) for word, choice in kind.choices.items()}
        return lambda value, depth: None if value is None else choices[json_type(value)](value, depth)
    element = _quick(kind.element)
    blank = isinstance(kind.element, (Scalar, Struct))

    def read_list(value: Json, depth: int) -> Json:
        if type(value) is not list:
            raise LookupError
        if blank and None in value:
            return [zero(kind.element) if item is None else element(item, depth) for item in value]
        return [element(item, depth) for item in value]

    def read_map(value: Json, depth: int) -> Json:
        if type(value) is not dict:
            raise LookupError
        return {
            name: zero(kind.element) if blank and value[name] is None else element(value[name], depth)
            for name in sorted(value)
        }

    read = read_list if isinstance(kind, List) else read_map
    return lambda value, depth: None if value is None else read(value, depth)


def _quick_struct(kind: Struct) -> Quick:
    order = {name: n for n, name in enumerate(kind.fields)}.__getitem__
    always = {name for name, one in kind.fields.items() if one.write in (Write.ALWAYS, Write.NULL)}
    fields: dict[str, tuple[Quick | None, bool]] = {}  # (reader, or None for a string; is it written while zero?)

    def read(value: Json, depth: int) -> Json:
        if type(value) is not dict or depth == MAX_DEPTH:
            raise LookupError
        if depth == _DEEP:
            make_room()
        out: Object = {}
        for name in sorted(value, key=order):  # an unknown field is a KeyError
            given = value[name]
            reader, keep = fields[name]
            if reader is not None:
                given = reader(given, depth + 1)
            elif type(given) is not str and given is not None:
                raise LookupError
            if given or (keep and given is not None):
                out[name] = given
        return out if always <= out.keys() else arrange(kind, out)

    kind.quick = read
    for name, one in kind.fields.items():
        plain = isinstance(one.type, Scalar) and one.type.read is _string
        fields[name] = (None if plain else _quick(one.type), one.write is not Write.OMIT_EMPTY)
    return read


class _Reader:
    __slots__ = ("depth", "error", "outer", "unknown")

    def __init__(self) -> None:
        self.depth = 0
        self.error = ""
        self.outer = ""  # inside a Union: the struct that holds it, for Go names that one in errors
        self.unknown: list[str] = []

    def read(self, kind: Type, value: Json, struct: str, names: tuple[str, ...], path: str) -> Json:
        if value is None:
            return None
        if isinstance(kind, Scalar):
            try:
                return kind.read(value)
            except Mismatch as mismatch:
                if mismatch.final:
                    self.error = ""
                self.mismatch(mismatch.what, mismatch.go or kind.go, struct, names)
                if mismatch.final:
                    raise ValueError(self.error) from None
                return None
            except Malformed as malformed:
                self.error = self.error or str(malformed)
                return None
        if isinstance(kind, List):
            if type(value) is not list:
                self.mismatch(json_type(value), kind.go, struct, names)
                return None
            element = kind.element
            items = [self.read(element, item, struct, names, f"{path}[{n}]") for n, item in enumerate(value)]
            return [zero(element) if item is None else item for item in items]
        if isinstance(kind, Union):
            return self.union(kind, value, struct, names, path)
        if type(value) is not dict:
            self.mismatch(json_type(value), kind.go, struct, names)
            return None
        if isinstance(kind, Map):
            read = {k: self.read(kind.element, v, struct, names, _child(path, k)) for k, v in value.items()}
            return {k: zero(kind.element) if read[k] is None else read[k] for k in sorted(read)}
        return self.struct(kind, value, names, path)

    def struct(self, kind: Struct, value: Object, names: tuple[str, ...], path: str) -> Object:
        if self.depth == MAX_DEPTH:
            raise ValueError("exceeded max depth")
        if self.depth == _DEEP:
            make_room()
        self.depth += 1
        read: Object = {}
        for name, given in value.items():  # in document order, as Go tells errors and unknown fields
            one = kind.fields.get(name)
            if one is None:
                if len(self.unknown) < MAX_STRICT_ERRORS:
                    self.unknown.append(_child(path, name))
            else:
                inner = (*names, one.inline, name) if one.inline else (*names, name)
                read[name] = self.read(one.type, given, kind.name, inner, _child(path, name))
        self.depth -= 1
        return arrange(kind, read)

    def union(self, kind: Union, value: Json, struct: str, names: tuple[str, ...], path: str) -> Json:
        choice = kind.choices.get(json_type(value))
        if choice is None:
            if kind.otherwise:
                raise ValueError(kind.otherwise)
            return []
        inner = _Reader()
        inner.outer = self.outer or struct
        inner.depth = self.depth
        result = inner.read(choice.type, value, struct, names, path)
        if inner.error:
            raise ValueError(inner.error)
        return result

    def mismatch(self, what: str, go: str, struct: str, names: tuple[str, ...]) -> None:
        if not self.error:
            where = f"struct field {self.outer or struct}.{'.'.join(names)}" if struct else "value"
            self.error = f"json: cannot unmarshal {what} into Go {where} of type {go}"


def arrange(kind: Struct, values: Object) -> Object:
    """The fields in the order of declaration, as their `Write` says: what Go would write."""
    out: Object = {}
    for name, one in kind.fields.items():
        given = values.get(name)
        if one.write is Write.ALWAYS:
            out[name] = zero(one.type) if given is None else given
        elif one.write is Write.NULL or (given is not None and (one.write is Write.POINTER or not _is_zero(given))):
            out[name] = given
    return out


def zero(kind: Type) -> Json:
    """What Go writes for an unset field without omitempty."""
    if isinstance(kind, Scalar):
        return kind.zero
    return decode(kind, {}).value if isinstance(kind, Struct) else None


def _is_zero(value: Json) -> bool:
    return value is False or (value in (0, "") and not isinstance(value, (list, dict))) or value in ([], {})


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
