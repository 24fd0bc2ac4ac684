"""KeyClaims: values that must be unique, such as addresses, when several servers share a store.

Each server knows which values stored objects have, and which its own writes are about to store. Claims tell it of the writes
of other servers: keys named after the values, which exist from before the object is stored until after. Only one of two
servers succeeds in creating a key.

    server A                                     server B
    create ranges/serviceips/10.0.0.5   at 7
    store Service a, which has it       at 8
    delete ranges/serviceips/10.0.0.5   at 9
                                                 create ranges/serviceips/10.0.0.5   at 12
                                                 has Service a by then: the value is taken

So after a claim has succeeded at a revision, and the state up to there has been applied, the value is free, or it is that of
a stored object (upstream creates an IPAddress, which remains, and writes a bitmap for node ports).

A claim whose server has died, or whose write has an unknown outcome, is deleted by any server that has seen it unchanged for
a whole period (`sweep`): longer than a request can take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from noxu.registry.cache import WatchCache
from noxu_storage.store import Store
from noxu_storage.types import Conflict, Key, Prefix, Revision, StoreError

SWEEP_EVERY: Final = 300.0  # seconds, the period
WAIT_FOR: Final = 1.0  # seconds for another server's write to end, before the next attempt
_VALUE: Final = b"{}"


class Claimed(Exception):
    """Another server's write is about to store the value, or was until a moment ago."""


class KeyClaims:
    """The claims of one server."""

    def __init__(self, store: Store, cache: WatchCache) -> None:
        self._store = store
        self._cache = cache
        self._seen: dict[Key, Revision] = {}  # at the last sweep
        self._releases: set[asyncio.Task[None]] = set()

    async def claim(self, keys: Iterable[Key]) -> dict[Key, Revision]:
        """Create claims, all of them or none, and wait until the cache has what precedes them. Raises Claimed, StoreError."""
        claims: dict[Key, Revision] = {}
        try:
            for key in keys:
                # noted one by one: a conflict releases those before it
                claims[key] = await self._store.put(key, _VALUE, expected=0)
            await self._cache.reached(max(claims.values(), default=0))
        except Conflict as conflict:
            self.release(claims)
            await self._until_released(conflict.key)
            raise Claimed from None
        except BaseException:
            self.release(claims)
            raise
        return claims

    async def _until_released(self, key: Key) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_FOR):
                after = self._store.revision
                if await self._store.get(key) is None:
                    return
                async for batch in self._store.watch(Prefix(key.collection, key.partition), after=after):
                    if any(event.key == key and event.value is None for event in batch.events):
                        return

    def release(self, claims: dict[Key, Revision]) -> None:
        """Delete claims, in the background."""
        if claims:
            task = asyncio.ensure_future(self._delete(claims))
            self._releases.add(task)  # else nothing would keep the task in use
            task.add_done_callback(self._releases.discard)

    async def _delete(self, claims: dict[Key, Revision]) -> None:
        for key, revision in claims.items():
            with suppress(StoreError):  # else a sweep deletes it
                await self._store.delete(key, expected=revision)

    async def sweep(self, collections: Iterable[str]) -> None:
        """Delete the claims that have not changed since the last call. Raises StoreError."""
        claims = {
            state.key: state.revision
            for collection in collections
            for state in (await self._store.list(Prefix(collection))).items
        }
        await self._delete({key: revision for key, revision in claims.items() if self._seen.get(key) == revision})
        self._seen = claims  # what is the same at the next sweep has no writer

    async def close(self) -> None:
        """Finish the releases under way."""
        await asyncio.gather(*self._releases, return_exceptions=True)
