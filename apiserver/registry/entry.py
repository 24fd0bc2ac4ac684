"""An entry: one object at one revision, kept as the bytes that were stored.

Bytes are the truth. What is stored is what is served but for the resourceVersion, which is not part of it (as in etcd):
it is spliced in when the bytes go out. Only if a version's schema prunes or defaults what is stored does a read differ;
whether it does is found out once per entry and schema, when the entry is first read.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from apiserver.api import codec
from apiserver.api.types import Object
from apiserver.registry import pipeline
from apiserver.registry.resource import Resource
from storage.types import Key, Revision


class Entry:
    """One object at one revision.

    `stored` are the bytes in the store. `read_under` is the storage version's Resource for which it is known what a
    read gives: `shown` (None: `stored` itself), with the resourceVersion spliced in at `cut` (-1: no place was found).
    """

    __slots__ = ("cut", "fields", "key", "labels", "read_under", "revision", "shown", "stored")

    def __init__(self, key: Key, stored: bytes, revision: Revision) -> None:
        self.key = key
        self.stored = stored
        self.revision = revision
        self.read_under: Resource | None = None
        self.shown: bytes | None = None
        self.cut = -1
        self.labels: dict[str, str] | None = None
        self.fields: tuple[Resource, dict[str, str]] | None = None

    @property
    def namespace(self) -> str:
        return self.key.partition[:-1]

    def at(self, revision: Revision) -> Entry:
        """The same object under another revision: what DELETED events show."""
        twin = Entry(self.key, self.stored, revision)
        twin.read_under, twin.shown, twin.cut = self.read_under, self.shown, self.cut
        twin.labels, twin.fields = self.labels, self.fields
        return twin

    def is_shown_as_stored(self, storage: Resource) -> None:
        """Note that under `storage`'s schema a read gives what is stored: the writer knows, it has just made it."""
        self.read_under, self.shown, self.cut = storage, None, _cut(storage, self.stored)


def key_of(resource: Resource, namespace: str, name: str) -> Key:
    """Keys sort as upstream's `/namespace/name` do, so the namespace carries its slash."""
    return Key(resource.collection, f"{namespace}/" if namespace else "", name)


def encode(resource: Resource, value: Object) -> bytes:
    """An object as it is stored: without resourceVersion."""
    value = resource.behaviour.written(value)
    metadata = value["metadata"]
    if "resourceVersion" in metadata:
        value = {**value, "metadata": {k: v for k, v in metadata.items() if k != "resourceVersion"}}
    return codec.encode(value, sort_keys=resource.behaviour.sorted_keys)


def object_at(entry: Entry, resource: Resource) -> Object:
    """A fresh copy of the object as it reads at `resource`'s version, with its resourceVersion."""
    storage = resource.versions.storage
    _look(entry, storage)
    value: Object = codec.decode_stored(entry.stored if entry.shown is None else entry.shown)
    metadata = value["metadata"]
    metadata["resourceVersion"] = str(entry.revision)
    return value if resource is storage else resource.behaviour.convert(resource, value)


def body_at(entry: Entry, resource: Resource) -> bytes:
    """The object as it is served at `resource`'s version, as JSON."""
    storage = resource.versions.storage
    if entry.read_under is not storage:
        _look(entry, storage)
    if resource is not storage or entry.cut < 0:
        value = _with_version(object_at(entry, resource), resource)
        return codec.encode(value, sort_keys=resource.behaviour.sorted_keys)
    value_bytes, cut = entry.stored if entry.shown is None else entry.shown, entry.cut
    if resource.behaviour.sorted_keys:
        return b'%b"resourceVersion":"%d",%b' % (value_bytes[:cut], entry.revision, value_bytes[cut:])
    return b'%b,"resourceVersion":"%d"%b' % (value_bytes[:cut], entry.revision, value_bytes[cut:])


def _with_version(value: Object, resource: Resource) -> Object:
    """Put the resourceVersion where the order of declaration wants it: behind the uid."""
    if not resource.behaviour.sorted_keys:
        metadata = value["metadata"]
        version = metadata.pop("resourceVersion")
        value["metadata"] = {}
        for name, item in metadata.items():
            value["metadata"][name] = item
            if name == "uid":
                value["metadata"]["resourceVersion"] = version
        value["metadata"].setdefault("resourceVersion", version)
    return value


def _look(entry: Entry, storage: Resource) -> None:
    """Find out what a read of this entry gives under the storage version's schema."""
    if entry.read_under is storage:
        return
    value: Object = codec.decode_stored(entry.stored)
    own = storage.versions.of(value)
    pipeline.read(own, value)
    if own is not storage:
        value = storage.behaviour.convert(storage, value)
    shown = codec.encode(value, sort_keys=storage.behaviour.sorted_keys)
    entry.shown = None if shown == entry.stored else shown
    entry.cut = _cut(storage, shown)
    entry.labels = entry.fields = None
    entry.read_under = storage


_UID: Final = re.compile(rb'"uid":"[^"\\]*"')


def _cut(resource: Resource, value: bytes) -> int:
    """Where the resourceVersion belongs: before the uid if keys are sorted, else behind it; -1 if that is hard to say.

    With sorted keys labels and annotations come before the uid, and may be named like it: a candidate is right if the
    metadata is one whole JSON object when it ends there.
    """
    if not resource.behaviour.sorted_keys:  # only name, generateName and namespace come before, and hold no quotes
        found = _UID.search(value)
        return found.end() if found else -1
    start = len(resource.stored_head)
    if not value.startswith(resource.stored_head):
        return -1
    for found in _UID.finditer(value, start):
        end = found.end()
        if value[end : end + 1] == b"}" and _is_json(value[start - 1 : end + 1]):
            return found.start()
    return -1


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def labels_of(entry: Entry) -> dict[str, str]:
    if entry.labels is None:
        metadata = codec.decode_stored(entry.stored).get("metadata")
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        entry.labels = labels if isinstance(labels, dict) else {}
    return entry.labels


def fields_of(entry: Entry, resource: Resource) -> dict[str, str]:
    """What field selectors may name: metadata.name, metadata.namespace and the kind's selectable fields, as text."""
    if entry.fields is None or entry.fields[0] is not resource:
        found = {"metadata.name": entry.key.name}
        if resource.namespaced:
            found["metadata.namespace"] = entry.namespace
        if resource.selectable_fields:
            found |= resource.behaviour.selectable(resource, object_at(entry, resource))
        entry.fields = (resource, found)
    return entry.fields[1]
