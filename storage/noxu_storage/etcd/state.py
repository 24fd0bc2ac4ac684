"""Read all keys of a layout in etcd at one revision, without a store: for commands.

The pages of a state are of one revision, whatever is written meanwhile. etcd keeps it until it is compacted, which
servers do after five minutes: a read that takes longer fails, and can be started again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from noxu_storage.etcd.channel import NO_TLS, TlsFiles
from noxu_storage.etcd.client import EtcdClient, EtcdUser
from noxu_storage.etcd.errors import CallLost, CallRefused, advised
from noxu_storage.etcd.history import COMPACTED, COPYING, INCOMPLETE, PAGE
from noxu_storage.etcd.layout import Layout, end_of
from noxu_storage.etcd.messages import RANGE, Message, Method
from noxu_storage.states import States
from noxu_storage.types import (
    Key,
    KeyValue,
    OpenError,
    Prefix,
    Progress,
    Revision,
    Unavailable,
    no_progress,
    reason,
)


class EtcdState:
    """The keys under the prefix of a layout at `revision`; `total` is their number, with those that are not of a store."""

    def __init__(self, client: EtcdClient, layout: Layout, revision: Revision, total: int) -> None:
        self.client = client
        self.layout = layout
        self.revision = revision
        self.total = total

    async def pages(self, progress: Progress = no_progress) -> AsyncIterator[Sequence[Any]]:
        """etcd's messages KeyValue, in the order of their keys. Raises Unavailable."""
        start, end, done = self.layout.prefix, end_of(self.layout.prefix), 0
        while True:
            request = Message["RangeRequest"](key=start, range_end=end, limit=PAGE, revision=self.revision)
            page = await repeated(self.client, RANGE, request)
            yield page.kvs
            done += len(page.kvs)
            progress(done, self.total)
            if not page.more:
                return
            start = page.kvs[-1].key + b"\0"

    def state(self, item: Any) -> KeyValue | None:
        """The state in a message; None if its key is not one of a store."""
        key = self.layout.key_of(item.key)
        return None if key is None else KeyValue(key, self.layout.from_etcd(key, item.value), item.mod_revision)


@asynccontextmanager
async def opened(
    servers: Sequence[str],
    layout: Layout,
    tls: TlsFiles = NO_TLS,
    user: EtcdUser | None = None,
    revision: Revision = 0,
    *,
    incomplete: bool = False,
) -> AsyncIterator[EtcdState]:
    """The state at a revision (0: now). `incomplete`: also one that is being copied. Raises OpenError."""
    try:
        client = EtcdClient(servers, tls, user)
    except (OSError, ValueError) as error:
        raise OpenError(f"etcd: {advised(reason(error))}") from None
    try:
        request = Message["RangeRequest"](
            key=layout.prefix, range_end=end_of(layout.prefix), revision=revision, count_only=True
        )
        try:
            response = await repeated(client, RANGE, request)
            marker = await repeated(client, RANGE, Message["RangeRequest"](key=layout.prefix + COPYING))
        except Unavailable as error:
            at = f" at revision {revision}" if revision else ""
            raise OpenError(f"cannot read from etcd at {', '.join(servers)}{at}: {error}") from None
        if marker.kvs and not incomplete:
            raise OpenError(f"etcd at {', '.join(servers)}: {INCOMPLETE}")
        yield EtcdState(client, layout, revision or int(response.header.revision), int(response.count))
    finally:
        await client.close()


async def repeated(client: EtcdClient, method: Method, request: Any) -> Any:
    """The response to a call that may be executed more than once. Raises Unavailable."""
    try:
        return await client.ask(method, request)
    except CallRefused as refused:
        if str(refused) == COMPACTED:
            raise Unavailable("etcd has been compacted meanwhile; start again") from None
        raise Unavailable(advised(str(refused))) from None
    except CallLost as lost:
        raise Unavailable(advised(str(lost) or "no answer")) from None


class EtcdSnapshot:
    """A state in memory, with the methods of `snapshot.Snapshot`."""

    def __init__(self, states: States, revision: Revision) -> None:
        self.revision = revision
        self.corrupt: dict[Key, Revision] = {}
        self._states = states

    def values(self, prefix: Prefix) -> Iterator[KeyValue]:
        yield from self._states.select(prefix)[0]

    def count(self, prefix: Prefix) -> int:
        return self._states.count(prefix)


async def snapshot(
    servers: Sequence[str],
    layout: Layout,
    tls: TlsFiles = NO_TLS,
    user: EtcdUser | None = None,
    progress: Progress = no_progress,
) -> EtcdSnapshot:
    """Read everything. Raises OpenError, Unavailable."""
    states = States()
    async with opened(servers, layout, tls, user) as etcd:
        async for page in etcd.pages(progress):
            for item in page:
                if (state := etcd.state(item)) is not None:
                    states.put(state)
    return EtcdSnapshot(states, etcd.revision)
