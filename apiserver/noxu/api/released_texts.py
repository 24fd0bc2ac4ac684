"""Texts of field errors by release: what an older release of Kubernetes says instead of the newest one.

From upstream's files at the tags of the releases: pkg/apis/apiextensions/validation and pkg/apiserver/validation of
k8s.io/apiextensions-apiserver, pkg/api/validation, pkg/apis/meta/v1/validation and pkg/util/validation/field of
k8s.io/apimachinery. Rules and walkers give the texts of the newest release; an older one replaces them when an object is
refused, so nothing here is imported for the newest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from noxu.api.field import FieldError, Reason
from noxu.expressions import expression

_OWNER: Final = r"metadata\.ownerReferences\[\d+\]\."
_RULE: Final = r"\.x-kubernetes-validations\[\d+\]\."
_MANAGER: Final = r"metadata\.managedFields\[\d+\]\.operation"
_INVALID: Final[Reason] = "FieldValueInvalid"
_REQUIRED: Final[Reason] = "FieldValueRequired"


class ReleasedText(NamedTuple):
    """The detail of an error up to the release `until`; the first row counts that matches reason, field and detail.

    `field` is searched for, `newest` is the whole detail. In `older`, `{0}` is the last name of the field, `{1}` what the
    group of `newest` has. `reason`: another one, with the value, which is "" if the newest release shows none. `custom`: only
    for custom resources, or only for others.
    """

    until: int
    reasons: tuple[Reason, ...]
    field: str
    newest: str
    older: str
    reason: Reason | None = None
    custom: bool | None = None


TEXTS: Final = (
    ReleasedText(31, ("FieldValueTooLong",), r"^metadata\.", r"may not be more than (\d+) bytes?", "must have at most {1} bytes"),
    ReleasedText(31, ("FieldValueTooLong",), "", r"may not be more than (\d+) bytes?", "may not be longer than {1}", custom=True),
    ReleasedText(32, (_INVALID,), r"^status\.storedVersions\[\d+\]$", r"missing from spec\.versions; (.*)", "must appear in spec.versions"),
    ReleasedText(33, ("FieldValueTooLong",), "", r"may not be more than 1 byte()", "may not be more than 1 bytes"),
    ReleasedText(33, ("FieldValueTooMany",), "", r"must have at most 1 item()", "must have at most 1 items"),
    ReleasedText(33, (_INVALID,), rf"{_RULE}(message|fieldPath)$", r"(must (?:be non-empty if specified|not contain line breaks|be a valid path))", "{0} {1}"),
    ReleasedText(33, (_REQUIRED,), r"^spec\.versions\[\d+\]\.schema\.openAPIV3Schema$", "()", "schemas are required", custom=False),
    ReleasedText(33, (_INVALID,), r"\bselectableFields$", r"may only be set when `(version\.schema\.openAPIV3Schema)` is not included", "selectableFields may only be set when {1} is not included"),
    ReleasedText(33, (_INVALID,), r"\bselectableFields$", r"(may only be set when validations\.schema is included)", "selectableFields {1}"),
    ReleasedText(33, (_REQUIRED,), rf"{_OWNER}(kind|name|uid)$", "(must not be empty)", "{0} {1}", _INVALID),
    ReleasedText(36, (_REQUIRED,), rf"{_OWNER}(kind|name|uid)$", "(must not be empty)", "{1}", _INVALID),
    ReleasedText(36, (_REQUIRED,), rf"{_OWNER}apiVersion$", "(must not be empty)", "version {1}", _INVALID),
    ReleasedText(36, (_REQUIRED, "FieldValueNotSupported"), f"{_MANAGER}$", "(.*)", "must be `Apply` or `Update`", _INVALID),
)  # fmt: skip
"""In the order of the last releases that have them."""


def of_release(errors: Iterable[FieldError], release: int, *, custom: bool) -> list[FieldError]:
    """The errors as a release reports them. `custom`: they are about a custom resource."""
    return [_of_release(error, release, custom=custom) for error in errors]


def _of_release(error: FieldError, release: int, *, custom: bool) -> FieldError:
    for text in TEXTS:
        if release > text.until or error.reason not in text.reasons or text.custom not in (None, custom):
            continue
        found = expression(text.newest).fullmatch(error.detail)
        if found and expression(text.field).search(error.field):
            detail = text.older.format(error.field.rpartition(".")[2], found[1])
            if text.reason is None:
                return error._replace(detail=detail)
            value = "" if error.reason == _REQUIRED else error.value
            return FieldError(text.reason, error.field, value, detail)
    return error
