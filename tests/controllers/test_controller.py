"""The engine: following a collection, retries, supervision, health, stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable

import pytest

from noxu.api.errors import bad_request
from noxu.control_plane import ControlPlane
from noxu.controllers import controller as engine
from noxu.controllers.controller import Controller
from noxu.registry.cache import Change, Collection
from noxu_storage.types import Closed, Key, Unavailable
from tests.clocks import ManualClock
from tests.control_planes import assemble, parts_of
from tests.controllers.conftest import World, a_world, namespace
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async, hang_guard, loop_turns


class Recorder(Controller[str]):
    """Follows namespaces and records their names: those that exist, and each call."""

    name = "recorder"
    follows = (("", "namespaces"),)

    known: set[str]

    def observe(self, change: Change) -> Iterable[str]:
        self.fail("observe")
        return [change.key.name]

    def resync(self) -> Iterable[str]:
        self.fail("resync")
        names = {key.name for key in self.collection.keys}
        self.known &= names
        self.resyncs += 1
        return sorted(names)

    async def reconcile(self, key: str) -> float | None:
        self.calls.append(key)
        await self.pause.wait()
        self.fail(key)
        if any(entry.name == key for entry in self.collection.keys):
            self.known.add(key)
        else:
            self.known.discard(key)
        return self.interval

    def fail(self, point: str) -> None:
        """Raise the planned failures of one point."""
        if self.planned.get(point):
            raise self.planned[point].pop()

    def prepare(self) -> None:
        self.known, self.calls, self.resyncs = set(), [], 0
        self.planned: dict[str, list[Exception]] = {}
        self.interval: float | None = None
        self.pause = asyncio.Event()
        self.pause.set()


def only_the_recorder(store: FlakyStore, clock: ManualClock) -> ControlPlane:
    plane = assemble(store, clock=clock)
    recorder = Recorder(parts_of(plane))
    recorder.prepare()
    plane.controllers[:] = [recorder]
    plane.background_controllers.clear()
    return plane


def recorder_of(plane: ControlPlane) -> Recorder:
    [found] = plane.controllers
    assert isinstance(found, Recorder)
    return found


@pytest.fixture
async def world(store: FlakyStore, clock: ManualClock) -> AsyncIterator[World]:
    async with a_world(store, clock, only_the_recorder) as running:
        yield running


@pytest.fixture
def recorder(world: World) -> Recorder:
    return recorder_of(world.plane)


async def reset(world: World, name: str) -> None:
    """The cache is reset and lists again. `name` is created on the way, an event that no watch gets."""
    world.store.watch_fails = RuntimeError("planned")
    await world.apply(namespace(name))


async def store_namespace(store: FlakyStore, name: str) -> None:
    await store.put(Key("/namespaces", "", name), b'{"metadata":{"name":"%b"}}' % name.encode(), expected=0)


async def test_every_key_is_reconciled_at_the_start(store: FlakyStore, clock: ManualClock) -> None:
    for name in ("a", "b"):
        await store_namespace(store, name)
    async with a_world(store, clock, only_the_recorder) as world:
        assert recorder_of(world.plane).calls == ["a", "b"]


async def test_a_key_that_fails_does_not_prevent_the_start(store: FlakyStore, clock: ManualClock) -> None:
    def failing(store: FlakyStore, clock: ManualClock) -> ControlPlane:
        plane = only_the_recorder(store, clock)
        recorder_of(plane).planned["a"] = [Unavailable("planned")] * 1000
        return plane

    for name in ("a", "b"):
        await store_namespace(store, name)
    async with hang_guard(), a_world(store, clock, failing) as world:
        assert recorder_of(world.plane).known == {"b"}


async def test_changes_are_reconciled(world: World, recorder: Recorder) -> None:
    await world.apply(namespace("a"), namespace("b"))
    await world.settled()
    assert (recorder.known, recorder.calls) == ({"a", "b"}, ["a", "b"])


async def test_changes_during_a_reconciliation_are_reconciled_once_afterwards(world: World, recorder: Recorder) -> None:
    recorder.pause.clear()
    await world.apply(namespace("a"))
    await loop_turns()
    for label in ("1", "2", "3"):
        await world.apply({**namespace("a"), "metadata": {"name": "a", "labels": {"n": label}}})
    recorder.pause.set()
    await world.settled()
    assert recorder.calls == ["a", "a"]


async def test_what_is_interrupted_is_reconciled_again_before_what_has_changed_meanwhile(
    world: World, recorder: Recorder
) -> None:
    recorder.pause.clear()
    await world.apply(namespace("a"))
    await loop_turns()
    await recorder.interrupt()
    recorder.pause.set()
    await world.apply(namespace("b"))
    await loop_turns()
    assert (recorder.calls, recorder.known) == (["a"], set())
    recorder.go_on()
    await world.settled()
    assert (recorder.calls, recorder.known) == (["a", "a", "b"], {"a", "b"})


async def test_a_controller_that_is_stopped_while_it_is_interrupted_can_be_started_again(
    world: World, recorder: Recorder
) -> None:
    await world.apply(namespace("a"))
    await recorder.interrupt()
    await recorder.stop()
    recorder.go_on()
    await loop_turns()
    recorder.calls.clear()
    await recorder.start()
    await world.apply(namespace("b"))
    await world.settled()
    assert recorder.calls == ["a", "b"]


async def test_one_without_work_can_be_interrupted(world: World, recorder: Recorder) -> None:
    await recorder.interrupt()
    recorder.go_on()
    await world.apply(namespace("a"))
    await world.settled()
    assert recorder.calls == ["a"]


FAILURES: list[tuple[str, Callable[[], Exception]]] = [
    ("a store that is unavailable", lambda: Unavailable("planned")),
    ("a refusal", lambda: bad_request("planned")),
    ("a bug", lambda: RuntimeError("planned")),
    ("an error without a message", Closed),
]
failures = pytest.mark.parametrize("failure", [row[1] for row in FAILURES], ids=[row[0] for row in FAILURES])


@failures
async def test_a_key_is_retried_until_it_succeeds(
    world: World, recorder: Recorder, failure: Callable[[], Exception], caplog: pytest.LogCaptureFixture
) -> None:
    recorder.planned["a"] = [failure() for _ in range(3)]
    await world.apply(namespace("a"), namespace("b"))
    await world.settled()
    assert recorder.known == {"a", "b"}
    assert recorder.calls.count("a") == 4
    assert recorder.queue.failures("a") == 0
    retries = [record.getMessage() for record in caplog.records if "retrying" in record.getMessage()]
    assert [text.rpartition("; ")[2] for text in retries] == [f"retrying in {s} s" for s in ("0.005", "0.01", "0.02")]
    assert all(text.startswith("recorder: a: ") for text in retries)


async def test_a_key_that_asks_for_it_is_reconciled_again_later(world: World, recorder: Recorder) -> None:
    recorder.interval = 60.0
    await world.apply(namespace("a"))
    await world.settled()
    recorder.calls.clear()
    recorder.interval = None
    world.clock.advance(59)
    await world.settled()
    assert recorder.calls == []
    world.clock.advance(1)
    await world.settled()
    assert recorder.calls == ["a"]
    assert world.clock.sleepers == 0


async def test_many_keys_do_not_block_other_tasks(
    world: World, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys are ready, and reconciling them never waits."""
    time, turns = asyncio.get_running_loop().time, 0

    async def busy(key: str) -> None:
        recorder.calls.append(key)
        until = time() + engine.WORK_SLICE / 4
        while time() < until:
            pass

    monkeypatch.setattr(recorder, "reconcile", busy)
    for n in range(100):
        recorder.queue.add(str(n))
    async with hang_guard():
        while len(recorder.calls) < 100:
            turns += 1
            await asyncio.sleep(0)
    assert turns > 10


