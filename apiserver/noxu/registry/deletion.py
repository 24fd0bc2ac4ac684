"""Delete many objects: those of a list, or all objects of a resource, in one namespace or in all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from noxu.api.errors import ApiError
from noxu.registry.draft import Outcome, Preconditions, WriteRequest
from noxu.registry.offload import offload
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.stored_object import render
from noxu.registry.writer import Writer
from noxu_storage.types import Key

BATCH_SIZE: Final = 64  # deletions at a time, which share commits


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
                outcome.warnings += own.warnings

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
                await persistence.remove(entry)
            else:
                readable.setdefault(stored or request.resource, []).append(entry.key)
        for version, batch in readable.items():
            await delete_keys(writer, request._replace(resource=version), batch)
