"""Random sequences of calls, compared with a model: an append-only list of events."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from noxu_storage import log, sqlite
from noxu_storage.memory import MemoryStore
from noxu_storage.sqlite import SqliteStore
from noxu_storage.store import Store
from noxu_storage.transactions import StagedWrite
from noxu_storage.types import EVERYTHING, Compacted, Conflict, Event, FutureRevision, Key, KeyValue, Prefix, Revision
from tests.etcd_server import EtcdServer
from tests.storage.rebased import open_rebased
from tests.timing import hang_guard

T = TypeVar("T")

KEYS = [Key(collection, partition, name) for collection in ("g/a", "g/b") for partition in ("", "p/") for name in "xy"]
PREFIXES = [EVERYTHING, Prefix("g/a"), Prefix("g/b"), Prefix("g/b", "p/"), Prefix("g/c")]

keys = st.sampled_from(KEYS)
prefixes = st.sampled_from(PREFIXES)
values = st.binary(max_size=6)
back = st.integers(0, 12)  # how far a revision is behind the newest, or an expected revision behind the current one


class Machine(RuleBasedStateMachine):
    """A store and the list of its events."""

    store: Store
    largest_transaction = 6
    """The number of keys in one: etcd takes several in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = self.new_runner()
        self.events: list[Event] = []
        self.compacted = 0
        self.watches: list[tuple[Any, Prefix, Revision]] = []

    def new_runner(self) -> asyncio.Runner:
        return asyncio.Runner()

    def leave(self) -> None:
        self.runner.close()

    def run(self, call: Awaitable[T]) -> T:
        async def within() -> T:
            async with hang_guard():
                return await call

        return self.runner.run(within())

    @property
    def revision(self) -> Revision:
        return len(self.events) + 1

    def state(self, at: Revision) -> dict[Key, KeyValue]:
        state: dict[Key, KeyValue] = {}
        for key, revision, value, _ in self.events[: max(at - 1, 0)]:
            state.pop(key, None)
            if value is not None:
                state[key] = KeyValue(key, value, revision)
        return state

    def current(self, key: Key) -> KeyValue | None:
        return self.state(self.revision).get(key)

    def happened(self, key: Key, value: bytes | None) -> None:
        self.events.append(Event(key, self.revision + 1, value, self.current(key)))

    # Writing.

    @rule(key=keys, value=values, is_known=st.booleans())
    def put(self, key: Key, value: bytes, is_known: bool) -> None:
        current = self.current(key)
        replaced = current.value if current and is_known else None
        expected = current.revision if current else 0
        revision = self.run(self.store.put(key, value, expected=expected, replaced=replaced))
        self.happened(key, value)
        assert revision == self.revision

    @rule(key=keys, is_known=st.booleans())
    def delete(self, key: Key, is_known: bool) -> None:
        current = self.current(key)
        if current is not None:
            replaced = current.value if is_known else None
            revision = self.run(self.store.delete(key, expected=current.revision, replaced=replaced))
            self.happened(key, None)
            assert revision == self.revision

    @rule(key=keys, value=st.none() | values, wrong=back)
    def conflict(self, key: Key, value: bytes | None, wrong: int) -> None:
        current = self.current(key)
        expected = max(self.revision - wrong, 0)
        if expected == (current.revision if current else 0) and not (value is None and current is None):
            return
        write = (
            self.store.delete(key, expected=expected)
            if value is None
            else self.store.put(key, value, expected=expected)
        )
        with pytest.raises(Conflict) as refused:
            self.run(write)
        assert refused.value.current == current

    @rule(writes=st.lists(st.tuples(keys, values), min_size=2, max_size=8))
    def put_at_once(self, writes: list[tuple[Key, bytes]]) -> None:
        """Of those that write the same key with the same expectation the first wins."""
        before = self.state(self.revision)

        async def all_at_once() -> list[Revision | BaseException]:
            return await asyncio.gather(
                *(
                    self.store.put(key, value, expected=before[key].revision if key in before else 0)
                    for key, value in writes
                ),
                return_exceptions=True,
            )

        done: dict[Key, bytes] = {}
        outcomes = self.run(all_at_once())
        won = sorted(
            (outcome, *write) for outcome, write in zip(outcomes, writes, strict=True) if isinstance(outcome, int)
        )
        for revision, key, value in won:
            self.happened(key, value)
            assert revision == self.revision
            done[key] = value
        assert len(done) == len(won) == len({key for key, _ in writes})
        for outcome, (key, _) in zip(outcomes, writes, strict=True):
            if not isinstance(outcome, int):
                assert isinstance(outcome, Conflict)
                assert outcome.current is not None
                assert outcome.current.value == done[key]

    @rule(values=st.dictionaries(keys, st.none() | values, max_size=6), recreated=st.sets(keys), wrong=st.booleans())
    def transact(self, values: dict[Key, bytes | None], recreated: set[Key], wrong: bool) -> None:
        """Changes several keys, some of which are deleted first. `wrong`: the last one conflicts, and nothing happens."""
        writes: list[StagedWrite] = []
        for key, value in [*values.items()][: self.largest_transaction]:
            current = self.current(key)
            if current is not None and (value is None or key in recreated):
                writes.append(StagedWrite(key, None, current.revision))
            if value is not None:
                exists = current is not None and key not in recreated
                writes.append(StagedWrite(key, value, current.revision if current and exists else 0))
        if wrong and writes:
            writes[-1] = writes[-1]._replace(expected=self.revision + 1)

        async def decide() -> list[StagedWrite]:
            return writes

        if wrong and writes:
            with pytest.raises(Conflict):
                self.run(self.store.transact(decide))
            return
        revision = self.run(self.store.transact(decide))
        for write in writes:
            self.happened(write.key, write.value)
        assert revision == (self.revision if writes else 0)

    # Reading.

    @rule(prefix=prefixes, age=back, limit=st.integers(0, 4), after=st.none() | keys)
    def list(self, prefix: Prefix, age: int, limit: int, after: Key | None) -> None:
        at = max(self.revision - age, 1)
        if at < self.compacted:
            with pytest.raises(Compacted):
                self.run(self.store.list(prefix, revision=at, limit=limit, after=after))
            return
        page = self.run(self.store.list(prefix, revision=at if age else 0, limit=limit, after=after))
        whole = [s for k, s in sorted(self.state(at).items()) if prefix.covers(k) and (after is None or k > after)]
        cut = limit or len(whole)
        assert (list_of(page.items), page.revision, page.remaining) == (whole[:cut], at, len(whole[cut:]))

    @rule(key=keys, age=back)
    def get(self, key: Key, age: int) -> None:
        at = max(self.revision - age, 1)
        if at < self.compacted:
            with pytest.raises(Compacted):
                self.run(self.store.get(key, revision=at))
        else:
            assert self.run(self.store.get(key, revision=at)) == self.state(at).get(key)

    @rule(prefix=prefixes)
    def count(self, prefix: Prefix) -> None:
        assert self.run(self.store.count(prefix)) == sum(map(prefix.covers, self.state(self.revision)))

    @rule(ahead=st.integers(1, 5))
    def list_the_future(self, ahead: int) -> None:
        with pytest.raises(FutureRevision):
            self.run(self.store.list(EVERYTHING, revision=self.revision + ahead))

    # Watching.

    @rule(prefix=prefixes, after=back)
    def watch(self, prefix: Prefix, after: int) -> None:
        start = max(self.revision - after, 0)
        if start < self.compacted:
            with pytest.raises(Compacted):
                self.run(anext(self.store.watch(prefix, after=start)))
        elif len(self.watches) < 4:
            self.watches.append((self.store.watch(prefix, after=start), prefix, max(start, 1)))

    @rule(ahead=st.integers(1, 4))
    def watch_the_future(self, ahead: int) -> None:
        if len(self.watches) < 4:
            start = self.revision + ahead
            self.watches.append((self.store.watch(after=start), EVERYTHING, start))

    @precondition(lambda self: self.watches)
    @rule(which=st.integers(0, 3))
    def read(self, which: int) -> None:
        """A watch delivers exactly the events after its start, or ends because compaction has overtaken it."""
        watch, prefix, after = self.watches.pop(which % len(self.watches))
        events: list[Event] = []
        while after < self.revision:
            try:
                batch = self.run(anext(watch))
            except Compacted:
                assert after < self.compacted
                return
            expected = [e for e in self.events if after < e.revision <= batch.revision and prefix.covers(e.key)]
            assert (list_of(batch.events), batch.revision > after) == (expected, True)
            after = batch.revision
            events += batch.events
        self.watches.append((watch, prefix, after))

    # Compacting, and beginning again.

    @rule(age=back)
    def compact(self, age: int) -> None:
        at = max(self.revision - age, 0)
        self.run(self.store.compact(at))
        self.compacted = max(self.compacted, at)

    @rule()
    def compact_the_future(self) -> None:
        with pytest.raises(FutureRevision):
            self.run(self.store.compact(self.revision + 1))

    @invariant()
    def it_is_where_it_should_be(self) -> None:
        assert (self.store.revision, self.store.compacted) == (self.revision, self.compacted)

    @invariant()
    def every_key_is_as_it_was_left(self) -> None:
        for key in KEYS[::3]:
            assert self.run(self.store.get(key)) == self.current(key)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.leave()


