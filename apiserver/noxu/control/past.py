"""Views of the past: what a server served at a revision, with the definitions of that time.

A view has a reader that reads the store at its revision, and the served resources of then. It keeps no objects: its
definitions are read once, and those that serve what is served now, or in another view, share what is compiled for them. If no
definition has changed since, its served resources are those of now.

The newest MAX_VIEWS views are kept. A view that shares something that has changed meanwhile is made again:

    at 40   widgets.example.com is created                view(45): a new `Versions`, compiled at its first request
    at 50   its schema changes                            view(46): the `Versions` of view(45), since the digest is equal
    at 60   its annotation changes                        view(55): that of now
    at 70   it is being deleted, and discovery shows it   view(55): made again, with a `Versions` of its own

What depends on today is said here: webhooks that convert objects are called as their definition of then says, functions in
this process convert as they do now. Users may read what they may read now.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from noxu.api import errors
from noxu.control_plane import ControlPlane, resource_of
from noxu.controllers.api_services import GroupVersion, elsewhere
from noxu.controllers.definitions import ReadDefinition, read_definition, served_versions
from noxu.crd import conditions
from noxu.crd import types as crd
from noxu.registry.cache import entries_of
from noxu.registry.conversion.converters import Conversions, InProcess
from noxu.registry.offload import offload
from noxu.registry.reader import PastReader
from noxu.registry.resource import Resource, Versions
from noxu.registry.served_resources import AGGREGATOR, ServedResources
from noxu.registry.stored_object import StoredObject
from noxu_storage.types import Compacted, Corrupt, Prefix, Revision

MAX_VIEWS: Final = 8
"""Views that are kept. One with definitions that are not served now has their bytes, and what is compiled for those in use."""


class View(NamedTuple):
    """What was served at a revision. `is_current` says whether it still is what `PastViews.view` would make."""

    revision: Revision
    served: ServedResources
    reader: PastReader
    terminating: Mapping[Versions, bool]
    """Whether the definitions were being deleted (`Versions.deletes_instances`), which changes in place."""
    in_process: Mapping[str, InProcess]
    """The functions that convert, as they were given when the view was made."""

    def is_current(self, plane: ControlPlane) -> bool:
        return self.in_process == plane.conversions.in_process and all(
            versions.deletes_instances == then for versions, then in self.terminating.items()
        )


class PastViews:
    """The views of one server."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._definitions = resource_of(plane.served_resources, crd.GROUP, crd.RESOURCE)
        self._api_services = resource_of(plane.served_resources, AGGREGATOR, "apiservices")
        self._views: OrderedDict[Revision, View] = OrderedDict()
        self._versions: WeakValueDictionary[tuple[bytes, bool], Versions] = WeakValueDictionary()
        self._making = asyncio.Lock()
        self.compiled = 0
        """How many definitions have been made to be served again, because nothing could be shared."""

    async def view(self, revision: Revision) -> View:
        """The view at a revision, which is neither in the future nor compacted. Raises ApiError, StoreError."""
        view = self._views.get(revision)
        if view is None or not view.is_current(self._plane):
            async with self._making:  # one at a time: clients ask for several documents at once
                view = self._views.get(revision)
                if view is None or not view.is_current(self._plane):
                    view = await self._make(revision)
        self._views[revision] = view
        self._views.move_to_end(revision)
        while len(self._views) > MAX_VIEWS:
            self._views.popitem(last=False)
        return view

    async def _make(self, revision: Revision) -> View:
        plane = self._plane
        reader = PastReader(plane.store, plane.cache, revision)
        served, terminating = await self._served_at(revision)
        return View(revision, served, reader, terminating, dict(plane.conversions.in_process))

    async def _served_at(self, revision: Revision) -> tuple[ServedResources, Mapping[Versions, bool]]:
        """(What was served, whether its definitions were being deleted)."""
        now = self._plane.served_resources.current  # read once: it may change while this waits
        stored_now = await self._plane.reader.collection(self._definitions)
        names = {key.name for key in stored_now.keys}
        if stored_now.changed <= revision:
            then = dict.fromkeys(now.defined)
            served = now
            found = {name: now.defined[name] for name in then}
        else:
            found = {
                entry.key.name: versions
                for entry in await self._entries_at(self._definitions, revision)
                if (versions := await self._versions_of(entry, now)) is not None
            }
            served = _with(now, names, found)
        others = await self._elsewhere_at(revision)
        if others != served.elsewhere:
            served = served.with_elsewhere(others)
        return served, {versions: versions.deletes_instances for versions in found.values()}

    async def _versions_of(self, entry: StoredObject, now: ServedResources) -> Versions | None:
        """What a definition served, shared if possible; None if it served nothing."""
        read = await offload(len(entry.stored), read_definition, entry, self._definitions)
        if read.digest is None:
            return None
        terminates = conditions.is_true(read.crd, conditions.TERMINATING)
        key = read.digest, terminates
        live = now.defined.get(entry.key.name)
        if live is not None and (live.digest, live.deletes_instances) == key:
            return live
        shared = self._versions.get(key)
        if shared is not None and shared.deletes_instances == terminates:
            return shared
        versions = self._versions[key] = await self._compile(read, entry)
        versions.deletes_instances = terminates
        return versions

    async def _compile(self, read: ReadDefinition, entry: StoredObject) -> Versions:
        plane = self._plane
        versions = await offload(len(entry.stored), served_versions, read, entry, plane.features)
        self.compiled += 1
        # a copy of the live one, whose webhooks remain those of the newest definition
        conversions = Conversions(
            plane.conversions.call, plane.conversions.timeout, in_process=plane.conversions.in_process
        )
        versions.converter = conversions.define(entry.key.name, read.crd["spec"])
        return versions

    async def _elsewhere_at(self, revision: Revision) -> frozenset[GroupVersion]:
        """The group versions that other servers were registered for."""
        now = self._plane.served_resources.current.elsewhere
        stored_now = self._plane.reader.loaded(self._api_services)
        if stored_now is not None and stored_now.changed <= revision:
            return now
        entries = await self._entries_at(self._api_services, revision)
        found = [elsewhere(entry, self._api_services) for entry in entries]
        return frozenset(group_version for group_version in found if group_version is not None)

    async def _entries_at(self, resource: Resource, revision: Revision) -> Sequence[StoredObject]:
        """The objects of a resource at a revision; those that cannot be read are left out."""
        try:
            page = await self._plane.store.list(Prefix(resource.collection), revision=revision)
        except Compacted:
            raise errors.expired("The requested revision is too old.") from None
        except Corrupt as corrupt:
            if corrupt.page is None:
                raise
            page = corrupt.page
        return await entries_of(page.items)


def _with(now: ServedResources, stored_now: set[str], found: Mapping[str, Versions]) -> ServedResources:
    """What was served: of now only what is not stored (foreign kinds), and what was found in the past."""
    served = now
    for name in now.defined:
        if name in stored_now and name not in found:
            served = served.with_definition(name, None)
    for name, versions in found.items():
        if served.defined.get(name) is not versions:
            served = served.with_definition(name, versions)
    return served
