"""`noxu lint`: whether a server would accept a CRD, and automatic fixes for one that it would refuse."""

from __future__ import annotations

from typing import NamedTuple

from noxu.apiserver.api.field import OMIT, ROOT, FieldError, forbidden, invalid, not_supported
from noxu.apiserver.crd import types, v1beta1
from noxu.apiserver.crd.defaults import default
from noxu.apiserver.crd.schemas import RuleCheckers
from noxu.apiserver.crd.update import prepare_for_create
from noxu.apiserver.crd.validation import validate
from noxu.apiserver.go.structs import Decoded
from noxu.apiserver.schema.completion import Note
from noxu.apiserver.values import Json, Object


class Fixed(NamedTuple):
    """`crd` is a v1 CRD, None if violations are left that cannot be fixed automatically."""

    crd: Object | None
    notes: list[Note]
    violations: list[FieldError]


def lint_crd(crd: Json, *, checkers: RuleCheckers | None = None) -> list[FieldError]:
    """The errors in a v1 or v1beta1 CRD as JSON; a v1beta1 CRD is validated as v1."""
    if wrong := _type_errors(crd):
        return wrong
    decoded = _decode(crd)
    if decoded.error:
        return [invalid(ROOT, OMIT, decoded.error)]
    value = v1beta1.upgrade(decoded.value) if v1beta1.is_v1beta1(crd) else default(decoded.value)
    unknown = [forbidden(path, "unknown field") for path in decoded.unknown]
    return unknown + validate(prepare_for_create(value), checkers=checkers)


def fix(crd: Json, *, checkers: RuleCheckers | None = None) -> Fixed:
    """Convert a v1 or v1beta1 CRD as JSON to a v1 CRD without violations."""
    decoded = _decode(crd)
    if decoded.error or _type_errors(crd):
        return Fixed(None, [], lint_crd(crd))
    if v1beta1.is_v1beta1(crd):
        value, notes = v1beta1.convert(decoded.value)
        notes.insert(0, Note("apiVersion", f"{v1beta1.API_VERSION} became {types.API_VERSION}"))
    else:
        value, notes = v1beta1.complete_schemas(default(decoded.value))
    notes += [Note(path, "unknown field dropped") for path in decoded.unknown]
    fixed = types.written(types.decode(value).value)
    violations = lint_crd(fixed, checkers=checkers)
    return Fixed(None if violations else fixed, notes, violations)


def _type_errors(crd: Json) -> list[FieldError]:
    if not isinstance(crd, dict):
        return []
    expected = {"apiVersion": [types.API_VERSION, v1beta1.API_VERSION], "kind": [types.KIND]}
    return [
        not_supported(name, crd.get(name, ""), values)
        for name, values in expected.items()
        if crd.get(name) not in values
    ]


def _decode(crd: Json) -> Decoded:
    return v1beta1.decode(crd) if v1beta1.is_v1beta1(crd) else types.decode(crd)
