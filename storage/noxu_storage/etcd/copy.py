"""Write the states of a store into etcd: under an empty prefix, or under one that has keys.

Each state is a transaction of its own, so that each has a revision of its own: watches can be resumed between them.
etcd gives each state a new revision, so `resourceVersion`s change.

While a copy is incomplete, the prefix has the key COPYING, whose value names the source: stores and commands refuse the
prefix. The same copy, started again, continues: a key with the same value stays. At the end COPYING is deleted. Nothing
else is ever deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final

from noxu_storage.etcd.channel import NO_TLS, TlsFiles
from noxu_storage.etcd.client import MAX_REQUEST, EtcdClient, EtcdUser
from noxu_storage.etcd.errors import CallLost, CallRefused, advised
from noxu_storage.etcd.history import BARRIER, COPYING
from noxu_storage.etcd.layout import Layout, end_of
from noxu_storage.etcd.messages import RANGE, TARGET_MOD, TXN, Message
from noxu_storage.etcd.state import repeated
from noxu_storage.etcd.writes import Leases
from noxu_storage.types import Key, KeyValue, OpenError, Revision, TooLarge, Unavailable, reason

NO_LIFETIMES: Final[Mapping[str, int]] = MappingProxyType({})
AT_ONCE: Final = 64  # transactions under way
TOO_LARGE: Final = "etcdserver: request is too large"


class EtcdWriter:
    """Takes states. `refused` are those that etcd does not take, and why; `unchanged` is the number of those that were there."""

    def __init__(self, client: EtcdClient, layout: Layout, lifetimes: Mapping[str, int], *, replace: bool) -> None:
        """`replace`: replace other values of the same keys, which are refused otherwise. `lifetimes`: see `EtcdStore`."""
        self.unchanged = 0
        self.refused: dict[Key, str] = {}
        self._client = client
        self._layout = layout
        self._replace = replace
        self._lifetimes = lifetimes
        self._leases = Leases(client)
        self._places = asyncio.Semaphore(AT_ONCE)

    async def write(self, states: Sequence[KeyValue]) -> None:
        """Raises Unavailable."""
        results = await asyncio.gather(*map(self._write, states), return_exceptions=True)
        for error in results:
            if error is not None:
                raise error

    async def _write(self, state: KeyValue) -> None:
        async with self._places:
            await self._attempts(state)

    async def _attempts(self, state: KeyValue) -> None:
        at, value = self._layout.key(state.key), self._layout.to_etcd(state.key, state.value)
        if self._layout.key_of(at) != state.key:
            self.refused[state.key] = "etcd has no key for it"
            return
        expected: Revision = 0
        while True:
            try:
                response = await put_if(self._client, at, value, expected, await self._lease_for(state.key))
            except TooLarge:
                self.refused[state.key] = TOO_LARGE
                return
            if response.succeeded:
                return
            existing = response.responses[0].response_range.kvs
            if existing and existing[0].value == value:  # of an interrupted copy, or of an attempt without an answer
                self.unchanged += 1
                return
            if existing and not self._replace:
                self.refused[state.key] = "another object has the key"
                return
            expected = existing[0].mod_revision if existing else 0

    async def _lease_for(self, key: Key) -> int:
        """0: the key does not expire. Raises Unavailable."""
        lifetime = self._lifetimes.get(key.collection)
        try:
            return await self._leases.lease(lifetime) if lifetime else 0
        except (CallLost, CallRefused) as error:
            raise Unavailable(f"etcd: {advised(str(error))}") from None


async def put_if(client: EtcdClient, key: bytes, value: bytes, expected: Revision, lease: int = 0) -> Any:
    """The response to a transaction that puts a value if the key is at a revision (0: does not exist), and else reads it.

    Raises TooLarge, Unavailable.
    """
    request = Message["TxnRequest"](
        compare=[Message["Compare"](target=TARGET_MOD, key=key, mod_revision=expected)],
        success=[Message["RequestOp"](request_put=Message["PutRequest"](key=key, value=value, lease=lease))],
        failure=[Message["RequestOp"](request_range=Message["RangeRequest"](key=key))],
    )
    if request.ByteSize() > MAX_REQUEST:
        raise TooLarge(TOO_LARGE)
    try:
        return await repeated(client, TXN, request)
    except Unavailable as error:
        if str(error) == TOO_LARGE:
            raise TooLarge(TOO_LARGE) from None
        raise


@asynccontextmanager
async def connected(
    servers: Sequence[str], tls: TlsFiles = NO_TLS, user: EtcdUser | None = None
) -> AsyncIterator[EtcdClient]:
    """Raises OpenError."""
    try:
        client = EtcdClient(servers, tls, user)
    except (OSError, ValueError) as error:
        raise OpenError(f"etcd: {advised(reason(error))}") from None
    try:
        yield client
    finally:
        await client.close()


async def interrupted(client: EtcdClient, layout: Layout) -> bytes | None:
    """What an interrupted copy said about itself; None if there is none. Raises Unavailable."""
    response = await repeated(client, RANGE, Message["RangeRequest"](key=layout.prefix + COPYING))
    return bytes(response.kvs[0].value) if response.kvs else None


async def count(client: EtcdClient, layout: Layout) -> int:
    """The number of keys under a prefix that are not the store's own. Raises Unavailable."""
    everything = Message["RangeRequest"](key=layout.prefix, range_end=end_of(layout.prefix), count_only=True)
    total = int((await repeated(client, RANGE, everything)).count)
    for own in (BARRIER, COPYING):
        total -= int(
            (await repeated(client, RANGE, Message["RangeRequest"](key=layout.prefix + own, count_only=True))).count
        )
    return total


@asynccontextmanager
async def copying(
    client: EtcdClient,
    layout: Layout,
    description: bytes,
    lifetimes: Mapping[str, int] = NO_LIFETIMES,
    *,
    replace: bool,
) -> AsyncIterator[EtcdWriter]:
    """Mark the prefix while the context is open, and afterwards if it is left with an error.

    `description` is the value of the mark. Keys of the collections in `lifetimes` expire after so many seconds. A copy with another one is not continued: OpenError. Raises Unavailable.
    """
    mark = layout.prefix + COPYING
    response = await put_if(client, mark, description, 0)
    if not response.succeeded and response.responses[0].response_range.kvs[0].value != description:
        raise OpenError("etcd: another copy under the prefix was interrupted")
    yield EtcdWriter(client, layout, lifetimes, replace=replace)
    unmark = Message["RequestOp"](request_delete_range=Message["DeleteRangeRequest"](key=mark))
    await repeated(client, TXN, Message["TxnRequest"](success=[unmark]))
