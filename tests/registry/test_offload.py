"""Large work runs in a few threads, under a budget, and a limited number of large requests at a time."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from itertools import pairwise
from types import SimpleNamespace

import pytest

from noxu.admission.expressions import run_within_budget
from noxu.api.errors import ApiError
from noxu.cpu_budget import spend
from noxu.registry import turns, write
from noxu.registry.offload import (
    LOOP_LIMIT,
    MEDIUM,
    MEDIUM_ROOM,
    SLOTS,
    LargeRequests,
    offload,
    offload_briefly,
    offload_if_long,
    without_threads,
)
from noxu.registry.turns import PAUSE, THREADS, loop_turn
from tests.drafts import draft_of
from tests.registry.world import widgets
from tests.timing import eventually_async, hang_guard, loop_turns


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """The garbage collector is enabled, before and after."""
    assert gc.isenabled()
    yield
    assert gc.isenabled()


def thread_name() -> str:
    return threading.current_thread().name


@pytest.mark.parametrize("weight", [0, LOOP_LIMIT])
async def test_small_work_runs_in_the_event_loop(weight: int) -> None:
    assert await offload(weight, thread_name) == thread_name()


async def test_large_work_runs_in_a_few_threads() -> None:
    names = await asyncio.gather(*[offload(LOOP_LIMIT + 1, thread_name) for _ in range(5)])
    assert 1 <= len(set(names)) <= THREADS
    assert thread_name() not in names


async def test_commands_do_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    with without_threads():
        task = asyncio.create_task(offload(LOOP_LIMIT + 1, thread_name))  # the tasks that are made meanwhile, too
        assert await offload(LOOP_LIMIT + 1, thread_name) == thread_name()
        monkeypatch.setattr(turns, "MAX_THREAD_SECONDS", 0.01)
        with pytest.raises(ApiError, match="stopped working on this request"):
            await offload(LOOP_LIMIT + 1, endless)
    assert await task == thread_name()
    assert await offload(LOOP_LIMIT + 1, thread_name) != thread_name()


def endless() -> None:
    while True:
        spend(1)


async def test_work_in_a_thread_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_THREAD_SECONDS", 0.01)
    with pytest.raises(ApiError, match=r"stopped working on this request after 0\.01 s of processor time") as raised:
        await offload(LOOP_LIMIT + 1, endless)
    assert raised.value.reason == "Timeout"


async def test_work_that_is_no_longer_awaited_ends() -> None:
    """More tasks than threads: the last one runs only if the others have ended."""
    tasks = [asyncio.create_task(offload(LOOP_LIMIT + 1, endless)) for _ in range(2 * THREADS)]
    await loop_turns()
    for task in tasks:
        task.cancel()
    async with hang_guard():
        assert await offload(LOOP_LIMIT + 1, thread_name)
    await eventually_async(gc.isenabled)  # the cancelled work has left its threads


async def test_a_coroutine_that_nobody_awaits_any_more_is_closed() -> None:
    """Work that was cancelled may return what a stage waits for, such as a measured one that waits for another."""
    begun, ending = threading.Event(), threading.Event()
    waits = loop_turns()

    async def measured(other: Coroutine[object, object, None]) -> None:
        await other

    def work() -> tuple[int, Coroutine[object, object, None]]:
        begun.set()
        ending.wait()
        return 1, measured(measured(waits))

    task = asyncio.create_task(offload(LOOP_LIMIT + 1, work))
    await eventually_async(begun.is_set)
    task.cancel()
    await asyncio.wait([task])
    ending.set()
    await eventually_async(lambda: inspect.getcoroutinestate(waits) == inspect.CORO_CLOSED)


async def test_a_single_step_that_takes_too_long_is_not_begun() -> None:
    with pytest.raises(ApiError, match="stopped working"):
        await offload(LOOP_LIMIT + 1, lambda: spend(turns.MAX_THREAD_COST + 1))


async def test_what_takes_long_in_the_loop_is_repeated_in_a_thread() -> None:
    ran: list[str] = []

    def work(units: int) -> str:
        ran.append(thread_name())
        if len(ran) == 1:
            spend(units)
        return thread_name()

    assert await offload_if_long(0, work, turns.MAX_LOOP_COST) == thread_name()
    ran.clear()
    assert await offload_if_long(0, work, turns.MAX_LOOP_COST + 1) != thread_name()
    assert ran[0] == thread_name()


@pytest.mark.parametrize("weight", [0, LOOP_LIMIT + 1])
async def test_arguments_and_errors_pass_through(weight: int) -> None:
    assert await offload(weight, lambda first, *, second: (first, second), 1, second=2) == (1, 2)
    with pytest.raises(ZeroDivisionError):
        await offload(weight, lambda: 1 // 0)


async def test_the_loop_continues_meanwhile() -> None:
    started, release = threading.Event(), threading.Event()

    def wait() -> bool:
        started.set()
        return release.wait(60)

    task = asyncio.create_task(offload(LOOP_LIMIT + 1, wait))
    await eventually_async(started.is_set)
    assert not task.done()
    release.set()
    assert await task


async def test_no_garbage_is_collected_during_large_work() -> None:
    assert await offload(LOOP_LIMIT + 1, gc.isenabled) is False
    assert await offload(LOOP_LIMIT, gc.isenabled) is True


@pytest.mark.parametrize(
    ("weight", "places"),
    [(MEDIUM + 1, SLOTS), (3 * MEDIUM, SLOTS), (MEDIUM, MEDIUM_ROOM // MEDIUM), (MEDIUM - 1, MEDIUM_ROOM // MEDIUM)],
)
async def test_a_limited_number_of_large_requests_has_room(weight: int, places: int) -> None:
    requests = LargeRequests()
    tasks = [asyncio.create_task(requests.enter(weight)) for _ in range(places + 2)]
    await loop_turns()
    assert [task.done() for task in tasks] == [True] * places + [False] * 2
    assert not gc.isenabled()
    for n in range(2):
        requests.leave(weight)
        await loop_turns()
        assert tasks[places + n].done()
    for _ in range(places):
        assert not gc.isenabled()
        requests.leave(weight)
    assert gc.isenabled()


async def test_a_request_of_usual_size_does_not_wait_for_the_largest_ones() -> None:
    requests = LargeRequests()
    largest = [asyncio.create_task(requests.enter(3 * 1024 * 1024)) for _ in range(SLOTS + 1)]
    async with hang_guard():
        for _ in range(100):  # more than there are slots: each takes as much room as it weighs
            await requests.enter(26_000)
    for _ in range(100):
        requests.leave(26_000)
    for task in largest:
        await task
        requests.leave(3 * 1024 * 1024)


async def test_those_for_which_there_is_no_room_wait_in_the_order_in_which_they_came() -> None:
    requests = LargeRequests(medium=100)
    await requests.enter(60)
    second, third = (asyncio.create_task(requests.enter(weight)) for weight in (50, 30))
    await loop_turns()
    assert [second.done(), third.done()] == [False, False]
    second.cancel()
    await loop_turns()
    assert third.done()
    requests.leave(60)
    requests.leave(30)


async def test_a_request_that_is_cancelled_while_it_waits_takes_no_room() -> None:
    requests = LargeRequests(1)
    await requests.enter(MEDIUM + 1)
    waiting = asyncio.create_task(requests.enter(MEDIUM + 1))
    await loop_turns()
    waiting.cancel()
    await loop_turns()
    requests.leave(MEDIUM + 1)
    assert gc.isenabled()
    await requests.enter(MEDIUM + 1)
    requests.leave(MEDIUM + 1)


async def test_a_collector_that_was_disabled_stays_disabled() -> None:
    gc.disable()
    try:
        await offload(LOOP_LIMIT + 1, thread_name)
        assert not gc.isenabled()
    finally:
        gc.enable()


def spin() -> None:
    """12 ms of processor time, accounted for."""
    end = time.thread_time() + 0.012
    while time.thread_time() < end:
        spend(turns.UNITS_PER_CHECK)


HOWS: dict[str, Callable[[Callable[[], None]], Awaitable[None]]] = {
    "briefly": lambda work: offload_briefly(2048, work),
    "unless it is long": lambda work: offload_if_long(0, work),
    "as a policy": lambda work: run_within_budget(0, lambda _: work()),
    "as a stage": lambda work: write.run(draft_of(widgets().storage, {}), [lambda _: work()]),
}


@pytest.mark.parametrize("how", HOWS)
async def test_requests_that_arrive_together_share_an_iteration_of_the_loop(how: str) -> None:
    """Each may take 20 ms of it; those for which there is no time left wait for the next one."""
    iteration, ran_in = 0, []

    async def others() -> None:
        nonlocal iteration
        while True:
            await asyncio.sleep(0)
            iteration += 1

    def work() -> None:
        spin()
        ran_in.append(iteration)

    running = asyncio.create_task(others())
    await asyncio.gather(*(HOWS[how](work) for _ in range(6)))
    running.cancel()
    assert len(ran_in) == 6
    assert len(set(ran_in)) >= 5, "one in each, but perhaps the first"
    pauses = [after - before for before, after in pairwise(ran_in)]
    assert sum(pause >= PAUSE for pause in pauses) >= 4, "the iterations between them belong to others"


@pytest.mark.parametrize(("running", "times"), [(0, 1), (2, 2)], ids=["alone", "while two threads compute"])
async def test_work_in_the_loop_has_its_share_of_the_interpreter(
    running: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """12 ms of processor time take 36 ms beside two threads: more than the 20 ms that the loop has for it."""
    monkeypatch.setattr(turns, "TURNS", SimpleNamespace(running=running))
    ran: list[str] = []

    def work() -> None:
        ran.append(thread_name())
        spin()

    await offload_if_long(0, work)
    assert len(ran) == times
    assert (ran[-1] == thread_name()) == (times == 1)


async def test_work_does_not_wait_for_an_iteration_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the loop that had to begin it were closed: servers in one process share what they have spent."""
    monkeypatch.setattr(loop_turn, "is_over", True)
    async with hang_guard():
        await offload_briefly(2048, spin)
    for _ in range(PAUSE + 1):
        await asyncio.sleep(0)
    assert not loop_turn.is_over
