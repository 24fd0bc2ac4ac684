"""Values while an expression is evaluated.

Scalars are Python's (int is int64, `Uint` is uint64, None is null). A list made by an expression is a Python list, a map
made by an expression is a `MapValue`. Lists and maps of an object stay raw JSON inside `JsonList` and `JsonObject`; an
element is converted when it is accessed, as its schema says (upstream's apiserver/pkg/cel/common/valuesunstructured.go).
Functions raise CelError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from noxu.cel.errors import Cancelled, CelError, no_such_overload
from noxu.cel.memory import allocate_text
from noxu.cel.types import types
from noxu.cel.types.schema_types import escape, unescape, with_type_and_object_meta
from noxu.cel.types.types import Type
from noxu.cel.values import times
from noxu.cel.values.numbers import Uint
from noxu.cel.values.times import Duration, Timestamp
from noxu.go import base64 as go_base64
from noxu.go.time import parse_schema_duration
from noxu.schema.structural import Structural
from noxu.values import Json, Object

Value: TypeAlias = Any


class _Absent:
    """The type of `ABSENT`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""Stands for a missing value: of a key that is not in a map, or of an empty optional."""


class Optional:
    """An optional; `value` is `ABSENT` if it is empty."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def get(self) -> Value:
        if self.value is ABSENT:
            raise CelError("optional.none() dereference")
        return self.value


NONE: Final = Optional(ABSENT)


