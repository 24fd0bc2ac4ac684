"""What is particular to etcd: other writers, gaps, interruptions, compaction by others, unknown outcomes, the layout.

The contract of every store is in test_contract.py.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from noxu.security.certificates import new_authority
from noxu_storage.types import (
    EVERYTHING,
    Batch,
    Compacted,
    Conflict,
    Event,
    Key,
    KeyValue,
    OpenError,
    OutcomeUnknown,
    Prefix,
    Revision,
    TooLarge,
    Unavailable,
)
from tests import etcd_server
from tests.etcd_server import EtcdServer
from tests.optional import require_program
from tests.timing import eventually_async, hang_guard

pytest.importorskip("noxu_storage.etcd.channel", reason="package: grpc")

from noxu_storage.etcd import client as etcd_client
from noxu_storage.etcd import history as etcd_history
from noxu_storage.etcd import store as etcd_store
from noxu_storage.etcd import writes as etcd_writes
from noxu_storage.etcd.channel import TlsFiles
from noxu_storage.etcd.client import EtcdClient, EtcdUser
from noxu_storage.etcd.errors import CallLost, CallRefused, advised
from noxu_storage.etcd.history import COMPACTION_KEY
from noxu_storage.etcd.layout import PlainLayout
from noxu_storage.etcd.messages import COMPACT, PUT, RANGE, TXN, Message, Method
from noxu_storage.etcd.store import EtcdStore, has_correct_progress
from tests.rows import rows

DELETE_RANGE = Method("/etcdserverpb.KV/DeleteRange", "DeleteRangeRequest", "DeleteRangeResponse")
Collect = Callable[..., Awaitable[list[Event]]]


def thing(name: str) -> Key:
    return Key("example.com/things", "default/", name)


A, B = thing("a"), thing("b")
THINGS = Prefix("example.com/things", "default/")


@pytest.fixture
def prefix() -> str:
    return f"/tests/{uuid4()}/"


@pytest.fixture
async def raw(etcd: EtcdServer) -> AsyncIterator[EtcdClient]:
    """Another program that uses etcd."""
    client = EtcdClient([etcd.url])
    yield client
    await client.close()


@asynccontextmanager
async def opened(url: str, prefix: str) -> AsyncIterator[EtcdStore]:
    store = await EtcdStore.open([url], PlainLayout(prefix))
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def store(etcd: EtcdServer, prefix: str) -> AsyncIterator[EtcdStore]:
    async with opened(etcd.url, prefix) as store:
        yield store


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    """An etcd that the test may stop."""
    if reason := etcd_server.lacking():
        pytest.skip(reason)
    with etcd_server.running_etcd(tmp_path / "etcd") as server:
        yield server


async def put_raw(client: EtcdClient, *items: tuple[str, bytes]) -> Revision:
    """Put keys in one transaction."""
    puts = [
        Message["RequestOp"](request_put=Message["PutRequest"](key=key.encode(), value=value)) for key, value in items
    ]
    return int((await client.call(TXN, Message["TxnRequest"](success=puts))).header.revision)


async def get_raw(client: EtcdClient, key: str) -> bytes | None:
    found = (await client.call(RANGE, Message["RangeRequest"](key=key.encode()))).kvs
    return found[0].value if found else None


async def compact_raw(client: EtcdClient, revision: Revision) -> None:
    await client.call(COMPACT, Message["CompactionRequest"](revision=revision))


# Several stores with one etcd.


async def test_what_one_store_has_answered_another_shows_after_catching_up(
    etcd: EtcdServer, prefix: str, store: EtcdStore
) -> None:
    async with opened(etcd.url, prefix) as other:
        for number in range(20):
            revision = await store.put(thing(f"n{number}"), b"v", expected=0)
            await other.catch_up()
            assert other.revision >= revision
            assert await other.get(thing(f"n{number}")) == KeyValue(thing(f"n{number}"), b"v", revision)


async def test_increments_in_two_stores_add_up(etcd: EtcdServer, prefix: str, store: EtcdStore) -> None:
    async with opened(etcd.url, prefix) as other:

        async def increment(own: EtcdStore, times: int) -> None:
            for _ in range(times):
                while True:
                    current = await own.get(A)
                    value = b"%d" % (int(current.value) + 1 if current else 1)
                    try:
                        await own.put(A, value, expected=current.revision if current else 0)
                        break
                    except Conflict:
                        pass

        await asyncio.gather(*(increment(own, 10) for own in (store, other) for _ in range(3)))
        for own in (store, other):
            await own.catch_up()
            current = await own.get(A)
            assert current is not None
            assert current.value == b"60"


async def test_both_stores_have_the_same_history(
    etcd: EtcdServer, prefix: str, store: EtcdStore, collect: Collect
) -> None:
    async with opened(etcd.url, prefix) as other:
        start = store.revision

        async def write(own: EtcdStore, name: str) -> None:
            for number in range(20):
                revision = await own.put(thing(f"{name}{number}"), b"v", expected=0)
                if number % 3 == 0:
                    await own.delete(thing(f"{name}{number}"), expected=revision)

        await asyncio.gather(*(write(own, name) for own, name in ((store, "a"), (store, "b"), (other, "c"))))
        await asyncio.gather(store.catch_up(), other.catch_up())
        histories = [await collect(own, after=start, upto=own.revision) for own in (store, other)]
        assert histories[0] == histories[1]
        assert len(histories[0]) == 81


# Gaps, and transactions of others.


async def test_writes_of_others_in_etcd_are_gaps(raw: EtcdClient, store: EtcdStore, collect: Collect) -> None:
    start = store.revision
    first = await store.put(A, b"1", expected=0)
    for _ in range(5):
        elsewhere = await put_raw(raw, ("/elsewhere", b"v"))
    second = await store.put(B, b"1", expected=0)
    assert (first, elsewhere, second) == (start + 1, start + 6, start + 7)
    events = [Event(A, first, b"1", None), Event(B, second, b"1", None)]
    for after in range(start, second):
        expected = [event for event in events if event.revision > after]
        assert await collect(store, after=after, upto=second) == expected
        assert await collect(store, after=after, upto=second, prefix=THINGS) == expected


async def test_catching_up_reaches_revisions_without_events(raw: EtcdClient, store: EtcdStore) -> None:
    elsewhere = await put_raw(raw, ("/elsewhere", b"v"))
    watch = store.watch(after=store.revision)
    await asyncio.gather(*(store.catch_up() for _ in range(10)))
    assert store.revision >= elsewhere
    batch = await anext(watch)
    assert list(batch.events) == []
    assert batch.revision >= elsewhere
    assert await store.count(EVERYTHING) == 0


async def test_a_transaction_of_several_keys_is_one_batch(raw: EtcdClient, store: EtcdStore, prefix: str) -> None:
    watch = store.watch(after=store.revision)
    keys = [f"{prefix}example.com/things/default/{name}" for name in "ab"]
    revision = await put_raw(raw, (keys[0], b"1"), (keys[1], b"2"))
    batch = await anext(watch)
    assert batch == Batch([Event(A, revision, b"1", None), Event(B, revision, b"2", None)], revision)
    assert (await store.list(THINGS)).items == [KeyValue(A, b"1", revision), KeyValue(B, b"2", revision)]


@pytest.mark.parametrize(
    "name", ["things", "example.com/things", "example.com/things/a/b/c", "example.com/things/default/"]
)
async def test_keys_that_are_not_of_the_store_are_left_out(
    raw: EtcdClient, store: EtcdStore, prefix: str, name: str
) -> None:
    revision = await put_raw(raw, (prefix + name, b"v"))
    await eventually_async(lambda: store.revision >= revision)
    assert await store.count(EVERYTHING) == 0


# Opening again, and older history.


async def test_a_store_opened_again_has_states_and_history(etcd: EtcdServer, prefix: str, collect: Collect) -> None:
    async with opened(etcd.url, prefix) as store:
        start = store.revision
        events = [Event(A, await store.put(A, b"1", expected=0), b"1", None)]
        state = KeyValue(A, b"1", events[0].revision)
        events.append(Event(A, await store.put(A, b"2", expected=state.revision), b"2", state))
        state = KeyValue(A, b"2", events[1].revision)
        events.append(Event(A, await store.delete(A, expected=state.revision), None, state))
        events.append(Event(B, await store.put(B, b"1", expected=0), b"1", None))
    async with opened(etcd.url, prefix) as store:
        assert await store.get(A) is None
        assert await store.get(B) == KeyValue(B, b"1", events[3].revision)
        for after in range(start, start + 4):
            found = await collect(store, after=after, upto=events[3].revision)
            assert found == [event for event in events if event.revision > after]
        assert (await store.list(THINGS, revision=events[0].revision)).items == [KeyValue(A, b"1", events[0].revision)]


async def test_a_store_reads_all_keys_of_a_large_prefix(
    etcd: EtcdServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_store, "PAGE", 7)
    monkeypatch.setattr(etcd_history, "PAGE", 7)
    async with opened(etcd.url, prefix) as store:
        await asyncio.gather(*(store.put(thing(f"{number:03}"), b"v", expected=0) for number in range(50)))
        revision = store.revision
        await store.put(A, b"v", expected=0)
        old = await store.list(THINGS, revision=revision)
        assert [item.key.name for item in old.items] == [f"{number:03}" for number in range(50)]
        page = await store.list(THINGS, revision=revision, limit=20, after=thing("009"))
        assert ([page.items[0].key.name, page.items[-1].key.name], page.remaining) == (["010", "029"], 20)
    async with opened(etcd.url, prefix) as store:
        assert await store.count(THINGS) == 51


async def test_history_that_others_have_compacted_is_gone(
    etcd: EtcdServer, raw: EtcdClient, prefix: str, store: EtcdStore
) -> None:
    start = store.revision
    first = await store.put(A, b"1", expected=0)
    second = await store.put(A, b"2", expected=first)
    await store.put(B, b"1", expected=0)
    await compact_raw(raw, second)
    with pytest.raises(Compacted):
        await store.list(THINGS, revision=first)
    async with opened(etcd.url, prefix) as again:
        assert again.compacted == second
        with pytest.raises(Compacted):
            async with hang_guard():
                await anext(again.watch(after=start))


@pytest.mark.parametrize("back", [0, 1, 5])
async def test_a_store_that_is_opened_knows_what_is_compacted(
    etcd: EtcdServer, raw: EtcdClient, prefix: str, back: int
) -> None:
    for _ in range(10):
        newest = await put_raw(raw, ("/elsewhere", b"v"))
    await compact_raw(raw, newest - back)
    async with opened(etcd.url, prefix) as store:
        assert store.compacted == newest - back


async def test_a_store_in_a_new_etcd_has_compacted_nothing(own_etcd: EtcdServer, prefix: str) -> None:
    async with opened(own_etcd.url, prefix) as store:
        assert (store.revision, store.compacted) == (1, 0)


# Compaction in turns.


async def test_servers_take_turns_in_compacting(
    etcd: EtcdServer, raw: EtcdClient, prefix: str, store: EtcdStore
) -> None:
    async with opened(etcd.url, prefix) as other:
        for own in (store, other):  # they learn the turn
            await own.compact_in_turn(own.revision)
        revision = await store.put(A, b"1", expected=0)
        await other.catch_up()
        await store.compact_in_turn(revision)
        assert store.compacted == revision
        assert await get_raw(raw, COMPACTION_KEY.decode()) == b"%d" % revision
        await other.compact_in_turn(revision - 1)  # it is not its turn: it learns what has been done
        assert other.compacted == revision


# Sizes.


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (1_600_000, "etcdserver: request is too large"),
        (2_500_000, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (25"),
    ],
)
async def test_a_value_that_etcd_does_not_take_is_refused_with_its_text(
    store: EtcdStore, size: int, message: str
) -> None:
    with pytest.raises(TooLarge) as refused:
        await store.put(A, b"x" * size, expected=0)
    assert str(refused.value).startswith(message)
    assert await store.get(A) is None


# Calls without an answer.


class Failing:
    """A client whose transactions are lost `times` times, before or after etcd has executed them."""

    def __init__(self, client: EtcdClient, times: int, *, executed: bool) -> None:
        self._client = client
        self._times = times
        self._executed = executed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def call(self, call: Any, request: Any, **options: Any) -> Any:
        if call is not TXN or not self._times:
            return await self._client.call(call, request, **options)
        self._times -= 1
        if self._executed:
            await self._client.call(call, request, **options)
        raise CallLost("lost", sent=True)


@pytest.mark.parametrize("executed", [False, True], ids=["before etcd", "after etcd"])
@pytest.mark.parametrize("kind", ["create", "update", "delete"])
async def test_a_write_whose_answer_is_lost_happens_once(store: EtcdStore, kind: str, executed: bool) -> None:
    expected = 0 if kind == "create" else await store.put(A, b"1", expected=0)
    start = store.revision
    store._writes._client = Failing(store._client, 1, executed=executed)  # type: ignore[assignment]
    if kind == "delete":
        revision = await store.delete(A, expected=expected)
    else:
        revision = await store.put(A, b"2", expected=expected)
    assert (revision, store.revision) == (start + 1, start + 1)
    assert await store.get(A) == (None if kind == "delete" else KeyValue(A, b"2", revision))


async def test_a_write_whose_answer_is_lost_and_that_another_came_before_conflicts(
    raw: EtcdClient, store: EtcdStore, prefix: str
) -> None:
    revision = await put_raw(raw, (f"{prefix}example.com/things/default/a", b"other"))
    store._writes._client = Failing(store._client, 1, executed=False)  # type: ignore[assignment]
    with pytest.raises(Conflict) as refused:
        await store.put(A, b"own", expected=0)
    assert refused.value.current == KeyValue(A, b"other", revision)


@pytest.mark.parametrize("deleted", [False, True], ids=["", "and deleted by another client"])
async def test_what_was_created_without_an_answer_is_not_created_again(
    store: EtcdStore, raw: EtcdClient, deleted: bool
) -> None:
    """The second create would succeed, because the key is absent again."""
    start = store.revision

    class Slow(Failing):
        async def call(self, call: Any, request: Any, **options: Any) -> Any:
            try:
                return await super().call(call, request, **options)
            except CallLost:
                if deleted:
                    await raw.call(DELETE_RANGE, Message["DeleteRangeRequest"](key=store._layout.key(A)))
                raise

    store._writes._client = Slow(store._client, 1, executed=True)  # type: ignore[assignment]
    assert await store.put(A, b"1", expected=0) == start + 1
    await store.catch_up()
    assert (await store.get(A) is None) == deleted
    assert store.revision >= start + 1 + deleted
    events = store._log.since(start)
    assert events is not None
    assert [event.value for event in events] == [b"1", None][: 1 + deleted]


@pytest.mark.parametrize("executed", [False, True], ids=["etcd has not executed", "etcd has executed"])
@pytest.mark.parametrize("kind", ["create", "update", "delete"])
async def test_a_write_that_is_refused_because_there_is_no_space(store: EtcdStore, kind: str, executed: bool) -> None:
    """etcd executes what was proposed before it noticed, and refuses it nevertheless. It is as if it had been answered."""

    class Full(Failing):
        async def call(self, call: Any, request: Any, **options: Any) -> Any:
            try:
                return await super().call(call, request, **options)
            except CallLost:
                raise CallRefused("RESOURCE_EXHAUSTED", etcd_writes.NO_SPACE) from None

    expected = 0 if kind == "create" else await store.put(A, b"1", expected=0)
    before, start = await store.get(A), store.revision
    store._writes._client = Full(store._client, 1, executed=executed)  # type: ignore[assignment]
    write = store.delete(A, expected=expected) if kind == "delete" else store.put(A, b"2", expected=expected)
    if executed:
        assert await write == start + 1
        assert await store.get(A) == (None if kind == "delete" else KeyValue(A, b"2", start + 1))
    else:
        with pytest.raises(
            Unavailable,
            match=r"^etcdserver: mvcc: database space exceeded \(compact etcd and .*etcdctl alarm disarm\)$",
        ):
            await write
        assert await store.get(A) == before


@pytest.mark.parametrize(
    ("code", "message", "error"),
    [
        ("INVALID_ARGUMENT", "etcdserver: request is too large", TooLarge),
        ("RESOURCE_EXHAUSTED", "grpc: received message larger than max (1600000 vs. 1500000)", TooLarge),
        ("INVALID_ARGUMENT", "etcdserver: user name is empty", Unavailable),
        ("RESOURCE_EXHAUSTED", "etcdserver: too many requests", Unavailable),
        ("PERMISSION_DENIED", "etcdserver: permission denied", Unavailable),
    ],
)
async def test_a_write_that_etcd_refuses(store: EtcdStore, code: str, message: str, error: type[Exception]) -> None:
    class Refusing:
        async def call(self, *arguments: Any, **options: Any) -> Any:
            raise CallRefused(code, message)

    store._writes._client = Refusing()  # type: ignore[assignment]
    with pytest.raises(error) as refused:
        await store.put(A, b"1", expected=0)
    assert str(refused.value) == advised(message)


async def test_a_write_that_is_lost_for_long_has_an_unknown_outcome(
    store: EtcdStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_writes, "RESOLVE_WITHIN", 0.2)
    store._writes._client = Failing(store._client, 1_000, executed=False)  # type: ignore[assignment]
    with pytest.raises(OutcomeUnknown):
        await store.put(A, b"1", expected=0)


async def test_an_etcd_that_does_not_answer_fails_reads_and_writes_in_the_same_time(
    own_etcd: EtcdServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both make attempts of ANSWER_WITHIN, here in a shorter time, until as much has passed twice."""
    assert etcd_writes.RESOLVE_WITHIN == 2 * etcd_client.ANSWER_WITHIN
    assert etcd_client.ASK_WITHIN <= etcd_client.ANSWER_WITHIN  # so the second attempt of a read is the last one
    asked: list[float] = []
    call = EtcdClient._call

    async def recorded(self: EtcdClient, of: Any, request: Any, within: float, token: Any) -> Any:
        asked.append(within)
        return await call(self, of, request, 0.05, token)

    async with opened(own_etcd.url, prefix) as store:
        old = await store.put(A, b"1", expected=0)
        own_etcd.pause()
        try:
            monkeypatch.setattr(EtcdClient, "_call", recorded)
            monkeypatch.setattr(etcd_writes, "RESOLVE_WITHIN", 0.06)
            monkeypatch.setattr(etcd_client, "ASK_WITHIN", 0.0)
            for work in (
                store.catch_up,
                partial(store.put, A, b"2", expected=old),
                partial(store.put, B, b"1", expected=0),
            ):
                asked.clear()
                with pytest.raises((Unavailable, OutcomeUnknown)):
                    await work()
                assert set(asked) == {etcd_client.ANSWER_WITHIN}
        finally:
            own_etcd.resume()


