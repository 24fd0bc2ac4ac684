"""The numbers of requests to the store."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.registry.cache import WatchCache
from noxu.registry.persistence import Persistence, StoreMetrics
from noxu.registry.stored_object import StoredObject
from noxu_storage.types import Conflict, Key, Unavailable
from tests.faults.flaky import FlakyStore

POD = Key("/pods", "default/", "a")
CREATE, UPDATE, DELETE = (("create", "", "pods"), ("update", "", "pods"), ("delete", "", "pods"))


def numbers(metrics: StoreMetrics) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """How many requests there were, and how many failed. The histogram has the same requests."""
    durations, counts, errors = metrics.families()
    assert {values: sum(series[:-1]) for values, series in durations.numbers} == dict(counts.numbers)  # type: ignore[index]
    return dict(counts.numbers), dict(errors.numbers)


class Reached(WatchCache):
    """Does not wait."""

    async def reached(self, revision: int) -> None:
        pass


async def test_writes_are_counted_by_operation_and_resource() -> None:
    writes = Persistence(store := FlakyStore(), Reached(store))
    entry = StoredObject(POD, b"1", 0)
    await writes.create(entry)
    new = StoredObject(POD, b"2", 0)
    assert await writes.replace(entry, new)
    assert await writes.remove(new)
    await writes.create(StoredObject(Key("example.com/widgets", "", "w"), b"1", 0))
    counts, errors = numbers(writes.metrics)
    assert counts == {CREATE: 1, UPDATE: 1, DELETE: 1, ("create", "example.com", "widgets"): 1}
    assert errors == {}


async def test_a_conflict_is_a_request_and_no_failure() -> None:
    writes = Persistence(store := FlakyStore(), Reached(store))
    await writes.create(StoredObject(POD, b"1", 0))
    with pytest.raises(Conflict):
        await writes.create(StoredObject(POD, b"1", 0))
    assert numbers(writes.metrics) == ({CREATE: 2}, {})


async def test_a_failure_of_the_store_is_counted() -> None:
    writes = Persistence(store := FlakyStore(), Reached(store))
    store.fail("create", lambda _: True, error=Unavailable("planned"))
    with pytest.raises(Unavailable):
        await writes.create(StoredObject(POD, b"1", 0))
    assert numbers(writes.metrics) == ({CREATE: 1}, {CREATE: 1})
