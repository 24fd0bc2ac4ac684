"""The former objects of `--old`: in the store before the objects that update them.

Former CRDs are created as any CRD, so that the new ones are updates of them. Other objects are stored as they are,
without validation: on a server they may be older than the rules that refuse them now. What cannot be stored (an
unreadable document, a refused CRD, an object of a kind that is no longer served) counts as if it never existed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from noxu.apiserver import loading
from noxu.apiserver.api.errors import ApiError
from noxu.apiserver.control_plane import ControlPlane
from noxu.apiserver.go.time import format_time
from noxu.apiserver.kinds.kind import Context, prepare
from noxu.apiserver.manifests import Document, LoadError, is_crd
from noxu.apiserver.registry.entry import key_of, new_entry
from noxu.apiserver.values import copy
from noxu.storage.types import Conflict


async def restore_definitions(plane: ControlPlane, documents: Iterable[Document]) -> None:
    """Create the CRDs among the former objects."""
    for document in documents:
        if is_crd(document.value):
            with contextlib.suppress(ApiError, LoadError):
                await loading.apply(plane, loading.as_v1(document)[0].value)


async def restore_objects(plane: ControlPlane, documents: Iterable[Document]) -> None:
    """Store the other former objects, after all CRDs."""
    for document in documents:
        if document.value and not is_crd(document.value):
            with contextlib.suppress(ApiError, Conflict, ValueError, TypeError, AttributeError, KeyError):
                await _restore(plane, document)


async def _restore(plane: ControlPlane, document: Document) -> None:
    value = copy(document.value)
    resource, name = loading.resource_of(plane, value), loading.name_of(value)
    if resource is None or not name:
        return
    namespace = loading.namespace_of(resource, value)
    await loading.ensure_namespace(plane, namespace)
    storage, environment = resource.versions.storage, plane.writer.environment
    value, _ = resource.behaviour.decode(resource, value)
    if storage is not resource:
        value = storage.behaviour.convert(storage, value)
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
