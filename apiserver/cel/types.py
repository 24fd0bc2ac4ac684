"""Types, as the checker knows them (cel-go's common/types/types.go).

Types are compared by value. An object type is known by its name; its fields stand in the `DeclType` it was made for.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from apiserver.cel.schema_types import DeclType


class Kind(IntEnum):
    DYN = 1
    BOOL = 2
    BYTES = 3
    DOUBLE = 4
    DURATION = 5
    ERROR = 6
    INT = 7
    LIST = 8
    MAP = 9
    NULL = 10
    OPAQUE = 11
    STRING = 12
    STRUCT = 13
    TIMESTAMP = 14
    TYPE = 15
    PARAM = 16
    UINT = 17


class Type:
    """`name` is the runtime name. `declaration` says what fields a STRUCT has, where it comes from a schema.

    `wraps`: it is a wrapper of a scalar, which takes null as well, or is made of such. It counts as the same type.
    """

    __slots__ = ("_hash", "declaration", "generic", "kind", "name", "params", "wraps")

    def __init__(
        self,
        kind: Kind,
        name: str,
        params: tuple[Type, ...] = (),
        declaration: DeclType | None = None,
        wraps: bool = False,
    ) -> None:
        self.kind = kind
        self.name = name
        self.params = params
        self.declaration = declaration
        self.generic: bool = kind is Kind.PARAM or any(one.generic for one in params)
        self.wraps: bool = wraps or any(one.wraps for one in params)
        self._hash = hash((kind, name, params))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Type) or self._hash != other._hash:
            return False
        return self.kind is other.kind and self.name == other.name and self.params == other.params

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return display(self)


DYN: Final = Type(Kind.DYN, "dyn")
ERROR: Final = Type(Kind.ERROR, "error")
BOOL: Final = Type(Kind.BOOL, "bool")
BYTES: Final = Type(Kind.BYTES, "bytes")
DOUBLE: Final = Type(Kind.DOUBLE, "double")
DURATION: Final = Type(Kind.DURATION, "google.protobuf.Duration")
INT: Final = Type(Kind.INT, "int")
NULL: Final = Type(Kind.NULL, "null_type")
STRING: Final = Type(Kind.STRING, "string")
TIMESTAMP: Final = Type(Kind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE: Final = Type(Kind.TYPE, "type")
UINT: Final = Type(Kind.UINT, "uint")


def list_of(element: Type) -> Type:
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(Kind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(Kind.OPAQUE, "optional_type", (value,))


def type_of(instance: Type) -> Type:
    return Type(Kind.TYPE, "type", (instance,))


def wrapper_of(scalar: Type) -> Type:
    return Type(scalar.kind, scalar.name, wraps=True)


def param(name: str) -> Type:
    return Type(Kind.PARAM, name)


LIST: Final = list_of(DYN)
MAP: Final = map_of(DYN, DYN)
OPTIONAL: Final = Type(Kind.OPAQUE, "optional_type", (DYN,))
URL: Final = Type(Kind.STRUCT, "kubernetes.URL")
QUANTITY: Final = Type(Kind.STRUCT, "kubernetes.Quantity")
SEMVER: Final = Type(Kind.STRUCT, "kubernetes.Semver")
FORMAT: Final = Type(Kind.STRUCT, "kubernetes.NamedFormat")
AUTHORIZER: Final = Type(Kind.STRUCT, "kubernetes.authorization.Authorizer")
PATH_CHECK: Final = Type(Kind.STRUCT, "kubernetes.authorization.PathCheck")
GROUP_CHECK: Final = Type(Kind.STRUCT, "kubernetes.authorization.GroupCheck")
RESOURCE_CHECK: Final = Type(Kind.STRUCT, "kubernetes.authorization.ResourceCheck")
DECISION: Final = Type(Kind.STRUCT, "kubernetes.authorization.Decision")
IP: Final = Type(Kind.OPAQUE, "net.IP")
CIDR: Final = Type(Kind.OPAQUE, "net.CIDR")

_SHORT_NAMES: Final = {
    Kind.DURATION: "duration",
    Kind.TIMESTAMP: "timestamp",
    Kind.ERROR: "!error!",
    Kind.NULL: "null",
}


def display(one: Type) -> str:
    """The type as error messages name it (checker.FormatCELType)."""
    if one.kind in _SHORT_NAMES:
        return _SHORT_NAMES[one.kind]
    if not one.params:
        return f"wrapper({one.name})" if one.wraps else one.name
    return f"{one.name}({', '.join(map(display, one.params))})"


def is_optional(one: Type) -> bool:
    return one.kind is Kind.OPAQUE and one.name == "optional_type"


def is_dyn_or_error(one: Type) -> bool:
    return one.kind is Kind.DYN or one.kind is Kind.ERROR


class Substitution:
    """What the type parameters stand for so far (checker's mapping), with the rules of assignability on top.

    Trying leaves no trace unless it succeeds.
    """

    __slots__ = ("bound", "fresh")

    def __init__(self) -> None:
        self.bound: dict[str, Type] = {}
        self.fresh = 0

    def new_param(self) -> Type:
        self.fresh += 1
        return param(f"_var{self.fresh - 1}")

    def resolve(self, one: Type, *, unbound_as_dyn: bool = False) -> Type:
        """The type with everything known put in."""
        if not one.generic:
            return one
        if one.kind is Kind.PARAM:
            known = self.bound.get(one.name)
            if known is not None:
                return self.resolve(known, unbound_as_dyn=unbound_as_dyn)
            return DYN if unbound_as_dyn else one
        params = tuple(self.resolve(inner, unbound_as_dyn=unbound_as_dyn) for inner in one.params)
        return Type(one.kind, one.name, params, one.declaration)

    def assignable(self, to: Type, given: Type) -> bool:
        """May `given` stand where `to` is wanted? Binds parameters if so."""
        if not to.generic and not given.generic:
            return self._assignable(to, given)
        before = self.bound.copy()
        if self._assignable(to, given):
            return True
        self.bound = before
        return False

    def all_assignable(self, to: tuple[Type, ...], given: tuple[Type, ...]) -> bool:
        if len(to) != len(given):
            return False
        before = self.bound.copy()
        if all(self._assignable(one, other) for one, other in zip(to, given, strict=True)):
            return True
        self.bound = before
        return False

    def _assignable(self, one: Type, other: Type) -> bool:
        if other.kind is Kind.PARAM:
            valid, substituted = self._bind(one, other)
            if valid:
                return True
            if substituted:
                return False
        if one.kind is Kind.PARAM:
            return self._bind(other, one)[0]
        if is_dyn_or_error(one) or is_dyn_or_error(other):
            return True
        if one.kind is Kind.NULL:
            return _nullable(other)
        if other.kind is Kind.NULL:
            return _nullable(one)
        if one.kind is Kind.TYPE:
            return other.kind is Kind.TYPE
        if one.kind is not other.kind or one.name != other.name:
            return False
        if len(one.params) != len(other.params):
            return False
        return all(self._assignable(a, b) for a, b in zip(one.params, other.params, strict=True))

    def _bind(self, one: Type, parameter: Type) -> tuple[bool, bool]:
        """(may `parameter` stand for `one`?, did it already stand for something?)"""
        if one == parameter:
            return True, True
        known = self.bound.get(parameter.name)
        if known is not None:
            if one == known:
                return True, True
            if not self._assignable(one, known):
                return False, True
            general = most_general(one, known)
            if self._independent(parameter, general):
                self.bound[parameter.name] = general
            return True, True
        if self._independent(parameter, one):
            self.bound[parameter.name] = one
            return True, False
        return False, False

    def _independent(self, parameter: Type, within: Type) -> bool:
        """`parameter` does not occur in `within`."""
        if parameter == within:
            return False
        if within.kind is Kind.PARAM:
            known = self.bound.get(within.name)
            return known is None or self._independent(parameter, known)
        return all(self._independent(parameter, inner) for inner in within.params)


def _nullable(one: Type) -> bool:
    return (one.wraps and not one.params) or one.kind in (
        Kind.NULL,
        Kind.OPAQUE,
        Kind.STRUCT,
        Kind.DURATION,
        Kind.TIMESTAMP,
    )


def most_general(one: Type, other: Type) -> Type:
    return one if _less_specific(one, other) else other


def _less_specific(one: Type, other: Type) -> bool:
    """`one` is equal to `other` or less specific."""
    if one.kind in (Kind.DYN, Kind.PARAM):
        return True
    if other.kind in (Kind.DYN, Kind.PARAM) or one.kind is not other.kind:
        return False
    if one.kind in (Kind.OPAQUE, Kind.LIST, Kind.MAP):
        if one.name != other.name or len(one.params) != len(other.params):
            return False
        return all(_less_specific(a, b) for a, b in zip(one.params, other.params, strict=True))
    return one.kind is Kind.TYPE or one == other
