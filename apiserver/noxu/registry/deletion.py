"""Deletion: its options, and deleting many objects: those of a list, or of a resource in one namespace or in all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from noxu.api import errors, field
from noxu.api.errors import ApiError, Qualified
from noxu.api.field import FieldError
from noxu.registry.draft import DeleteOptions, Outcome, Preconditions, Writer, WriteRequest
from noxu.registry.offload import offload
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.stored_object import render
from noxu.values import Json, Object
from noxu_storage.types import Key

BATCH_SIZE: Final = 64  # deletions at a time, which share commits


# -- DeleteOptions: of a DELETE, and in an Eviction (apimachinery's ValidateDeleteOptions) ------------------------------

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


def delete_options(body: DeleteBody) -> DeleteOptions:
    """Validate DeleteOptions. Raises ApiError."""
    problems: list[FieldError] = []
    if body.orphan is not None and body.propagation is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        problems.append(field.invalid("propagationPolicy", field.as_json(body.propagation), text))
    if body.propagation is not None and body.propagation not in _PROPAGATION:
        propagation = field.as_json(body.propagation)
        problems.append(field.not_supported("propagationPolicy", propagation, [*_PROPAGATION, "nil"]))
    problems += dry_run_errors(body.dry_run)
    if problems:
        raise errors.invalid(Qualified("meta.k8s.io", "DeleteOptions"), "", problems)
    chosen = body.propagation or ""
    if body.orphan is not None:
        chosen = "Orphan" if body.orphan else "Background"
    preconditions = Preconditions(body.uid, body.resource_version)
    return DeleteOptions(bool(body.dry_run), chosen, preconditions, bool(body.corrupt_too), body.grace)


def dry_run_errors(dry_run: list[str]) -> list[FieldError]:
    if all(value == "All" for value in dry_run):
        return []
    return [field.not_supported("dryRun", dry_run, ["All"])]


# -- many objects --------------------------------------------------------------------------------------------------------


async def delete_keys(
    writer: Writer, request: WriteRequest, keys: Sequence[Key], outcome: Outcome | None = None
) -> None:
    """Delete objects as specified by `request`, in this order; objects that no longer exist are skipped.

    Upstream deletes one after another, and ends at the first error. Where no object can be refused, without preconditions
    and without admission, several at a time are the same. Raises the first ApiError or StoreError.
    """

    async def delete(key: Key) -> None:
        own = Outcome()
        try:
            await writer.write(request._replace(namespace=key.partition[:-1], name=key.name, of_collection=True), own)
        except ApiError as error:
            if error.reason != "NotFound":
                raise
        finally:
            if outcome is not None:
                outcome.warnings += own.warnings  # in the order of the answers: each deletion has its own outcome

    def none_is_refused() -> bool:
        environment = writer.environment
        is_admitted = request.internal or environment.admission.is_idle(environment.reader)
        return is_admitted and request.delete_options.preconditions == Preconditions()

    start = 0
    while batch := keys[start : start + (BATCH_SIZE if none_is_refused() else 1)]:
        start += len(batch)
        results = await asyncio.gather(*map(delete, batch), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result


async def delete_all(reader: Reader, writer: Writer, request: WriteRequest, namespace: str | None) -> None:
    """Delete every object of a resource (`namespace` None: everywhere). Raises ApiError, StoreError.

    `request` deletes one object; its resource is the storage version. Each object is deleted at its stored version, so no
    webhook converts it. Objects whose version no longer exists are removed without finalization, because their finalizers
    cannot be read.
    """
    collection = await reader.collection(request.resource)
    versions, persistence = request.resource.versions, writer.environment.persistence
    keys = list(collection.select(None if namespace is None else f"{namespace}/"))
    for start in range(0, len(keys), BATCH_SIZE):
        entries = [entry for key in keys[start : start + BATCH_SIZE] if (entry := collection.entries.get(key))]
        readable: dict[Resource, list[Key]] = {}
        for entry in entries:
            try:
                stored = (await offload(len(entry.stored), render, entry, versions)).resource
            except ApiError:
                await persistence.remove(entry)  # without stages: its finalizers cannot be read
            else:
                readable.setdefault(stored or request.resource, []).append(entry.key)
        for version, batch in readable.items():
            await delete_keys(writer, request._replace(resource=version), batch)
