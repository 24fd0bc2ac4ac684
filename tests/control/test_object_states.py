"""The states of one object: from its creation on, as far as they are kept, in portions."""

from __future__ import annotations

from typing import Any, Final

import pytest

from noxu.control import object_states
from noxu.control.object_states import ObjectRevisions, written
from noxu_storage.memory import MemoryStore
from noxu_storage.store import Store
from noxu_storage.types import Key

A, B = Key("things", "default/", "a"), Key("things", "default/", "b")
STEPS: Final = [(A, b"1"), (B, b"1"), (A, b"2"), (B, None), (A, b"3"), (B, b"2"), (A, None), (A, b"4"), (B, b"3")]
"""The revisions 2, 3, 4 …"""


@pytest.fixture
async def store() -> Store:
    store = MemoryStore()
    for key, value in STEPS:
        current = await store.get(key)
        expected = current.revision if current else 0
        if value is None:
            await store.delete(key, expected=expected)
        else:
            await store.put(key, value, expected=expected)
    return store


WRITTEN: Final[list[tuple[str, Key, int, int, ObjectRevisions]]] = [
    ("all of its states", A, 7, 0, ObjectRevisions([2, 4, 6], is_complete=True)),
    ("those until then", A, 5, 0, ObjectRevisions([2, 4], is_complete=True)),
    ("those since it was created again", A, 10, 0, ObjectRevisions([9], is_complete=True)),
    ("none when it is deleted", A, 8, 0, ObjectRevisions([], is_complete=True)),
    ("none before it exists", B, 2, 0, ObjectRevisions([], is_complete=True)),
    ("those since its past begins", A, 7, 5, ObjectRevisions([4, 6], is_complete=False)),
    ("its creation was the first change that is kept", B, 10, 6, ObjectRevisions([7, 10], is_complete=True)),
]


@pytest.mark.parametrize(
    ("key", "upto", "compacted", "expected"), [row[1:] for row in WRITTEN], ids=[row[0] for row in WRITTEN]
)
async def test_the_revisions_that_wrote_an_object(
    store: Store, key: Key, upto: int, compacted: int, expected: ObjectRevisions
) -> None:
    await store.compact(compacted)
    assert await written(store, key, upto) == expected


async def test_of_many_states_the_newest_are_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_states, "MAX_STATES", 2)
    assert await written(store, A, 7) == ObjectRevisions([4, 6], is_complete=False)


async def test_it_costs_what_the_object_has_not_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    store, asked = MemoryStore(), 0
    await store.put(A, b"1", expected=0)
    for number in range(1_000):
        await store.put(Key("things", "default/", f"n{number}"), b"1", expected=0)
    get = store.get

    async def counted(key: Key, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        return await get(key, **options)

    monkeypatch.setattr(store, "get", counted)
    assert await written(store, A, store.revision) == ObjectRevisions([2], is_complete=True)
    assert asked == 2
