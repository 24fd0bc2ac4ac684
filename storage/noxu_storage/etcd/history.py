"""Older states and events, which etcd has until they are compacted, and compaction, a duty that all its users share.

etcd is compacted as a whole. All servers, upstream's too, count the turns in the version of one key outside of all prefixes,
whose value is the newest compacted revision: the first one to count a turn compacts, the others learn what has been compacted
(storage/etcd3/compact.go of k8s.io/apiserver):

    this server has seen version 3      if the version is 3, put 812: it is 4 now, and this server compacts to 812
    another one has seen version 3      if the version is 3, put 810: it is 4, with 812, which it remembers
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

from noxu_storage import log
from noxu_storage.etcd.client import EtcdClient
from noxu_storage.etcd.errors import CallLost, CallRefused, advised
from noxu_storage.etcd.layout import APART, Layout, end_of, values_of
from noxu_storage.etcd.messages import COMPACT, DELETED, RANGE, TARGET_VERSION, TXN, Message
from noxu_storage.log import Log
from noxu_storage.types import Batch, Event, FutureRevision, Key, KeyValue, Page, Prefix, Revision, Unavailable

PAGE: Final = 500  # keys that are read at a time
BARRIER: Final = APART + b"barrier"  # after the prefix: no key of a store
COPYING: Final = APART + b"copying"  # likewise: what is copied under the prefix is not complete, see copy.py
INCOMPLETE: Final = "a copy under the prefix was interrupted; start it again to complete it"
COMPACTED: Final = "etcdserver: mvcc: required revision has been compacted"
COMPACTION_KEY: Final = b"compact_rev_key"
FORBIDDEN: Final = "etcdserver: permission denied"
COUNT_TURNS: Final = (
    f"grant the user of --etcd-username a role that may read and write the key {COMPACTION_KEY.decode()}"
)
COMPACT_AS_ROOT: Final = (
    "newer versions of etcd let only the role root compact: grant it to the user of --etcd-username, "
    "or start etcd with --auto-compaction-retention"
)


class Gone(Exception):
    """What is requested has been compacted, up to `revision` at least."""

    def __init__(self, revision: Revision) -> None:
        super().__init__(f"compacted up to revision {revision}")
        self.revision = revision


class Past:
    """The past of the keys of one layout. All methods raise CallLost and CallRefused."""

    def __init__(self, client: EtcdClient, layout: Layout) -> None:
        self._client = client
        self._layout = layout
        self._first, self._end = layout.prefix, end_of(layout.prefix)

    async def compacted(self, newest: Revision) -> Revision:
        """The revision to which etcd is compacted, 0 if it is not. Only reads tell: those before it are refused."""
        if not await self._is_gone(1):
            return 0
        gone, there = 1, newest
        while there - gone > 1:
            middle = (gone + there) // 2
            if await self._is_gone(middle):
                gone = middle
            else:
                there = middle
        return there

    async def _is_gone(self, revision: Revision) -> bool:
        try:
            await self._range(self._first + BARRIER, b"", revision, count_only=True)
        except Gone:
            return True
        return False

    async def _range(self, start: bytes, end: bytes, revision: Revision, **options: Any) -> Any:
        """Raises Gone."""
        request = Message["RangeRequest"](key=start, range_end=end, revision=revision, **options)
        try:
            return await self._client.ask(RANGE, request)
        except CallRefused as error:
            if str(error) == COMPACTED:
                raise Gone(revision + 1) from None
            raise

    async def state(self, key: Key, revision: Revision) -> KeyValue | None:
        """The state of a key at a revision. Raises Gone."""
        if not key.is_encodable:
            return None
        async for item in self._states(self._layout.key(key), b"", revision, limit=1):
            return item
        return None

    async def page(self, prefix: Prefix, revision: Revision, limit: int, after: Key | None) -> Page:
        """A page of states at a revision. Raises Gone."""
        bounds = self._layout.range(prefix)
        if bounds is None:  # keys that do not match are in between: read all
            states = [item async for item in self._states(self._first, self._end, revision)]
            rest = [item for item in states if prefix.covers(item.key) and (after is None or item.key > after)]
            rest.sort()
            return Page(rest[:limit] if limit else rest, revision, max(len(rest) - limit, 0) if limit else 0)
        start, end = bounds
        if after is not None and prefix.covers(after):
            start = self._layout.key(after) + b"\0"
        elif after is not None and after > (prefix.collection or "", prefix.partition or "", ""):
            return Page([], revision, 0)
        items: list[KeyValue] = []
        async for item in self._states(start, end, revision, limit):
            items.append(item)
            if len(items) == limit:
                rest_of = await self._range(self._layout.key(item.key) + b"\0", end, revision, count_only=True)
                return Page(items, revision, rest_of.count)
        return Page(items, revision, 0)

    async def _states(self, start: bytes, end: bytes, revision: Revision, limit: int = 0) -> AsyncIterator[KeyValue]:
        """The states of a range of keys. Raises Gone."""
        while True:
            page = await self._range(start, end, revision, limit=min(limit, PAGE) if limit else PAGE)
            for item, value in zip(page.kvs, await values_of(self._layout, page.kvs), strict=True):
                if value is not None:
                    yield KeyValue(*value, item.mod_revision)
            if not page.more:
                return
            start = page.kvs[-1].key + b"\0"

    async def events(self, prefix: Prefix, after: Revision, upto: Revision) -> Batch:
        """Some of the events after a revision, from a watch of their own. Raises Gone.

        It waits for an event after `upto`, of whatever key: then it has all up to there.
        """
        events: list[Event] = []
        size = 0
        async with self._client.watch(
            key=self._first, range_end=self._end, start_revision=after + 1, prev_kv=True
        ) as stream:
            while True:
                changes, response = await stream.read()
                if response.canceled and response.compact_revision:
                    raise Gone(response.compact_revision)
                if response.canceled:
                    raise CallLost(response.cancel_reason or "the watch was canceled", sent=False)
                values = await values_of(self._layout, [event.kv for event in changes])
                for event, value in zip(changes, values, strict=True):
                    if event.kv.mod_revision > upto:
                        return Batch(events, upto)
                    if value is not None and prefix.covers(value[0]):
                        events.append(await self._event(*value, event))
                        size += len(event.kv.value) + len(event.prev_kv.value)
                if events and (len(events) > log.TAIL_EVENTS or size > log.TAIL_BYTES):
                    return Batch(events, changes[-1].kv.mod_revision)

    async def _event(self, key: Key, value: bytes, event: Any) -> Event:
        """An event with its previous state. Raises Gone if etcd no longer has that."""
        at, before = event.kv, event.prev_kv
        previous = None
        if before.mod_revision:
            [decoded] = await values_of(self._layout, [before])
            previous = KeyValue(key, decoded[1] if decoded else b"", before.mod_revision)
        elif event.type == DELETED or at.create_revision != at.mod_revision:
            raise Gone(at.mod_revision)
        return Event(key, at.mod_revision, None if event.type == DELETED else value, previous)


class Compaction:
    """That of one store, whose log remembers what is compacted."""

    def __init__(self, client: EtcdClient, log: Log) -> None:
        self._client = client
        self._log = log
        self._turn = 0  # the version of COMPACTION_KEY that this server has seen

    async def compact(self, revision: Revision) -> None:
        """Raises FutureRevision, Unavailable."""
        if revision > self._log.revision:
            raise FutureRevision(self._log.revision)
        if revision <= self._log.compacted:
            return
        try:
            await self._client.call(COMPACT, Message["CompactionRequest"](revision=revision))
        except CallRefused as refused:
            if str(refused) != COMPACTED:
                raise _unavailable(refused, COMPACT_AS_ROOT) from None
        except CallLost as lost:
            raise _unavailable(lost) from None
        self._log.compacted = max(self._log.compacted, revision)

    async def in_turn(self, revision: Revision) -> None:
        """Compact if it is this server's turn. Raises FutureRevision, Unavailable."""
        at = Message["Compare"](target=TARGET_VERSION, key=COMPACTION_KEY, version=self._turn)
        count_turn = Message["PutRequest"](key=COMPACTION_KEY, value=b"%d" % revision)
        read = Message["RangeRequest"](key=COMPACTION_KEY)
        request = Message["TxnRequest"](
            compare=[at],
            success=[Message["RequestOp"](request_put=count_turn)],
            failure=[Message["RequestOp"](request_range=read)],
        )
        try:
            response = await self._client.call(TXN, request)
        except (CallLost, CallRefused) as error:
            raise _unavailable(error, COUNT_TURNS) from None
        if response.succeeded:
            self._turn += 1
            await self.compact(revision)
            return
        for item in response.responses[0].response_range.kvs:
            self._turn = item.version
            with suppress(ValueError):
                self._log.compacted = max(self._log.compacted, min(int(item.value), self._log.revision))


def _unavailable(error: CallLost | CallRefused, if_forbidden: str = "") -> Unavailable:
    text = str(error)
    return Unavailable(f"etcd: {text} ({if_forbidden})" if text == FORBIDDEN else f"etcd: {advised(text)}")
