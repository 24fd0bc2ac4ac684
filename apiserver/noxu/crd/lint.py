"""`noxu lint`: whether a server would accept a CRD, and automatic fixes for one that it would refuse."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final, NamedTuple

from noxu.api.field import OMIT, ROOT, FieldError, Path, invalid, not_supported
from noxu.crd import types, upgrades, v1beta1
from noxu.crd.defaults import default
from noxu.crd.schemas import RuleCheckers
from noxu.crd.unknown import unknown_fields
from noxu.crd.update import prepare_for_create, prepare_for_update
from noxu.crd.validation import validate, validate_update
from noxu.go.structs import Decoded
from noxu.schema.completion import Note
from noxu.schema.lint import Remark, incomplete
from noxu.schema.lint import remarks as schema_remarks
from noxu.schema.narrowing import Narrowing
from noxu.schema.structural import NoStructuralForm, Structural, parse
from noxu.values import Json, Object


class Fixed(NamedTuple):
    """`crd` is a v1 CRD, None if violations are left that cannot be fixed automatically."""

    crd: Object | None
    notes: list[Note]
    violations: list[FieldError]


def lint_crd(crd: Json, *, checkers: RuleCheckers | None = None, old: Json = None) -> list[FieldError]:
    """The errors in a v1 or v1beta1 CRD as JSON; a v1beta1 CRD is validated as v1.

    With `old`, the former CRD, they are those of an update, which may keep some errors.
    """
    if wrong := _type_errors(crd):
        return wrong
    decoded = _decode(crd)
    if decoded.error:
        return [invalid(ROOT, OMIT, decoded.error)]
    unknown = [found.error for found in unknown_fields(crd)]
    value, before = _upgraded(crd, decoded), None if old is None else _former(old)
    if before is None:
        return unknown + validate(prepare_for_create(value), checkers=checkers)
    value = {**value, "metadata": {**value["metadata"], "resourceVersion": "1"}}
    return unknown + validate_update(prepare_for_update(value, before), before, checkers=checkers)


def _upgraded(crd: Json, decoded: Decoded) -> Object:
    return v1beta1.upgrade(decoded.value) if v1beta1.is_v1beta1(crd) else default(decoded.value)


def _former(crd: Json) -> Object | None:
    """A former CRD as it is stored and established, None if it is unreadable."""
    decoded = _decode(crd)
    if _type_errors(crd) or decoded.error:
        return None
    stored = prepare_for_create(_upgraded(crd, decoded))
    established = {"type": "Established", "status": "True"}
    metadata = {**stored["metadata"], "resourceVersion": "1"}
    return {**stored, "metadata": metadata, "status": {**stored["status"], "conditions": [established]}}


def as_v1(crd: Json) -> Object | None:
    """A CRD in the form of v1 with its defaults, None if it is unreadable."""
    if not isinstance(crd, dict) or _type_errors(crd):
        return None
    decoded = _decode(crd)
    return None if decoded.error else _upgraded(crd, decoded)


def upgrade(old: Json, new: Json) -> list[Narrowing]:
    """What the new CRD no longer serves, keeps or accepts (see `upgrades`); nothing if one of them is unreadable."""
    before, now = as_v1(old), as_v1(new)
    return [] if before is None or now is None else upgrades.narrowings(before, now)


def more_errors(crd: Json) -> list[FieldError]:
    """Errors in the schemas of a CRD that servers do not report (see `schema.lint.incomplete`)."""
    return [error for schema, path in _structural(crd) for error in incomplete(schema, path)]


def remarks(crd: Json) -> list[Remark]:
    """Warnings about the schemas of a CRD."""
    return [remark for schema, path in _structural(crd) for remark in schema_remarks(schema, path)]


def _structural(crd: Json) -> list[tuple[Structural, Path]]:
    """The structural schemas of a CRD with their paths, as written: of v1beta1 the one of all versions once."""
    decoded = _decode(crd)
    if _type_errors(crd) or decoded.error:
        return []
    spec = decoded.value["spec"]
    holders = [(spec.get("validation"), "spec.validation")]
    holders += [(each.get("schema"), f"spec.versions[{n}].schema") for n, each in enumerate(spec.get("versions") or [])]
    found = []
    for holder, path in holders:
        if holder is not None and holder.get("openAPIV3Schema") is not None:
            with suppress(NoStructuralForm):
                found.append((parse(holder["openAPIV3Schema"]), f"{path}.openAPIV3Schema"))
    return found


_HOISTED: Final = {
    "validation": "schema",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Fields of the spec that apply to all versions, and their names in a version."""


def as_written(crd: Object, path: Path) -> Path:
    """The path in a CRD of a field that an error is about.

    Errors have the paths of the internal form, where what all versions share is in the spec, or of v1:

        spec.validation.openAPIV3Schema    spec.versions[0].schema.openAPIV3Schema     in v1
        spec.versions[0].subresources      spec.subresources                           in v1beta1
    """
    spec = crd.get("spec")
    parts = _HOISTABLE.fullmatch(path)
    if parts is None or not isinstance(spec, dict):
        return path
    version, name, rest = parts.groups()
    rest = rest.replace(".JSONPath", ".jsonPath") if not v1beta1.is_v1beta1(crd) else rest
    if version is None:
        return f"spec.{name}{rest}" if name in spec else f"spec.versions[0].{_HOISTED.get(name, name)}{rest}"
    top = next((top for top, inner in _HOISTED.items() if inner == name), name)
    return f"spec.{top}{rest}" if top in spec else f"spec.{version}{name}{rest}"


_HOISTABLE: Final = re.compile(rf"spec\.(versions\[\d+\]\.)?({'|'.join([*_HOISTED, 'schema'])})\b(.*)", re.DOTALL)


def fix(crd: Json, *, checkers: RuleCheckers | None = None, drop_unknown: bool = False) -> Fixed:
    """Convert a v1 or v1beta1 CRD as JSON to a v1 CRD without violations.

    A CRD with unknown fields has no such form: they may be misspelt, and nothing is dropped that is not understood.
    `drop_unknown`: drop them, as servers do.
    """
    decoded = _decode(crd)
    if decoded.error or _type_errors(crd):
        return Fixed(None, [], lint_crd(crd))
    unknown = unknown_fields(crd)
    if v1beta1.is_v1beta1(crd):
        value, notes = v1beta1.convert(decoded.value)
        notes.insert(0, Note("apiVersion", f"{v1beta1.API_VERSION} became {types.API_VERSION}"))
    else:
        value, notes = v1beta1.complete_schemas(default(decoded.value))
    fixed = types.written(types.decode(value).value)
    violations = lint_crd(fixed, checkers=checkers)
    if drop_unknown:
        notes += [Note(found.path, "unknown field dropped") for found in unknown]
    else:
        violations = [found.error for found in unknown] + violations
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