class FailedConversion:
    """A value that could not be converted. It becomes an error when an expression uses it."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message


class Opaque:
    """A value of a type that a library defines. Subclasses define `type` and `equals`."""

    __slots__ = ()
    type: Type

    def equals(self, other: Value) -> bool:
        raise NotImplementedError

    def field(self, name: Value) -> Value:
        """The value of a field, ABSENT if there is none."""
        return ABSENT

    def __str__(self) -> str:
        """The value in error messages. (For most of these types Go prints addresses of its memory.)"""
        return self.type.name


class MapValue:
    """A map made by an expression.

    A key is found by any number that equals it, but 1, 1u and true are three keys:

        {1: 'a'}.find(1u)   →   'a'        {1: 'a', 1u: 'b'} has two entries
    """

    __slots__ = ("entries",)

    def __init__(self, pairs: Iterable[tuple[Value, Value]] = ()) -> None:
        self.entries: dict[Value, tuple[Value, Value]] = {_identity(key): (key, value) for key, value in pairs}

    def __len__(self) -> int:
        return len(self.entries)

    def find(self, key: Value) -> Value:
        entries = self.entries
        if type(key) is str:
            entry = entries.get(key)
            return ABSENT if entry is None else entry[1]
        for candidate in _equal_numbers(key):
            entry = entries.get(_identity(candidate))
            if entry is not None:
                return entry[1]
        return ABSENT

    def __iter__(self) -> Iterator[Value]:
        return (key for key, _ in self.entries.values())

    def set(self, key: Value, value: Value) -> None:
        self.entries[_identity(key)] = (key, value)

    def remove(self, key: Value) -> None:
        self.entries.pop(_identity(key), None)


def _identity(key: Value) -> Value:
    """What distinguishes keys in a Go map: the value of scalars, the reference of lists, maps and others."""
    kind = type(key)
    if kind is str:
        return key
    if kind is bytes:
        raise Cancelled("internal error: runtime error: hash of unhashable type types.Bytes")
    return (kind, key if kind in _HASHED else id(key))


_HASHED: Final = frozenset({bool, int, Uint, float, type(None), Duration, Timestamp, Type})


def _equal_numbers(key: Value) -> Iterator[Value]:
    """The key and, if it is a number, the equal numbers of other types: 1.0 → 1.0, 1, 1u."""
    yield key
    if type(key) is float:
        if key.is_integer():
            if abs(key) < 2**63:
                yield int(key)
            if 0 <= key < 2**64:
                yield Uint(key)
    elif type(key) is int and key >= 0:
        yield Uint(key)
    elif type(key) is Uint and key < 2**63:
        yield int(key)


class Accumulating(list[Value]):
    """The accumulator of a comprehension: lists added to it are appended in place."""

    __slots__ = ()


class Concatenation(list[Value]):
    """The sum of two lists. Unlike those of other lists, errors of its elements are reported in comparisons."""

    __slots__ = ()


class SetList(list[Value]):
    """A union of lists of type set: order does not matter in comparisons."""

    __slots__ = ()


class MapList(list[Value]):
    """A merge of lists of type map, with the names of their keys."""

    __slots__ = ("keys",)

    def __init__(self, elements: Iterable[Value], keys: tuple[str, ...]) -> None:
        super().__init__(elements)
        self.keys = keys


class JsonList:
    """An array in an object. Iterating converts the elements, and raises CelError at one that cannot be converted."""

    __slots__ = ("items", "raw", "schema")

    def __init__(self, raw: list[Json], schema: Structural) -> None:
        assert schema.items is not None
        self.raw = raw
        self.schema = schema
        self.items = schema.items

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, index: int) -> Value:
        return from_json(self.raw[index], self.items)

    def __iter__(self) -> Iterator[Value]:
        items = self.items
        return (from_json(raw, items) for raw in self.raw)

    @property
    def map_keys(self) -> tuple[str, ...]:
        """The keys of a list of type map. Escaped as upstream does, although they are looked up in the raw object."""
        return tuple(escape(key) or key for key in self.schema.list_map_keys)


class JsonObject:
    """An object with properties (`is_object`), or a map with additionalProperties, in an object."""

    __slots__ = ("is_object", "raw", "schema")

    def __init__(self, raw: Object, schema: Structural) -> None:
        self.raw = raw
        self.schema = schema
        self.is_object = bool(schema.properties)

    def __len__(self) -> int:
        return len(self.raw)

    def schema_of(self, key: str) -> Structural | None:
        return self.schema.properties.get(key) if self.is_object else self.schema.values

    def find(self, key: Value) -> Value:
        """The value of a field (by its escaped name) or key. A null is ABSENT in an object, but not in a map."""
        if type(key) is not str:
            raise no_such_overload()
        name: str | None = key
        if self.is_object:
            name = unescape(key)
            if name is None:
                return ABSENT
        value = self.raw.get(name, ABSENT)  # type: ignore[arg-type]
        if value is ABSENT or (value is None and self.is_object):
            return ABSENT
        schema = self.schema_of(name)  # type: ignore[arg-type]
        return ABSENT if schema is None else from_json(value, schema)

    def __iter__(self) -> Iterator[str]:
        if not self.is_object:
            return iter(self.raw if self.schema.values is not None else ())
        return (escape(key) or key for key in self.raw if key in self.schema.properties)


class UntypedList:
    """An array without a schema, as in the objects that admission evaluates."""

    __slots__ = ("raw",)

    def __init__(self, raw: list[Json]) -> None:
        self.raw = raw

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, index: int) -> Value:
        return untyped(self.raw[index])

    def __iter__(self) -> Iterator[Value]:
        return map(untyped, self.raw)


class UntypedMap:
    """An object without a schema. A null is a value, and names are not escaped."""

    __slots__ = ("raw",)

    def __init__(self, raw: Object) -> None:
        self.raw = raw

    def __len__(self) -> int:
        return len(self.raw)

    def find(self, key: Value) -> Value:
        return untyped(self.raw.get(key, ABSENT)) if type(key) is str else ABSENT

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)


def untyped(raw: Json) -> Value:
    """The value of JSON without a schema. Scalars stay unchanged."""
    if isinstance(raw, dict):
        return UntypedMap(raw)
    return UntypedList(raw) if isinstance(raw, list) else raw


class LazyMap:
    """Fields that are computed when they are first accessed (upstream's cel/lazy). An error is kept as well."""

    __slots__ = ("_compute", "_computed")

    def __init__(self, compute: Mapping[str, Callable[[], Value]]) -> None:
        """The functions may raise CelError."""
        self._compute = compute
        self._computed: dict[str, Value] = {}

    def __len__(self) -> int:
        return len(self._compute)

    def find(self, key: Value) -> Value:
        if type(key) is not str:
            raise no_such_overload()
        name = unescape(key)
        if name is None or name not in self._compute:
            return ABSENT
        if name not in self._computed:
            try:
                self._computed[name] = self._compute[name]()
            except CelError as error:
                self._computed[name] = FailedConversion(error.message)
        value = self._computed[name]
        if isinstance(value, FailedConversion):
            raise CelError(value.message)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._compute)


class Preserved:
    """A value whose schema has x-kubernetes-preserve-unknown-fields and no type. It can only be compared."""

    __slots__ = ("raw",)

    def __init__(self, raw: Json) -> None:
        self.raw = raw


_GO_TYPES: Final = {bool: "bool", int: "int64", float: "float64", str: "string", dict: "map[string]interface {}"}


def _go_type(raw: Json) -> str:
    return _GO_TYPES.get(type(raw), "[]interface {}")