async def test_cancelled_writes_happen_once_or_not_at_all(store: EtcdStore) -> None:
    start = store.revision
    writes = [asyncio.create_task(store.put(thing(f"n{number}"), b"v", expected=0)) for number in range(200)]
    for number, write in enumerate(writes):
        if number % 2:
            write.cancel()
        if number % 20 == 0:
            await asyncio.sleep(0)
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    await store.catch_up()
    found = store._log.since(start)
    assert found is not None
    events = {event.key.name: event for event in found}
    assert len(events) == len(found)
    for number, outcome in enumerate(outcomes):
        if not isinstance(outcome, BaseException):
            assert events[f"n{number}"].revision == outcome


# Interruptions.


async def test_a_store_continues_after_etcd_was_killed(own_etcd: EtcdServer, prefix: str, collect: Collect) -> None:
    async with opened(own_etcd.url, prefix) as store:
        start = store.revision
        first = await store.put(A, b"1", expected=0)
        own_etcd.crash()
        await eventually_async(lambda: store._fault)
        assert await store.get(A) == KeyValue(A, b"1", first)
        assert (await store.status()).fault
        with pytest.raises(Unavailable):
            await store.catch_up()
        writing = asyncio.create_task(store.put(B, b"1", expected=0))
        own_etcd.start()
        async with hang_guard():
            second = await writing
        await eventually_async(lambda: not store._fault)
        events = [Event(A, first, b"1", None), Event(B, second, b"1", None)]
        assert await collect(store, after=start, upto=second) == events