# -- synchronising


async def test_after_a_reset_missed_changes_are_reconciled_and_deleted_objects_withdrawn(
    world: World, recorder: Recorder
) -> None:
    await world.apply(namespace("deleted"), namespace("stays"))
    await world.settled()
    key = next(key for key in recorder.collection.keys if key.name == "deleted")
    world.store.watch_fails = RuntimeError("planned")
    await world.store.delete(key, expected=recorder.collection.entries[key].revision)
    await eventually_async(lambda: recorder.resyncs == 2)
    await world.apply(namespace("new"))
    await world.settled()
    assert recorder.known == {"stays", "new"}


@failures
async def test_a_resync_that_fails_is_retried(
    world: World, recorder: Recorder, failure: Callable[[], Exception], caplog: pytest.LogCaptureFixture
) -> None:
    recorder.planned["resync"] = [failure() for _ in range(3)]
    await reset(world, "missed")
    await eventually_async(lambda: recorder.known == {"missed"})
    await world.apply(namespace("a"))
    await world.settled()
    assert recorder.known == {"missed", "a"}
    assert caplog.text.count("recorder cannot list /namespaces: ") == 3


async def test_a_list_that_fails_is_retried(world: World, recorder: Recorder) -> None:
    world.store.fail("list", lambda key: key.collection == "/namespaces", times=3)
    world.store.watch_fails = RuntimeError("planned")
    await store_namespace(world.store, "a")
    await eventually_async(lambda: recorder.known == {"a"})
    assert world.store.failures == 4


