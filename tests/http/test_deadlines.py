"""One timer ends all bodies that are late, and each ends as with `asyncio.timeout_at`."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from noxu.http.app import Deadlines
from tests.rows import rows
from tests.timing import hang_guard

PAST, SOON, LATER, NEVER = -1.0, 0.02, 1000.0, math.inf  # seconds from now


def now() -> float:
    return asyncio.get_running_loop().time()


class AsLibrary:
    """`asyncio.timeout_at` with the interface of `Deadlines`."""

    def until(self, when: float) -> Any:
        return asyncio.timeout_at(when)


# -- one body ---------------------------------------------------------------------------------------------------------


async def hang() -> str:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


async def answer() -> str:
    return "answered"


async def wait_a_little() -> str:
    await asyncio.sleep(0)
    return "waited"


async def refuse() -> str:
    raise ValueError("refused")


async def suppress_the_cancellation() -> str:
    try:
        return await hang()
    except asyncio.CancelledError:
        return "not cancelled"


async def fail_when_cancelled() -> str:
    try:
        return await hang()
    except asyncio.CancelledError:
        raise ValueError("failed") from None


async def be_cancelled() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return await hang()


async def time_out_by_itself() -> str:
    async with asyncio.timeout(0):
        return await hang()


async def ended(deadlines: Any, when: float, body: Callable[[], Awaitable[str]]) -> tuple[str, bool, int]:
    """(the result or the type of the exception, whether it is expired, the cancellations that are left)."""

    async def run() -> tuple[str, bool, int]:
        deadline = deadlines.until(math.inf if when == NEVER else now() + when)
        try:
            if isinstance(deadlines, Deadlines):
                with deadline:
                    result = await body()
            else:
                async with deadline:
                    result = await body()
        except (ValueError, TimeoutError, asyncio.CancelledError) as error:
            result = type(error).__name__
        task = asyncio.current_task()
        assert task is not None
        expired = deadline.expired if isinstance(deadlines, Deadlines) else deadline.expired()
        return result, expired, task.cancelling()

    async with hang_guard():
        return await asyncio.create_task(run())


BODIES: Final[list[tuple[str, float, Callable[[], Awaitable[str]], str]]] = [
    ("answers at once", LATER, answer, "answered"),
    ("answers at once, without a deadline", NEVER, answer, "answered"),
    ("answers at once, after its deadline", PAST, answer, "answered"),
    ("waits", LATER, wait_a_little, "waited"),
    ("hangs", SOON, hang, "TimeoutError"),
    ("hangs after its deadline", PAST, hang, "TimeoutError"),
    ("refuses", LATER, refuse, "ValueError"),
    ("suppresses the cancellation", SOON, suppress_the_cancellation, "not cancelled"),
    ("fails when it is cancelled", SOON, fail_when_cancelled, "ValueError"),
    ("is cancelled by others", LATER, be_cancelled, "CancelledError"),
    ("times out by itself", LATER, time_out_by_itself, "TimeoutError"),
]


@rows(("when", "body", "expected"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
async def test_a_body_that(when: float, body: Callable[[], Awaitable[str]], expected: str) -> None:
    found = await ended(Deadlines(), when, body)
    assert found[0] == expected
    assert found == await ended(AsLibrary(), when, body)


# -- several bodies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(LATER, SOON), (SOON, LATER), (NEVER, SOON), (SOON, SOON), (LATER, PAST, SOON)])
async def test_the_late_ones_end_and_the_others_go_on(order: tuple[float, ...]) -> None:
    deadlines = Deadlines()
    tasks = [asyncio.create_task(ended(deadlines, when, hang)) for when in order]
    late = [task for task, when in zip(tasks, order, strict=True) if when <= SOON]
    async with hang_guard():
        assert [await task for task in late] == [("TimeoutError", True, 0)] * len(late)
    others = [task for task in tasks if task not in late]
    assert not any(task.done() for task in others)
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def test_the_timer_serves_a_body_that_begins_after_the_one_for_which_it_was_set() -> None:
    deadlines = Deadlines()
    assert await ended(deadlines, SOON, answer) == ("answered", False, 0)
    assert await ended(deadlines, SOON, hang) == ("TimeoutError", True, 0)
    assert await ended(deadlines, SOON, hang) == ("TimeoutError", True, 0)


async def test_bodies_that_end_in_time_set_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, timers = asyncio.get_running_loop(), []
    call_at = loop.call_at
    monkeypatch.setattr(loop, "call_at", lambda when, *what: timers.append(when) or call_at(when, *what))
    deadlines = Deadlines()
    for n in range(100):
        with deadlines.until(loop.time() + LATER + n):
            await asyncio.sleep(0)
    assert len(timers) == 1
