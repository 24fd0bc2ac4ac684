"""Leases: etcd deletes the keys of a lease when it expires, and the watch brings the deletions like any others.

A lease for each key would cost etcd as much as the key, so consecutive writes share one, as with upstream's lease manager
(storage/etcd3/lease_manager.go): it lasts a little longer than the keys have to, and gets further keys as long as it lasts
long enough for them. With a lifetime of an hour (the reuse is 5 % of it, at most a minute):

    12:00:00    first write: a lease of 3600 + 60 s is granted      expires 13:01:00
    12:00:59    write: 3601 s are left, the lease is used again
    12:01:01    write: 3599 s are left, a new lease is granted      expires 13:02:01
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from noxu_storage.etcd_client import Client
from noxu_storage.etcd_messages import LEASE_GRANT, Message

REUSED_FOR: Final = 60  # seconds at most
REUSED_PERCENT: Final = 5  # of the lifetime
MAX_KEYS: Final = 1_000  # that a lease gets: deleting many keys at once delays others


class _Lease:
    def __init__(self, number: int, expires: float) -> None:
        self.number = number
        self.expires = expires
        self.keys = 0


class Leases:
    """The leases of one store."""

    def __init__(self, client: Client, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._monotonic = monotonic
        self._newest: dict[int, _Lease] = {}  # by lifetime
        self._granting = asyncio.Lock()

    async def lease(self, lifetime: int) -> int:
        """The lease for a key that has to exist for so many seconds. Raises Lost, Refused."""
        async with self._granting:
            now = self._monotonic()
            found = self._newest.get(lifetime)
            if found is None or now + lifetime >= found.expires or found.keys >= MAX_KEYS:
                seconds = lifetime + min(lifetime * REUSED_PERCENT // 100, REUSED_FOR)
                granted = await self._client.call(LEASE_GRANT, Message["LeaseGrantRequest"](TTL=seconds))
                found = self._newest[lifetime] = _Lease(granted.ID, now + seconds)
            found.keys += 1
            return found.number

    def forget(self) -> None:
        """Grant new leases: etcd may have lost the newest ones."""
        self._newest.clear()
