"""Views of the past: what a server served at a revision, with the definitions of that time.

A view has a reader that reads the store at its revision, and the served resources of then. It keeps no objects: its
definitions are read once, and those that serve what is served now, or in another view, share what is compiled for them. If no
definition has changed since, its served resources are those of now.

What was served is the same between two changes of definitions, so views of such revisions share it; the MAX_VIEWS that were
used last are kept. What shares something that has changed in place meanwhile is made again:

    at 40   widgets.example.com is created                view(45): a new `Versions`, compiled at its first request
    at 50   its schema changes                            view(46): the served resources of view(45)
    at 60   its annotation changes                        view(55): the `Versions` of now, since the digest is equal
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
"""How many different sets of served resources are kept. One with definitions that are not served now has their bytes, and
what is compiled for those in use."""


class View(NamedTuple):
    """What was served at a revision, and a reader of the objects of then."""

    revision: Revision
    served: ServedResources
    reader: PastReader


class ServedThen(NamedTuple):
    """What was served between two changes of definitions, and what of it changes in place, as it was when this was made."""

    resources: ServedResources
    terminating: Mapping[Versions, bool]
    """Whether the definitions were being deleted (`Versions.deletes_instances`)."""
    in_process: Mapping[str, InProcess]
    """The functions that convert."""

    def is_current(self, plane: ControlPlane) -> bool:
        """Whether it still is what would be made now."""
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
        self._kept: OrderedDict[object, ServedThen] = OrderedDict()
        self._versions: WeakValueDictionary[tuple[bytes, bool], Versions] = WeakValueDictionary()
        self._making = asyncio.Lock()
        self.compiled = 0
        """How many definitions have been made to be served again, because nothing could be shared."""

    async def view(self, revision: Revision) -> View:
        """The view at a revision, which is neither in the future nor compacted. Raises ApiError, StoreError."""
        plane = self._plane
        reader = PastReader(plane.store, plane.cache, revision)
        await plane.reader.collection(self._definitions)  # it is loaded, as it is needed below
        changes = self._next_change(self._definitions, revision), self._next_change(self._api_services, revision)
        if changes == (None, None):
            return View(revision, plane.served_resources.current, reader)
        then = self._kept.get(changes)
        if then is None or not then.is_current(plane):
            async with self._making:  # one at a time: clients ask for several documents at once
                then = self._kept.get(changes)
                if then is None or not then.is_current(plane):
                    then = await self._served_at(revision)
        self._kept[changes] = then
        self._kept.move_to_end(changes)
        while len(self._kept) > MAX_VIEWS:
            self._kept.popitem(last=False)
        return View(revision, then.resources, reader)

    def _next_change(self, resource: Resource, revision: Revision) -> object:
        """The revision of the first change of a resource's objects after a revision, None if there is none.

        If the cache no longer knows it: a key of the revision itself. Where nothing has loaded the objects, nothing depends
        on them.
        """
        collection = self._plane.reader.loaded(resource)
        if collection is None or collection.changed <= revision:
            return None
        changes = collection.since(revision)
        return changes[0].revision if changes else ("at", revision)

    async def _served_at(self, revision: Revision) -> ServedThen:
        in_process = dict(self._plane.conversions.in_process)
        served = self._plane.served_resources.current  # read once: it may change while this waits
        found: dict[str, Versions] = {}
        for entry in await self._entries_at(self._definitions, revision):
            versions = await self._versions_of(entry, served)
            if versions is not None:
                found[entry.key.name] = versions
            await asyncio.sleep(0)  # small definitions are read in the loop
        if self._next_change(self._api_services, revision) is not None:
            entries = await self._entries_at(self._api_services, revision)
            others = [elsewhere(entry, self._api_services) for entry in entries]
            served = served.with_elsewhere(frozenset([group_version for group_version in others if group_version]))
        terminating = {versions: versions.deletes_instances for versions in found.values()}
        return ServedThen(_with(served, found), terminating, in_process)

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
        return Conversions(live.call, live.timeout, live.identifiers, live.in_process, live.metrics).define(name, spec)

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
