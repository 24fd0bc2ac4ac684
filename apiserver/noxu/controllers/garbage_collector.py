"""Deletes the dependents of deleted owners, and finishes deletions in the foreground and with orphans.

Upstream's garbage collector of kube-controller-manager (pkg/controller/garbagecollector). Whenever the owner references of
an object change, or an owner is deleted, each reference of the object is

    absent     no object has its kind, its name and, in the namespace of the dependent, its uid
    waiting    the owner is being deleted in the foreground: it waits until its dependents are deleted
    solid      anything else, also an owner that is being deleted in another way

and then

    no reference is absent or waiting             nothing happens
    some are solid                                the others are removed
    none is solid, and one is waiting             the object is deleted: in the foreground if it has dependents itself
    none is solid, else                           the object is deleted, by the policy that its finalizers name

If the kind of a reference is not served, nothing happens until it is. An object that waits until its dependents are
deleted loses its finalizer when no dependent blocks it (blockOwnerDeletion); one that orphans them, when none refers to it.

Owners are looked up in the store, not in the graph, so an owner is never missed because of the order of events. Deletions
name the uid and the revision that was judged. All writes pass admission, with the user and the field manager of upstream.

At the start, and when changes may have been missed, the graph is built by a scan of the store in the background. Until
then nothing is deleted. Owners of any collection count, those of definitions that come and go as well; Events are ignored.

The patches of the garbage collector (pkg/controller/garbagecollector/patch.go).

Upstream sends a strategic merge patch first, and a merge patch to resources that do not support it: custom resources. A
strategic patch names the object by its uid, a merge patch the state that it was computed from by its resourceVersion.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Hashable, Sequence
from typing import Final, Self

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.api.meta import FINALIZER_FOREGROUND, FINALIZER_ORPHAN
from noxu.controllers.controller import ControllerParts, Reconciler
from noxu.controllers.owner_graph import (
    TEXTS,
    Node,
    OwnerGraph,
    OwnerReference,
    OwnerState,
    Uid,
    Work,
    group_of,
    metadata_of,
    state_of,
)
from noxu.go.time import format_time
from noxu.registry.access import User
from noxu.registry.draft import Action, Body, DeleteOptions, Options, Preconditions, WriteRequest
from noxu.registry.resource import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Resource
from noxu.registry.stored_object import key_of
from noxu.values import Json, Object
from noxu_storage.types import Event, Key, KeyValue, Revision, StoreError


def remove_owners_strategically(uid: str, owners: Sequence[str]) -> Body:
    """Remove the references to owners from the object with this uid."""
    removed: list[Json] = [{"$patch": "delete", "uid": owner} for owner in owners]
    return _body({"ownerReferences": removed, "uid": uid}, STRATEGIC_MERGE_PATCH)


def remove_owners(metadata: Object, revision: Revision, owners: Collection[str]) -> Body:
    """Remove the references to owners from an object with this metadata at a revision."""
    rest = [reference for reference in metadata.get("ownerReferences") or () if reference.get("uid") not in owners]
    return _body({"resourceVersion": str(revision), "ownerReferences": rest or None}, MERGE_PATCH)


def unblock_owners_strategically(metadata: Object) -> Body:
    """Let an object with this metadata not block the deletion of its owners."""
    references = metadata.get("ownerReferences") or ()
    unblocked: list[Json] = [
        {**reference, "blockOwnerDeletion": False} for reference in references if reference.get("blockOwnerDeletion")
    ]
    return _body({"ownerReferences": unblocked, "uid": metadata.get("uid", "")}, STRATEGIC_MERGE_PATCH)


def unblock_owners(metadata: Object, revision: Revision) -> Body:
    """Like `unblock_owners_strategically`, for an object at a revision."""
    references = metadata.get("ownerReferences") or ()
    unblocked: list[Json] = [{**reference, "blockOwnerDeletion": False} for reference in references]
    return _body({"resourceVersion": str(revision), "ownerReferences": unblocked}, MERGE_PATCH)


def remove_finalizer(metadata: Object, revision: Revision, finalizer: str) -> Body | None:
    """Remove a finalizer from an object with this metadata at a revision; None if it does not have it."""
    finalizers = metadata.get("finalizers") or []
    rest = [name for name in finalizers if name != finalizer]
    if len(rest) == len(finalizers):
        return None
    return _body({"resourceVersion": str(revision), "finalizers": rest or None}, MERGE_PATCH)


def _body(metadata: Object, media_type: str) -> Body:
    return Body(codec.encode({"metadata": metadata}, sort_keys=False), media_type)


# -- garbage collector ------------------------------------------------------------------------------------------------


USER: Final = User(
    "system:serviceaccount:kube-system:generic-garbage-collector",
    groups=("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"),
)
MANAGER: Final = "kube-controller-manager"
COMPONENT: Final = "garbage-collector-controller"

IGNORED: Final = frozenset({"/events"})
"""Collections whose objects are neither owners nor dependents."""

_STATES: Final = 4096  # owners whose state is remembered
_SLICE: Final = 500  # keys or nodes that are handled before other tasks run
_PATCHES: Final = 16  # dependents that are orphaned at a time

log = logging.getLogger("noxu")


class _Reading:
    """The mark of a read of an owner's state; a change of the owner removes it, and the result is not remembered."""


