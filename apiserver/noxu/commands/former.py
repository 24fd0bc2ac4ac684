"""The former objects of `--old`: in the store before the objects that update them.

They are created as on a server, which adds defaults, addresses and what admission adds. Those of a former CRD are created
before the new CRD replaces it, all others after that. An object that is refused now is stored as it is, without
validation: on a server it may be older than the rules. The same is true of its status, which nobody creates. What cannot be
stored (an unreadable document, a refused CRD, an object of a kind that is no longer served) counts as if it never existed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from noxu.api.errors import ApiError
from noxu.commands.updates import Configurations
from noxu.control_plane import ControlPlane
from noxu.go.time import format_time
from noxu.kinds.kind import Context, prepare
from noxu.manifests import loading
from noxu.manifests.documents import Document, LoadError, is_crd
from noxu.registry.reader import key_of
from noxu.registry.stored_object import new_entry, object_at
from noxu.values import Object, copy, equal
from noxu_storage.types import Conflict


async def restore_definitions(
    plane: ControlPlane, documents: Iterable[Document], configurations: Configurations
) -> None:
    """Create the CRDs among the former objects."""
    for document in documents:
        if is_crd(document.value):
            with contextlib.suppress(ApiError, LoadError):
                value = loading.as_v1(document)[0].value
                await loading.apply(plane, value)
                _remember(plane, value, configurations)


async def restore_objects(
    plane: ControlPlane, documents: Iterable[Document], configurations: Configurations
) -> list[Document]:
    """Create or store the other former objects. Returns those of kinds that are not served yet."""
    left = []
    for document in documents:
        if not document.value or is_crd(document.value):
            continue
        if loading.resource_of(plane, document.value) is None:
            left.append(document)
            continue
        with contextlib.suppress(ApiError, Conflict, ValueError, TypeError, AttributeError, KeyError):
            try:
                await _create(plane, document)
            except ApiError:
                await _restore(plane, document)
            _remember(plane, document.value, configurations)
    return left


def _remember(plane: ControlPlane, value: Object, configurations: Configurations) -> None:
    if (resource := loading.resource_of(plane, value)) is not None:
        configurations.add(resource, loading.namespace_of(resource, value), loading.name_of(value), value)


async def _create(plane: ControlPlane, document: Document) -> None:
    """Create a former object as on a server, and give it its status. Raises ApiError."""
    value = document.value
    resource, name = loading.resource_of(plane, value), loading.name_of(value)
    if resource is None or not name:
        return
    namespace = loading.namespace_of(resource, value)
    await loading.ensure_namespace(plane, namespace)
    created = await loading.apply(plane, value)
    status = value.get("status")
    if isinstance(status, dict) and status and not equal(created.get("status"), status):
        entry = await plane.reader.get(resource, namespace, name)
        storage = resource.versions.storage
        stored, _ = resource.codec.decode(resource, {**object_at(entry, resource), "status": copy(status)})
        if storage is not resource:
            stored = storage.codec.convert(storage, stored)
        await plane.writer.environment.persistence.replace(
            entry, new_entry(entry.key, storage, stored, served_as_stored=False)
        )


async def _restore(plane: ControlPlane, document: Document) -> None:
    value = copy(document.value)
    resource, name = loading.resource_of(plane, value), loading.name_of(value)
    if resource is None or not name:
        return
    namespace = loading.namespace_of(resource, value)
    await loading.ensure_namespace(plane, namespace)
    storage, environment = resource.versions.storage, plane.writer.environment
    value, _ = resource.codec.decode(resource, value)
    if storage is not resource:
        value = storage.codec.convert(storage, value)
    metadata = value["metadata"]
    metadata["uid"] = environment.identifiers.new_uid()
    metadata["creationTimestamp"] = format_time(environment.clock.now())
    if resource.table is None:
        metadata.setdefault("generation", 1)
    else:
        prepare(resource.table, value, None, Context(now=metadata["creationTimestamp"]))
    if namespace:
        metadata["namespace"] = namespace
    entry = new_entry(key_of(resource, namespace, name), storage, value, served_as_stored=False)
    await environment.persistence.create(entry)
