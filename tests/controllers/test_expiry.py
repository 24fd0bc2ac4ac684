"""Events expire some time after their last write, without finalizers, and also after a restart."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from noxu.config import DEFAULT_EVENT_TTL
from noxu.control_plane import ControlPlane
from noxu.controllers.expiry import ExpiryController, last_write
from noxu.go.time import MICRO, format_time, unix_nanos
from noxu.registry.resource import Resource
from noxu.values import Json, Object
from noxu_storage.types import Key, Unavailable
from tests.clocks import START, ManualClock
from tests.control_planes import assemble
from tests.controllers.conftest import World, a_world, copy_of, namespace
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async, loop_turns

HOUR = 3600.0


def event(name: str = "e", *, finalizers: tuple[str, ...] = (), **fields: Json) -> Object:
    metadata: Object = {"name": name, "namespace": "default"}
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    involved = {"kind": "Pod", "name": "p", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": involved, **fields}


def events(world: World) -> Resource:
    return world.resource("events")


async def names(world: World) -> list[str]:
    await world.settled()
    return [key.name for key in (await world.plane.reader.collection(events(world))).keys]


async def advance(world: World, seconds: float) -> None:
    await world.settled()
    await loop_turns()
    world.clock.advance(seconds)
    await world.settled()


async def test_an_event_expires_an_hour_after_its_creation(world: World) -> None:
    await world.apply(event())
    await advance(world, HOUR - 1)
    assert await names(world) == ["e"]
    await advance(world, 1)
    assert await names(world) == []


async def test_each_event_expires_at_its_own_time(world: World) -> None:
    for name in ("a", "b", "c"):
        await world.apply(event(name))
        await advance(world, 60)
    await advance(world, HOUR - 180)
    assert await names(world) == ["b", "c"]
    await advance(world, 60)
    assert await names(world) == ["c"]


async def test_a_write_renews_the_lifetime(world: World) -> None:
    await world.apply(event(count=1))
    await advance(world, HOUR - 1)
    await world.apply(event(count=2))
    await advance(world, HOUR - 1)
    assert await names(world) == ["e"]
    await advance(world, 1)
    assert await names(world) == []


async def test_an_event_that_is_created_again_has_a_lifetime_of_its_own(world: World) -> None:
    await world.apply(event())
    await advance(world, HOUR - 1)
    await world.delete(events(world), "e", "default")
    await world.apply(event())
    await advance(world, HOUR - 1)
    assert await names(world) == ["e"]


async def test_finalizers_do_not_keep_an_event(world: World) -> None:
    await world.apply(event(finalizers=("example.com/wait",)))
    await advance(world, HOUR)
    assert await names(world) == []


async def test_other_objects_do_not_expire(world: World) -> None:
    await world.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    await advance(world, 100 * HOUR)
    assert await world.find(world.resource("configmaps"), "a", "default")


async def test_a_deletion_that_fails_is_retried(world: World) -> None:
    await world.apply(event())
    await world.settled()
    world.store.fail("delete", lambda key: key.collection == "/events", times=3, error=Unavailable("planned"))
    await advance(world, HOUR)
    await eventually_async(lambda: world.store.failures == 3)
    assert await names(world) == []


async def test_a_write_at_the_time_of_expiry_wins(world: World) -> None:
    await world.apply(event(count=1))
    await world.settled()
    await loop_turns()
    world.clock.advance(HOUR)
    await world.apply(event(count=2))
    assert await names(world) == ["e"]


YEAR = 365 * 24 * HOUR


@pytest.mark.parametrize("jump", [YEAR, -YEAR], ids=["a year ahead", "a year back"])
async def test_a_clock_that_is_set_changes_no_lifetime(world: World, jump: float) -> None:
    """As in etcd, whose leases count the time that passes."""
    await world.apply(event("before"))
    await advance(world, 60)
    world.clock.jump(jump)
    await world.apply(event("after"))
    await advance(world, HOUR - 61)
    assert await names(world) == ["after", "before"]
    await advance(world, 1)
    assert await names(world) == ["after"]
    await advance(world, 60)
    assert await names(world) == []


# -- restarts


async def restarted(first: World) -> FlakyStore:
    await first.settled()
    return await copy_of(first.store)


@pytest.mark.parametrize(
    ("pause", "remaining"), [(0.0, HOUR), (HOUR - 60, 60.0)], ids=["a short pause", "a pause of almost an hour"]
)
async def test_a_restart_does_not_renew_the_lifetime(
    store: FlakyStore, clock: ManualClock, pause: float, remaining: float
) -> None:
    async with a_world(store, clock) as world:
        await world.apply(event())
        store = await restarted(world)
    clock.advance(pause)
    async with a_world(store, clock) as world:
        await advance(world, remaining - 2)  # the times in an object are in whole seconds
        assert await names(world) == ["e"]
        await advance(world, 2)
        assert await names(world) == []


async def test_an_event_that_expired_while_the_server_was_stopped_is_deleted_at_the_start(
    store: FlakyStore, clock: ManualClock
) -> None:
    async with a_world(store, clock) as world:
        await world.apply(event("old"))
        await advance(world, HOUR / 2)
        await world.apply(event("new"))
        store = await restarted(world)
    clock.advance(HOUR / 2)
    async with a_world(store, clock) as world:
        assert await names(world) == ["new"]


async def test_an_event_from_the_future_expires_a_lifetime_after_the_start(
    store: FlakyStore, clock: ManualClock
) -> None:
    stored = b'{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"default","creationTimestamp":"2100-01-01T00:00:00Z"}}'
    await store.put(Key("/events", "default/", "e"), stored, expected=0)
    async with a_world(store, clock) as world:
        await advance(world, HOUR)
        assert await names(world) == []


async def test_a_resync_keeps_the_times(world: World) -> None:
    await world.apply(event("a"), event("b"))
    await world.settled()
    await advance(world, HOUR - 1)
    world.store.watch_fails = RuntimeError("planned")
    deleted = await world.store.get(Key("/events", "default/", "b"))
    assert deleted is not None
    await world.store.delete(deleted.key, expected=deleted.revision)
    await eventually_async(lambda: len(expiry(world.plane)._written) == 1)
    assert await names(world) == ["a"]
    await advance(world, 1)
    assert await names(world) == []


async def test_a_write_that_is_missed_because_of_a_reset_renews_the_lifetime(world: World) -> None:
    await world.apply(event(count=1))
    await advance(world, HOUR - 1)
    world.store.watch_fails = RuntimeError("planned")
    await world.apply(event(count=2))
    await advance(world, HOUR - 2)
    assert await names(world) == ["e"]
    await advance(world, 2)
    assert await names(world) == []


def expiry(plane: ControlPlane) -> ExpiryController:
    [found] = [controller for controller in plane.controllers if isinstance(controller, ExpiryController)]
    return found


def only_expiry(store: FlakyStore, clock: ManualClock) -> ControlPlane:
    plane = assemble(store, clock=clock)
    plane.controllers[:] = [expiry(plane)]
    plane.background_controllers.clear()
    return plane


async def test_nothing_is_kept_of_deleted_events(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock, only_expiry) as world:
        await world.apply(namespace("default"), event("a"), event("b"))
        await advance(world, HOUR)
        assert await names(world) == []
        assert expiry(world.plane)._written == {}
        assert world.clock.sleepers == 0


# -- the lifetime


@pytest.mark.parametrize(("event_ttl", "expires_after"), [(DEFAULT_EVENT_TTL, HOUR), (90.0, 90.0), (0.5, 0.5)])
async def test_event_ttl(store: FlakyStore, clock: ManualClock, event_ttl: float, expires_after: float) -> None:
    async with a_world(store, clock, lambda store, clock: assemble(store, clock=clock, event_ttl=event_ttl)) as world:
        await world.apply(event())
        await advance(world, expires_after - 0.25)
        assert await names(world) == ["e"]
        await advance(world, 0.25)
        assert await names(world) == []


async def test_an_event_ttl_of_zero_retains_events(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock, lambda store, clock: assemble(store, clock=clock, event_ttl=0)) as world:
        await world.apply(event())
        await advance(world, 1000 * HOUR)
        assert await names(world) == ["e"]


def at(seconds: float, digits: int = 0) -> str:
    return format_time(START + timedelta(seconds=seconds), digits)


TIMES: list[tuple[str, Object, float]] = [
    ("the creation", {}, 0),
    ("a managed field", {"metadata": {"managedFields": [{"time": at(5)}, {"time": at(3)}, {}]}}, 5),
    ("firstTimestamp", {"firstTimestamp": at(5)}, 5),
    ("lastTimestamp", {"firstTimestamp": at(5), "lastTimestamp": at(6)}, 6),
    ("eventTime", {"eventTime": at(5, MICRO)}, 5.678901),
    ("the last observation of a series", {"series": {"count": 2, "lastObservedTime": at(5, MICRO)}}, 5.678901),
    ("the deprecated times of events.k8s.io", {"deprecatedFirstTimestamp": at(4), "deprecatedLastTimestamp": at(5)}, 5),
    ("empty times", {"firstTimestamp": None, "lastTimestamp": "", "series": None}, 0),
    ("a time before the creation", {"firstTimestamp": at(-5)}, 0),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "seconds"), [row[1:] for row in TIMES], ids=[row[0] for row in TIMES])
def test_the_newest_time_in_an_object(fields: Object, seconds: float) -> None:
    metadata = {"creationTimestamp": at(0), **fields.get("metadata", {})}
    assert last_write({**fields, "metadata": metadata}) == pytest.approx(unix_nanos(at(0)) / 1e9 + seconds, abs=1e-6)


def test_an_object_without_times_has_no_last_write() -> None:
    assert last_write({"metadata": {}}) == float("inf")


async def test_the_last_attempts_leave_no_task(store: FlakyStore, clock: ManualClock) -> None:
    before = asyncio.all_tasks()
    async with a_world(store, clock, only_expiry) as world:
        await world.apply(namespace("default"), event())
        await world.settled()
        await loop_turns()
        assert clock.sleepers == 1
    assert (asyncio.all_tasks() - before, clock.sleepers) == (set(), 0)
