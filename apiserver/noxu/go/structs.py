"""Go structs as tables: how built-in kinds are decoded and encoded.

Upstream decodes built-in kinds (ObjectMeta, CustomResourceDefinition, Namespace …) into Go structs with
sigs.k8s.io/json: names are matched case-sensitively, null leaves a field unset, a wrong type is an error that names
struct, field and Go type, unknown fields are dropped, and reported in strict mode. Encoding writes the fields in the
order of declaration. A kind is therefore data: one `Struct` with its fields; the field numbers are protobuf's.

A struct that Go embeds is inlined in JSON, but is a message of its own in protobuf: its fields keep their own numbers,
and `Field.within` has the number of the embedded message (or several, from the outside in). RuleWithOperations:

    Go                            JSON                 protobuf
    Operations []string           operations: […]      1: string
    Rule { APIGroups []string }   apiGroups: […]       2: { 1: string }     Field("apiGroups", …, 1, within=(2,))
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from noxu.cpu_budget import spend
from noxu.go.base64 import canonical, encode
from noxu.go.text import MINUS_ZERO, RawNumber, number_text
from noxu.go.time import MICRO, SECONDS, format_duration, parse_duration, parse_time
from noxu.values import MAX_INT64, MIN_INT64, Json, Object

MAX_STRICT_ERRORS: Final = 100  # sigs.k8s.io/json keeps no more
MAX_DEPTH: Final = 500  # structs in structs; upstream's only limit is JSON's, 10 000 levels
_DEEP: Final = 100  # structs in structs that Python's default recursion limit certainly allows
_RECURSION_LIMIT: Final = 10_000
ITEM_UNITS: Final = 20
"""Units of work for a struct in a list: what decodes, defaults, owns and validates an empty one."""
FEW: Final = 8  # structs in a list that do not count


def raise_recursion_limit() -> None:
    """Let Python recurse as deep as the deepest schema that is accepted. Its default limit allows some 200 levels."""
    if sys.getrecursionlimit() < _RECURSION_LIMIT:
        sys.setrecursionlimit(_RECURSION_LIMIT)


class Presence(Enum):
    """When a field is written (its Go type and tag decide)."""

    OMIT_EMPTY = "a value with omitempty: unless zero or empty"
    POINTER = "a pointer with omitempty: if set, even to zero"
    ALWAYS = "no omitempty, or a struct by value: always, as zero, null or {} if unset"
    NULL = "a pointer without omitempty: always, as null if unset"


class Wire(Enum):
    """How protobuf encodes a leaf."""

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
    QUANTITY = "a message whose field 1 is the canonical text"
    DURATION = "a message whose field 1 is the number of nanoseconds"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf. `go` is its Go type; `read` gives the value or raises `Mismatch`, `MalformedField` or `ValueError`."""

    go: str
    read: Callable[[Json], Json]
    zero: Json
    wire: Wire = Wire.STRING


@dataclass(frozen=True, slots=True)
class List:
    """A slice. `name` is its Go type if that has a name; protobuf encodes it as a message of `items` (1) if `wrapped`."""

    element: Type
    name: str = ""
    wrapped: bool = False

    @property
    def go(self) -> str:
        return self.name or f"[]{self.element.go}"


@dataclass(frozen=True, slots=True)
class Map:
    """A map with string keys. `name` is its Go type if that has a name."""

    element: Type
    name: str = ""

    @property
    def go(self) -> str:
        return self.name or f"map[string]{self.element.go}"


class Struct:
    """A Go struct: its fields in the order of declaration, set by `define` so that types may be recursive.

    `package` qualifies the type in Go's messages (`v1`). `atomic` is apply's marker `structType=atomic`: the struct has
    one owner as a whole. `load` defines the struct when its fields are first needed.
    """

    __slots__ = ("_atomic", "_fields", "_load", "fast_decoder", "name", "package")

    def __init__(
        self, name: str, *, package: str = "v1", atomic: bool = False, load: Callable[[Struct], None] | None = None
    ) -> None:
        self.name = name
        self.package = package
        self.fast_decoder: FastDecoder | None = None  # made by the first decoding
        self._atomic = atomic
        self._fields: dict[str, Field] | None = None if load else {}
        self._load = load

    @property
    def fields(self) -> dict[str, Field]:
        if self._fields is None:
            assert self._load is not None
            self._load(self)
            assert self._fields is not None
        return self._fields

    @property
    def atomic(self) -> bool:
        return bool(self.fields) and self._atomic

    @property
    def go(self) -> str:
        return f"{self.package}.{self.name}"

    def define(self, *fields: Field, atomic: bool | None = None) -> Struct:
        self._fields = {f.name: f for f in fields}
        if atomic is not None:
            self._atomic = atomic
        self.fast_decoder = None
        return self

    def __repr__(self) -> str:
        return f"Struct({self.go!r})"


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """A type with an UnmarshalJSON of its own: the JSON type of the value selects the field that holds it.

    A value of any other type is the error `otherwise`, or decodes to an empty list if `otherwise` is "". As in Go, a
    wrong type inside ends the decoding, and strict mode ignores unknown fields inside.
    """

    name: str
    choices: dict[str, Field]
    otherwise: str = ""
    package: str = "v1"

    @property
    def go(self) -> str:
        return f"{self.package}.{self.name}"