def from_json(raw: Json, schema: Structural) -> Value:
    """The value of JSON that the schema describes. Raises CelError if it is not as the schema says."""
    if raw is None:
        if schema.nullable:
            return None
        raise CelError("invalid data, got null for schema with nullable=false")
    if schema.int_or_string:
        if type(raw) in (str, int):
            return raw
        raise CelError("invalid data, expected XIntOrString value to be either a string or integer")
    convert = _FROM_JSON.get(schema.type)
    if convert is not None:
        return convert(raw, schema)
    if schema.preserve_unknown_fields:
        return Preserved(raw)
    raise CelError(
        "invalid type, expected object, array, number, integer, boolean or string, or no type with "
        f"x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got {schema.type}"
    )


def from_json_or_failed(raw: Json, schema: Structural) -> Value:
    try:
        return from_json(raw, schema)
    except CelError as error:
        return FailedConversion(error.message)


def _object(raw: Json, schema: Structural) -> Value:
    if not isinstance(raw, dict):
        raise CelError("invalid data, expected a map for the provided schema with type=object")
    return JsonObject(raw, with_type_and_object_meta(schema) if schema.embedded_resource else schema)


def _array(raw: Json, schema: Structural) -> Value:
    if not isinstance(raw, list):
        raise CelError("invalid data, expected an array for the provided schema with type=array")
    if schema.items is None:
        raise CelError("invalid array type, expected Items with a non-empty Schema")
    return JsonList(raw, schema)


def _string(raw: Json, schema: Structural) -> Value:
    if not isinstance(raw, str):
        raise CelError(f"invalid data, expected string, got {_go_type(raw)}")
    read = FORMAT_READERS.get(schema.validation.format)
    return raw if read is None else read(raw)


def _number(raw: Json, schema: Structural) -> Value:  # noqa: ARG001
    if type(raw) in (int, float):
        return float(raw)
    raise CelError(f"invalid data, expected float, got {_go_type(raw)}")


def _integer(raw: Json, schema: Structural) -> Value:  # noqa: ARG001
    if type(raw) is int:
        return raw
    raise CelError(f"invalid data, expected int, got {_go_type(raw)}")


def _boolean(raw: Json, schema: Structural) -> Value:  # noqa: ARG001
    if type(raw) is bool:
        return raw
    raise CelError(f"invalid data, expected bool, got {_go_type(raw)}")


_FROM_JSON: Final[dict[str, Callable[[Json, Structural], Value]]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
}


def read_duration(text: str) -> Duration:
    try:
        return Duration(parse_schema_duration(text))
    except ValueError as error:
        raise CelError(f"Invalid duration {text}: {error}") from None


def read_date(text: str) -> Timestamp:
    try:
        return times.parse_date(text)
    except ValueError as error:
        raise CelError(f"Invalid date formatted string {text}: {error}") from None


def read_date_time(text: str) -> Timestamp:
    try:
        return times.parse_date_time(text)
    except ValueError as error:
        raise CelError(f"Invalid date-time formatted string {text}: {error}") from None


def read_bytes(text: str) -> bytes:
    allocate_text(2 * len(text))
    try:
        return go_base64.decode(text)
    except ValueError as error:
        raise CelError(f"Invalid byte formatted string {text}: {error}") from None


FORMAT_READERS: Final[dict[str, Callable[[str], Value]]] = {
    "duration": read_duration,
    "date": read_date,
    "date-time": read_date_time,
    "byte": read_bytes,
}

_TYPES: Final[dict[type, Type]] = {
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
    Duration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    Type: types.TYPE,
    Optional: types.OPTIONAL,
    list: types.LIST,
    Accumulating: types.LIST,
    Concatenation: types.LIST,
    SetList: types.LIST,
    MapList: types.LIST,
    JsonList: types.LIST,
    MapValue: types.MAP,
    JsonObject: types.MAP,
    UntypedList: types.LIST,
    UntypedMap: types.MAP,
    LazyMap: types.MAP,
    Preserved: Type(types.TypeKind.ERROR, "unknown"),
}


def type_of(value: Value) -> Type:
    """The runtime type. An object is a map."""
    type_ = _TYPES.get(type(value))
    return value.type if type_ is None else type_


LISTS: Final = (list, JsonList, UntypedList)
MAPS: Final = (MapValue, JsonObject, UntypedMap, LazyMap)
_SIZED: Final = (str, bytes, *LISTS, MapValue, JsonObject, UntypedMap)
NUMBERS: Final = frozenset({int, Uint, float})


def size(value: Value) -> int:
    """The size of a value in costs: its elements, code points or bytes; 1 for a value without size."""
    if isinstance(value, _SIZED):
        return len(value)
    if isinstance(value, Optional) and value.value is not ABSENT:
        return size(value.value)
    return getattr(value, "size", 1)
