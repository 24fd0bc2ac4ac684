"""The work queue: order, deduplication, retries, delays, and what waiting tasks see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from noxu.controllers.queue import FIRST_DELAY, LONGEST_DELAY, WorkQueue
from tests.clocks import ManualClock
from tests.timing import hang_guard, loop_turns

Queue = WorkQueue[str]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def queue(clock: ManualClock) -> Queue:
    return WorkQueue(clock)


async def take(queue: Queue) -> str:
    async with hang_guard():
        return await queue.get()


async def process_all(queue: Queue) -> list[str]:
    """Process the ready keys, in order."""
    keys = []
    while queue.ready:
        keys.append(key := await take(queue))
        queue.done(key)
    return keys


async def is_waiting(task: asyncio.Task[object]) -> bool:
    await loop_turns()
    return not task.done()


def add(queue: Queue, *keys: str) -> None:
    for key in keys:
        queue.add(key)


ORDERS: list[tuple[str, str, str]] = [
    ("one key", "a", "a"),
    ("keys in the order in which they are added", "b a c", "b a c"),
    ("a key that is added twice once", "a a", "a"),
    ("a key that is added twice at its first place", "a b a", "a b"),
]  # fmt: skip


@pytest.mark.parametrize(("added", "processed"), [row[1:] for row in ORDERS], ids=[row[0] for row in ORDERS])
async def test_it_returns(queue: Queue, added: str, processed: str) -> None:
    add(queue, *added.split())
    assert await process_all(queue) == processed.split()


async def test_get_waits_for_a_key(queue: Queue) -> None:
    getting = asyncio.create_task(queue.get())
    assert await is_waiting(getting)
    queue.add("a")
    assert await getting == "a"


async def test_a_key_is_processed_by_one_worker_at_a_time_and_again_after_a_change(queue: Queue) -> None:
    queue.add("a")
    await take(queue)
    queue.add("a")
    queue.add("a")
    other = asyncio.create_task(queue.get())
    assert await is_waiting(other)
    queue.done("a")
    assert await other == "a"
    queue.done("a")
    assert queue.ready == []


async def test_a_key_that_is_processed_does_not_block_others(queue: Queue) -> None:
    add(queue, "a", "b")
    await take(queue)
    assert await take(queue) == "b"


# -- retries


async def fail(queue: Queue, key: str) -> float:
    await take(queue)
    delay = queue.retry(key)
    queue.done(key)
    return delay


@pytest.mark.parametrize(
    ("failures", "delay"),
    [(1, FIRST_DELAY), (2, 2 * FIRST_DELAY), (5, 16 * FIRST_DELAY), (12, LONGEST_DELAY), (5000, LONGEST_DELAY)],
)
async def test_the_delay_doubles_with_each_failure_up_to_a_limit(queue: Queue, failures: int, delay: float) -> None:
    for _ in range(failures):
        queue.add("a")
        last = await fail(queue, "a")
    assert last == delay
    assert queue.failures("a") == failures
    await queue.stop()


async def test_a_success_resets_the_delay_of_that_key(queue: Queue) -> None:
    for key in ("a", "b", "a", "b"):
        queue.add(key)
        await fail(queue, key)
    queue.forget("a")
    add(queue, "a", "b")
    assert [await fail(queue, key) for key in "ab"] == [FIRST_DELAY, 4 * FIRST_DELAY]
    await queue.stop()


async def test_a_key_that_failed_is_ready_after_its_delay(queue: Queue) -> None:
    queue.add("a")
    await fail(queue, "a")
    assert (queue.ready, queue.depth, queue.is_idle("a")) == ([], 1, False)
    assert await take(queue) == "a"


async def test_a_change_replaces_a_pending_retry(queue: Queue) -> None:
    queue.add("a")
    await fail(queue, "a")
    timer = queue._retries["a"]
    queue.add("a")
    assert await process_all(queue) == ["a"]
    assert queue.is_idle("a")
    assert timer.cancelled()


async def test_a_key_that_changed_while_it_failed_is_ready_at_once(queue: Queue) -> None:
    queue.add("a")
    await take(queue)
    queue.add("a")
    queue.retry("a")
    queue.done("a")
    assert (queue.ready, queue.depth) == (["a"], 1)


# -- delays


async def after(queue: Queue, clock: ManualClock, seconds: float) -> list[str]:
    """Let time pass; the keys that become ready."""
    await loop_turns()
    clock.advance(seconds)
    await loop_turns()
    return await process_all(queue)


# (name, the keys and their delays, the keys that become ready after 0, 10, 20 and 30 seconds)
DELAYS: list[tuple[str, list[tuple[str, float]], list[str]]] = [
    ("keys become ready at their times", [("a", 30), ("b", 10), ("c", 20)], ["", "b", "c", "a"]),
    ("keys of the same time in the order in which they are added", [("b", 10), ("a", 10)], ["", "b a", "", ""]),
    ("a later time of a key has no effect", [("a", 10), ("a", 30)], ["", "a", "", ""]),
    ("an earlier time of a key replaces the later one", [("a", 30), ("a", 10)], ["", "a", "", ""]),
    ("an earlier time behind another key", [("b", 10), ("a", 30), ("a", 20)], ["", "b", "a", ""]),
    ("no delay", [("a", 0)], ["a", "", "", ""]),
]  # fmt: skip


@pytest.mark.parametrize(("added", "ready"), [row[1:] for row in DELAYS], ids=[row[0] for row in DELAYS])
async def test_delays(queue: Queue, clock: ManualClock, added: list[tuple[str, float]], ready: list[str]) -> None:
    for key, seconds in added:
        queue.add_after(key, seconds)
    await loop_turns()
    assert clock.sleepers <= 1
    assert [" ".join(await after(queue, clock, seconds)) for seconds in (0, 10, 10, 10)] == ready
    assert clock.sleepers == 0


async def test_a_delayed_key_may_be_delayed_again(queue: Queue, clock: ManualClock) -> None:
    queue.add_after("a", 10)
    assert await after(queue, clock, 10) == ["a"]
    queue.add_after("a", 10)
    assert await after(queue, clock, 9) == []
    assert await after(queue, clock, 1) == ["a"]


async def test_a_delayed_key_that_changes_is_ready_now_and_later(queue: Queue, clock: ManualClock) -> None:
    queue.add_after("a", 10)
    queue.add("a")
    assert await process_all(queue) == ["a"]
    assert await after(queue, clock, 10) == ["a"]


async def test_repeated_delays_of_a_key_take_no_memory(queue: Queue) -> None:
    for seconds in range(10, 1000):
        queue.add_after("a", seconds)
    assert len(queue._schedule) == 1
    await queue.stop()


# -- waiting tasks


async def test_processed_returns_after_the_attempt_even_if_it_failed(queue: Queue) -> None:
    queue.add("a")
    waiting = asyncio.create_task(queue.processed("a"))
    assert await is_waiting(waiting)
    await take(queue)
    assert await is_waiting(waiting)
    queue.retry("a")
    queue.done("a")
    assert not await is_waiting(waiting)
    await queue.stop()


async def test_processed_waits_for_the_newest_state(queue: Queue) -> None:
    queue.add("a")
    waiting = asyncio.create_task(queue.processed("a"))
    await take(queue)
    queue.add("a")
    queue.done("a")
    assert await is_waiting(waiting)
    await process_all(queue)
    assert not await is_waiting(waiting)


async def test_idle_returns_when_the_key_has_succeeded(queue: Queue) -> None:
    queue.add("a")
    waiting = asyncio.create_task(queue.idle("a"))
    await fail(queue, "a")
    assert await is_waiting(waiting)
    queue.add("a")
    await process_all(queue)
    assert not await is_waiting(waiting)


async def test_idle_returns_when_the_key_is_released(queue: Queue) -> None:
    queue.add("a")
    waiting = asyncio.create_task(queue.idle("a"))
    assert await is_waiting(waiting)
    queue.release("a")
    assert not await is_waiting(waiting)


async def test_an_unknown_key_is_idle(queue: Queue) -> None:
    async with hang_guard():
        await queue.idle("a")
        await queue.processed("a")


async def test_a_cancelled_task_does_not_disturb_the_others(queue: Queue) -> None:
    queue.add("a")
    waiting = [asyncio.create_task(wait("a")) for wait in (queue.idle, queue.processed) for _ in range(2)]
    await loop_turns()
    waiting[0].cancel()
    waiting[2].cancel()
    await process_all(queue)
    assert not await is_waiting(waiting[1])
    assert not await is_waiting(waiting[3])


# -- stop


async def test_stop_wakes_waiting_tasks_and_drops_keys_timers_and_retries(queue: Queue, clock: ManualClock) -> None:
    for _ in range(12):  # then the delay is the longest one: the retry is not due before the test ends
        queue.add("failed")
        await fail(queue, "failed")
    queue.add("processed")
    await take(queue)
    queue.add("ready")
    queue.add_after("delayed", 10)
    waiting = [asyncio.create_task(queue.idle(key)) for key in ("failed", "processed", "ready")]
    waiting.append(asyncio.create_task(queue.processed("ready")))
    await loop_turns()
    timer = queue._retries["failed"]
    await queue.stop()
    await loop_turns()
    assert timer.cancelled()
    assert all(task.done() for task in waiting)
    assert (queue.ready, clock.sleepers) == ([], 0)
    queue.done("processed")
    assert queue.depth == 0


STOPPED: list[tuple[str, Callable[[Queue], object]]] = [
    ("add", lambda queue: queue.add("a")),
    ("add_after", lambda queue: queue.add_after("a", 0)),
    ("retry", lambda queue: queue.retry("a")),
]


@pytest.mark.parametrize("schedule", [row[1] for row in STOPPED], ids=[row[0] for row in STOPPED])
async def test_after_stop_no_key_becomes_ready(
    queue: Queue, clock: ManualClock, schedule: Callable[[Queue], object]
) -> None:
    queue.add("before")
    await queue.stop()
    schedule(queue)
    getting = asyncio.create_task(queue.get())
    assert await is_waiting(getting)
    assert (queue.depth, clock.sleepers) == (0, 0)
    getting.cancel()