async def test_a_change_that_cannot_be_observed_leads_to_a_resync(world: World, recorder: Recorder) -> None:
    recorder.planned["observe"] = [RuntimeError("planned")]
    await world.apply(namespace("a"))
    await eventually_async(lambda: recorder.known == {"a"})
    await world.apply(namespace("b"))
    await world.settled()
    assert (recorder.known, recorder.resyncs) == ({"a", "b"}, 2)


async def test_a_collection_that_is_reset_while_it_is_listed_is_listed_again(world: World, recorder: Recorder) -> None:
    listed = recorder.reader.collection
    stale = Collection("/namespaces")
    results = [stale]

    async def collection(resource):  # type: ignore[no-untyped-def]
        return results.pop() if results else await listed(resource)

    recorder.reader.collection = collection  # type: ignore[method-assign]
    await recorder._synchronise()
    assert recorder.collection is not stale
    assert recorder in recorder.collection.watchers
    assert recorder not in stale.watchers


# -- supervision and health


async def test_a_task_that_crashes_is_restarted(
    world: World, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attempt, crashes = recorder._attempt, [RuntimeError("planned")]

    async def crash_once(key: str) -> None:
        if crashes:
            raise crashes.pop()
        await attempt(key)

    monkeypatch.setattr(recorder, "_attempt", crash_once)
    await world.apply(namespace("a"), namespace("b"))
    await eventually_async(lambda: "b" in recorder.known)
    assert "recorder: _work failed" in caplog.text
    assert "RuntimeError: planned" in caplog.text


async def test_health_names_what_fails_and_recovers(
    world: World, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recorder.health() == ""
    recorder.planned["a"] = [Unavailable("the disk is full")] * 1000
    await world.apply(namespace("a"))
    await eventually_async(lambda: len(recorder.calls) > 2)
    assert recorder.health() == "", "a few failures within some seconds are normal"
    monkeypatch.setattr(engine, "UNHEALTHY_AFTER", -1.0)
    recorder.pause.clear()
    await eventually_async(lambda: recorder.queue._processing)
    number = recorder.queue.failures("a")
    assert recorder.health() == (
        f"a has failed {number} times in 0 s: the disk is full; the next attempt is within 10 s, see the log of the server"
    )
    recorder.planned.clear()
    recorder.pause.set()
    await world.settled()
    assert recorder.health() == ""


async def test_failures_that_a_webhook_or_client_causes_are_healthy(
    world: World, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "UNHEALTHY_AFTER", -1.0)
    recorder.planned["a"] = [bad_request("planned")] * 1000
    await world.apply(namespace("a"))
    await eventually_async(lambda: len(recorder.calls) > 2)
    assert recorder.health() == ""


async def test_health_while_a_collection_cannot_be_listed(
    world: World, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.planned["resync"] = [Unavailable("the disk is full")] * 1000
    await reset(world, "a")
    await eventually_async(lambda: recorder._sync_failure)
    assert recorder.health() == (
        "cannot list /namespaces: the disk is full; the next attempt is within 1 s, see the log of the server"
    )
    recorder.planned.clear()
    await eventually_async(lambda: recorder.health() == "")
    await eventually_async(lambda: recorder.known == {"a"})


# -- writes that wait


async def test_settled_waits_for_the_newest_state(world: World, recorder: Recorder) -> None:
    recorder.pause.clear()
    await world.apply(namespace("a"))
    waiting = asyncio.create_task(recorder.settled("a"))
    await loop_turns()
    assert not waiting.done()
    recorder.pause.set()
    async with hang_guard():
        await waiting
    assert recorder.known == {"a"}


async def test_settled_gives_up_on_a_key_that_keeps_failing(
    world: World, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "SETTLE_WITHIN", 0.0)
    recorder.planned["a"] = [Unavailable("planned")] * 1000
    await world.apply(namespace("a"))
    async with hang_guard():
        await recorder.settled("a")
    assert recorder.known == set()
    assert recorder.queue.failures("a") > 1


async def test_settled_gives_up_on_a_controller_that_cannot_synchronise(
    world: World, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "SETTLE_WITHIN", 0.01)
    recorder.pause.clear()
    await world.apply(namespace("a"))
    recorder.planned["resync"] = [Unavailable("planned")] * 1000
    await reset(world, "b")
    async with hang_guard():
        await recorder.settled("a")
    assert recorder.known == set()


# -- stop


async def test_stop_ends_every_task_retry_and_delay(store: FlakyStore, clock: ManualClock) -> None:
    before = asyncio.all_tasks()
    async with a_world(store, clock, only_the_recorder) as world:
        recorder = recorder_of(world.plane)
        recorder.interval = 60.0
        await world.apply(namespace("delayed"))
        await world.settled()
        recorder.planned["failed"] = [Unavailable("planned")] * 1000
        await world.apply(namespace("failed"))
        await eventually_async(lambda: recorder.queue._retries)
        recorder.pause.clear()
        await world.apply(namespace("processed"))
        waiting = asyncio.create_task(recorder.settled("processed"))
        await loop_turns()
        collection = recorder.collection
    assert asyncio.all_tasks() - before - {waiting} == set()
    async with hang_guard():
        await waiting
    calls = len(recorder.calls)
    assert (recorder.queue.depth, clock.sleepers) == (0, 0)
    assert recorder not in collection.watchers
    clock.advance(3600)
    await asyncio.sleep(0.05)  # retries would run by now
    assert len(recorder.calls) == calls


async def test_stop_before_start_and_twice(store: FlakyStore, clock: ManualClock) -> None:
    plane = only_the_recorder(store, clock)
    [recorder] = plane.controllers
    await recorder.stop()
    await recorder.stop()


async def test_a_start_with_a_store_that_fails_raises_and_leaves_no_task(store: FlakyStore, clock: ManualClock) -> None:
    before = asyncio.all_tasks()
    store.fail("list", lambda key: key.collection == "/namespaces")
    with pytest.raises(Unavailable):
        async with a_world(store, clock, only_the_recorder):
            pass
    assert asyncio.all_tasks() == before