async def test_a_write_without_a_connection_is_refused(
    own_etcd: EtcdServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_writes, "CONNECT_WITHIN", 0.1)
    async with opened(own_etcd.url, prefix) as store:
        own_etcd.kill()
        await eventually_async(lambda: store._fault)
        with pytest.raises(Unavailable):
            await store.put(A, b"1", expected=0)


async def test_a_store_that_compaction_overtakes_while_it_is_cut_off_begins_again(
    etcd: EtcdServer, raw: EtcdClient, prefix: str, store: EtcdStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its watches end, and its states are those of etcd."""
    await store.put(A, b"1", expected=0)
    start = store.revision
    watch = store.watch(after=start)
    await store._client._watches.close()
    first, second = f"{prefix}example.com/things/default/a", f"{prefix}example.com/things/default/b"
    await put_raw(raw, (first, b"2"))
    compacted = await put_raw(raw, (second, b"1"))
    await compact_raw(raw, compacted)
    store._client._watches = store._client._channel(0)
    await eventually_async(lambda: store.revision >= compacted)
    with pytest.raises(Compacted):
        await anext(watch)
    assert [(item.key, item.value) for item in (await store.list(THINGS)).items] == [(A, b"2"), (B, b"1")]
    assert await store.put(thing("c"), b"1", expected=0) > compacted


async def test_a_store_whose_etcd_has_gone_back_refuses_everything(
    own_etcd: EtcdServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has lost what was answered. In a new etcd the revisions of this store mean something else."""
    monkeypatch.setattr(etcd_store, "BETWEEN_ANSWERS", 0.001)
    async with opened(own_etcd.url, prefix) as store:
        revision = await store.put(A, b"1", expected=0)
        await store.put(A, b"2", expected=revision)
        own_etcd.kill()
        shutil.rmtree(own_etcd.directory / "data")
        own_etcd.start()
        text = "^etcd has gone back from revision 3 to 1: .* Restart all servers that use it$"
        await eventually_async(lambda: store._replaced)
        for attempt in (store.get(A), store.list(THINGS), store.put(B, b"1", expected=0), store.catch_up()):
            with pytest.raises(Unavailable, match=text):
                await attempt
        assert (await store.status()).fault == store._replaced
    async with opened(own_etcd.url, prefix) as again:
        assert await again.get(A) is None


async def test_an_etcd_that_shows_an_older_revision_for_a_moment_has_not_gone_back(
    store: EtcdStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_store, "BETWEEN_ANSWERS", 0.001)
    revision, call = await store.put(A, b"1", expected=0), store._client._call
    shown = [revision - 1, revision - 1]

    async def late(asked: Method, *arguments: Any) -> Any:
        answer = await call(asked, *arguments)
        if asked is RANGE and shown:
            answer.header.revision = shown.pop()
        return answer

    store._client._call = late  # type: ignore[method-assign]
    await store.catch_up()
    assert (shown, store._replaced) == ([], "")


async def test_reading_all_states_may_take_longer_than_the_first_answer(
    etcd: EtcdServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Large(EtcdStore):
        async def _require_complete(self) -> None:
            pass  # etcd has answered

        async def _load(self) -> Any:
            await asyncio.sleep(0.1)
            return await super()._load()

    monkeypatch.setattr(etcd_store, "OPEN_WITHIN", 0.05)
    store = await Large.open([etcd.url], PlainLayout(prefix))
    assert await store.count(EVERYTHING) == 0
    await store.close()


async def test_older_events_are_read_again_if_a_server_goes_away(
    etcd: EtcdServer, prefix: str, collect: Collect
) -> None:
    async with opened(etcd.url, prefix) as store:
        start = store.revision
        newest = await store.put(A, b"1", expected=0)
    async with opened(etcd.url, prefix) as store:
        watch, lost = store._client.watch, []

        def once(**options: Any) -> Any:
            if not lost:
                lost.append(options)
                raise CallLost("the server has closed the connection", sent=False)
            return watch(**options)

        store._client.watch = once  # type: ignore[method-assign]
        events = await collect(store, after=start, upto=newest)
        assert ([event.value for event in events], len(lost)) == ([b"1"], 1)


@pytest.mark.parametrize("what", [RANGE, PUT], ids=["a question", "a barrier"])
async def test_what_may_happen_twice_is_asked_again(store: EtcdStore, raw: EtcdClient, what: Method) -> None:
    """A member has gone away: the reader gets the answer of another one."""
    call, lost = store._client._call, []

    async def once(asked: Method, *arguments: Any) -> Any:
        if asked is what and not lost:
            lost.append(asked)
            raise CallLost("the server has closed the connection", sent=True)
        return await call(asked, *arguments)

    store._client._call = once  # type: ignore[method-assign]
    elsewhere = await put_raw(raw, ("/elsewhere", b"v"))
    await (store.catch_up() if what is RANGE else store._write_barrier())
    await store.catch_up()
    assert store.revision >= elsewhere
    assert lost == [what]


async def test_etcd_that_stops_for_a_while_delays_writes(own_etcd: EtcdServer, prefix: str) -> None:
    async with opened(own_etcd.url, prefix) as store:
        await store.put(A, b"1", expected=0)
        own_etcd.pause()
        try:
            writing = asyncio.create_task(store.put(B, b"1", expected=0))
            await asyncio.sleep(0.2)
            assert not writing.done()
        finally:
            own_etcd.resume()
        async with hang_guard():
            revision = await writing
        assert await store.get(B) == KeyValue(B, b"1", revision)


async def test_a_store_without_etcd_does_not_open(prefix: str) -> None:
    [port] = etcd_server.free_ports(1)
    with pytest.raises(OpenError, match=f"cannot read from etcd at http://127.0.0.1:{port}: "):
        await EtcdStore.open([f"http://127.0.0.1:{port}"], PlainLayout(prefix))


async def test_a_store_uses_the_servers_that_answer(etcd: EtcdServer, prefix: str) -> None:
    [port] = etcd_server.free_ports(1)
    store = await EtcdStore.open([f"http://127.0.0.1:{port}", etcd.url], PlainLayout(prefix))
    revision = await store.put(A, b"1", expected=0)
    assert store.revision == revision
    await store.close()


# TLS.


async def test_a_server_with_tls_is_verified_and_asks_for_a_certificate(tmp_path: Path, prefix: str) -> None:
    if reason := etcd_server.lacking():
        pytest.skip(reason)
    authority, other = new_authority(), new_authority()
    server, client = authority.issue_server(["127.0.0.1"]), authority.issue_client("noxu")
    files = {
        "ca": authority.certificate, "other": other.certificate, "server.crt": server.certificate,
        "server.key": server.key, "client.crt": client.certificate, "client.key": client.key,
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    ports = etcd_server.free_ports(2)
    url, peer = f"https://127.0.0.1:{ports[0]}", f"http://127.0.0.1:{ports[1]}"
    assert etcd_server.PROGRAM is not None
    process = await asyncio.create_subprocess_exec(
        etcd_server.PROGRAM, "--data-dir", str(tmp_path / "data"), "--unsafe-no-fsync", "--log-level", "panic",
        "--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", peer,
        "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}", "--client-cert-auth",
        "--trusted-ca-file", str(tmp_path / "ca"), "--cert-file", str(tmp_path / "server.crt"),
        "--key-file", str(tmp_path / "server.key"), start_new_session=True, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    identity = (tmp_path / "client.crt", tmp_path / "client.key")

    async def listens() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", ports[0])
        except OSError:
            return False
        writer.close()
        return True

    try:
        await eventually_async(listens)
        store = await EtcdStore.open([url], PlainLayout(prefix), TlsFiles(tmp_path / "ca", *identity))
        revision = await store.put(A, b"x" * 200_000, expected=0)
        assert await store.get(A) == KeyValue(A, b"x" * 200_000, revision)
        await store.close()
        for wrong in (TlsFiles(tmp_path / "other", *identity), TlsFiles(tmp_path / "ca")):
            with pytest.raises(OpenError, match="cannot read from etcd at https:"):
                await EtcdStore.open([url], PlainLayout(prefix), wrong)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


# Users.


async def test_a_user_with_access_to_the_prefix_reads_and_writes(
    own_etcd: EtcdServer, prefix: str, collect: Collect
) -> None:
    program = require_program("etcdctl")

    async def etcdctl(*arguments: str) -> None:
        command = [program, f"--endpoints={own_etcd.url}", *arguments]
        running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
        assert await running.wait() == 0

    for user in ("root", "noxu"):
        await etcdctl("user", "add", f"{user}:secret of {user}")
        await etcdctl("role", "add", user)
        await etcdctl("user", "grant-role", user, user)
    await etcdctl("role", "grant-permission", "--prefix=true", "noxu", "readwrite", prefix)
    await etcdctl("role", "grant-permission", "noxu", "readwrite", COMPACTION_KEY.decode())
    await etcdctl("auth", "enable")
    for unknown in (None, EtcdUser("noxu", "wrong"), EtcdUser("other", "secret")):
        with pytest.raises(OpenError, match=r"etcdserver: (user name is empty|authentication failed)") as refused:
            await EtcdStore.open([own_etcd.url], PlainLayout(prefix), user=unknown)
        assert "secret" not in str(refused.value)
    store = await EtcdStore.open([own_etcd.url], PlainLayout(prefix), user=EtcdUser("noxu", "secret of noxu"))
    start = store.revision
    first = await store.put(A, b"1", expected=0)
    own_etcd.crash()  # tokens are in its memory
    own_etcd.start()
    async with hang_guard():
        second = await store.put(A, b"2", expected=first)
        try:
            await store.compact_in_turn(start)
        except Unavailable as error:  # by newer versions of etcd
            assert "let only the role root compact" in str(error)  # noqa: PT017
        events = await collect(store, after=start, upto=second)
    assert [event.value for event in events] == [b"1", b"2"]
    await store.close()


# Rules.


@rows(
    ("version", "correct"),
    [
        ("3.4.23", False), ("3.4.30", False), ("3.4.31", True), ("3.5.1", False), ("3.5.12", False), ("3.5.13", True),
        ("3.5.21", True), ("3.6.0", True), ("3.6.0-rc.1", True), ("3.7.2", True), ("3.3.99", False), ("", False),
        ("unknown", False), ("4.0.0", True),
    ],
)  # fmt: skip
def test_progress_is_used_from_the_versions_on_that_send_it_correctly(version: str, correct: bool) -> None:
    assert has_correct_progress(version) == correct


async def test_progress_of_an_older_version_is_not_used(store: EtcdStore, raw: EtcdClient) -> None:
    """etcd 3.5.1 may send progress before events that precede it."""
    await eventually_async(lambda: store._stream is not None)
    correct = has_correct_progress((await store._client.versions())[0])
    await eventually_async(lambda: store._trusted == correct)
    if not correct:
        store._apply((), (), store.revision)  # what follows is not used
        assert store._asking is not None
        await asyncio.wait([store._asking])
        assert not store._trusted


@rows(
    ("url", "found"),
    [
        ("http://127.0.0.1:2379", ("127.0.0.1", 2379, False)),
        ("https://etcd.example.com", ("etcd.example.com", 2379, True)),
        ("http://[::1]:4001/", ("::1", 4001, False)),
        ("127.0.0.1:2379", None),
        ("ftp://127.0.0.1", None),
        ("http://", None),
        ("http://127.0.0.1:2379/v3", None),
        ("http://127.0.0.1:99999", None),
        ("http://a..b:2379", None),
        ("http://[::1", None),
    ],
)
def test_the_url_of_a_server(url: str, found: tuple[str, int, bool] | None) -> None:
    if found is not None:
        assert etcd_client.server_url(url) == found
    else:
        with pytest.raises(ValueError, match="is not a URL of etcd"):
            etcd_client.server_url(url)


async def test_a_barrier_is_no_key_of_the_store(store: EtcdStore, raw: EtcdClient, prefix: str) -> None:
    await raw.call(PUT, Message["PutRequest"](key=f"{prefix}\1barrier".encode()))
    await store.catch_up()
    assert await store.count(EVERYTHING) == 0
