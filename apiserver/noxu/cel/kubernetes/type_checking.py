"""Checks expressions of a policy with the types of the objects that it applies to (upstream's policy/validating/typechecking.go).

When a policy is evaluated, its objects are dyn. Here `object`, `oldObject` and `params` have the types of their schemas.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from noxu.api.meta import OBJECT_META
from noxu.cel.kubernetes.admission import OBJECT, OLD_OBJECT, PARAMS, Composition, Declared, environment
from noxu.cel.program import Program
from noxu.cel.syntax.source import CompileError
from noxu.cel.types import types
from noxu.cel.types.schema_types import DeclType, decl_type
from noxu.cel.types.types import Type
from noxu.go.structs import List, Map, Scalar, Struct, Union, Wire
from noxu.go.structs import Type as StructType
from noxu.schema.structural import Structural

_MAX_DEPTH: Final = 64  # of a struct's type: a type that contains itself has no schema


class TypeChecker:
    """Checks the expressions of a policy for one type of objects."""

    def __init__(
        self,
        object_type: Type,
        variables: Iterable[tuple[str, str]],
        *,
        has_params: bool = False,
        params_type: Type | None = None,
    ) -> None:
        """`variables` are the names and expressions of the policy's. `params_type` is None if it is not known."""
        declared = Declared(has_params)
        names = {OBJECT: object_type, OLD_OBJECT: object_type}
        if has_params:
            names[PARAMS] = params_type or types.DYN
        base = environment(declared).extend(names)
        self._environment = Composition(variables, params=has_params, base=base).environment(declared)

    def error(self, text: str) -> str:
        """What keeps an expression from being compiled, "" if nothing does."""
        try:
            Program(text, self._environment)
        except CompileError as error:
            return str(error)
        return ""


def object_type(kind: str, *, struct: Struct | None = None, schema: Structural | None = None) -> Type | None:
    """The type of the objects of a kind, built-in (`struct`) or custom (`schema`); None if there is no schema for them."""
    if struct is not None:
        declared = _struct_type(struct)
    else:
        declared = None if schema is None else decl_type(schema, is_root=True)
        if declared is not None and declared.fields is not None:
            metadata = _struct_type(OBJECT_META)
            assert metadata is not None
            declared = DeclType(fields={**declared.fields, "metadata": metadata})
    return None if declared is None else declared.named(f"{kind}1")  # upstream appends a number


_SCALARS: Final = {
    Wire.STRING: types.STRING,
    Wire.BOOL: types.BOOL,
    Wire.INT32: types.INT,
    Wire.INT64: types.INT,
    Wire.DOUBLE: types.DOUBLE,
    Wire.BYTES: types.BYTES,
    Wire.TIME: types.TIMESTAMP,
    Wire.MICRO_TIME: types.TIMESTAMP,
    Wire.INT_OR_STRING: types.DYN,
    Wire.QUANTITY: types.DYN,
    Wire.DURATION: types.STRING,
}


@lru_cache(64)
def _struct_type(struct: Struct) -> DeclType | None:
    try:
        return _declare(struct, 0)
    except RecursionError:
        return None


def _declare(type_: StructType, depth: int) -> DeclType | None:
    """The type as OpenAPI describes it, None if it does not. Raises RecursionError for a type that contains itself."""
    if depth > _MAX_DEPTH:
        raise RecursionError
    if isinstance(type_, Scalar):
        if type_.wire is Wire.JSON:
            return DeclType(fields={})
        return DeclType(_SCALARS[type_.wire])
    if isinstance(type_, Union):
        return None
    if isinstance(type_, (List, Map)):
        element = _declare(type_.element, depth + 1)
        return None if element is None else DeclType(element=element, is_map=isinstance(type_, Map))
    fields = {name: _declare(field.type, depth + 1) for name, field in type_.fields.items()}
    return DeclType(fields={name: declared for name, declared in fields.items() if declared is not None})
