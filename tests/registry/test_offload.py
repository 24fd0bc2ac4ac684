"""Large work runs in one thread, and a limited number of large requests at a time."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator

import pytest

from noxu.apiserver.registry.offload import LOOP_LIMIT, SLOTS, LargeRequests, offload
from tests.timing import eventually_async, loop_turns


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


async def test_large_work_runs_in_one_thread() -> None:
    names = await asyncio.gather(*[offload(LOOP_LIMIT + 1, thread_name) for _ in range(5)])
    assert len(set(names)) == 1
    assert names[0] != thread_name()


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


async def test_a_limited_number_of_large_requests_has_a_slot() -> None:
    requests = LargeRequests()
    tasks = [asyncio.create_task(requests.enter()) for _ in range(SLOTS + 2)]
    await loop_turns()
    assert [task.done() for task in tasks] == [True] * SLOTS + [False] * 2
    assert not gc.isenabled()
    for n in range(2):
        requests.leave()
        await loop_turns()
        assert tasks[SLOTS + n].done()
    for _ in range(SLOTS):
        assert not gc.isenabled()
        requests.leave()
    assert gc.isenabled()


async def test_a_request_that_is_cancelled_while_it_waits_takes_no_slot() -> None:
    requests = LargeRequests(1)
    await requests.enter()
    waiting = asyncio.create_task(requests.enter())
    await loop_turns()
    waiting.cancel()
    await loop_turns()
    requests.leave()
    assert gc.isenabled()
    await requests.enter()
    requests.leave()


async def test_a_collector_that_was_disabled_stays_disabled() -> None:
    gc.disable()
    try:
        await offload(LOOP_LIMIT + 1, thread_name)
        assert not gc.isenabled()
    finally:
        gc.enable()
