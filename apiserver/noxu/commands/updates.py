"""Updates as clients send them: how the write of a file changes the object that exists under its name.

`kubectl apply` sets the fields of the file, and removes those that only the file before had. Fields that admission and
the server have added stay: addresses, generated names, the volumes of service accounts (see `apply.patch`). The file
before is the former document of `--old`, or the one that was written last in this run. An exported object is no such
file: its annotation has the last applied configuration, and without one nothing is removed. An exported object that
updates an exported one was edited: its client would send it as a whole, by `kubectl replace`.

The former objects of `--old` are in the store before the objects that update them.

They are created as on a server, with defaults, addresses and the fields that admission adds. Those of a former CRD are
created before the new CRD replaces it, all others after that. An object that is refused now is stored as it is, without
validation: on a server it may be older than the rules. So is its status, which a create does not write. Documents that
cannot be stored (unreadable ones, refused CRDs, objects of a kind that is no longer served) count as if they never
existed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Final

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.apply.merging import ANNOTATION
from noxu.apply.patch import three_way
from noxu.commands.findings import Verb
from noxu.control_plane import ControlPlane
from noxu.go.structs import Struct
from noxu.manifests import loading, restoring
from noxu.manifests.documents import Document, LoadError, is_crd
from noxu.registry.resource import Resource
from noxu.registry.stored_object import key_of, new_entry, object_at
from noxu.values import Json, Object, copy, equal
from noxu_storage.types import Conflict, Key

_OF_THE_SERVER: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


class Configurations:
    """The configurations from which the objects of a store were written last."""

    def __init__(self) -> None:
        self._last: dict[Key, Object] = {}

    def add(self, resource: Resource, namespace: str, name: str, sent: Object) -> None:
        """An object was written from a document. A name that the server has generated is not looked at: "" """
        if name:
            self._last[key_of(resource, namespace, name)] = sent

    def last(self, resource: Resource, namespace: str, name: str) -> Object:
        return self._last.get(key_of(resource, namespace, name), {})


class Update:
    """Makes the update of an object from the document that is sent (a `loading.Replacement`). `verb`: how it was made."""

    def __init__(self, last: Object) -> None:
        self.last = last
        self.verb: Verb = ""

    def __call__(self, sent: Object, live: Object, resource: Resource) -> Object:
        self.verb = verb(self.last, sent)
        last = self.last if self.verb == "replace" else applied(self.last)
        return updated(last, sent, live, None if resource.table is None else resource.table.struct)


def updated(last: Object, sent: Object, live: Object, kind: Struct | None) -> Object:
    """The live object after an update from what was applied last to what is sent, with the same resourceVersion."""
    merged = three_way(_configuration(last), _configuration(sent), live, kind)
    return {**merged, "metadata": {**merged["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}}


def verb(last: Object, sent: Object) -> Verb:
    return "replace" if is_exported(last) and is_exported(sent) else "apply"


def is_exported(value: Object) -> bool:
    """Whether an object was read from a server."""
    metadata = value.get("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("uid"), str) and metadata["uid"] != ""


def applied(last: Object) -> Object:
    """What was applied last to the object that a document is, or that it is exported from."""
    if not is_exported(last):
        return last
    annotations = last["metadata"].get("annotations")
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    if not isinstance(text, str):
        return {}
    try:
        decoded = codec.decode_json(text.encode()).value
    except ValueError:
        return {}
    return decoded if isinstance(decoded, dict) and isinstance(decoded.get("metadata", {}), dict) else {}


def _configuration(value: Object) -> Object:
    """The object without what only servers set."""
    metadata: Json = value.get("metadata")
    if not isinstance(metadata, dict):
        return value
    return {**value, "metadata": {name: item for name, item in metadata.items() if name not in _OF_THE_SERVER}}


# -- former objects ----------------------------------------------------------------------------------------------------


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
                await restoring.store(plane, document.value)
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
