"""DeleteOptions: of a DELETE, and in an Eviction (apimachinery's ValidateDeleteOptions)."""

from __future__ import annotations

from typing import Final, NamedTuple

from noxu.api import errors, field
from noxu.api.errors import Qualified
from noxu.api.field import FieldError
from noxu.registry.draft import DeleteOptions, Preconditions
from noxu.values import Json, Object

CORRUPT_TOO: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"
_PROPAGATION: Final = ("Foreground", "Background", "Orphan")


class DeleteBody(NamedTuple):
    """DeleteOptions before validation, from the body or the query. None: not given."""

    dry_run: list[str]
    propagation: str | None = None
    orphan: bool | None = None
    grace: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    corrupt_too: bool | None = None


def delete_body_from_object(value: Object) -> DeleteBody:
    preconditions: Json = value.get("preconditions") or {}
    return DeleteBody(
        value.get("dryRun") or [],
        value.get("propagationPolicy"),
        value.get("orphanDependents"),
        value.get("gracePeriodSeconds"),
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
        value.get(CORRUPT_TOO),
    )


def delete_options(given: DeleteBody) -> DeleteOptions:
    """Validate DeleteOptions. Raises ApiError."""
    found: list[FieldError] = []
    if given.orphan is not None and given.propagation is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        found.append(field.invalid("propagationPolicy", field.as_json(given.propagation), text))
    if given.propagation is not None and given.propagation not in _PROPAGATION:
        propagation = field.as_json(given.propagation)
        found.append(field.not_supported("propagationPolicy", propagation, [*_PROPAGATION, "nil"]))
    found += dry_run_errors(given.dry_run)
    if found:
        raise errors.invalid(Qualified("meta.k8s.io", "DeleteOptions"), "", found)
    chosen = given.propagation or ""
    if given.orphan is not None:
        chosen = "Orphan" if given.orphan else "Background"
    preconditions = Preconditions(given.uid, given.resource_version)
    return DeleteOptions(bool(given.dry_run), chosen, preconditions, bool(given.corrupt_too), given.grace)


def dry_run_errors(dry_run: list[str]) -> list[FieldError]:
    if all(value == "All" for value in dry_run):
        return []
    return [field.not_supported("dryRun", dry_run, ["All"])]
