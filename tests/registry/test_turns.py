"""Clients take turns in the threads, and so do the pieces of their work."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import copy_context
from typing import TypeVar

import pytest

from noxu.cpu_budget import spend
from noxu.registry import offload as offload_module
from noxu.registry import turns
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.turns import CLIENT, THREADS, Turns, own_context
from tests.timing import eventually_async, hang_guard, loop_turns

T = TypeVar("T")


def work_for(client: object, function: Callable[[], T]) -> asyncio.Task[T]:
    """A task that offloads a function for a client."""
    context = copy_context()
    context.run(CLIENT.set, client)
    return asyncio.create_task(_offloaded(function), context=context)


async def _offloaded(function: Callable[[], T]) -> T:
    return await offload(LOOP_LIMIT + 1, function)


class Long:
    """Work that goes on until `end`; how often it has accounted for units."""

    def __init__(self) -> None:
        self.units = 0
        self.ended = False

    def __call__(self) -> None:
        while not self.ended:
            spend(100)
            self.units += 1

    def end(self) -> None:
        self.ended = True


@pytest.fixture(autouse=True)
async def own_turns(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Turns]:
    """Turns of its own for each test."""
    found = Turns()
    monkeypatch.setattr(offload_module, "TURNS", found)
    yield found
    await eventually_async(lambda: not (found._running or found._waiting or found._parked or found._served))
    await eventually_async(gc.isenabled)


async def finished(*tasks: Awaitable[object]) -> None:
    async with hang_guard():
        await asyncio.gather(*tasks)


CLIENTS = {
    "other clients": lambda n: n,
    "one other client": lambda n: "other",
    "the same client": lambda n: "short",
}


@pytest.mark.parametrize("client_of", CLIENTS.values(), ids=CLIENTS)
async def test_short_work_does_not_wait_until_long_work_of_others_is_done(client_of: Callable[[int], object]) -> None:
    longs = [Long() for _ in range(3 * THREADS)]
    tasks = [work_for(client_of(n), long) for n, long in enumerate(longs)]
    await eventually_async(lambda: any(long.units for long in longs))
    for _ in range(3):
        await finished(work_for("short", lambda: spend(1)))
    assert not any(task.done() for task in tasks)
    for long in longs:
        long.end()
    await finished(*tasks)


async def test_all_long_work_goes_on() -> None:
    """Also that which has not begun when others have used up their slices."""
    longs = [Long() for _ in range(3 * THREADS)]
    tasks = [work_for(n, long) for n, long in enumerate(longs)]
    await eventually_async(lambda: all(long.units for long in longs))
    before = [long.units for long in longs]
    await eventually_async(lambda: all(long.units > units for long, units in zip(longs, before, strict=True)))
    for long in longs:
        long.end()
    await finished(*tasks)


async def test_a_client_has_one_turn_at_a_time() -> None:
    running = [0, 0]  # now, and at most
    lock = threading.Lock()

    def work() -> None:
        with lock:
            running[0] += 1
            running[1] = max(running)
        for _ in range(200):
            spend(10)
        with lock:
            running[0] -= 1

    await finished(*(work_for("one", work) for _ in range(3 * THREADS)))
    assert running == [0, 1]


async def test_a_client_with_much_work_is_served_as_often_as_one_with_little() -> None:
    """The first has six pieces for each of the other: both have used the same when the first pieces have run for a while."""
    many, one = [Long() for _ in range(6)], Long()
    tasks = [*(work_for("many", long) for long in many), work_for("one", one), work_for("third", third := Long())]

    def shares() -> tuple[int, ...]:
        return sum(long.units for long in many), one.units, third.units

    await eventually_async(lambda: min(shares()) > 200_000)
    found = shares()
    for long in (*many, one, third):
        long.end()
    await finished(*tasks)
    assert max(found) < 3 * min(found), found


async def test_work_that_waits_for_its_turn_ends_when_it_is_no_longer_awaited(own_turns: Turns) -> None:
    longs = [Long() for _ in range(3 * THREADS)]
    tasks = [work_for(n, long) for n, long in enumerate(longs)]
    await eventually_async(lambda: own_turns._parked >= 2 * THREADS)
    for task in tasks:
        task.cancel()
    await loop_turns()
    assert all(task.cancelled() for task in tasks)
    await eventually_async(lambda: not own_turns._running)


async def test_threads_of_work_that_waited_end_with_it(own_turns: Turns) -> None:
    def threads() -> int:
        return sum(thread.name.startswith("noxu-offload") for thread in threading.enumerate())

    before = threads()
    longs = [Long() for _ in range(10 * THREADS)]
    tasks = [work_for(n, long) for n, long in enumerate(longs)]
    await eventually_async(lambda: all(long.units for long in longs))
    assert threads() - before > THREADS
    for long in longs:
        long.end()
    await finished(*tasks)
    await eventually_async(lambda: threads() - before <= THREADS)


async def test_a_limited_number_of_pieces_waits_in_threads(own_turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_PARKED", 1)
    longs = [Long() for _ in range(3 * THREADS)]
    tasks = [work_for(n, long) for n, long in enumerate(longs)]
    await eventually_async(lambda: own_turns._parked == 1)
    for _ in range(20):
        await asyncio.sleep(0.002)
        assert own_turns._parked <= 1
    for long in longs:
        long.end()
    await finished(*tasks)


async def test_what_the_server_does_by_itself_is_done_for_no_client() -> None:
    CLIENT.set("somebody")
    assert own_context().get(CLIENT) is None
    assert CLIENT.get() == "somebody"


async def test_neither_results_nor_errors_are_kept_by_cycles() -> None:
    """The collector is paused while others work."""

    class Result:
        pass

    class Failure(Exception):
        pass

    def fail() -> Result:
        raise Failure

    results: list[weakref.ref[object]] = []

    async def ask(work: Callable[[], Result]) -> None:
        try:
            results.append(weakref.ref(await offload(LOOP_LIMIT + 1, work)))
        except Failure as failure:
            results.append(weakref.ref(failure))

    gc.disable()
    try:
        for work in (Result, fail):
            await ask(work)
        await eventually_async(lambda: [result() for result in results] == [None, None])
    finally:
        gc.enable()
