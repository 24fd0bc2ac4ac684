"""The difference between now and a revision: only what makes the objects again what they were."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from noxu.control.differences import DEFINITIONS, Changes, counted
from noxu.registry.storage_form import is_temporary
from noxu_storage import log, pins
from noxu_storage.memory import MemoryStore
from noxu_storage.sqlite import SqliteStore
from noxu_storage.transactions import StagedWrite
from noxu_storage.types import EVERYTHING, Batch, Corrupt, Event, Key, KeyValue, Prefix, Revision
from tests.rows import rows

A, B, C = (Key("/things", "default/", name) for name in "abc")
DEFINITION = Key(DEFINITIONS, "", "things.example.com")


async def difference(store: MemoryStore, since: Revision, left: tuple[Key, ...] = ()) -> list[StagedWrite]:
    changes = Changes(store, since, lambda key: key in left or is_temporary(key))
    await changes.follow()
    return changes.writes()


async def written(store: MemoryStore, *steps: tuple[Key, bytes | None]) -> None:
    for key, value in steps:
        state = await store.get(key)
        expected = state.revision if state else 0
        if value is None:
            await store.delete(key, expected=expected)
        else:
            await store.put(key, value, expected=expected)


def named(uid: str, size: int = 0) -> bytes:
    return json.dumps({"metadata": {"uid": uid}, "size": size}).encode()


U, U2, V = named("u"), named("u", 2), named("v")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([], [], [], id="nothing"),
        pytest.param([(A, U)], [(A, U2)], [StagedWrite(A, U, 3, U2)], id="changed"),
        pytest.param([(A, U)], [(A, U2), (A, U)], [], id="changed, and back"),
        pytest.param([(A, U)], [(A, U2), (A, V), (A, U2)], [StagedWrite(A, U, 5, U2)], id="changed often"),
        pytest.param([], [(A, U)], [StagedWrite(A, None, 2, U)], id="created"),
        pytest.param([], [(A, U), (A, None)], [], id="created and deleted"),
        pytest.param([(A, U)], [(A, None)], [StagedWrite(A, U, 0)], id="deleted"),
        pytest.param([(A, U)], [(A, None), (A, U)], [], id="deleted, and created again by a restore"),
        pytest.param([(A, U)], [(A, None), (A, U2)], [StagedWrite(A, U, 4, U2)], id="the same, and changed"),
        pytest.param(
            [(A, U)], [(A, None), (A, V)], [StagedWrite(A, None, 4, V), StagedWrite(A, U, 0)], id="another of its name"
        ),
        pytest.param(
            [(A, U)], [(A, None), (A, b"{")], [StagedWrite(A, None, 4, b"{"), StagedWrite(A, U, 0)], id="what is no object"
        ),
        pytest.param(
            [(A, U), (B, V)], [(A, U2), (B, None), (C, U)],
            [StagedWrite(C, None, 6, U), StagedWrite(A, U, 4, U2), StagedWrite(B, V, 0)], id="deletions come first",
        ),
        pytest.param(
            [(DEFINITION, U), (B, V)], [(DEFINITION, U2), (B, None)], [StagedWrite(B, V, 0), StagedWrite(DEFINITION, U, 4, U2)],
            id="definitions are written last",
        ),
        pytest.param(
            [], [(DEFINITION, U), (B, V)], [StagedWrite(B, None, 3, V), StagedWrite(DEFINITION, None, 2, U)],
            id="and deleted after their objects",
        ),
        pytest.param([(C, U)], [(C, U2)], [], id="what is left out"),
        pytest.param([], [(Key(pins.COLLECTION, "", "x"), b"{}")], [], id="pins"),
        pytest.param([], [(Key("ranges/serviceips", "", "10.0.0.1"), b"{}")], [], id="claims"),
        pytest.param([], [(Key("/masterleases", "", "192.0.2.7"), b"{}")], [], id="leases of servers"),
    ],
)  # fmt: skip
async def test_the_difference(
    before: list[tuple[Key, bytes | None]], after: list[tuple[Key, bytes | None]], expected: list[StagedWrite]
) -> None:
    store = MemoryStore()
    await written(store, *before)
    since = store.revision
    await written(store, *after)
    left = () if after[0:1] != [(C, U2)] else (C,)
    assert await difference(store, since, left) == expected


async def test_it_is_made_as_it_is_read() -> None:
    """Some changes, and later ones that happened meanwhile."""
    store = MemoryStore()
    await written(store, (A, U))
    changes = Changes(store, store.revision, is_temporary)
    await written(store, (A, U2), (B, V))
    await changes.follow()
    await written(store, (A, V), (B, None))
    await changes.follow()
    await changes.follow()
    assert changes.writes() == [StagedWrite(A, U, 5, V)]


async def test_it_reads_what_has_changed_and_nothing_else() -> None:
    """As many events and no state, whatever is stored."""

    class Counting(MemoryStore):
        events = states = 0

        async def get(self, key: Key, *, revision: Revision = 0) -> KeyValue | None:
            self.states += 1
            return await super().get(key, revision=revision)

        async def list(self, prefix: Prefix, **options: object) -> object:  # type: ignore[override]
            raise AssertionError("it lists")

        def watch(self, prefix: Prefix = EVERYTHING, *, after: Revision) -> object:  # type: ignore[override]
            async def counting() -> object:  # type: ignore[misc]
                async for batch in super(Counting, self).watch(prefix, after=after):
                    self.events += len(batch.events)
                    yield batch

            return counting()

    for stored in (10, 10_000):
        store = Counting()
        for number in range(stored):
            await store.put(Key("/things", "default/", f"{number:05}"), U, expected=0)
        since = store.revision
        for number in range(10):
            await store.put(Key("/things", "default/", f"{number:05}"), U2, expected=number + 2)
        assert len(await difference(store, since)) == 10
        assert (store.events, store.states) == (10, 0)


async def test_a_file_is_read_where_it_has_changed_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that SQLite gives for a difference, and for the transaction that writes it, whatever is stored."""
    monkeypatch.setattr(log, "TAIL_EVENTS", 4)
    fetch, rows_read = SqliteStore._fetch, 0

    async def counting(self: SqliteStore, sql: str, parameters: Sequence[object]) -> Sequence[object]:
        nonlocal rows_read
        found = await fetch(self, sql, parameters)
        rows_read += len(found)
        return found

    read = []
    for stored in (20, 2_000):
        store = await SqliteStore.open(tmp_path / f"{stored}.db", "off")
        things = [Key("/things", "default/", f"{number:05}") for number in range(stored)]
        await asyncio.gather(*(store.put(key, U, expected=0) for key in things))
        since = store.revision
        for key in things[:10]:
            state = await store.get(key)
            await store.put(key, U2, expected=state.revision if state else 0)
        store._log.trim(store.revision)
        monkeypatch.setattr(SqliteStore, "_fetch", counting)
        rows_read, changes = 0, Changes(store, since, is_temporary)

        async def decide(changes: Changes = changes) -> list[StagedWrite]:
            await changes.follow()
            return changes.writes()

        await store.transact(decide)
        read.append(rows_read)
        monkeypatch.setattr(SqliteStore, "_fetch", fetch)
        await store.close()
    assert read[0] == read[1] <= 10


async def test_what_was_corrupt_cannot_be_restored() -> None:
    class Past(MemoryStore):
        revision = 7

        async def watch(self, prefix: Prefix = EVERYTHING, *, after: Revision) -> object:  # type: ignore[override, misc]
            yield Batch([Event(A, 7, V, KeyValue(A, b"", 3))], 7)

    with pytest.raises(Corrupt, match="default/ a was corrupt at revision 3"):
        await difference(Past(), 5)


@rows(
    "writes, expected",
    [
        ([], {"deleted": 0, "created": 0, "changed": 0}),
        ([StagedWrite(A, None, 2)], {"deleted": 1, "created": 0, "changed": 0}),
        ([StagedWrite(A, None, 2), StagedWrite(A, U, 0)], {"deleted": 1, "created": 1, "changed": 0}),
        ([StagedWrite(A, U, 2), StagedWrite(B, U, 3)], {"deleted": 0, "created": 0, "changed": 2}),
    ],
)
def test_a_difference_is_counted(writes: list[StagedWrite], expected: dict[str, int]) -> None:
    assert counted(writes) == expected
