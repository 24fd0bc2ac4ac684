"""The graph of owners and dependents: metadata.ownerReferences of all objects, by the uids of the owners.

It contains only objects that have owner references, and objects that are being deleted and have a finalizer of the
garbage collector. All others cost a search in their bytes. `put` and `remove` follow the changes of the store, and
return the work of the garbage collector:

    a key of an object   whether it may stay, or, if it is being deleted, what its finalizer requires
    a uid of an owner    all of its dependents

Upstream's GraphBuilder keeps a node for every object. Whether an owner exists is not known here: it is looked up in the
store (controllers.garbage_collector).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Final, NamedTuple, TypeAlias

from noxu.api import codec
from noxu.api.meta import FINALIZER_FOREGROUND, FINALIZER_ORPHAN
from noxu.expressions import expression
from noxu.registry.storage_form import CBOR, as_json
from noxu.values import Json, Object
from noxu_storage.types import Key, Revision

_OWNERS: Final = b'"ownerReferences":'
_DELETED: Final = b'"deletionTimestamp":'
_FINALIZERS: Final = (f'"{FINALIZER_FOREGROUND}"'.encode(), f'"{FINALIZER_ORPHAN}"'.encode())
TEXTS: Final = (b"ownerReferences", FINALIZER_FOREGROUND.encode(), FINALIZER_ORPHAN.encode())
"""Every stored object that belongs into the graph contains one of them, in JSON and in CBOR."""

_UID: Final = expression(rb'"uid":"([^"\\]*)"')
_CBOR_UID: Final = expression(rb"uid[\x40-\x58\x60-\x78]", re.DOTALL)
_LENGTH_FOLLOWS: Final = 24

Uid: TypeAlias = str
Work: TypeAlias = Key | Uid


class OwnerReference(NamedTuple):
    """An owner reference. `blocks`: blockOwnerDeletion."""

    api_version: str
    kind: str
    name: str
    uid: Uid
    blocks: bool


class OwnerIdentity(NamedTuple):
    """What an object was before it was deleted. `partition` is empty for cluster scope."""

    group: str
    kind: str
    name: str
    partition: str


def group_of(api_version: str) -> str:
    """The group of an apiVersion as it was stored."""
    return api_version.rpartition("/")[0]


class Node:
    """An object. `deleted`: it has a deletionTimestamp. `orphan` and `foreground`: it has that finalizer.

    The node of an object stays the same one while its uid and its owner references do.
    """

    __slots__ = ("deleted", "foreground", "key", "orphan", "owners", "revision", "uid")

    def __init__(self, key: Key, revision: Revision, metadata: Object) -> None:
        finalizers = metadata.get("finalizers") or ()
        self.key = key
        self.revision = revision
        self.uid: Uid = metadata.get("uid") or ""
        self.owners: tuple[OwnerReference, ...] = tuple(_references(metadata))
        self.deleted = bool(metadata.get("deletionTimestamp"))
        self.orphan = FINALIZER_ORPHAN in finalizers
        self.foreground = FINALIZER_FOREGROUND in finalizers

    @property
    def orphans(self) -> bool:
        """It waits until its dependents do not refer to it."""
        return self.deleted and self.orphan

    @property
    def waits(self) -> bool:
        """It waits until its dependents are deleted."""
        return self.deleted and self.foreground

    @property
    def blocked(self) -> dict[Uid, bool]:
        """The uids of its owners, and whether it blocks their deletion in the foreground."""
        blocked: dict[Uid, bool] = {}
        for owner in self.owners:
            blocked[owner.uid] = blocked.get(owner.uid, False) or owner.blocks
        return blocked


class Owner:
    """A uid to which objects refer. `blocking` is the number of dependents that block its deletion in the foreground.

    `gone` is what it was, if it has been deleted.
    """

    __slots__ = ("blocking", "dependents", "gone", "reference")

    def __init__(self, reference: OwnerReference) -> None:
        self.dependents: dict[Key, bool] = {}
        self.blocking = 0
        self.gone: OwnerIdentity | None = None
        self.reference = reference  # the references of its dependents share it in memory if they are equal


class OwnerGraph:
    """All nodes by key, all owners by uid. Used on one event loop."""

    def __init__(self) -> None:
        self.nodes: dict[Key, Node] = {}
        self.owners: dict[Uid, Owner] = {}
        self._waiting: dict[Uid, Key] = {}  # the objects that wait until their dependents are deleted
        self.gone: set[Uid] = set()
        """The owners that have been deleted."""

    def copy(self) -> OwnerGraph:
        """The same graph, which may change without this one."""
        new = OwnerGraph()
        new.nodes = {key: copy(node) for key, node in self.nodes.items()}
        for uid, owner in self.owners.items():
            new.owners[uid] = copied = copy(owner)
            copied.dependents = owner.dependents.copy()
        new._waiting = self._waiting.copy()
        new.gone = self.gone.copy()
        return new

    def put(self, key: Key, value: bytes, revision: Revision) -> Sequence[Work]:
        """Follow a write of an object, which has one of TEXTS, or is known, or owners have been deleted: all others change nothing."""
        if self.gone:
            self._see_return(value)
        old = self.nodes.get(key)
        new = _node(key, value, revision)
        if new is None:
            if old is None:
                return ()
            del self.nodes[key]
            self._waiting.pop(old.uid, None)
            return self._relink(key, old.blocked, {})
        work: list[Work] = []
        waited, orphaned = (old.waits, old.orphans) if old is not None and old.uid == new.uid else (False, False)
        if old is not None and (old.uid, old.owners) == (new.uid, new.owners):
            old.revision, old.deleted = revision, new.deleted
            old.orphan, old.foreground = new.orphan, new.foreground
        else:
            new.owners = tuple(map(self._shared, new.owners))
            self.nodes[key] = new
            work += self._relink(key, {} if old is None else old.blocked, new.blocked, new.owners)
            if new.owners:
                work.append(key)
        if new.waits and not waited:
            self._waiting[new.uid] = key
            work += (new.uid, key)
        elif waited and not new.waits:
            self._waiting.pop(new.uid, None)
        if new.orphans and not orphaned:
            work.append(key)
        return work

    def remove(self, key: Key, previous: bytes | None) -> Sequence[Work]:
        """Follow the deletion of an object, whose last state was `previous` (empty: it was corrupt)."""
        node = self.nodes.pop(key, None)
        work: list[Work] = []
        if node is not None:
            self._waiting.pop(node.uid, None)
            work += self._relink(key, node.blocked, {})
        if not self.owners or previous is None:
            return work
        if not previous:  # it may have been any of the owners with its name
            return work + [node.key for node in self.nodes.values() if any(key.name == ref.name for ref in node.owners)]
        uids = [node.uid] if node is not None else _uids(previous)
        if any(uid in self.owners for uid in uids):
            value = _decode(previous)
            owner = self.owners.get(uid := _metadata(value).get("uid") or "")
            if owner is not None:
                group = group_of(str(value.get("apiVersion") or ""))
                owner.gone = OwnerIdentity(group, str(value.get("kind") or ""), key.name, key.partition)
                self.gone.add(uid)
                work.append(uid)
        return work

    def _see_return(self, value: bytes) -> None:
        """An owner that was deleted is there again, with its uid: a snapshot was restored."""
        if any(uid in self.gone for uid in _uids(value)):  # its own, or that of its owner
            uid = _metadata(_decode(value)).get("uid") or ""
            if uid in self.gone:
                self.gone.discard(uid)
                self.owners[uid].gone = None

    def dependents(self, uid: Uid) -> list[Key]:
        owner = self.owners.get(uid)
        return [] if owner is None else list(owner.dependents)

    def is_blocked(self, uid: Uid) -> bool:
        """Whether a dependent blocks the deletion of an owner in the foreground."""
        owner = self.owners.get(uid)
        return owner is not None and owner.blocking > 0

    def _relink(
        self, key: Key, old: dict[Uid, bool], new: dict[Uid, bool], references: Sequence[OwnerReference] = ()
    ) -> list[Work]:
        """Replace the edges of a dependent. Returns the waiting owners that it was the last one to block."""
        unblocked: list[Work] = []
        for reference in references:
            if reference.uid not in self.owners:
                self.owners[reference.uid] = Owner(reference)
        for uid in old.keys() | new.keys():
            owner = self.owners[uid]
            before = owner.blocking
            owner.blocking += new.get(uid, False) - old.get(uid, False)
            if uid in new:
                owner.dependents[key] = new[uid]
            else:
                del owner.dependents[key]
                if not owner.dependents:
                    del self.owners[uid]
                    self.gone.discard(uid)
            if before and not owner.blocking and uid in self._waiting:
                unblocked.append(self._waiting[uid])
        return unblocked

    def _shared(self, reference: OwnerReference) -> OwnerReference:
        owner = self.owners.get(reference.uid)
        return owner.reference if owner is not None and owner.reference == reference else reference


def _node(key: Key, value: bytes, revision: Revision) -> Node | None:
    """The node of an object; None if it does not belong into the graph."""
    if value.startswith(CBOR):
        value = as_json(value)
    if _OWNERS not in value and not (_DELETED in value and any(finalizer in value for finalizer in _FINALIZERS)):
        return None
    node = Node(key, revision, _metadata(_decode(value)))
    return node if node.owners or node.orphans or node.waits else None


def _uids(stored: bytes) -> list[Uid]:
    """The values of all fields `uid` of a stored object, and perhaps other texts."""
    if not stored.startswith(CBOR):
        return [uid.decode() for uid in _UID.findall(stored)]
    uids = []
    for match in _CBOR_UID.finditer(stored):  # followed by a string: its length is in its first byte, or in the second
        start, length = match.end(), stored[match.end() - 1] & 31
        if length == _LENGTH_FOLLOWS and start < len(stored):
            start, length = start + 1, stored[start]
        uids.append(stored[start : start + length].decode(errors="replace"))
    return uids


def _references(metadata: Object) -> Iterator[OwnerReference]:
    for reference in metadata.get("ownerReferences") or ():
        if isinstance(reference, dict):
            names = (str(reference.get(name) or "") for name in ("apiVersion", "kind"))
            api_version, kind = map(sys.intern, names)
            name, uid = (str(reference.get(name) or "") for name in ("name", "uid"))
            yield OwnerReference(api_version, kind, name, uid, reference.get("blockOwnerDeletion") is True)


class OwnerState(NamedTuple):
    """What an owner's references depend on. `uid` is empty if it does not exist.

    `waits`: it waits until its dependents are deleted.
    """

    uid: Uid
    waits: bool


ABSENT: Final = OwnerState("", waits=False)


def state_of(key: Key, value: bytes | None) -> OwnerState:
    """The state of an object from its stored bytes; None: it does not exist."""
    if value is None:
        return ABSENT
    node = Node(key, 0, _metadata(_decode(value)))
    return OwnerState(node.uid, node.waits)


def _decode(value: bytes) -> Object:
    """A stored object. One that cannot be decoded, or that is none, has no metadata."""
    try:
        decoded: Json = codec.decode_stored(as_json(value))
    except ValueError:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _metadata(value: Object) -> Object:
    metadata = value.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def metadata_of(value: bytes) -> Object:
    """The metadata of a stored object."""
    return _metadata(_decode(value))
