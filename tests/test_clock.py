"""The clock of the operating system, and the one that tests advance."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from noxu.clock import SYSTEM_CLOCK
from tests.clocks import START, ManualClock, StoppedClock
from tests.timing import loop_turns


def test_the_system_clock_has_the_time_in_utc() -> None:
    before, now, after = datetime.now(UTC), SYSTEM_CLOCK.now(), datetime.now(UTC)
    assert before <= now <= after
    assert now.utcoffset() == timedelta(0)


def test_its_monotonic_time_does_not_decrease() -> None:
    readings = [SYSTEM_CLOCK.monotonic() for _ in range(1000)]
    assert readings == sorted(readings)


async def test_it_sleeps() -> None:
    before = SYSTEM_CLOCK.monotonic()
    await SYSTEM_CLOCK.sleep(0.02)
    assert SYSTEM_CLOCK.monotonic() - before >= 0.019


def test_the_time_of_a_stopped_clock() -> None:
    assert StoppedClock().now() == StoppedClock().now() == START


async def test_a_manual_clock_wakes_sleepers_in_the_order_of_their_times() -> None:
    clock, woken = ManualClock(), []

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    tasks = [asyncio.create_task(sleep(seconds)) for seconds in (30, 10, 20, 60)]
    await loop_turns()
    clock.advance(9)
    await loop_turns()
    assert (woken, clock.sleepers) == ([], 4)
    clock.advance(21)
    await loop_turns()
    assert (woken, clock.sleepers) == ([10, 20, 30], 1)
    tasks[3].cancel()
    await loop_turns()
    assert clock.sleepers == 0
    assert (clock.now() - START, clock.monotonic()) == (timedelta(seconds=30), 30)
    assert clock.sleepers == 0
