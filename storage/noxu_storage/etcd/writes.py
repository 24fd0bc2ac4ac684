"""Writes to etcd, until their outcome is known.

A write is a transaction: if the key was last modified at the expected revision, put or delete it, else read it. It is answered
when the watch has brought it here, which is usually before etcd's answer. Several writes are several transactions: in one,
they would share a revision, and a watch could not be resumed between them.

**Unknown outcomes.** A transaction without an answer is repeated as it is. Of the two, one can find the expected revision. If
the second one does, the first did not happen. If it does not, the log tells whether the first change of the expected state was
the requested one. After RESOLVE_WITHIN seconds the outcome is unknown.

A create expects that there is no key, which is true again when another client has deleted what it made. So before it is
repeated, etcd and the log are asked whether it happened:

    put, expecting no key       the connection is lost: unknown. It was executed at revision 7
    delete by another client    8
    read the key                none, at revision 8: with everything up to there, the log has the put at 7
    answer                      it happened at 7. To repeat it would bring back what was deleted

**No space.** etcd executes transactions that were proposed before it noticed that its space is used up, and answers them, too,
with the error NO_SPACE. So the log is asked as after a lost connection.

**Leases.** etcd deletes the keys of a lease when it expires, and the watch brings the deletions like any others. A lease for
each key would cost etcd as much as the key, so consecutive writes share one, as with upstream's lease manager
(storage/etcd3/lease_manager.go): it lasts a little longer than the keys have to, and gets further keys as long as it lasts
long enough for them. With a lifetime of an hour (the reuse is 5 % of it, at most a minute):

    12:00:00    first write: a lease of 3600 + 60 s is granted      expires 13:01:00
    12:00:59    write: 3601 s are left, the lease is used again
    12:01:01    write: 3599 s are left, a new lease is granted      expires 13:02:01
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, NamedTuple

from noxu_storage.etcd.client import ANSWER_WITHIN, CONNECT_WITHIN, FIRST_DELAY, MAX_REQUEST, EtcdClient, pause
from noxu_storage.etcd.errors import CallLost, CallRefused, advised
from noxu_storage.etcd.layout import Layout, values_of
from noxu_storage.etcd.messages import LEASE_GRANT, RANGE, TXN, Message, transaction
from noxu_storage.log import Log
from noxu_storage.types import Closed, Conflict, Key, KeyValue, OutcomeUnknown, Revision, TooLarge, Unavailable

MAX_WRITES: Final = 1_000  # writes under way; more wait
WAIT_WITHIN: Final = 30.0  # seconds in which the watch brings what etcd has
REUSED_FOR: Final = 60  # seconds at most in which a lease gets further keys
REUSED_PERCENT: Final = 5  # of the lifetime of its keys
MAX_KEYS: Final = 1_000  # that a lease gets: deleting many keys at once delays others
MAX_ANSWERED: Final = 10_000  # revisions that are remembered as answered
RESOLVE_WITHIN: Final = (
    2 * ANSWER_WITHIN
)  # seconds in which the outcome of a write becomes known, as long as a read takes

NO_SPACE: Final = "etcdserver: mvcc: database space exceeded"
TOO_LARGE: Final = ("etcdserver: request is too large", "received message larger than max")


class _Write(NamedTuple):
    """`value` is None for a deletion, `at` the key in etcd, `known` the revision of the log before the first attempt."""

    key: Key
    value: bytes | None
    expected: Revision
    at: bytes
    known: Revision


class Writes:
    """The writes of one store, whose log and waits these are.

    `advance` makes the log reach a revision that etcd has, even if there are no events. `state` is the newest state of a key.
    """

    def __init__(
        self,
        client: EtcdClient,
        layout: Layout,
        log: Log,
        waits: Waits,
        advance: Callable[[Revision], Awaitable[None]],
        state: Callable[[Key], KeyValue | None],
    ) -> None:
        self._client = client
        self._layout = layout
        self._log = log
        self._waits = waits
        self._advance = advance
        self._state = state
        self._places = asyncio.Semaphore(MAX_WRITES)
        self._writing = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._newest: Revision = 0
        self._answered: dict[Revision, None] = {}  # the newest writes that were answered

    def newest(self) -> Revision:
        """The revision of the newest write that etcd has executed: its event is on its way."""
        return self._newest

    async def idle(self) -> None:
        """Wait until no write is under way."""
        await self._idle.wait()

    async def write(self, key: Key, value: bytes | None, expected: Revision, at: bytes, operation: bytes) -> Revision:
        """`at` is the key in etcd, `operation` a RequestOp. Raises Conflict, TooLarge, Unavailable, OutcomeUnknown, Closed."""
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
                return await self._attempts(_Write(key, value, expected, at, self._log.revision), request)
        except TimeoutError:
            raise OutcomeUnknown("etcd: the watch does not bring the write") from None
        finally:
            self._writing -= 1
            if not self._writing:
                self._idle.set()

    async def _attempts(self, write: _Write, request: bytes) -> Revision:
        """Send a transaction until its outcome is known. Raises TimeoutError, too."""
        begin, uncertain, delay = asyncio.get_running_loop().time(), False, FIRST_DELAY
        while True:
            try:
                if uncertain and not write.expected and (own := await self._happened(write)):
                    return own
                response = await self._client.call(TXN, request, within=ANSWER_WITHIN)
                break
            except CallRefused as refused:
                if str(refused) == NO_SPACE and (own := await self._happened_though_refused(write)):
                    return own
                if uncertain:
                    raise OutcomeUnknown(f"etcd: {advised(str(refused))}") from None
                raise _refusal(refused) from None
            except CallLost as lost:
                uncertain |= lost.sent
                limit = RESOLVE_WITHIN if uncertain else CONNECT_WITHIN
                if asyncio.get_running_loop().time() - begin > limit:
                    error = f"etcd: {advised(str(lost))}"
                    raise OutcomeUnknown(error) if uncertain else Unavailable(error) from None
            delay = await pause(delay)
        if response.succeeded:
            if write.value is None and not response.responses[0].response_delete_range.deleted:
                raise Conflict(write.key, None)  # kine lets a deletion of what does not exist succeed
            revision = self._record(response.header.revision)
            self._newest = max(self._newest, revision)
            await self._waits.reach(revision)
            return revision
        current = await self._winner(write, response)
        if uncertain and (own := self._own(write)):
            return own
        raise Conflict(write.key, current)

    async def _winner(self, write: _Write, response: Any) -> KeyValue | None:
        """The state that a transaction found instead of the expected one, when this store shows it or a later one."""
        items = response.responses[0].response_range.kvs
        if items:
            await self._waits.reach(items[0].mod_revision)
            [value] = await values_of(self._layout, items)
            return KeyValue(write.key, value[1] if value else b"", items[0].mod_revision)
        while (state := self._state(write.key)) is not None and state.revision == write.expected:
            await self._waits.reach(self._log.revision + 1)
        return None

    async def _happened(self, write: _Write) -> Revision:
        """The revision at which etcd has executed a write without an answer; 0: it has not executed it.

        Raises CallLost, CallRefused, OutcomeUnknown, TimeoutError.
        """
        answer = await self._client.call(RANGE, Message["RangeRequest"](key=write.at), within=ANSWER_WITHIN)
        if answer.kvs:
            await self._waits.reach(answer.kvs[0].mod_revision)
        else:
            await self._advance(answer.header.revision)
        return self._own(write)

    async def _happened_though_refused(self, write: _Write) -> Revision:
        """As `_happened`, for a write that was answered with NO_SPACE. Raises OutcomeUnknown, TimeoutError."""
        try:
            return await self._happened(write)
        except (CallLost, CallRefused):
            raise OutcomeUnknown(f"etcd: {advised(NO_SPACE)}") from None

    def _own(self, write: _Write) -> Revision:
        """The revision of this very change in the log, 0 if it is not there. Raises OutcomeUnknown."""
        events = self._log.since(write.known)
        if events is None:
            raise OutcomeUnknown("etcd: what happened since the write was sent is not known")
        for event in events:
            previous = event.previous.revision if event.previous else 0
            is_same = event.key == write.key and previous == write.expected and event.value == write.value
            if is_same and event.revision not in self._answered:  # else another writer of this server made it
                return self._record(event.revision)
        return 0

    def _record(self, revision: Revision) -> Revision:
        """Remember that a write at this revision is answered."""
        self._answered[revision] = None
        if len(self._answered) > MAX_ANSWERED:
            del self._answered[next(iter(self._answered))]
        return revision


def _refusal(refused: CallRefused) -> TooLarge | Unavailable:
    text = str(refused)
    return TooLarge(text) if any(sign in text for sign in TOO_LARGE) else Unavailable(advised(text))


class Waits:
    """Waits until the log shows a revision: a write waits for its own event, a read for what others have written before it.

    `wake` has to be called when the log has grown.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._waits: list[tuple[Revision, int, asyncio.Future[None]]] = []  # a heap
        self._numbers = count()
        self._before = 0  # the numbers of waits that have not begun after the last expiry are less
        self._expiry: asyncio.TimerHandle | None = None
        self._closed = False

    async def reach(self, revision: Revision) -> None:
        """Wait until the log shows a revision. Raises Closed, TimeoutError after WAIT_WITHIN to twice that."""
        if revision <= self._log.revision:
            await asyncio.sleep(0)  # waiting watches get the event before its writer continues
            return
        if self._closed:
            raise Closed("the store is closed")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waits, (revision, next(self._numbers), future))
        if self._expiry is None:
            self._expire()
        await future

    async def reached_within(self, seconds: float, revision: Revision) -> bool:
        """Whether the log shows a revision after so many seconds at most. Raises Closed."""
        try:
            async with asyncio.timeout(seconds):
                await self.reach(revision)
        except TimeoutError:
            return self._log.revision >= revision
        return True

    def wake(self) -> None:
        while self._waits and self._waits[0][0] <= self._log.revision:
            future = heappop(self._waits)[2]
            if not future.done():
                future.set_result(None)

    def close(self) -> None:
        """End all waits, and those that begin later: the log does not grow any more."""
        self._closed = True
        if self._expiry is not None:
            self._expiry.cancel()
        while self._waits:
            future = heappop(self._waits)[2]
            if not future.done():
                future.set_exception(Closed("the store is closed"))

    def _expire(self) -> None:
        """End the waits that began before the last call, and call again after WAIT_WITHIN. One timer for all waits."""
        for _, number, future in self._waits:
            if number < self._before and not future.done():
                future.set_exception(TimeoutError())
        self._before = next(self._numbers)
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(WAIT_WITHIN, self._expire) if self._waits else None


class _Lease:
    def __init__(self, number: int, expires: float) -> None:
        self.number = number
        self.expires = expires
        self.keys = 0


class Leases:
    """The leases of one store."""

    def __init__(self, client: EtcdClient, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._monotonic = monotonic
        self._newest: dict[int, _Lease] = {}  # by lifetime
        self._granting = asyncio.Lock()

    async def lease(self, lifetime: int) -> int:
        """The lease for a key that has to exist for so many seconds. Raises CallLost, CallRefused."""
        async with self._granting:
            now = self._monotonic()
            lease = self._newest.get(lifetime)
            if lease is None or now + lifetime >= lease.expires or lease.keys >= MAX_KEYS:
                seconds = lifetime + min(lifetime * REUSED_PERCENT // 100, REUSED_FOR)
                granted = await self._client.call(LEASE_GRANT, Message["LeaseGrantRequest"](TTL=seconds))
                lease = self._newest[lifetime] = _Lease(granted.ID, now + seconds)
            lease.keys += 1
            return lease.number

    def forget(self) -> None:
        """Grant new leases: etcd may have lost the newest ones."""
        self._newest.clear()
