"""CEL types as the checker knows them (cel-go's common/types/types.go).

Types are compared by value. An object type is identified by its name; its fields are in its `Declaration`.

`Substitution` decides which types are assignable to which, and binds type parameters to types (cel-go's
checker/types.go and mapping.go).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Protocol


class TypeKind(IntEnum):
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
        kind: TypeKind,
        name: str,
        params: tuple[Type, ...] = (),
        declaration: Declaration | None = None,
        nullable_wrapper: bool = False,
    ) -> None:
        self.kind = kind
        self.name = name
        self.params = params
        self.declaration = declaration
        self.generic: bool = kind is TypeKind.PARAM or any(param.generic for param in params)
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


DYN: Final = Type(TypeKind.DYN, "dyn")
ERROR: Final = Type(TypeKind.ERROR, "error")
BOOL: Final = Type(TypeKind.BOOL, "bool")
BYTES: Final = Type(TypeKind.BYTES, "bytes")
DOUBLE: Final = Type(TypeKind.DOUBLE, "double")
DURATION: Final = Type(TypeKind.DURATION, "google.protobuf.Duration")
INT: Final = Type(TypeKind.INT, "int")
NULL: Final = Type(TypeKind.NULL, "null_type")
STRING: Final = Type(TypeKind.STRING, "string")
TIMESTAMP: Final = Type(TypeKind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE: Final = Type(TypeKind.TYPE, "type")
UINT: Final = Type(TypeKind.UINT, "uint")


def list_of(element: Type) -> Type:
    return Type(TypeKind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(TypeKind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(TypeKind.OPAQUE, "optional_type", (value,))


def type_of(instance: Type) -> Type:
    return Type(TypeKind.TYPE, "type", (instance,))


def wrapper_of(scalar: Type) -> Type:
    return Type(scalar.kind, scalar.name, nullable_wrapper=True)


def param(name: str) -> Type:
    return Type(TypeKind.PARAM, name)


LIST: Final = list_of(DYN)
MAP: Final = map_of(DYN, DYN)
OPTIONAL: Final = Type(TypeKind.OPAQUE, "optional_type", (DYN,))
URL: Final = Type(TypeKind.STRUCT, "kubernetes.URL")
QUANTITY: Final = Type(TypeKind.STRUCT, "kubernetes.Quantity")
SEMVER: Final = Type(TypeKind.STRUCT, "kubernetes.Semver")
FORMAT: Final = Type(TypeKind.STRUCT, "kubernetes.NamedFormat")
AUTHORIZER: Final = Type(TypeKind.STRUCT, "kubernetes.authorization.Authorizer")
PATH_CHECK: Final = Type(TypeKind.STRUCT, "kubernetes.authorization.PathCheck")
GROUP_CHECK: Final = Type(TypeKind.STRUCT, "kubernetes.authorization.GroupCheck")
RESOURCE_CHECK: Final = Type(TypeKind.STRUCT, "kubernetes.authorization.ResourceCheck")
DECISION: Final = Type(TypeKind.STRUCT, "kubernetes.authorization.Decision")
IP: Final = Type(TypeKind.OPAQUE, "net.IP")
CIDR: Final = Type(TypeKind.OPAQUE, "net.CIDR")

_SHORT_NAMES: Final = {
    TypeKind.DURATION: "duration",
    TypeKind.TIMESTAMP: "timestamp",
    TypeKind.ERROR: "!error!",
    TypeKind.NULL: "null",
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
    if not type_.params or type_.kind is TypeKind.TYPE:
        return type_.name
    return f"{type_.name}({', '.join(map(runtime_name, type_.params))})"


def is_optional(type_: Type) -> bool:
    return type_.kind is TypeKind.OPAQUE and type_.name == "optional_type"


def is_dyn_or_error(type_: Type) -> bool:
    return type_.kind is TypeKind.DYN or type_.kind is TypeKind.ERROR


class Substitution:
    """The types bound to type parameters so far (cel-go's mapping).

        assignable(list(A), list(int))   →   True, and A is bound to int

    An attempt that fails leaves the bindings unchanged.
    """

    __slots__ = ("bound", "fresh")

    def __init__(self) -> None:
        self.bound: dict[str, Type] = {}
        self.fresh = 0

    def new_param(self) -> Type:
        self.fresh += 1
        return param(f"_var{self.fresh - 1}")

    def resolve(self, type_: Type, *, unbound_as_dyn: bool = False) -> Type:
        """The type with its bound parameters replaced."""
        if not type_.generic:
            return type_
        if type_.kind is TypeKind.PARAM:
            bound = self.bound.get(type_.name)
            if bound is not None:
                return self.resolve(bound, unbound_as_dyn=unbound_as_dyn)
            return DYN if unbound_as_dyn else type_
        params = tuple(self.resolve(inner, unbound_as_dyn=unbound_as_dyn) for inner in type_.params)
        return Type(type_.kind, type_.name, params, type_.declaration)

    def assignable(self, to: Type, actual: Type) -> bool:
        """Whether `actual` may stand where `to` is expected. Binds parameters if so."""
        if not to.generic and not actual.generic:
            return self._assignable(to, actual)
        before = self.bound.copy()
        if self._assignable(to, actual):
            return True
        self.bound = before
        return False

    def all_assignable(self, to: tuple[Type, ...], actual: tuple[Type, ...]) -> bool:
        if len(to) != len(actual):
            return False
        before = self.bound.copy()
        if all(self._assignable(left, right) for left, right in zip(to, actual, strict=True)):
            return True
        self.bound = before
        return False

    def _assignable(self, left: Type, right: Type) -> bool:
        if right.kind is TypeKind.PARAM:
            valid, substituted = self._bind(left, right)
            if valid:
                return True
            if substituted:
                return False
        if left.kind is TypeKind.PARAM:
            return self._bind(right, left)[0]
        if is_dyn_or_error(left) or is_dyn_or_error(right):
            return True
        if left.kind is TypeKind.NULL:
            return _accepts_null(right)
        if right.kind is TypeKind.NULL:
            return _accepts_null(left)
        if left.kind is TypeKind.TYPE:
            return right.kind is TypeKind.TYPE
        if left.kind is not right.kind or left.name != right.name:
            return False
        if len(left.params) != len(right.params):
            return False
        return all(self._assignable(a, b) for a, b in zip(left.params, right.params, strict=True))

    def _bind(self, type_: Type, parameter: Type) -> tuple[bool, bool]:
        """Let `parameter` stand for the type: (whether it may, whether it was bound before)."""
        if type_ == parameter:
            return True, True
        bound = self.bound.get(parameter.name)
        if bound is not None:
            if type_ == bound:
                return True, True
            if not self._assignable(type_, bound):
                return False, True
            general = most_general(type_, bound)
            if self._independent(parameter, general):
                self.bound[parameter.name] = general
            return True, True
        if self._independent(parameter, type_):
            self.bound[parameter.name] = type_
            return True, False
        return False, False

    def _independent(self, parameter: Type, within: Type) -> bool:
        """Whether `parameter` does not occur in `within`."""
        if parameter == within:
            return False
        if within.kind is TypeKind.PARAM:
            bound = self.bound.get(within.name)
            return bound is None or self._independent(parameter, bound)
        return all(self._independent(parameter, inner) for inner in within.params)


def _accepts_null(type_: Type) -> bool:
    return (type_.nullable_wrapper and not type_.params) or type_.kind in (
        TypeKind.NULL,
        TypeKind.OPAQUE,
        TypeKind.STRUCT,
        TypeKind.DURATION,
        TypeKind.TIMESTAMP,
    )


def most_general(left: Type, right: Type) -> Type:
    return left if _equal_or_less_specific(left, right) else right


def _equal_or_less_specific(left: Type, right: Type) -> bool:
    if left.kind in (TypeKind.DYN, TypeKind.PARAM):
        return True
    if right.kind in (TypeKind.DYN, TypeKind.PARAM) or left.kind is not right.kind:
        return False
    if left.kind in (TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP):
        if left.name != right.name or len(left.params) != len(right.params):
            return False
        return all(_equal_or_less_specific(a, b) for a, b in zip(left.params, right.params, strict=True))
    return left.kind is TypeKind.TYPE or left == right
