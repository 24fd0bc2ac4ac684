"""Go structs as tables: how the built-in kinds are decoded, and written again.

Upstream decodes built-in kinds (ObjectMeta, CustomResourceDefinition, Namespace …) into Go structs with
sigs.k8s.io/json: names are matched case-sensitively, null leaves a field unset, a wrong type is an error that names
struct, field and Go type, unknown fields are dropped and told in strict mode. Writing them gives the fields in the
order of declaration. A kind is therefore data: one `Struct` with its fields; the field numbers are protobuf's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from apiserver.api.gotext import float_json
from apiserver.api.gotime import MICRO, SECONDS, parse_time
from apiserver.api.types import MAX_INT64, MIN_INT64, Json, Object

MAX_STRICT_ERRORS: Final = 100  # sigs.k8s.io/json keeps no more


class Write(Enum):
    """When a field is written (its Go type and tag decide)."""

    OMIT_EMPTY = "a value with omitempty: not when zero or empty"
    POINTER = "a pointer with omitempty: whenever it is set, even to zero"
    ALWAYS = "no omitempty, or a struct by value: zero, null or {} are written"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf. `go` is its Go type; `read` gives the value or raises `Mismatch` or `ValueError` (the whole message)."""

    go: str
    read: Callable[[Json], Json]
    zero: Json


@dataclass(frozen=True, slots=True)
class List:
    element: Type

    @property
    def go(self) -> str:
        return f"[]{self.element.go}"


@dataclass(frozen=True, slots=True)
class Map:
    """A map with string keys."""

    element: Type

    @property
    def go(self) -> str:
        return f"map[string]{self.element.go}"


@dataclass(slots=True, eq=False)
class Struct:
    """`package` is how Go's messages qualify the type (`v1`). Fields come in declaration order; `define` allows recursion."""

    name: str
    fields: dict[str, Field] = dataclass_field(default_factory=dict, repr=False)
    package: str = "v1"

    @property
    def go(self) -> str:
        return f"{self.package}.{self.name}"

    def define(self, *fields: Field) -> Struct:
        self.fields = {f.name: f for f in fields}
        return self


Type: TypeAlias = Scalar | List | Map | Struct


class Field(NamedTuple):
    """One struct field. `patch` and `merge_key` are strategic merge patch's tags; `list_keys` is apply's list-type=map."""

    name: str
    type: Type
    number: int = 0
    write: Write = Write.OMIT_EMPTY
    patch: str = ""
    merge_key: str = ""
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    inline: str = ""  # the embedded struct it comes from; Go's error paths name it


class Mismatch(Exception):
    """The JSON value has another type: `what` is Go's word for it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


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
        if type(value) is not str:  # metav1.Time decodes itself: its error names no field
            raise ValueError(f"json: cannot unmarshal {json_type(value)} into Go value of type string")
        return parse_time(value, digits) if value else None

    return read


def _int_or_string(value: Json) -> Json:
    if type(value) is str:
        return value
    try:
        return _integer(-(2**31), 2**31 - 1)(value)
    except Mismatch as mismatch:
        raise ValueError(f"json: cannot unmarshal {mismatch.what} into Go value of type int32") from None


STRING: Final = Scalar("string", _string, "")
UID: Final = Scalar("types.UID", _string, "")
BOOL: Final = Scalar("bool", _bool, False)
INT32: Final = Scalar("int32", _integer(-(2**31), 2**31 - 1), 0)
INT64: Final = Scalar("int64", _integer(MIN_INT64, MAX_INT64), 0)
FLOAT64: Final = Scalar("float64", _float, 0)
BYTES: Final = Scalar("[]uint8", _string, "")
TIME: Final = Scalar("v1.Time", _time(SECONDS), None)
MICRO_TIME: Final = Scalar("v1.MicroTime", _time(MICRO), None)
INT_OR_STRING: Final = Scalar("intstr.IntOrString", _int_or_string, 0)
JSON: Final = Scalar("interface {}", lambda value: value, None)


class Decoded(NamedTuple):
    """What decoding gave: the value in declaration order, the first type error, the unknown fields' paths."""

    value: Json
    error: str
    unknown: list[str]


def decode(kind: Type, value: Json) -> Decoded:
    """Decode a JSON value into `kind`. As in Go a type error does not stop the decoding, the first one is told."""
    reader = _Reader()
    try:
        result = reader.read(kind, value, "", (), "")
    except ValueError as error:
        return Decoded(None, str(error), reader.unknown)
    return Decoded(result, reader.error, reader.unknown)


class _Reader:
    __slots__ = ("error", "unknown")

    def __init__(self) -> None:
        self.error = ""
        self.unknown: list[str] = []

    def read(self, kind: Type, value: Json, struct: str, names: tuple[str, ...], path: str) -> Json:
        if value is None:
            return None
        if isinstance(kind, Scalar):
            try:
                return kind.read(value)
            except Mismatch as mismatch:
                self.mismatch(mismatch.what, kind, struct, names)
                return None
        if isinstance(kind, List):
            if type(value) is not list:
                self.mismatch(json_type(value), kind, struct, names)
                return None
            element = kind.element
            items = [self.read(element, item, struct, names, f"{path}[{n}]") for n, item in enumerate(value)]
            return [zero(element) if item is None else item for item in items]
        if type(value) is not dict:
            self.mismatch(json_type(value), kind, struct, names)
            return None
        if isinstance(kind, Map):
            read = {k: self.read(kind.element, v, struct, names, _child(path, k)) for k, v in value.items()}
            return {k: zero(kind.element) if v is None else v for k, v in read.items()}
        return self.struct(kind, value, names, path)

    def struct(self, kind: Struct, value: Object, names: tuple[str, ...], path: str) -> Object:
        read: Object = {}
        for name, given in value.items():  # in document order, as Go tells errors and unknown fields
            one = kind.fields.get(name)
            if one is None:
                if len(self.unknown) < MAX_STRICT_ERRORS:
                    self.unknown.append(_child(path, name))
            else:
                inner = (*names, one.inline, name) if one.inline else (*names, name)
                read[name] = self.read(one.type, given, kind.name, inner, _child(path, name))
        out: Object = {}
        for name, one in kind.fields.items():
            given = read.get(name)
            if one.write is Write.ALWAYS:
                out[name] = zero(one.type) if given is None else given
            elif given is not None and (one.write is Write.POINTER or not _is_zero(given)):
                out[name] = given
        return out

    def mismatch(self, what: str, kind: Type, struct: str, names: tuple[str, ...]) -> None:
        if not self.error:
            where = f"struct field {struct}.{'.'.join(names)}" if struct else "value"
            self.error = f"json: cannot unmarshal {what} into Go {where} of type {kind.go}"


def zero(kind: Type) -> Json:
    """What Go writes for an unset field without omitempty."""
    if isinstance(kind, Scalar):
        return kind.zero
    return decode(kind, {}).value if isinstance(kind, Struct) else None


def _is_zero(value: Json) -> bool:
    return value is False or (value in (0, "") and not isinstance(value, (list, dict))) or value in ([], {})


def _brief(value: Json) -> str:
    return json_type(value)


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
