"""A store in etcd, which several servers may share.

**Reading.** All states under the prefix are in memory. One watch of the prefix keeps them up to date and fills the log, so
reads and watches of this server cost etcd nothing. Older states and older events are read from etcd.

**Writing.** A write is a transaction, which is answered when the watch has brought it here: see writes.py.

**Catching up.** The events of a watch do not say that there are no further ones. If the revisions of others are missing
here, a progress notification of etcd tells, but older servers send it before events that precede it
(etcd-io/etcd issues 15220, 17507). With those, a barrier is written: when the watch brings its event, all earlier ones are
here. The barrier's key is no key of the store.

**Compaction.** If etcd compacts what an interrupted watch has not seen, all states are read again, and watches end with
Compacted. The missing events are not reconstructed from them: a deleted and recreated key would look like a changed
one.

**Lifetimes.** Objects of some collections have a lease: etcd deletes them some time after their last write.

**Going back.** An etcd that was restored from a backup, or replaced by an empty one, has a revision before those that were
shown here. It has lost writes that were answered, and gives their revisions to others: no state, watch or resourceVersion of
this store means anything in it. The store refuses everything from then on, until the server is started again.

See client.py for connections, layout.py for keys, writes.py for leases, log.py for watches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, Final, Self

from noxu_storage import pins
from noxu_storage.etcd.channel import NO_TLS, TlsFiles
from noxu_storage.etcd.client import ANSWER_WITHIN, FIRST_DELAY, EtcdClient, EtcdUser, WatchStream, pause
from noxu_storage.etcd.errors import CallLost, CallRefused, advised
from noxu_storage.etcd.history import BARRIER, COMPACTED, COPYING, INCOMPLETE, PAGE, Compaction, Gone, Past
from noxu_storage.etcd.layout import Layout, end_of, stored, values_of
from noxu_storage.etcd.messages import (
    DELETED,
    PUT,
    RANGE,
    STATUS,
    Message,
    delete_operation,
    put_operation,
)
from noxu_storage.etcd.writes import WAIT_WITHIN, Leases, Waits, Writes
from noxu_storage.log import Log
from noxu_storage.states import States
from noxu_storage.transactions import Decide, StagedWrite, Turn, refused
from noxu_storage.types import (
    EVERYTHING,
    Batch,
    Closed,
    Compacted,
    Conflict,
    Event,
    Key,
    KeyValue,
    OpenError,
    Page,
    Prefix,
    Revision,
    Status,
    Unavailable,
    reason,
)

PORTION: Final = 100  # writes of a transaction that are sent together
SCAN_SPAN: Final = 1_000  # keys that a scan reads before other tasks run
OPEN_WITHIN: Final = 10.0  # seconds for the first answer
ANSWERS_OF_PAST, BETWEEN_ANSWERS = 3, 0.5  # how often, and after how many seconds, etcd shows that it has gone back
LOADS: Final = 5  # attempts to read all states, if servers fail meanwhile
HISTORY_WITHIN: Final = 30.0  # seconds in which older events arrive
EVENTS_WITHIN: Final = 0.02  # seconds in which events usually arrive; then progress is requested
LATE_EVENTS_WITHIN: Final = 1.0  # seconds in which they arrive on a busy machine, if no barrier can be written
PROGRESS_WITHIN: Final = 0.1  # seconds between requests for progress, as upstream
TRUSTED: Final = ((3, 4, 31), (3, 5, 13), (3, 6, 0))  # the first version of each line with correct progress
_NO_LIFETIMES: Final[Mapping[str, int]] = {}
GONE_BACK: Final = (
    "etcd has gone back from revision {known} to {revision}: it was restored from a backup, or replaced by another one. "
    "Restart all servers that use it"
)
logger = logging.getLogger("noxu")


class _Overtaken(Exception):
    """The watch of the store needs events that have been compacted."""


def has_correct_progress(version: str) -> bool:
    """Whether a version of etcd, like 3.5.13, sends progress only after the events that precede it."""
    try:
        major, minor, patch = (int(part) for part in version.split("-")[0].split("+")[0].split("."))
    except ValueError:
        return False
    return any((major, minor) == first[:2] and patch >= first[2] for first in TRUSTED) or (major, minor) > (3, 6)


def _reason(error: CallLost | CallRefused | TimeoutError) -> str:
    return advised(str(error) or "no answer")


def _require_running(response: Any) -> None:
    """Raises _Overtaken, CallLost."""
    if response.canceled and response.compact_revision:
        raise _Overtaken
    if response.canceled:
        raise CallLost(response.cancel_reason or "the watch was canceled", sent=False)


async def _at_once() -> bool:
    """The turn of a transaction: its writes need not wait."""
    return False


def _portions(writes: Sequence[StagedWrite]) -> Iterator[list[StagedWrite]]:
    """The writes of a transaction that are sent together: PORTION of them at most, of different keys."""
    portion: dict[Key, StagedWrite] = {}
    for write in writes:
        if write.key in portion or len(portion) == PORTION:
            yield list(portion.values())
            portion = {}
        portion[write.key] = write
    if portion:
        yield list(portion.values())


def _retrieved(task: asyncio.Task[None]) -> None:
    """Its error is no bug if all calls that have waited for it are cancelled."""
    if not task.cancelled():
        task.exception()


class EtcdStore:
    """See store.py for its promises. Created by `open`."""

    shared = True
    groups_writes = True

    def __init__(self, client: EtcdClient, layout: Layout, lifetimes: Mapping[str, int]) -> None:
        self._client = client
        self._layout = layout
        self._lifetimes = lifetimes
        self._leases = Leases(client)
        self._first, self._end = layout.prefix, end_of(layout.prefix)
        self._past = Past(client, layout)
        self._turn = Turn()
        self._states = States()
        self._begin(0, 0)
        self._fault = ""
        self._replaced = ""  # how etcd has gone back
        self._stream: WatchStream | None = None
        self._trusted = False  # whether progress of the connected servers is correct
        self._asking: asyncio.Task[None] | None = None  # for their versions
        self._barrier: Revision = 0
        self._current_head: asyncio.Task[None] | None = None
        self._next_head: asyncio.Task[None] | None = None
        self._follower: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        servers: Sequence[str],
        layout: Layout,
        tls: TlsFiles = NO_TLS,
        user: EtcdUser | None = None,
        lifetimes: Mapping[str, int] = _NO_LIFETIMES,
    ) -> Self:
        """Connect, and read all states. Raises OpenError.

        `lifetimes`: the seconds after their last write when the objects of a collection are deleted.
        """
        try:
            client = EtcdClient(servers, tls, user)
        except (OSError, ValueError) as error:
            raise OpenError(f"etcd: {advised(reason(error))}") from None
        store = cls(client, layout, lifetimes)
        try:
            await store._start()
        except (CallLost, CallRefused, TimeoutError) as error:
            await client.close()
            raise OpenError(f"cannot read from etcd at {', '.join(servers)}: {_reason(error)}") from None
        except BaseException:
            await client.close()
            raise
        return store

    def _begin(self, revision: Revision, compacted: Revision) -> None:
        """Make the log, and what waits for it."""
        self._log = Log(revision, compacted, history=self._history)
        self._waits = Waits(self._log)
        self._compaction = Compaction(self._client, self._log)
        self._writes = Writes(self._client, self._layout, self._log, self._waits, self._advance, self._newest)

    def _newest(self, key: Key) -> KeyValue | None:
        return self._states.get(key)

    async def _start(self) -> None:
        for attempt in count(1):
            try:
                async with asyncio.timeout(OPEN_WITHIN):
                    await self._first_answer()
                self._states, revision = await self._load()
                compacted = await self._past.compacted(revision)
                break
            except CallLost as error:
                if len(self._client.servers) == 1 or attempt == LOADS:
                    raise
                logger.warning("etcd: %s", error)
        self._begin(revision, compacted)
        following = asyncio.Event()
        self._follower = asyncio.create_task(self._follow(following), name="watch etcd")
        self._follower.add_done_callback(lambda _: self._waits.close())
        await following.wait()

    async def _first_answer(self) -> None:
        """Raises OpenError, CallRefused; CallLost if there is only one server."""
        while True:
            try:
                return await self._require_complete()
            except CallLost as error:
                if len(self._client.servers) == 1:
                    raise
                logger.warning("etcd: %s", error)
                await asyncio.sleep(FIRST_DELAY)

    async def _require_complete(self) -> None:
        """Raises OpenError if a copy under the prefix was interrupted, see copy.py; CallLost, CallRefused."""
        request = Message["RangeRequest"](key=self._first + COPYING, count_only=True)
        if (await self._client.call(RANGE, request)).count:
            raise OpenError(f"etcd: {INCOMPLETE}")

    @property
    def revision(self) -> Revision:
        return self._log.revision

    @property
    def compacted(self) -> Revision:
        return self._log.compacted

    # Reading.

    async def get(self, key: Key, *, revision: Revision = 0) -> KeyValue | None:
        self._require_open()
        if self._log.read_revision(revision) == self._log.revision:
            return self._states.get(key)
        with self._learning():
            return await self._past.state(key, revision)

    async def list(self, prefix: Prefix, *, revision: Revision = 0, limit: int = 0, after: Key | None = None) -> Page:
        self._require_open()
        revision = self._log.read_revision(revision)
        if revision == self._log.revision:
            items, remaining = self._states.select(prefix, after, limit)
            return Page(items, revision, remaining)
        with self._learning():
            return await self._past.page(prefix, revision, limit, after)

    async def count(self, prefix: Prefix) -> int:
        self._require_open()
        return self._states.count(prefix)

    async def scan(self, texts: Sequence[bytes]) -> AsyncIterator[Sequence[KeyValue]]:
        keys = list(self._states.keys(EVERYTHING))
        for start in range(0, len(keys), SCAN_SPAN):
            self._require_open()
            states = [self._states.get(key) for key in keys[start : start + SCAN_SPAN]]
            yield [state for state in states if state and any(text in state.value for text in texts)]
            await asyncio.sleep(0)

    def watch(self, prefix: Prefix = EVERYTHING, *, after: Revision) -> AsyncIterator[Batch]:
        self._require_open()
        return self._log.watch(prefix, after)

    async def catch_up(self) -> None:
        """Calls that arrive while etcd is asked for its revision share the next question."""
        self._require_open()
        if self._next_head is None:
            self._next_head = asyncio.create_task(self._catch_up(self._current_head))
            self._next_head.add_done_callback(_retrieved)
        try:
            await asyncio.shield(self._next_head)
        except (CallLost, CallRefused, TimeoutError) as error:
            raise Unavailable(f"etcd: {_reason(error)}") from None

    async def status(self) -> Status:
        if not self._replaced:
            self._require_open()
        size = 0
        with suppress(CallLost, CallRefused):
            size = (await self._client.call(STATUS, Message["StatusRequest"](), within=1.0)).dbSize
        return Status("etcd", self.revision, self.compacted, self._states.count(EVERYTHING), size, self._fault)

    # Writing.

    async def put(self, key: Key, value: bytes, *, expected: Revision, replaced: bytes | None = None) -> Revision:
        self._require_open()
        return await self._put(key, value, expected, self._turn.ended)

    async def _put(self, key: Key, value: bytes, expected: Revision, turn: Callable[[], Awaitable[bool]]) -> Revision:
        """`turn` waits until it may be written, and says whether a transaction was made meanwhile."""
        at, content = self._layout.key(key), await stored(self._layout, key, value)
        lease = await self._lease_for(key) if self._lifetimes else 0
        if await turn():
            raise Conflict(key, self._states.get(key))
        try:
            return await self._writes.write(key, value, expected, at, put_operation(at, content, lease))
        except Unavailable:
            self._leases.forget()  # one that no longer exists may be the reason
            raise

    async def _lease_for(self, key: Key) -> int:
        """0: the key does not expire. Raises Unavailable."""
        lifetime = self._lifetimes.get(key.collection)
        if not lifetime:
            return 0
        try:
            return await self._leases.lease(lifetime)
        except (CallLost, CallRefused) as error:
            raise Unavailable(f"etcd: {_reason(error)}") from None

    async def delete(self, key: Key, *, expected: Revision, replaced: bytes | None = None) -> Revision:
        self._require_open()
        return await self._delete(key, expected, self._turn.ended)

    async def _delete(self, key: Key, expected: Revision, turn: Callable[[], Awaitable[bool]]) -> Revision:
        """`turn`: as for `_put`."""
        if not expected:
            raise Conflict(key, self._states.get(key))
        at = self._layout.key(key)
        if await turn():
            raise Conflict(key, self._states.get(key))
        return await self._writes.write(key, None, expected, at, delete_operation(at))

    async def transact(self, decide: Decide) -> Revision:
        """Its writes are transactions of their own, some at a time: in one, they would share a revision, see writes.py."""
        self._require_open()
        newest: Revision = 0
        async with self._turn.taken():
            await self._writes.idle()
            writes = await decide()
            if (key := refused(writes, self._revision_of)) is not None:
                raise Conflict(key, self._states.get(key))
            self._turn.made += bool(writes)
            for portion in _portions(writes):
                outcomes = await asyncio.gather(*map(self._write_in_turn, portion), return_exceptions=True)
                for outcome in outcomes:
                    if isinstance(outcome, BaseException):
                        raise outcome
                    newest = max(newest, outcome)
        return newest

    async def _write_in_turn(self, write: StagedWrite) -> Revision:
        key, value, expected, _ = write
        if value is None:
            return await self._delete(key, expected, _at_once)
        return await self._put(key, value, expected, _at_once)

    def _revision_of(self, key: Key) -> Revision:
        state = self._states.get(key)
        return state.revision if state else 0

    async def compact(self, revision: Revision) -> None:
        self._require_open()
        await self._compaction.compact(await self._compactable(revision))

    async def compact_in_turn(self, revision: Revision) -> None:
        self._require_open()
        await self._compaction.in_turn(await self._compactable(revision))

    async def _compactable(self, revision: Revision) -> Revision:
        """How far pins let it be compacted; a revision that does not exist yet is refused as it is."""
        return revision if revision > self._log.revision else await pins.compactable(self, revision)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_WITHIN):
                await self._writes.idle()
        self._log.close()
        tasks = [
            task for task in (self._follower, self._asking, self._current_head, self._next_head) if task is not None
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.close()
        self._waits.close()

    def _require_open(self) -> None:
        if self._closing is not None:
            raise Closed("the store is closed")
        if self._replaced:
            raise Unavailable(self._replaced)

    # Following.

    def _publish(self, events: Sequence[Event], revision: Revision) -> None:
        self._log.publish(events, revision)
        self._waits.wake()

    async def _follow(self, following: asyncio.Event) -> None:
        """Apply the events of the prefix, through interruptions."""
        delay, overtaken = FIRST_DELAY, False
        while True:
            try:
                if overtaken:
                    await self._reload()
                    overtaken = False
                async with self._client.watch(
                    key=self._first, range_end=self._end, start_revision=self._log.revision + 1, progress_notify=True
                ) as stream:
                    while True:
                        events, response = await stream.read(self._writes.newest)
                        _require_running(response)
                        if response.created:
                            await self._connected(stream, response.header.revision)
                            delay = FIRST_DELAY
                            following.set()
                        elif events:
                            self._apply(events, await values_of(self._layout, [event.kv for event in events]))
                        elif self._trusted:
                            self._apply((), (), response.header.revision)
            except _Overtaken:
                overtaken = True
                continue
            except (CallLost, CallRefused) as error:
                if not self._fault:  # else this is another attempt
                    logger.warning("the watch of etcd is interrupted: %s", _reason(error))
                self._fault = f"etcd: {_reason(error)}"
            except Unavailable:
                following.set()
                return  # etcd has gone back
            finally:
                self._stream, self._trusted = None, False
                if self._asking is not None:
                    self._asking.cancel()
            delay = await pause(delay)

    async def _connected(self, stream: WatchStream, revision: Revision) -> None:
        """A watch has begun. `revision` is that of its server, which may be behind others. Raises Unavailable, CallLost, CallRefused."""
        if revision < self._log.revision:
            await self._head()
        if self._fault:
            logger.info("the watch of etcd continues")
        self._fault, self._stream = "", stream
        self._asking = asyncio.create_task(self._ask_versions())

    async def _ask_versions(self) -> None:
        versions = await self._client.versions()
        self._trusted = all(map(has_correct_progress, versions))

    def _apply(self, events: Sequence[Any], values: Sequence[tuple[Key, bytes] | None], reached: Revision = 0) -> None:
        """Apply the events of whole transactions; `values` are what they are in the store.

        A notification of progress has none, but the revision that is reached without them.
        """
        shown, applied = [], self._log.revision
        for event, decoded in zip(events, values, strict=True):
            reached = event.kv.mod_revision
            if reached <= applied or decoded is None:
                continue
            key, value = decoded[0], None if event.type == DELETED else decoded[1]
            previous = self._states.get(key)
            if value is None:
                self._states.remove(key)
            else:
                self._states.put(KeyValue(key, value, reached))
            shown.append(Event(key, reached, value, previous))
        self._publish(shown, reached)

    async def _load(self) -> tuple[States, Revision]:
        """(All states, their revision). Raises CallLost, CallRefused."""
        while True:
            states, revision, start = States(), 0, self._first
            try:
                while True:
                    page = await self._client.ask(
                        RANGE,
                        Message["RangeRequest"](key=start, range_end=self._end, limit=PAGE, revision=revision),
                    )
                    revision = revision or page.header.revision
                    for item, decoded in zip(page.kvs, await values_of(self._layout, page.kvs), strict=True):
                        if decoded is not None:
                            states.put(KeyValue(*decoded, item.mod_revision))
                    if not page.more:
                        return states, revision
                    start = page.kvs[-1].key + b"\0"
            except CallRefused as error:
                if str(error) != COMPACTED:  # else the pages are too old now
                    raise

    async def _reload(self) -> None:
        self._states, revision = await self._load()
        logger.warning("etcd has compacted what the watch has not seen: watches end, and start again")
        self._log.restart(revision)
        self._waits.wake()

    async def _catch_up(self, previous: asyncio.Task[None] | None) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        self._current_head, self._next_head = self._next_head, None
        head = await self._head()
        async with asyncio.timeout(WAIT_WITHIN):
            await self._advance(head)

    async def _head(self) -> Revision:
        """The newest revision of etcd. Raises CallRefused, CallLost, and Unavailable, now and from now on, if etcd has gone back.

        What only looks like etcd may show an older one for a moment: it has to do so ANSWERS_OF_PAST times.
        """
        published = self._log.revision
        request = Message["RangeRequest"](key=self._first + BARRIER, count_only=True)
        for _ in range(ANSWERS_OF_PAST):
            revision: Revision = (await self._client.ask(RANGE, request, within=ANSWER_WITHIN)).header.revision
            if revision >= published:
                return revision
            await asyncio.sleep(BETWEEN_ANSWERS)
        self._fault = self._replaced = GONE_BACK.format(known=published, revision=revision)
        logger.error("%s", self._replaced)
        raise Unavailable(self._replaced)

    async def _advance(self, revision: Revision) -> None:
        """Reach a revision that etcd has, even if there are no events. Raises CallLost, CallRefused."""
        if await self._waits.reached_within(EVENTS_WITHIN, revision):
            return
        for _ in range(3):
            if self._trusted and self._stream is not None:
                self._stream.request_progress()
                if await self._waits.reached_within(PROGRESS_WITHIN, revision):
                    return
        while self._log.revision < revision:
            try:
                barrier = await self._write_barrier()
            except CallRefused:  # there is no space for it; what has events arrives all the same
                if await self._waits.reached_within(LATE_EVENTS_WITHIN, revision):
                    return
                raise
            await self._waits.reach(barrier)

    async def _write_barrier(self) -> Revision:
        response = await self._client.ask(PUT, Message["PutRequest"](key=self._first + BARRIER))
        self._barrier = max(self._barrier, response.header.revision)
        return int(response.header.revision)

    # What is no longer in memory.

    async def _history(self, prefix: Prefix, after: Revision, upto: Revision) -> Batch:
        """Older events. They are complete when etcd has sent one after `upto`: if there is none, a barrier is written."""
        with self._learning():
            async with asyncio.timeout(HISTORY_WITHIN):
                if self._log.first() is None and self._barrier <= upto:
                    await self._waits.reach(await self._write_barrier())
                try:
                    return await self._past.events(prefix, after, upto)
                except CallLost:  # the next attempt has another server, and another token of the user
                    return await self._past.events(prefix, after, upto)

    @contextmanager
    def _learning(self) -> Iterator[None]:
        """Translate the errors of reading the past, and remember what is compacted. Raises Compacted, Unavailable."""
        try:
            yield
        except Gone as gone:
            self._log.compacted = max(self._log.compacted, gone.revision)
            raise Compacted(self._log.compacted) from None
        except (CallLost, CallRefused, TimeoutError) as error:
            self._require_open()
            raise Unavailable(f"etcd: {_reason(error)}") from None