def list_of(items: Any) -> list[Any]:
    return [*items]


class MemoryMachine(Machine):
    @initialize()
    def open(self) -> None:
        self.store = MemoryStore()


class SqliteMachine(Machine):
    """Small slices and a short tail, so that a few calls reach the seams."""

    @initialize()
    def open(self) -> None:
        self.directory = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.store = self.run(SqliteStore.open(self.directory / "noxu.db", "normal"))

    @rule()
    def reopen(self) -> None:
        self.run(self.store.close())
        self.store = self.run(SqliteStore.open(self.directory / "noxu.db", "normal"))
        self.watches.clear()

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.directory)


class EtcdMachine(Machine):
    """Every example has a prefix of its own in one etcd. They share a loop, as the stores of a server do."""

    url: str
    shared: asyncio.Runner
    largest_transaction = 1

    def new_runner(self) -> asyncio.Runner:
        return self.shared

    def leave(self) -> None:
        """The loop stays open."""

    @initialize()
    def open(self) -> None:
        self.store = self.run(open_rebased(self.url))


SETTINGS = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (log, "TAIL_EVENTS", 4), (sqlite, "HISTORY_SPAN", 3), (sqlite, "PAGE_ROWS", 2), (sqlite, "PAGE_KEYS", 2),
        (sqlite, "SWEEP_SPAN", 3),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


class TestMemory(MemoryMachine.TestCase):  # type: ignore[misc]
    settings = SETTINGS


class TestSqlite(SqliteMachine.TestCase):  # type: ignore[misc]
    settings = SETTINGS


@pytest.fixture
def _etcd_of_the_machine(etcd: EtcdServer) -> Iterator[None]:
    EtcdMachine.url = etcd.url
    with asyncio.Runner() as EtcdMachine.shared:
        yield


@pytest.mark.usefixtures("_etcd_of_the_machine")
class TestEtcd(EtcdMachine.TestCase):  # type: ignore[misc]
    settings = settings(SETTINGS, max_examples=15)  # etcd takes 0.1 s before it sends older events
