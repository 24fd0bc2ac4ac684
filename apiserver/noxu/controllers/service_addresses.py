"""Follows the addresses and node ports of services, so that the next service gets free ones.

Upstream's "start-service-ip-repair-controllers" compare the stored allocations with the services; here the services are
the only record. The pool has the state of every service before its writer is answered. Where several servers share a
store, the addresses and ports of a service are claimed before it is stored (registry/claims.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Final, Self

from noxu.api import codec
from noxu.controllers.controller import Controller, ControllerParts
from noxu.registry.cache import Change
from noxu.registry.claims import SWEEP_EVERY, Claimed, KeyClaims
from noxu.registry.service_addresses import NOTHING, AddressReservation, Allocated, Pool, allocated
from noxu.registry.stored_object import StoredObject
from noxu.values import Object
from noxu_storage.types import Key, Revision

ADDRESSES: Final = "ranges/serviceips"
PORTS: Final = "ranges/servicenodeports"
"""The collections of claims."""
_SWEEP: Final = Key("ranges", "", "")  # the key of the controller whose reconciliation is a sweep of the claims


class _Reserved:
    """A reservation, which `claim` makes known to other servers. See `draft.Reservation`."""

    def __init__(self, controller: ServiceAddressController, chosen: AddressReservation) -> None:
        self._controller = controller
        self._chosen = chosen
        self._made: dict[Key, Revision] = {}

    def claim(self) -> Awaitable[None] | None:
        if not self._controller.reader.store.shared or self._chosen.chosen == NOTHING:
            return None
        return self._claim()

    async def _claim(self) -> None:
        addresses, ports = self._chosen.chosen
        keys = [Key(ADDRESSES, "", address) for address in addresses] + [Key(PORTS, "", str(port)) for port in ports]
        self._made = await self._controller.claims.claim(sorted(keys))
        await self._controller.observed()
        if self._chosen.is_contested():
            raise Claimed

    def end(self, *, is_certain: bool) -> None:
        self._chosen()
        if is_certain:
            self._controller.claims.release(self._made)


class ServiceAddressController(Controller[Key]):
    """Keeps the pool up to date. What it reconciles are the claims of all servers, if the store is shared."""

    name = "start-service-ip-repair-controllers"
    follows = (("", "services"),)
    on_process_time = True

    def __init__(self, parts: ControllerParts, pool: Pool) -> None:
        super().__init__(parts)
        self.pool = pool
        self.claims = KeyClaims(parts.reader.store, parts.reader.cache)

    def allocate(self, new: Object, old: Object | None, key: Key) -> _Reserved:
        """Complete a service that is being written. Raises ApiError."""
        return _Reserved(self, self.pool.allocate(new, old, key))

    def _take_over(self, idle: Self) -> None:
        super()._take_over(idle)
        self.pool.hold_all(idle.pool)

    async def stop(self) -> None:
        await self.claims.close()
        await super().stop()

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
        return (_SWEEP,) if self.reader.store.shared else ()

    def _allocated(self, entry: StoredObject) -> Allocated:
        return allocated(codec.decode_stored(entry.stored))  # no default sets any of it

    async def reconcile(self, key: Key) -> float | None:
        await self.claims.sweep((ADDRESSES, PORTS))
        return SWEEP_EVERY
