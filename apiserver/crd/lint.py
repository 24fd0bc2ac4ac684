"""`noxu lint`: would a server take this CRD, and if not, is there only one way to mend it?"""

from __future__ import annotations

from typing import NamedTuple

from apiserver.api.field import OMIT, ROOT, FieldError, forbidden, invalid, not_supported
from apiserver.api.structs import Decoded
from apiserver.api.types import Json, Object
from apiserver.crd import types, v1beta1
from apiserver.crd.defaults import default
from apiserver.crd.schemas import RuleCheckers
from apiserver.crd.update import prepare_for_create
from apiserver.crd.validation import validate
from apiserver.schema.completion import Note


class Fixed(NamedTuple):
    """`crd` is v1, as it is written; None if there are violations left, to which there is no automatic answer."""

    crd: Object | None
    notes: list[Note]
    violations: list[FieldError]


def lint_crd(crd: Json, *, checkers: RuleCheckers | None = None) -> list[FieldError]:
    """What is wrong with a v1 or v1beta1 CRD as JSON; of a v1beta1 CRD, what v1 would say to it."""
    if wrong := _type_errors(crd):
        return wrong
    decoded = _decode(crd)
    if decoded.error:
        return [invalid(ROOT, OMIT, decoded.error)]
    value = v1beta1.upgrade(decoded.value) if v1beta1.is_v1beta1(crd) else default(decoded.value)
    unknown = [forbidden(path, "unknown field") for path in decoded.unknown]
    return unknown + validate(prepare_for_create(value), checkers=checkers)


def fix(crd: Json, *, checkers: RuleCheckers | None = None) -> Fixed:
    """A v1 CRD that lints clean, made from a v1 or v1beta1 CRD as JSON."""
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
