"""An entry: one object at one revision, kept as the bytes that were stored.

Bytes are the truth. What is stored is what is served but for the resourceVersion, which is not part of it (as in etcd):
it is spliced in when the bytes go out. Only if a version's schema prunes or defaults what is stored does a read differ;
whether it does is found out once per entry and schema, when the entry is first read.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from apiserver.api import codec, errors
from apiserver.api.types import Object
from apiserver.registry import pipeline
from apiserver.registry.resource import Resource, Versions
from storage.types import Key, Revision


class Reading(NamedTuple):
    """What a read of an entry gives at the version in which it is stored.

    `shown` are the bytes that are read, with the resourceVersion to be spliced in at `cut` (-1: no place was found).
    """

    version: Resource | None = None
    shown: bytes = b""
    cut: int = -1


UNREAD: Final = Reading()


class Entry:
    """One object at one revision.

    `stored` are the bytes in the store. `reading` is replaced as a whole, for it may be found out in a thread.
    """

    __slots__ = ("fields", "key", "labels", "reading", "revision", "stored")

    def __init__(self, key: Key, stored: bytes, revision: Revision) -> None:
        self.key = key
        self.stored = stored
        self.revision = revision
        self.reading = UNREAD
        self.labels: dict[str, str] | None = None
        self.fields: tuple[Resource, dict[str, str]] | None = None

    @property
    def namespace(self) -> str:
        return self.key.partition[:-1]

    def at(self, revision: Revision) -> Entry:
        """The same object under another revision: what DELETED events show."""
        twin = Entry(self.key, self.stored, revision)
        twin.reading = self.reading
        twin.labels, twin.fields = self.labels, self.fields
        return twin


def key_of(resource: Resource, namespace: str, name: str) -> Key:
    """Keys sort as upstream's `/namespace/name` do, so the namespace carries its slash."""
    return Key(resource.collection, f"{namespace}/" if namespace else "", name)


def made(key: Key, storage: Resource, value: Object, *, reads_as_made: bool = True) -> Entry:
    """The entry that writing an object of the storage version will make, not yet with its revision.

    Not so `reads_as_made`: the schema may prune or default what is stored when it is read.
    """
    value = storage.behaviour.written(value)
    metadata = value["metadata"]
    if "resourceVersion" in metadata:
        value = {**value, "metadata": {k: v for k, v in metadata.items() if k != "resourceVersion"}}
    stored, cut = _written(storage, value)
    entry = Entry(key, stored, 0)
    entry.labels = metadata.get("labels") or {}
    if reads_as_made:
        entry.reading = Reading(storage, stored, cut)
    return entry


def twin(entry: Entry, resource: Resource, value: Object) -> Entry:
    """The entry as if it were stored at `resource`'s version, at which it reads as `value` (no resourceVersion)."""
    shown, cut = _written(resource, value)
    found = Entry(entry.key, shown, entry.revision)
    found.reading = Reading(resource, shown, cut)
    found.labels = value["metadata"].get("labels") or {}
    return found


def object_at(entry: Entry, resource: Resource) -> Object:
    """A fresh copy of the object as it reads at `resource`'s version, with its resourceVersion.

    Where somebody has to be asked for that, the entry must be one from `conversion_entries.entry_at`.
    """
    reading = read(entry, resource.versions)
    value: Object = codec.decode_stored(reading.shown)
    metadata = value["metadata"]
    metadata["resourceVersion"] = str(entry.revision)
    return value if reading.version is resource else resource.behaviour.convert(resource, value)


def body_at(entry: Entry, resource: Resource) -> bytes:
    """The object as it is served at `resource`'s version, as JSON; of entries as `object_at` wants them."""
    version, shown, cut = read(entry, resource.versions)
    if resource is not version or cut < 0:
        value = _with_version(object_at(entry, resource), resource)
        return codec.encode(value, sort_keys=resource.behaviour.sorted_keys)
    if resource.behaviour.sorted_keys:
        return b'%b"resourceVersion":"%d",%b' % (shown[:cut], entry.revision, shown[cut:])
    return b'%b,"resourceVersion":"%d"%b' % (shown[:cut], entry.revision, shown[cut:])


def body_before_storage(entry: Entry, resource: Resource) -> bytes:
    """As `body_at`, for what is not stored and has no resourceVersion."""
    version, shown, _ = read(entry, resource.versions)
    if resource is version:
        return shown
    value = object_at(entry, resource)
    del value["metadata"]["resourceVersion"]
    return codec.encode(value, sort_keys=resource.behaviour.sorted_keys)


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


def is_read(entry: Entry, resource: Resource) -> bool:
    """Whether all is there that a read at `resource`'s version needs."""
    return entry.reading.version is resource and entry.reading.cut >= 0


def read(entry: Entry, versions: Versions) -> Reading:
    """What a read of this entry gives under the schema that its version has now; it is found out once.

    Raises ApiError if there is no such version any more.
    """
    found = entry.reading
    if versions.has(found.version):
        return found
    value: Object = codec.decode_stored(entry.stored)
    own = versions.of(value)
    if own.behaviour.struct is None and value.get("apiVersion") != own.api_version:
        raise errors.plain_error(f"request to convert CR from an invalid group/version: {value.get('apiVersion')}")
    pipeline.read(own, value)
    shown, cut = _written(own, value)
    if shown == entry.stored:
        shown = entry.stored  # kept once
    found = entry.reading = Reading(own, shown, cut)
    return found


_UID: Final = re.compile(rb'"uid":"[^"\\]*"')


_IDENTITY: Final = ("apiVersion", "kind", "metadata")


def _written(resource: Resource, value: Object) -> tuple[bytes, int]:
    """An object's bytes, and where in them the resourceVersion belongs: before the uid, the metadata's last key, if
    keys are sorted, else behind it; -1 if that is hard to say."""
    if not resource.behaviour.sorted_keys:  # only name, generateName and namespace come before, and hold no quotes
        written = codec.encode(value, sort_keys=False)
        found = _UID.search(written)
        return written, found.end() if found else -1
    rest = {name: item for name, item in value.items() if name not in _IDENTITY}
    if any(name < "metadata" for name in rest) or not _is_of(value, resource):
        return codec.encode(value, sort_keys=True), -1
    head = resource.stored_head
    metadata = codec.encode(value["metadata"], sort_keys=True)
    uid = metadata.rfind(b'"uid":"')
    end = b"," + codec.encode(rest, sort_keys=True)[1:] if rest else b"}"
    return head + metadata + end, len(head) + uid if uid > 0 else -1


def _is_of(value: Object, resource: Resource) -> bool:
    return bool(value.get("apiVersion") == resource.api_version and value.get("kind") == resource.kind)


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