Type: TypeAlias = Scalar | List | Map | Struct | Union
FastDecoder: TypeAlias = Callable[[Json, int], Json]  # (value, number of structs around it) → the decoded value


class Field(NamedTuple):
    """One struct field.

    `patch` and `merge_key` are the tags of strategic merge patch, `list_type` and `list_keys` the markers of apply; on a
    map or a struct `list_type` is "atomic" or "".
    """

    name: str
    type: Type
    number: int = 0
    write: Presence = Presence.OMIT_EMPTY
    patch: str = ""
    merge_key: str = ""
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    inline: str = ""  # the embedded struct that declares it; Go's error paths name it
    within: tuple[int, ...] = ()  # protobuf's numbers of the embedded structs around it


class Mismatch(Exception):
    """The JSON value has the wrong type: `found` is Go's name of its type, `go` the expected type if not the field's own.

    A `final` one comes from a type with an UnmarshalJSON of its own: it ends the decoding and replaces earlier errors.
    """

    def __init__(self, found: str, go: str = "", *, final: bool = False) -> None:
        super().__init__(found)
        self.found = found
        self.go = go
        self.final = final


class MalformedField(Exception):
    """A value of the right JSON type that cannot be read. As after a mismatch, decoding goes on; the first error is kept."""


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
        if isinstance(value, RawNumber) and value.literal == MINUS_ZERO:
            return 0
        if isinstance(value, (int, float)) and type(value) is not bool:
            raise Mismatch(f"number {number_text(value)}")
        raise Mismatch(json_type(value))

    return read


def _float(value: Json) -> Json:
    if type(value) in (int, float):
        return value
    if isinstance(value, RawNumber):
        if math.isinf(value):
            raise Mismatch(f"number {value.literal}")
        return float(value)
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
        raise Mismatch(mismatch.found, "int32", final=True) from None


def _bytes(value: Json) -> Json:
    if type(value) is str:
        try:
            return canonical(value)
        except ValueError as error:
            raise MalformedField(str(error)) from None
    if type(value) is not list:
        raise Mismatch(json_type(value))
    for item in value:  # Go accepts an array of numbers
        if item is not None and not (type(item) is int and 0 <= item <= 255):
            raise Mismatch(f"number {number_text(item)}" if json_type(item) == "number" else json_type(item), "uint8")
    return encode(bytes(item or 0 for item in value))


def _quantity(value: Json) -> Json:
    """Quantity.UnmarshalJSON: the canonical form of a text or a number."""
    if isinstance(value, (int, float)) and type(value) is not bool:
        value = number_text(value)
    return _canonical_quantity(value.strip() if type(value) is str else "")


@lru_cache(maxsize=1024)  # the same few are in all pods, and each write reads them several times
def _canonical_quantity(text: str) -> str:
    from noxu.go import quantity  # it imports decimal, and few servers see a quantity at their start

    return str(quantity.parse(text))


def _duration(value: Json) -> Json:
    if type(value) is not str:
        raise Mismatch(json_type(value), "string", final=True)
    return format_duration(parse_duration(value))


def named(go: str) -> Scalar:
    """A string whose Go type has a name."""
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
QUANTITY: Final = Scalar("resource.Quantity", _quantity, "0", Wire.QUANTITY)
DURATION: Final = Scalar("v1.Duration", _duration, "0s", Wire.DURATION)
JSON: Final = Scalar("interface {}", lambda value: value, None, Wire.JSON)
RAW_EXTENSION: Final = Scalar("runtime.RawExtension", lambda value: value, None, Wire.JSON)


class DecodedStruct(NamedTuple):
    """The value in the order of declaration, the first error ("" if none), and the paths of unknown fields."""

    value: Json
    error: str
    unknown: list[str]


def decode(kind: Type, value: Json) -> DecodedStruct:
    """Decode a JSON value into `kind`. As in Go, a type error does not stop the decoding; the first one is returned.

    A fast decoder handles values without errors and unknown fields. If it gives up, `_Reader` starts again and explains.
    """
    try:
        return DecodedStruct(_fast_decoder(kind)(value, 0), "", [])
    except (LookupError, ValueError, Mismatch, MalformedField):
        pass
    reader = _Reader()
    try:
        result = reader.read(kind, value, "", (), "")
    except ValueError as error:
        return DecodedStruct(None, str(error), reader.unknown)
    return DecodedStruct(result, reader.error, reader.unknown)


