"""Follows services: which addresses and node ports they have, for those that are written next.

Upstream's "start-service-ip-repair-controllers" compare the stored allocations with the services; here the services are the
only record. The pool has the state of every service before its writer is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from noxu.apiserver.clock import Clock
from noxu.apiserver.controllers.controller import Controller
from noxu.apiserver.registry.change import Change
from noxu.apiserver.registry.entry import Entry, object_at
from noxu.apiserver.registry.reader import Reader
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.registry.service_addresses import NOTHING, Allocated, Pool, allocated
from noxu.apiserver.values import Object
from noxu.storage.types import Key


class ServiceAddressController(Controller[Key]):
    """Keeps the pool up to date. It reconciles nothing."""

    name = "start-service-ip-repair-controllers"

    def __init__(self, reader: Reader, services: Resource, pool: Pool, clock: Clock) -> None:
        super().__init__(reader, services, clock)
        self.pool = pool

    def allocate(self, new: Object, old: Object | None, key: Key) -> Callable[[], None]:
        """Complete a service that is being written; the result ends its reservation. Raises ApiError."""
        return self.pool.allocate(new, old, key)

    def observe(self, change: Change) -> Iterable[Key]:
        self.pool.hold(change.key, NOTHING if change.entry is None else self._allocated(change.entry))
        return ()

    def resync(self) -> Iterable[Key]:
        entries = self.collection.entries
        for gone in self.pool.owners() - entries.keys():
            if isinstance(gone, Key):
                self.pool.hold(gone, NOTHING)
        for key, entry in entries.items():
            self.pool.hold(key, self._allocated(entry))
        return ()

    def _allocated(self, entry: Entry) -> Allocated:
        return allocated(object_at(entry, self.resource))

    async def reconcile(self, key: Key) -> float | None:
        return None
