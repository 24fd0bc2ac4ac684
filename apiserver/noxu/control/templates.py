"""Templates: what servers with the same configuration and the same manifests have in common, made once.

A template is a control plane that has loaded the manifests, has become idle, and has ended. A server that begins with it
shares all that: the stored bytes, the entries of the cache, the definitions with what is compiled for them. Nothing is
parsed, validated or written again; and a server that changes something takes a copy of it first:

    store        a dict of each collection, with its first write            noxu_storage.memory.Base
    cache        likewise, the entries and their keys                       registry.cache.Collection.continued
    definitions  the versions of one, when it ends, or is converted here    registry.resource.Versions.copy
    controllers  what they have found out, at once or when it changes       Reconciler.take_over

What is compiled later, by the first request for a resource in any of these servers, is shared by all.

A server has of its own: revisions after those of the template, its keys, tokens and certificates, the uids of the system
namespaces (that of `kube-system` identifies a cluster), and the objects that are about itself: the Service `kubernetes` with
its endpoints, and its Lease. All other objects have the uid and the creationTimestamp that they have in the template.

A template follows the clock of the system. A server with another clock or other identifiers, or with objects outside of its
memory, loads manifests itself (`is_possible`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from noxu.clock import SYSTEM_CLOCK, Clock
from noxu.config import Config, StartError
from noxu.control_plane import ControlPlane, Seams, assemble, elected, resource_of, running
from noxu.controllers.bootstrap import Facts
from noxu.controllers.default_objects import SYSTEM_NAMESPACES
from noxu.expressions import expression
from noxu.go.time import format_time
from noxu.identifiers import SYSTEM_IDENTIFIERS, Identifiers
from noxu.kinds.core import SERVICE_ACCOUNT_TOKEN
from noxu.manifests import served_files
from noxu.manifests.documents import Document
from noxu.registry.cache import Collection as CachedCollection
from noxu.registry.resource import Versions
from noxu.registry.served_resources import ServedResources
from noxu.registry.stored_object import StoredObject, key_of
from noxu_storage.memory import Base, MemoryStore
from noxu_storage.types import Key

if TYPE_CHECKING:
    from noxu.crd.known_definitions import KnownDefinitions
    from noxu.webhook.client import Caller

IDLE_WITHIN: Final = 10.0
"""Seconds in which controllers have to reconcile what is loaded."""
_SOON: Final = 1.0  # seconds; what is due within them is waited for
_ATTEMPTS: Final = 3
_LOOKS_EVERY: Final = 0.002  # seconds
_SHARED: Final = (
    "features", "webhook_services", "event_ttl", "profile", "controllers", "admission_plugins", "authorization_modes",
    "disabled", "services", "node_ports", "create_namespaces", "nodes", "stages", "exec",
)  # fmt: skip
"""The fields of a configuration on which stored objects, and what controllers know, depend."""
_UID: Final = expression(rb'"uid":"([^"\\]*)"')


class NeverIdle(StartError):
    """Controllers go on and on with what is loaded, so there can be no template of it."""


def shared(config: Config) -> Config:
    """The part of a configuration that servers from one template have in common."""
    return replace(Config(port=0), **{name: getattr(config, name) for name in _SHARED})


def is_possible(config: Config, clock: Clock = SYSTEM_CLOCK, identifiers: Identifiers = SYSTEM_IDENTIFIERS) -> bool:
    """Whether a server with this configuration can begin with a template."""
    is_system = clock is SYSTEM_CLOCK and identifiers is SYSTEM_IDENTIFIERS
    is_system = is_system and not config.clock and config.deterministic is None
    in_memory = config.data is None and config.etcd is None and config.initial is None
    reads_files = config.files or config.kustomizations or config.kinds or config.watch
    return is_system and in_memory and not reads_files and not config.annotate_invalid and elected(config) is None


Period: TypeAlias = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """Immutable but for what is compiled later. It may be used in any thread, for any number of servers.

    `plane` has ended. `base` is what it has stored; `own` are the keys of those objects that are about a server, unless
    a manifest has changed them. `periods` are those in which objects have their times. `due`: for each controller, when it reconciles keys again, in seconds after the start.
    """

    config: Config
    plane: ControlPlane
    base: Base
    collections: Sequence[CachedCollection]
    own: frozenset[Key]
    periods: Sequence[Period]
    due: Sequence[Mapping[Any, float]]

    def begin(self, config: Config, seams: Seams) -> ControlPlane:
        """A control plane that begins with this template; `control_plane.running` runs it.

        Raises ValueError for another configuration than that of the template.
        """
        if shared(config) != self.config:
            raise ValueError("the template has another configuration")
        store = MemoryStore(self.base)
        plane = assemble(config, store, seams)
        individual = self._individual(plane, seams)
        store.replace(individual)
        revisions = self.base.collections
        plane.cache.begin_with(
            self.collections,
            [StoredObject(key, value, revisions[key.collection][key].revision) for key, value in individual.items()],
        )
        plane.served_resources.begin_with(partial(self._served, plane))
        plane.take_over = partial(self._take_over, plane)
        return plane

    def _individual(self, plane: ControlPlane, seams: Seams) -> dict[Key, bytes]:
        """The objects that differ from those of the template."""
        new_uid, now = seams.identifiers.new_uid, format_time(seams.clock.now()).encode()
        values: dict[Key, bytes] = {}
        for first in plane.bootstrap.own_objects():
            key = first.stored_key
            if key in self.own:
                values[key] = first.filled(new_uid(), now)
        namespaces = resource_of(plane.served_resources, "", "namespaces")
        for name in SYSTEM_NAMESPACES:
            event = self.base.collections[namespaces.collection].get(key := key_of(namespaces, "", name))
            if event is not None and event.value is not None:
                values[key] = _UID.sub(b'"uid":"%b"' % new_uid().encode(), event.value, count=1)
        return values

    def _served(self, plane: ControlPlane) -> ServedResources:
        """The definitions. Those that a webhook converts are copied, because each server calls it itself."""
        served, copies = self.plane.served_resources.current, dict[str, Versions]()
        for name, conversion in self.plane.conversions.webhooks.items():
            copies[name] = versions = served.defined[name].copy()
            versions.converter = plane.conversions.define(name, {"conversion": conversion})
        return served.with_copies(copies) if copies else served

    def _take_over(self, plane: ControlPlane) -> None:
        for controller, idle, due in zip(plane.all_controllers, self.plane.all_controllers, self.due, strict=True):
            controller.take_over(idle, due)


async def make(
    config: Config,
    documents: Iterable[Document],
    caller: Caller | None = None,
    parent: Template | None = None,
    definitions: KnownDefinitions | None = None,
) -> Template:
    """Load the manifests for servers with this configuration.

    `caller` calls webhooks, as in `Seams`. `parent` is a template without manifests to begin with. `definitions`: what is known
    of the definitions in the documents, which saves nearly half of the time of large ones. Raises StartError: objects
    are refused, unless the configuration keeps going without them; NeverIdle.
    """
    keeps_going, config, loads = config.keep_going, shared(config), list(documents)

    def begin() -> ControlPlane:
        seams = _seams(config, caller)
        return assemble(config, MemoryStore(), seams) if parent is None else parent.begin(config, seams)

    async def load(plane: ControlPlane) -> None:
        loaded = await served_files.load(plane, config, loads, definitions)
        if not keeps_going:
            served_files.check_loaded(config, loaded.errors)

    return await _made(config, begin, load if loads else None, None, () if parent is None else parent.periods)


class KeptObjects(NamedTuple):
    """What a template has stored. `own` are the objects that are about a server; `defined` are the definitions in their order."""

    base: Base
    own: Collection[Key]
    defined: Sequence[str]


async def make_of(kept: KeptObjects, config: Config, caller: Caller | None = None) -> Template:
    """A template of objects that an earlier one has stored. Raises StartError."""
    config = shared(config)
    seams = _seams(config, caller)
    made = await _made(config, lambda: assemble(config, MemoryStore(kept.base), seams), None, kept.own, ())
    served_resources = made.plane.served_resources
    if {*kept.defined} == served_resources.current.defined.keys():
        served_resources.current = served_resources.current.in_order(kept.defined)  # nothing uses the plane any more
    return made


def _seams(config: Config, caller: Caller | None) -> Seams:
    """Those of no server: see `own_objects`."""
    return Seams(caller=caller, facts=Facts(1, socket.gethostname(), "template", services=config.services))


async def _made(
    config: Config,
    begin: Callable[[], ControlPlane],
    load: Callable[[ControlPlane], Awaitable[None]] | None,
    own: Collection[Key] | None,
    earlier: Sequence[Period],
) -> Template:
    """`own` None: the objects about a server that `load` leaves alone. `earlier` are the periods of a parent."""
    began = SYSTEM_CLOCK.now()
    for _ in range(_ATTEMPTS):
        plane = begin()
        store = plane.store
        assert isinstance(store, MemoryStore)
        async with running(plane):
            about_server = [first.stored_key for first in plane.bootstrap.own_objects()]
            before = [await store.get(key) for key in about_server]
            if load is not None:
                await load(plane)
            await _idle(plane)
            # all of it is of the same moment: nothing is awaited in between
            base, collections = store.base(), [each.continued() for each in plane.cache.collections.values()]
            due = [controller.due for controller in plane.all_controllers]
        if store.revision == base.revision:
            break  # else a controller has written something while the others ended, such as a lease
    if own is None:
        own = {state.key for state in before if state is not None and base.state(state.key) == state}
    periods = *earlier, (began, SYSTEM_CLOCK.now())
    _share(plane, collections)
    return Template(config, plane, base, collections, frozenset(own), periods, due)


def _share(plane: ControlPlane, collections: Iterable[CachedCollection]) -> None:
    """From here on other threads use the definitions of a control plane that has ended, and these collections."""
    for versions in plane.served_resources.current.defined.values():
        versions.is_shared = True
    for collection in collections:
        for entry in collection.entries.values():
            entry.decoded = None
    for collection in plane.cache.collections.values():
        collection.forget_recent()  # what was replaced is not needed again


async def _idle(plane: ControlPlane) -> None:
    """Return when controllers have nothing to do but to try again what has failed, as in each server. Raises NeverIdle."""
    try:
        async with asyncio.timeout(IDLE_WITHIN):
            while not all(each.rests(_SOON) for each in plane.all_controllers):  # noqa: ASYNC110 - of twenty queues
                await asyncio.sleep(_LOOKS_EVERY)
    except TimeoutError:
        busy = [controller.name for controller in plane.all_controllers if not controller.rests(_SOON)]
        raise NeverIdle(f"after {IDLE_WITHIN:g} s these controllers are not done yet: {', '.join(busy)}") from None


def has_tokens(template: Template) -> bool:
    """Whether there are Secrets with tokens, which each server has to sign itself."""
    secrets = template.base.collections.get("/secrets", {})
    return any(SERVICE_ACCOUNT_TOKEN.encode() in (event.value or b"") for event in secrets.values())