def _fast_decoder(kind: Type) -> FastDecoder:
    """A function that decodes flawless values, and raises LookupError, ValueError, Mismatch or Malformed for others."""
    if isinstance(kind, Scalar):
        scalar = kind.read
        return lambda value, _: None if value is None else scalar(value)
    if isinstance(kind, Struct):
        return kind.fast_decoder or _fast_struct_decoder(kind)
    if isinstance(kind, Union):
        choices = {word: _fast_decoder(choice.type) for word, choice in kind.choices.items()}
        return lambda value, depth: None if value is None else choices[json_type(value)](value, depth)
    element = _fast_decoder(kind.element)
    has_zero = isinstance(kind.element, (Scalar, Struct))  # which replaces null
    units = 0 if isinstance(kind.element, Scalar) else ITEM_UNITS

    def read_list(value: Json, depth: int) -> Json:
        if type(value) is not list:
            raise LookupError
        if units and len(value) > FEW:
            spend(units * len(value))
        if has_zero and None in value:
            return [zero(kind.element) if item is None else element(item, depth) for item in value]
        return [element(item, depth) for item in value]

    def read_map(value: Json, depth: int) -> Json:
        if type(value) is not dict:
            raise LookupError
        if units and len(value) > FEW:
            spend(units * len(value))
        return {
            name: zero(kind.element) if has_zero and value[name] is None else element(value[name], depth)
            for name in sorted(value)
        }

    read = read_list if isinstance(kind, List) else read_map
    return lambda value, depth: None if value is None else read(value, depth)


_ShapeField: TypeAlias = tuple[str, "FastDecoder | None", bool]
"""A field of a struct: its name, its decoder, or None for a string, and whether its zero is written."""

MAX_SHAPES: Final = 256
"""For each struct: clients choose the combinations of fields. A schema has few, and most of its nodes have the same ones."""


def _fast_struct_decoder(kind: Struct) -> FastDecoder:
    """The order and the decoders of the fields of a value are looked up once for all values with the same fields."""
    order = {name: n for n, name in enumerate(kind.fields)}.__getitem__
    always = {name for name, field in kind.fields.items() if field.write in (Presence.ALWAYS, Presence.NULL)}
    fields: dict[str, _ShapeField] = {}
    shapes: dict[tuple[str, ...], tuple[_ShapeField, ...]] = {}

    def new_shape(names: tuple[str, ...]) -> tuple[_ShapeField, ...]:
        shape = tuple([fields[name] for name in sorted(names, key=order)])  # an unknown field is a KeyError
        if len(shapes) < MAX_SHAPES:
            shapes[names] = shape
        return shape

    def read(value: Json, depth: int) -> Json:
        if type(value) is not dict or depth == MAX_DEPTH:
            raise LookupError
        if depth == _DEEP:
            raise_recursion_limit()
        names = tuple(value)
        out: Object = {}
        for name, reader, keep in shapes.get(names) or new_shape(names):
            item = value[name]
            if reader is not None:
                item = reader(item, depth + 1)
            elif type(item) is not str and item is not None:
                raise LookupError
            if item or (keep and item is not None):
                out[name] = item
        return out if always <= out.keys() else arrange(kind, out)

    kind.fast_decoder = read
    for name, field in kind.fields.items():
        plain = isinstance(field.type, Scalar) and field.type.read is _string
        fields[name] = (name, None if plain else _fast_decoder(field.type), field.write is not Presence.OMIT_EMPTY)
    return read


class _Reader:
    """Decodes like Go's decoder, with its error messages; recurses along the types."""

    __slots__ = ("depth", "error", "outer", "unknown")

    def __init__(self) -> None:
        self.depth = 0
        self.error = ""
        self.outer = ""  # inside a Union: the struct that holds the union, which Go names in errors
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
                self.mismatch(mismatch.found, mismatch.go or kind.go, struct, names)
                if mismatch.final:
                    raise ValueError(self.error) from None
                return None
            except MalformedField as malformed:
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
            raise_recursion_limit()
        self.depth += 1
        read: Object = {}
        for name, item in value.items():  # in document order, as Go reports errors and unknown fields
            field = kind.fields.get(name)
            if field is None:
                if len(self.unknown) < MAX_STRICT_ERRORS:
                    self.unknown.append(_child(path, name))
            else:
                inner = (*names, field.inline, name) if field.inline else (*names, name)
                read[name] = self.read(field.type, item, kind.name, inner, _child(path, name))
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

    def mismatch(self, found: str, go: str, struct: str, names: tuple[str, ...]) -> None:
        if not self.error:
            where = f"struct field {self.outer or struct}.{'.'.join(names)}" if struct else "value"
            self.error = f"json: cannot unmarshal {found} into Go {where} of type {go}"


def arrange(kind: Struct, values: Object) -> Object:
    """The struct as Go writes it: fields in the order of declaration, empty ones as their `Presence` says."""
    out: Object = {}
    for name, field in kind.fields.items():
        item = values.get(name)
        if field.write is Presence.ALWAYS:
            out[name] = zero(field.type) if item is None else item
        elif field.write is Presence.NULL or (
            item is not None and (field.write is Presence.POINTER or not _is_zero(item))
        ):
            out[name] = item
    return out


def zero(kind: Type) -> Json:
    """The value that Go writes for an unset field without omitempty."""
    if isinstance(kind, Scalar):
        return kind.zero
    return decode(kind, {}).value if isinstance(kind, Struct) else None


def _is_zero(value: Json) -> bool:
    return value is False or (value in (0, "") and not isinstance(value, (list, dict))) or value in ([], {})


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
