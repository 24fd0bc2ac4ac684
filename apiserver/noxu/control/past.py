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
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.moments import FORMS, Moments
from noxu.control.running import Control
from noxu.control_plane import ControlPlane, resource_of
from noxu.controllers.api_services import elsewhere
from noxu.controllers.definitions import read_definition, served_versions
from noxu.crd import conditions
from noxu.crd import types as crd
from noxu.go.time import MICRO, format_time
from noxu.registry.cache import entries_of
from noxu.registry.conversion.converters import Conversions, InProcess
from noxu.registry.offload import offload
from noxu.registry.reader import PastReader
from noxu.registry.resource import Converter, Resource, Versions
from noxu.registry.served_resources import AGGREGATOR, ServedResources
from noxu.registry.stored_object import StoredObject
from noxu.values import Object
from noxu_storage.types import FIRST, Compacted, Corrupt, Prefix, Revision

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


class TimeTravel:
    """The past of one server: its moments, and its views."""

    def __init__(self, control: Control) -> None:
        plane = control.server.plane
        self.moments = Moments(plane.store, plane.clock, control.server.history)
        self.views = PastViews(plane)

    async def at(self, text: str) -> View:
        """The view at a moment. Raises ApiError, StoreError."""
        moment = await self.moments.find(text)
        return await self.views.view(moment.revision)


async def moment_of(call: ControlCall) -> Object:
    """Which revision a moment is, and since when the past is kept."""
    moment = await call.control.part(TimeTravel).moments.find(call.path["moment"])
    time = None if moment.time is None else format_time(moment.time, MICRO)
    return {"revision": moment.revision, "time": time, "first": max(call.plane.store.compacted, FIRST)}


ROUTES: Final = (
    ControlRoute(
        "GET",
        "/_noxu/at/{moment}",
        moment_of,
        f"Find the revision of a moment: {FORMS}. Followed by a path of the API, read what it served then.",
    ),
)


# -- views -------------------------------------------------------------------------------------------------------------


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
        plane = self._plane
        definitions = await plane.reader.collection(self._definitions)
        if definitions.changed <= revision and self._are_unchanged(self._api_services, revision):
            return self._view(revision, plane.served_resources.current, {})
        view = self._views.get(revision)
        if view is None or not view.is_current(plane):
            async with self._making:  # one at a time: clients ask for several documents at once
                view = self._views.get(revision)
                if view is None or not view.is_current(plane):
                    view = self._view(revision, *await self._served_at(revision))
        self._views[revision] = view
        self._views.move_to_end(revision)
        while len(self._views) > MAX_VIEWS:
            self._views.popitem(last=False)
        return view

    def _view(self, revision: Revision, served: ServedResources, terminating: Mapping[Versions, bool]) -> View:
        plane = self._plane
        reader = PastReader(plane.store, plane.cache, revision)
        return View(revision, served, reader, terminating, dict(plane.conversions.in_process))

    def _are_unchanged(self, resource: Resource, revision: Revision) -> bool:
        """Whether no object of a resource has changed since. Where nothing has loaded them, nothing depends on them."""
        collection = self._plane.reader.loaded(resource)
        return collection is None or collection.changed <= revision

    async def _served_at(self, revision: Revision) -> tuple[ServedResources, Mapping[Versions, bool]]:
        """(What was served, whether its definitions were being deleted)."""
        served = self._plane.served_resources.current  # read once: it may change while this waits
        found = {
            entry.key.name: versions
            for entry in await self._entries_at(self._definitions, revision)
            if (versions := await self._versions_of(entry, served)) is not None
        }
        if not self._are_unchanged(self._api_services, revision):
            entries = await self._entries_at(self._api_services, revision)
            others = [elsewhere(entry, self._api_services) for entry in entries]
            served = served.with_elsewhere(frozenset([group_version for group_version in others if group_version]))
        return _with(served, found), {versions: versions.deletes_instances for versions in found.values()}

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
        versions = self._versions.get(key)
        if versions is None:
            versions = await offload(len(entry.stored), served_versions, read, entry, self._plane.features)
            self.compiled += 1
        self._versions[key] = versions
        versions.deletes_instances = terminates
        # also if it is shared: the functions that convert may be others since
        versions.converter = self._converter(entry.key.name, read.crd["spec"])
        return versions

    def _converter(self, name: str, spec: Object) -> Converter | None:
        """What converts the objects of a definition of the past; the live `Conversions` remember the newest definition."""
        live = self._plane.conversions
        return Conversions(live.call, live.timeout, in_process=live.in_process).define(name, spec)

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


def _with(now: ServedResources, found: Mapping[str, Versions]) -> ServedResources:
    """What was served: of now what is not stored (built-in and foreign kinds), and what was found in the past."""
    served = now
    for name, versions in now.defined.items():
        if name not in found and versions.digest is not None:
            served = served.with_definition(name, None)
    for name, versions in found.items():
        if served.defined.get(name) is not versions:
            served = served.with_definition(name, versions)
    return served
