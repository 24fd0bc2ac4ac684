"""Texts of errors in older releases of Kubernetes."""

from __future__ import annotations

from typing import Final

from noxu.api.field import FieldError, invalid, not_supported, required, too_long, too_many
from noxu.api.released_texts import of_release
from noxu.releases import NEWEST, OLDEST
from tests.rows import rows

RULE: Final = "spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[1]"
OWNER: Final = "metadata.ownerReferences[0]"


@rows(
    ("error", "custom", "texts"),
    [
        (
            too_long("metadata.annotations", 262144),
            False,
            {31: "must have at most 262144 bytes", 32: "may not be more than 262144 bytes"},
        ),
        (too_long("spec.name", 1), True, {31: "may not be longer than 1", 33: "may not be more than 1 bytes", 34: "may not be more than 1 byte"}),
        (too_many("spec.names", 2, 1), True, {33: "must have at most 1 items", 34: "must have at most 1 item"}),
        (
            invalid("status.storedVersions[0]", "v1", "missing from spec.versions; v1 was previously a storage version"),
            False,
            {32: "must appear in spec.versions", 33: "missing from spec.versions; v1 was previously a storage version"},
        ),
        (
            invalid(f"{RULE}.message", "", "must be non-empty if specified"),
            False,
            {33: "message must be non-empty if specified", 34: "must be non-empty if specified"},
        ),
        (
            invalid(f"{RULE}.fieldPath", "\n", "must not contain line breaks"),
            False,
            {33: "fieldPath must not contain line breaks", 34: "must not contain line breaks"},
        ),
        (
            invalid("spec.validations[0].message", "", "must be non-empty if specified"),
            False,
            {33: "must be non-empty if specified"},
        ),
        (required("spec.versions[0].schema.openAPIV3Schema"), False, {33: "schemas are required", 34: ""}),
        (required("spec.versions[0].schema.openAPIV3Schema"), True, {33: ""}),
        (
            invalid("spec.versions[0].selectableFields", "", "may only be set when `version.schema.openAPIV3Schema` is not included"),
            False,
            {
                33: "selectableFields may only be set when version.schema.openAPIV3Schema is not included",
                34: "may only be set when `version.schema.openAPIV3Schema` is not included",
            },
        ),
    ],
)  # fmt: skip
def test_an_older_release_has_its_own_text(error: FieldError, custom: bool, texts: dict[int, str]) -> None:
    for release, text in texts.items():
        (found,) = of_release([error], release, custom=custom)
        assert found == error._replace(detail=text), release


@rows(
    ("error", "bodies"),
    [
        (
            required(f"{OWNER}.kind", "must not be empty"),
            {33: 'Invalid value: "": kind must not be empty', 34: 'Invalid value: "": must not be empty', 37: "Required value: must not be empty"},
        ),
        (
            required(f"{OWNER}.apiVersion", "must not be empty"),
            {29: 'Invalid value: "": version must not be empty', 36: 'Invalid value: "": version must not be empty'},
        ),
        (
            required("metadata.managedFields[0].operation", "must not be empty"),
            {36: 'Invalid value: "": must be `Apply` or `Update`', 37: "Required value: must not be empty"},
        ),
        (
            not_supported("metadata.managedFields[0].operation", "Patch", ["Apply", "Update"]),
            {36: 'Invalid value: "Patch": must be `Apply` or `Update`', 37: 'Unsupported value: "Patch": supported values: "Apply", "Update"'},
        ),
    ],
)  # fmt: skip
def test_an_older_release_has_another_type_of_error(error: FieldError, bodies: dict[int, str]) -> None:
    assert {release: of_release([error], release, custom=False)[0].body for release in bodies} == bodies


def test_other_errors_are_the_same_in_each_release() -> None:
    error = invalid("spec.size", 3, "should be less than or equal to 2")
    assert all(of_release([error], release, custom=True) == [error] for release in range(OLDEST, NEWEST + 1))