class GarbageCollector(Reconciler[Work]):
    """Follows all collections. Keys are those of objects, and uids of owners whose dependents are to be judged."""

    name = COMPONENT
    workers = 32  # their writes share commits

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts, "the store")
        self.graph = OwnerGraph()
        self._states: dict[Key, OwnerState | _Reading] = {}
        self._scanned: dict[Key, Revision] | None = None  # during a scan: the newest changes of keys
        self._parked: dict[Hashable, dict[Key, None]] = {}  # by what is not served: a collection, or a kind
        self._resets = 0
        self._events = 0
        self.served_resources.followers.append(self._retry_parked)

    # -- following all collections

    async def start(self) -> None:
        """Begin to scan the store, in the background."""
        self.end()
        self._run()

    async def stop(self) -> None:
        self.reader.cache.watchers.pop(self, None)
        await super().stop()

    def end(self) -> None:
        self._resets += 1
        super().end()

    def health(self) -> str:
        return super().health() if self._synchronised.is_set() or self._sync_failure else ""

    def deliver(self, events: Sequence[Event], revision: Revision) -> None:
        graph, states, scanned = self.graph, self._states, self._scanned
        for key, at, value, previous in events:
            if key.collection in IGNORED:
                continue
            states.pop(key, None)
            if scanned is not None and previous is not None:
                scanned[key] = at
            if value is not None:
                if key not in graph.nodes and not graph.gone and not any(text in value for text in TEXTS):
                    continue  # most objects: without owners, and not waiting for dependents
                work = graph.put(key, value, at)
            else:
                work = graph.remove(key, previous.value if previous is not None else None)
                for parked in self._parked.values():
                    parked.pop(key, None)
            for item in work:
                self.queue.add(item)

    async def _synchronise(self) -> None:
        resets = -1
        while resets != self._resets:  # after a reset, changes between the beginning of the scan and now are missing
            resets = self._resets
            self.graph, self._scanned = OwnerGraph(), {}
            self._states.clear()
            self._parked.clear()
            self.reader.cache.watchers[self] = None
            async for items in self.reader.store.scan(TEXTS):
                self._add(items)
        self._scanned = None
        self._set_synchronised()
        await self._queue_all(list(self.graph.nodes))

    def _take_over(self, idle: Self) -> None:
        self.graph = idle.graph.copy()
        self._parked = {unserved: keys.copy() for unserved, keys in idle._parked.items()}
        self.reader.cache.watchers[self] = None

    def _add(self, items: Sequence[KeyValue]) -> None:
        """Add scanned objects to the graph, unless they have changed since."""
        assert self._scanned is not None
        for key, value, revision in items:
            node = self.graph.nodes.get(key)
            newest = max(node.revision if node is not None else 0, self._scanned.get(key, 0))
            if revision > newest and key.collection not in IGNORED:
                self.graph.put(key, value, revision)

    async def _queue_all(self, keys: Sequence[Key]) -> None:
        for start in range(0, len(keys), _SLICE):
            for key in keys[start : start + _SLICE]:
                self.queue.add(key)
            await asyncio.sleep(0)

    def _park(self, key: Key, unserved: Hashable) -> None:
        """Reconcile a key again when something is served: a collection, or a kind with its apiVersion."""
        self._parked.setdefault(unserved, {})[key] = None

    def _retry_parked(self) -> None:
        served_resources = self.served_resources.current
        for unserved in [
            what for what in self._parked if what in served_resources.kinds or what in served_resources.preferred
        ]:
            for key in self._parked.pop(unserved):
                self.queue.add(key)

    # -- reconciling

    async def reconcile(self, key: Work) -> None:
        await self._synchronised.wait()
        await asyncio.sleep(0)  # most keys need nothing that waits: let other tasks run
        if isinstance(key, Uid):
            await self._queue_all(self.graph.dependents(key))
            return
        node = self.graph.nodes.get(key)
        if node is None:
            return
        resource = self.served_resources.current.preferred.get(key.collection)
        if resource is None:
            self._park(key, key.collection)
        elif node.orphans:
            await self._orphan(node, resource)
        elif node.waits:
            if not self.graph.is_blocked(node.uid):
                await self._remove_finalizer(node, resource, FINALIZER_FOREGROUND)
        elif not node.deleted:
            await self._judge(node, resource)

    async def _orphan(self, node: Node, resource: Resource) -> None:
        """Remove the references to an owner from all of its dependents, then its finalizer."""
        dependents = self.graph.dependents(node.uid)
        for start in range(0, len(dependents), _PATCHES):
            patches = [self._disown(key, [node.uid]) for key in dependents[start : start + _PATCHES]]
            for result in await asyncio.gather(*patches, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result
        late = set(self.graph.dependents(node.uid)).difference(dependents)
        if late or not self._synchronised.is_set():  # there may be more of them
            self.queue.add(node.key)
        else:
            await self._remove_finalizer(node, resource, FINALIZER_ORPHAN)

    async def _judge(self, node: Node, resource: Resource) -> None:
        """Decide whether an object with owner references may stay."""
        absent: list[Uid] = []
        waiting: list[Uid] = []
        for reference in node.owners:
            if self._is_gone(reference, node):
                absent.append(reference.uid)
                continue
            owners = self.served_resources.current.kinds.get((reference.api_version, reference.kind))
            if owners is None:
                self._park(node.key, (reference.api_version, reference.kind))
                return
            if owners.namespaced and not node.key.partition:  # upstream: never collected
                await self._report_namespace(node, resource, reference, owners)
                return
            state = await self._state(
                Key(owners.collection, node.key.partition if owners.namespaced else "", reference.name)
            )
            if not state.uid or state.uid != reference.uid:
                absent.append(reference.uid)
                if owners.namespaced:
                    await self._report_namespace(node, resource, reference, owners)
            elif state.waits:
                waiting.append(reference.uid)
        if self.graph.nodes.get(node.key) is not node:
            return  # its owner references have changed meanwhile, so its key is ready again
        if len(absent) + len(waiting) < len(node.owners):
            if absent or waiting:
                await self._disown(node.key, absent + waiting)
        elif waiting and (dependents := self.graph.dependents(node.uid)):
            if any((dependent := self.graph.nodes.get(key)) is not None and dependent.waits for key in dependents):
                await self._unblock(node, resource)
            await self._delete(node, resource, "Foreground")
        elif node.owners:
            await self._delete(
                node, resource, "Orphan" if node.orphan else "Foreground" if node.foreground else "Background"
            )

    def _is_gone(self, reference: OwnerReference, node: Node) -> bool:
        """Whether the deletion of this owner has been observed. Its kind need not be served any longer."""
        owner = self.graph.owners.get(reference.uid)
        gone = owner.gone if owner is not None else None
        return (
            gone is not None
            and (gone.group, gone.kind, gone.name) == (group_of(reference.api_version), reference.kind, reference.name)
            and gone.partition in ("", node.key.partition)
        )

    async def _state(self, key: Key) -> OwnerState:
        """The state of an owner in the store, which is remembered until the owner changes."""
        owner = self._states.get(key)
        if isinstance(owner, OwnerState):
            return owner
        while len(self._states) >= _STATES:
            del self._states[next(iter(self._states))]
        reading = self._states[key] = _Reading()
        item = await self.reader.store.get(key)
        state = state_of(key, item.value if item is not None else None)
        if self._states.get(key) is reading:
            self._states[key] = state
        return state

    # -- writes

    async def _delete(self, node: Node, resource: Resource, policy: str) -> None:
        """Delete the object that was judged. An update that keeps its owner references does not matter."""
        for conditions in (Preconditions(node.uid, str(node.revision)), Preconditions(node.uid)):
            if self.graph.nodes.get(node.key) is not node or node.deleted:
                return
            sent = {"uid": node.uid, "resourceVersion": conditions.resource_version}
            request = self._request(Action.DELETE, resource, node.key)._replace(
                delete_options=DeleteOptions(propagation=policy, preconditions=conditions),
                options_sent={
                    "preconditions": {name: value for name, value in sent.items() if value},
                    "propagationPolicy": policy,
                },
            )
            try:
                await self.writer.write(request)
            except ApiError as error:
                if error.reason == "NotFound":
                    return
                if error.reason != "Conflict" or conditions.resource_version is None:
                    raise
            else:
                return

    async def _disown(self, key: Key, owners: Sequence[Uid]) -> None:
        """Remove the references to owners from a dependent."""
        node, resource = self.graph.nodes.get(key), self.served_resources.current.preferred.get(key.collection)
        if node is None or resource is None:
            return
        if not resource.is_custom:
            await self._patch(key, resource, remove_owners_strategically(node.uid, owners))
            return
        stored = await self._stored(node)
        if stored is not None:
            metadata, revision = stored
            await self._patch(key, resource, remove_owners(metadata, revision, owners))

    async def _unblock(self, node: Node, resource: Resource) -> None:
        """Let an object in a cycle not block the deletion of its owners."""
        stored = await self._stored(node)
        if stored is None:
            return
        metadata, revision = stored
        if resource.is_custom:
            await self._patch(node.key, resource, unblock_owners(metadata, revision))
        else:
            await self._patch(node.key, resource, unblock_owners_strategically(metadata))

    async def _remove_finalizer(self, node: Node, resource: Resource, finalizer: str) -> None:
        stored = await self._stored(node)
        if stored is not None:
            metadata, revision = stored
            body = remove_finalizer(metadata, revision, finalizer)
            if body is not None:
                await self._patch(node.key, resource, body)

    async def _stored(self, node: Node) -> tuple[Object, Revision] | None:
        """The metadata of an object in the store, and its revision; None if it does not exist."""
        item = await self.reader.store.get(node.key)
        if item is None:
            return None
        metadata = metadata_of(item.value)
        return (metadata, item.revision) if metadata.get("uid", "") == node.uid else None

    async def _patch(self, key: Key, resource: Resource, body: Body) -> None:
        request = self._request(Action.PATCH, resource, key)
        try:
            await self.writer.write(request._replace(body=body, weight=len(body.content)))
        except ApiError as error:
            if error.reason != "NotFound":
                raise

    def _request(self, action: Action, resource: Resource, key: Key) -> WriteRequest:
        namespace = key.partition[:-1]
        return WriteRequest(action, resource, namespace, key.name, options=Options(field_manager=MANAGER), user=USER)

    # -- Events

    async def _report_namespace(
        self, node: Node, resource: Resource, reference: OwnerReference, owners: Resource
    ) -> None:
        """Create an Event if the owner exists in another namespace than its dependent."""
        served_resources = self.served_resources.current
        namespaces = await self.reader.collection(served_resources.preferred["/namespaces"])
        collection = await self.reader.collection(owners)
        for key in namespaces.keys:
            entry = collection.entries.get(key_of(owners, key.name, reference.name))
            if entry is None or entry.namespace == node.key.partition[:-1]:
                continue
            if state_of(entry.key, entry.stored).uid == reference.uid:
                break
        else:
            return
        self._events += 1
        now = self.clock.now()
        value = _event(node, resource, reference, format_time(now), int(now.timestamp() * 1e9) + self._events)
        events = served_resources.kinds["v1", "Event"]
        namespace = value["metadata"]["namespace"]
        request = WriteRequest(
            Action.CREATE, events, namespace, body=Body(value), options=Options(field_manager=MANAGER), user=USER
        )
        try:
            await self.writer.write(request)
        except (ApiError, StoreError) as error:
            log.warning("%s: the Event about %s is not stored: %s", self.name, node.key.name, error)


def _event(node: Node, resource: Resource, reference: OwnerReference, time: str, number: int) -> Object:
    """The Event about an owner in another namespace (GraphBuilder.reportInvalidNamespaceOwnerRef)."""
    namespace, name = node.key.partition[:-1], node.key.name
    owner = f"[{reference.api_version}/{reference.kind}, namespace: {namespace}, name: {reference.name}, uid: {reference.uid}]"
    involved = {
        "kind": resource.kind,
        "namespace": namespace,
        "name": name,
        "uid": node.uid,
        "apiVersion": resource.api_version,
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{number:x}", "namespace": namespace or "default"},
        "involvedObject": {field: value for field, value in involved.items() if value},
        "reason": "OwnerRefInvalidNamespace",
        "message": f'ownerRef {owner} does not exist in namespace "{namespace}"',
        "source": {"component": COMPONENT},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
        "type": "Warning",
        "reportingComponent": COMPONENT,
    }
