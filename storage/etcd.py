"""A store in etcd, which several servers may share.

**Reading.** All states under the prefix are in memory. One watch of the prefix keeps them up to date and fills the log, so
reads and watches of this server cost etcd nothing. Older states and older events are read from etcd.

**Writing.** A write is a transaction: if the key was last modified at the expected revision, put or delete it, else read it.
It is answered when the watch has brought it here, which is usually before etcd's answer. Several writes are several
transactions: in one, they would share a revision, and a watch could not be resumed between them.

**Unknown outcomes.** A transaction without an answer is repeated as it is. If it succeeds, it did not happen before. If it
conflicts, the log tells whether the first change of the expected state was the requested one. After RESOLVE_WITHIN seconds
the outcome is unknown.

**Catching up.** The events of a watch do not say that there are no further ones. If the revisions of others are missing
here, a progress notification of etcd tells, but older servers send it before events that precede it
(etcd-io/etcd issues 15220, 17507). With those, a barrier is written: when the watch brings its event, all earlier ones are
here. The barrier's key is no key of the store.

**Compaction.** If etcd compacts what an interrupted watch has not seen, all states are read again, and watches end with
Compacted. What etcd still has is not reconstructed from them: a deleted and recreated key would look like a changed one.

**Lifetimes.** Objects of some collections have a lease: etcd deletes them some time after their last write.

See etcd_client.py for connections, etcd_layout.py for keys, etcd_leases.py for leases, log.py for watches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from heapq import heappop, heappush
from itertools import count
from random import uniform
from typing import Any, Final, Self

from noxu.storage.etcd_client import MAX_REQUEST, NO_TLS, Client, Tls, User, WatchStream
from noxu.storage.etcd_layout import Layout, end_of, stored, values_of
from noxu.storage.etcd_leases import Leases
from noxu.storage.etcd_messages import (
    COMPACT,
    DELETED,
    PUT,
    RANGE,
    STATUS,
    TARGET_VERSION,
    TXN,
    Message,
    delete_operation,
    put_operation,
    transaction,
)
from noxu.storage.etcd_past import BARRIER, COMPACTED, COPYING, INCOMPLETE, PAGE, Gone, Past
from noxu.storage.grpc_status import Lost, Refused
from noxu.storage.log import Log
from noxu.storage.states import States
from noxu.storage.types import (
    EVERYTHING,
    Batch,
    Closed,
    Compacted,
    Conflict,
    Event,
    FutureRevision,
    Key,
    KeyValue,
    OpenError,
    OutcomeUnknown,
    Page,
    Prefix,
    Revision,
    Status,
    TooLarge,
    Unavailable,
    reason,
)

SCAN_SPAN: Final = 1_000  # keys that a scan reads before other tasks run
MAX_WRITES: Final = 1_000  # writes under way; more wait
MAX_ANSWERED: Final = 10_000  # revisions that are remembered as answered
OPEN_WITHIN: Final = 10.0  # seconds for the first connection
RESOLVE_WITHIN: Final = 30.0  # seconds in which the outcome of a write becomes known
CONNECT_WITHIN: Final = 5.0  # seconds in which a question, or a write that has not been sent, waits for a connection
HISTORY_WITHIN: Final = 30.0  # seconds in which older events arrive
EVENTS_WITHIN: Final = 0.02  # seconds in which events usually arrive; then progress is requested
PROGRESS_WITHIN: Final = 0.1  # seconds between requests for progress, as upstream
FIRST_DELAY, LAST_DELAY = 0.05, 1.0  # seconds before another attempt
TRUSTED: Final = ((3, 4, 31), (3, 5, 13), (3, 6, 0))  # the first version of each line with correct progress
_NO_LIFETIMES: Final[Mapping[str, int]] = {}
COMPACTION_KEY: Final = b"compact_rev_key"  # outside of all prefixes: etcd is compacted as a whole

FORBIDDEN: Final = "etcdserver: permission denied"
COMPACT_AS_ROOT: Final = (
    "newer versions of etcd let only the role root compact: grant it to the user of --etcd-username, "
    "or start etcd with --auto-compaction-retention"
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


def _reason(error: Lost | Refused | TimeoutError) -> str:
    return str(error) or "no answer"


def _require_running(response: Any) -> None:
    """Raises _Overtaken, Lost."""
    if response.canceled and response.compact_revision:
        raise _Overtaken
    if response.canceled:
        raise Lost(response.cancel_reason or "the watch was canceled", sent=False)


def _retrieved(task: asyncio.Task[None]) -> None:
    """Its error is no bug if all calls that have waited for it are cancelled."""
    if not task.cancelled():
        task.exception()


async def _pause(delay: float) -> float:
    """Wait before another attempt, not at the same time as others. Returns the next delay."""
    await asyncio.sleep(delay * uniform(0.5, 1))  # noqa: S311 - not a secret
    return min(2 * delay, LAST_DELAY)


class EtcdStore:
    """See store.py for its promises. Created by `open`."""

    shared = True

    def __init__(self, client: Client, layout: Layout, lifetimes: Mapping[str, int]) -> None:
        self._client = client
        self._layout = layout
        self._lifetimes = lifetimes
        self._leases = Leases(client)
        self._first, self._end = layout.prefix, end_of(layout.prefix)
        self._past = Past(client, layout)
        self._log = Log(history=self._history)
        self._states = States()
        self._fault = ""
        self._stream: WatchStream | None = None
        self._trusted = False  # whether progress of the connected servers is correct
        self._reached: list[tuple[Revision, int, asyncio.Future[None]]] = []  # a heap
        self._numbers = count()
        self._waits_before = 0  # the numbers of waits that have not begun after the last expiry are less
        self._expiry: asyncio.TimerHandle | None = None
        self._places = asyncio.Semaphore(MAX_WRITES)
        self._writing = 0
        self._idle = asyncio.Event()
        self._barrier: Revision = 0
        self._answered: dict[Revision, None] = {}  # the newest writes that were answered
        self._turn = 0  # the version of COMPACTION_KEY that this server has seen
        self._current_head: asyncio.Task[None] | None = None
        self._next_head: asyncio.Task[None] | None = None
        self._follower: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        servers: Sequence[str],
        layout: Layout,
        tls: Tls = NO_TLS,
        user: User | None = None,
        lifetimes: Mapping[str, int] = _NO_LIFETIMES,
    ) -> Self:
        """Connect, and read all states. Raises OpenError.

        `lifetimes`: the seconds after their last write when the objects of a collection are deleted.
        """
        try:
            client = Client(servers, tls, user)
        except (OSError, ValueError) as error:
            raise OpenError(f"etcd: {reason(error)}") from None
        store = cls(client, layout, lifetimes)
        try:
            await store._start()
        except (Lost, Refused, TimeoutError) as error:
            await client.close()
            raise OpenError(f"cannot read from etcd at {', '.join(servers)}: {_reason(error)}") from None
        except BaseException:
            await client.close()
            raise
        return store

    async def _start(self) -> None:
        async with asyncio.timeout(OPEN_WITHIN):
            while True:
                try:
                    await self._require_complete()
                    self._states, revision = await self._load()
                    break
                except Lost as error:
                    if len(self._client.servers) == 1:
                        raise
                    logger.warning("etcd: %s", error)
                    await asyncio.sleep(FIRST_DELAY)
            compacted = await self._past.compacted(revision)
        self._log = Log(revision, compacted, history=self._history)
        following = asyncio.Event()
        self._follower = asyncio.create_task(self._follow(following), name="watch etcd")
        await following.wait()

    async def _require_complete(self) -> None:
        """Raises OpenError if a copy under the prefix was interrupted, see etcd_copy.py; Lost, Refused."""
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

    async def get(self, key: Key) -> KeyValue | None:
        self._require_open()
        return self._states.get(key)

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
        except (Lost, Refused, TimeoutError) as error:
            raise Unavailable(f"etcd: {_reason(error)}") from None

    async def status(self) -> Status:
        self._require_open()
        size = 0
        with suppress(Lost, Refused):
            size = (await self._client.call(STATUS, Message["StatusRequest"](), within=1.0)).dbSize
        return Status("etcd", self.revision, self.compacted, self._states.count(EVERYTHING), size, self._fault)

    # Writing.

    async def put(self, key: Key, value: bytes, *, expected: Revision) -> Revision:
        self._require_open()
        at, content = self._layout.key(key), await stored(self._layout, key, value)
        lease = await self._lease_for(key) if self._lifetimes else 0
        try:
            return await self._write(key, value, expected, at, put_operation(at, content, lease))
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
        except (Lost, Refused) as error:
            raise Unavailable(f"etcd: {_reason(error)}") from None

    async def delete(self, key: Key, *, expected: Revision) -> Revision:
        self._require_open()
        if not expected:
            raise Conflict(key, self._states.get(key))
        at = self._layout.key(key)
        return await self._write(key, None, expected, at, delete_operation(at))

    async def compact(self, revision: Revision) -> None:
        self._require_open()
        if revision > self._log.revision:
            raise FutureRevision(self._log.revision)
        if revision <= self._log.compacted:
            return
        try:
            await self._client.call(COMPACT, Message["CompactionRequest"](revision=revision))
        except Refused as error:
            if str(error) != COMPACTED:
                raise Unavailable(str(error)) from None
        except Lost as error:
            raise Unavailable(f"etcd: {error}") from None
        self._log.compacted = max(self._log.compacted, revision)

    async def compact_in_turn(self, revision: Revision) -> None:
        """All servers count the turns in one key, as upstream's: the first one to count a turn compacts."""
        self._require_open()
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
        except (Lost, Refused) as error:
            raise Unavailable(f"etcd: {error}") from None
        if response.succeeded:
            self._turn += 1
            try:
                await self.compact(revision)
            except Unavailable as error:
                if str(error) == FORBIDDEN:
                    raise Unavailable(f"{error} ({COMPACT_AS_ROOT})") from None
                raise
            return
        for item in response.responses[0].response_range.kvs:
            self._turn = item.version
            with suppress(ValueError):
                self._log.compacted = max(self._log.compacted, min(int(item.value), self._log.revision))

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._writing:
            with suppress(TimeoutError):
                async with asyncio.timeout(RESOLVE_WITHIN):
                    await self._idle.wait()
        self._log.close()
        if self._expiry is not None:
            self._expiry.cancel()
        tasks = [task for task in (self._follower, self._current_head, self._next_head) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.close()
        while self._reached:
            future = heappop(self._reached)[2]
            if not future.done():
                future.set_exception(Closed("the store is closed"))

    def _require_open(self) -> None:
        if self._closing is not None:
            raise Closed("the store is closed")

    # Writes.

    async def _write(self, key: Key, value: bytes | None, expected: Revision, at: bytes, operation: bytes) -> Revision:
        """`at` is the key in etcd, `operation` a RequestOp."""
        self._require_open()
        request = transaction(at, expected, operation)
        if len(request) > MAX_REQUEST:
            raise TooLarge(
                "rpc error: code = ResourceExhausted desc = trying to send message larger than max "
                f"({len(request)} vs. {MAX_REQUEST})"
            )
        self._writing += 1
        self._idle.clear()
        try:
            async with self._places:
                return await self._attempts(key, value, expected, request)
        finally:
            self._writing -= 1
            if not self._writing:
                self._idle.set()

    async def _attempts(self, key: Key, value: bytes | None, expected: Revision, request: bytes) -> Revision:
        """Send a transaction until its outcome is known."""
        known = self._log.revision
        begin = asyncio.get_running_loop().time()
        uncertain, delay = False, FIRST_DELAY
        while True:
            try:
                response = await self._client.call(TXN, request)
                break
            except Refused as refused:
                if uncertain:
                    raise OutcomeUnknown(str(refused)) from None
                if refused.code == "INVALID_ARGUMENT":
                    raise TooLarge(str(refused)) from None
                raise Unavailable(str(refused)) from None
            except Lost as lost:
                uncertain |= lost.sent
                limit = RESOLVE_WITHIN if uncertain else CONNECT_WITHIN
                if asyncio.get_running_loop().time() - begin > limit:
                    raise OutcomeUnknown(f"etcd: {lost}") if uncertain else Unavailable(f"etcd: {lost}") from None
            delay = await _pause(delay)
        try:
            if response.succeeded:
                if value is None and not response.responses[0].response_delete_range.deleted:
                    raise Conflict(key, None)  # kine lets a deletion of what does not exist succeed
                revision: Revision = response.header.revision
                self._record(revision)
                await self._reach(revision)
                return revision
            current = await self._winner(key, expected, response)
        except TimeoutError:
            raise OutcomeUnknown("etcd: the watch does not bring the write") from None
        if uncertain:
            own = self._own_write(key, value, expected, known)
            if own is None:
                raise OutcomeUnknown("etcd: the connection was lost, and what happened since then is not known")
            if own:
                self._record(own)
                return own
        raise Conflict(key, current)

    async def _winner(self, key: Key, expected: Revision, response: Any) -> KeyValue | None:
        """The state that a transaction found instead of the expected one, when this store shows it or a later one."""
        found = response.responses[0].response_range.kvs
        if found:
            await self._reach(found[0].mod_revision)
            [value] = await values_of(self._layout, found)
            return KeyValue(key, value[1] if value else b"", found[0].mod_revision)
        while (state := self._states.get(key)) is not None and state.revision == expected:
            await self._reach(self._log.revision + 1)
        return None

    def _own_write(self, key: Key, value: bytes | None, expected: Revision, known: Revision) -> Revision | None:
        """The revision of this very change after `known`, 0 if others changed the key first, None if it is not known."""
        events = self._log.since(known)
        if events is None:
            return None
        for event in events:
            previous = event.previous.revision if event.previous else 0
            is_same = event.key == key and previous == expected and event.value == value
            if is_same and event.revision not in self._answered:  # else another writer of this server made it
                return event.revision
        return 0

    def _record(self, revision: Revision) -> None:
        """Remember that a write at this revision is answered."""
        self._answered[revision] = None
        if len(self._answered) > MAX_ANSWERED:
            del self._answered[next(iter(self._answered))]

    # Following.

    async def _reach(self, revision: Revision) -> None:
        """Wait until this store shows a revision. Raises Closed, TimeoutError after RESOLVE_WITHIN to twice that."""
        if revision > self._log.revision:
            if self._follower is None or self._follower.done():
                raise Closed("the store is closed")
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heappush(self._reached, (revision, next(self._numbers), future))
            if self._expiry is None:
                self._expire()
            await future
        else:
            await asyncio.sleep(0)  # waiting watches get the event before its writer continues

    def _expire(self) -> None:
        """End the waits that began before the last call, and call again after RESOLVE_WITHIN. One timer for all waits."""
        for _, number, future in self._reached:
            if number < self._waits_before and not future.done():
                future.set_exception(TimeoutError())
        self._waits_before = next(self._numbers)
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(RESOLVE_WITHIN, self._expire) if self._reached else None

    def _publish(self, events: Sequence[Event], revision: Revision) -> None:
        self._log.publish(events, revision)
        self._wake()

    def _wake(self) -> None:
        while self._reached and self._reached[0][0] <= self._log.revision:
            future = heappop(self._reached)[2]
            if not future.done():
                future.set_result(None)

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
                        events, response = await stream.read()
                        _require_running(response)
                        if response.created:
                            await self._connected(stream)
                            delay = FIRST_DELAY
                            following.set()
                        elif events:
                            self._apply(events, await values_of(self._layout, [event.kv for event in events]))
                        elif self._trusted:
                            self._apply((), (), response.header.revision)
            except _Overtaken:
                overtaken = True
                continue
            except (Lost, Refused) as error:
                if not self._fault:  # else this is another attempt
                    logger.warning("the watch of etcd is interrupted: %s", error)
                self._fault = f"etcd: {error}"
            finally:
                self._stream = None
            delay = await _pause(delay)

    async def _connected(self, stream: WatchStream) -> None:
        if self._fault:
            logger.info("the watch of etcd continues")
        self._fault, self._stream = "", stream
        versions = await self._client.versions()
        self._trusted = all(map(has_correct_progress, versions))

    def _apply(self, events: Sequence[Any], values: Sequence[tuple[Key, bytes] | None], reached: Revision = 0) -> None:
        """Apply the events of whole transactions; `values` are what they are in the store.

        A notification of progress has none, but the revision that is reached without them.
        """
        shown, applied = [], self._log.revision
        for event, found in zip(events, values, strict=True):
            reached = event.kv.mod_revision
            if reached <= applied or found is None:
                continue
            key, value = found[0], None if event.type == DELETED else found[1]
            previous = self._states.get(key)
            if value is None:
                self._states.remove(key)
            else:
                self._states.put(KeyValue(key, value, reached))
            shown.append(Event(key, reached, value, previous))
        self._publish(shown, reached)

    async def _load(self) -> tuple[States, Revision]:
        """(All states, their revision). Raises Lost, Refused."""
        while True:
            states, revision, start = States(), 0, self._first
            try:
                while True:
                    page = await self._client.call(
                        RANGE,
                        Message["RangeRequest"](key=start, range_end=self._end, limit=PAGE, revision=revision),
                    )
                    revision = revision or page.header.revision
                    for item, found in zip(page.kvs, await values_of(self._layout, page.kvs), strict=True):
                        if found is not None:
                            states.put(KeyValue(*found, item.mod_revision))
                    if not page.more:
                        return states, revision
                    start = page.kvs[-1].key + b"\0"
            except Refused as error:
                if str(error) != COMPACTED:  # else the pages are too old now
                    raise

    async def _reload(self) -> None:
        self._states, revision = await self._load()
        logger.warning("etcd has compacted what the watch has not seen: watches end, and start again")
        self._log.restart(revision)
        self._wake()

    async def _catch_up(self, previous: asyncio.Task[None] | None) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        self._current_head, self._next_head = self._next_head, None
        head = await self._head()
        async with asyncio.timeout(RESOLVE_WITHIN):
            await self._advance(head)

    async def _head(self) -> Revision:
        """The newest revision of etcd. Raises Refused, Lost: no connection for CONNECT_WITHIN seconds, or no two answers.

        The first question is lost, too, if this process was stopped meanwhile.
        """
        request = Message["RangeRequest"](key=self._first + BARRIER, count_only=True)
        time, delay = asyncio.get_running_loop().time, FIRST_DELAY
        begin = time()
        for attempt in count():
            try:
                return int((await self._client.call(RANGE, request, within=CONNECT_WITHIN)).header.revision)
            except Lost:
                if attempt and time() - begin > CONNECT_WITHIN:
                    raise
            delay = await _pause(delay)
        raise AssertionError  # not reached

    async def _advance(self, revision: Revision) -> None:
        """Reach a revision that etcd has, even if there are no events. Raises Lost, Refused."""
        if await self._reached_within(EVENTS_WITHIN, revision):
            return
        for _ in range(3):
            if self._trusted and self._stream is not None:
                self._stream.request_progress()
                if await self._reached_within(PROGRESS_WITHIN, revision):
                    return
        while self._log.revision < revision:
            await self._reach(await self._write_barrier())

    async def _reached_within(self, seconds: float, revision: Revision) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._reach(revision)
        return self._log.revision >= revision

    async def _write_barrier(self) -> Revision:
        response = await self._client.call(PUT, Message["PutRequest"](key=self._first + BARRIER))
        self._barrier = max(self._barrier, response.header.revision)
        return int(response.header.revision)

    # What is no longer in memory.

    async def _history(self, prefix: Prefix, after: Revision, upto: Revision) -> Batch:
        """Older events. They are complete when etcd has sent one after `upto`: if there is none, a barrier is written."""
        with self._learning():
            async with asyncio.timeout(HISTORY_WITHIN):
                if self._log.first() is None and self._barrier <= upto:
                    await self._reach(await self._write_barrier())
                return await self._past.events(prefix, after, upto)

    @contextmanager
    def _learning(self) -> Iterator[None]:
        """Translate the errors of reading the past, and remember what is compacted. Raises Compacted, Unavailable."""
        try:
            yield
        except Gone as gone:
            self._log.compacted = max(self._log.compacted, gone.revision)
            raise Compacted(self._log.compacted) from None
        except (Lost, Refused, TimeoutError) as error:
            self._require_open()
            raise Unavailable(f"etcd: {_reason(error)}") from None
