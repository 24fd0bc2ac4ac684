"""CEL types as the checker knows them (cel-go's common/types/types.go).

Types are compared by value. An object type is identified by its name; its fields are in its `Declaration`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Protocol


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


class Declaration(Protocol):
    """What declares an object type and its fields: `noxu.cel.types.schema_types.DeclType`."""

    def named(self, name: str) -> Type:
        """The checker's type for it, under that name."""

    def find(self, name: str) -> tuple[str, Declaration] | None:
        """A field's identifier and declaration; None if there is no such field."""


class Type:
    """A type, with the types of its parameters: `list(int)`, `map(string, dyn)`, `optional_type(int)`.

    `name` is the runtime name. `declaration` lists the fields of a STRUCT that was made from a schema. `generic`: it
    contains a type parameter. `nullable_wrapper`: it is a wrapper of a scalar (google.protobuf.Int32Value …), which
    accepts null as well, or has such a parameter. A wrapper equals the type that it wraps.
    """

    __slots__ = ("_hash", "declaration", "generic", "kind", "name", "nullable_wrapper", "params")

    def __init__(
        self,
        kind: Kind,
        name: str,
        params: tuple[Type, ...] = (),
        declaration: Declaration | None = None,
        nullable_wrapper: bool = False,
    ) -> None:
        self.kind = kind
        self.name = name
        self.params = params
        self.declaration = declaration
        self.generic: bool = kind is Kind.PARAM or any(param.generic for param in params)
        self.nullable_wrapper: bool = nullable_wrapper or any(param.nullable_wrapper for param in params)
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
    return Type(scalar.kind, scalar.name, nullable_wrapper=True)


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


def display(type_: Type) -> str:
    """The type as error messages name it (checker.FormatCELType): `map(string, wrapper(int))`."""
    if type_.kind in _SHORT_NAMES:
        return _SHORT_NAMES[type_.kind]
    if not type_.params:
        return f"wrapper({type_.name})" if type_.nullable_wrapper else type_.name
    return f"{type_.name}({', '.join(map(display, type_.params))})"


def runtime_name(type_: Type) -> str:
    """The type with runtime names throughout, as cel-go's Type.String prints it: `list(google.protobuf.Duration)`."""
    if not type_.params or type_.kind is Kind.TYPE:
        return type_.name
    return f"{type_.name}({', '.join(map(runtime_name, type_.params))})"


def is_optional(type_: Type) -> bool:
    return type_.kind is Kind.OPAQUE and type_.name == "optional_type"


def is_dyn_or_error(type_: Type) -> bool:
    return type_.kind is Kind.DYN or type_.kind is Kind.ERROR
