"""Object time that a person sets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from noxu.clock import AdjustableClock, ClockError
from tests.clocks import START, ManualClock
from tests.timing import loop_turns

HOUR = 3600.0


def minutes(number: float) -> datetime:
    return START + timedelta(minutes=number)


async def made() -> tuple[AdjustableClock, ManualClock]:
    system = ManualClock()
    return AdjustableClock(system), system


async def test_its_timestamp_is_its_time_in_every_mode() -> None:
    clock = AdjustableClock()
    assert clock.timestamp is time.time, "without a call of ours"
    for change in (
        lambda: clock.start_at(minutes(3)),
        lambda: clock.set_speed(2.0, minutes(5)),
        lambda: clock.freeze(minutes(60)),
        lambda: clock.tick(60.0),
    ):
        change()
        assert clock.timestamp() == pytest.approx(clock.now().timestamp(), abs=1.0)


async def test_by_itself_it_is_the_clock_of_the_system() -> None:
    clock, system = await made()
    system.advance(60)
    system.jump(120)
    assert clock.now() == system.now() == minutes(3)
    assert clock.monotonic() == 60
    assert clock.state[:4] == ("real", minutes(3), 0, 1)


@pytest.mark.parametrize(
    ("change", "state", "after_a_minute"),
    [
        (lambda clock: clock.freeze(), ("frozen", START, 0, 0), START),
        (lambda clock: clock.freeze(minutes(5)), ("frozen", minutes(5), 300, 0), minutes(5)),
        (lambda clock: clock.set_offset(HOUR), ("offset", minutes(60), HOUR, 1), minutes(61)),
        (lambda clock: clock.set_speed(10), ("speed", START, 0, 10), minutes(10)),
        (lambda clock: clock.set_speed(0.5, minutes(2)), ("speed", minutes(2), 120, 0.5), minutes(2.5)),
        (lambda clock: clock.start_at(minutes(-60)), ("offset", minutes(-60), -HOUR, 1), minutes(-59)),
    ],
)  # fmt: skip
async def test_a_mode(change: Callable[[AdjustableClock], object], state: Any, after_a_minute: datetime) -> None:
    clock, system = await made()
    change(clock)
    assert clock.state[:4] == state
    before = clock.monotonic()
    system.advance(60)
    assert clock.now() == after_a_minute
    assert clock.monotonic() - before == pytest.approx((after_a_minute - state[1]).total_seconds())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda clock: clock.set_real(), "cannot be set back to 2026-01-02T03:04:05Z"),
        (lambda clock: clock.set_offset(60), "cannot be set back to 2026-01-02T03:05:05Z"),
        (lambda clock: clock.freeze(START), "the clock is at 2026-01-02T04:04:05Z"),
        (lambda clock: clock.set_speed(2, START), "objects would be younger than their creation"),
        (lambda clock: clock.set_speed(0), "speed 0 is not between 0 and 1e+06; `freeze` stops the clock"),
        (lambda clock: clock.set_speed(-1), "speed -1 is not between"),
        (lambda clock: clock.set_offset(1e12), "an offset of 1e+12 s is beyond the year 9999"),
    ],
)  # fmt: skip
async def test_what_is_refused_changes_nothing(change: Callable[[AdjustableClock], object], message: str) -> None:
    clock, _ = await made()
    clock.freeze(minutes(60))
    before = clock.state
    with pytest.raises(ClockError) as error:
        change(clock)
    assert message in str(error.value)
    assert clock.state == before


async def test_what_became_due_happens_in_order_and_at_its_own_time() -> None:
    clock, _ = await made()
    clock.freeze()
    log: list[tuple[str, float]] = []

    async def sleep(name: str, *lengths: float) -> None:
        for length in lengths:
            await clock.sleep(length)
            await asyncio.sleep(0)  # what it does then takes a while
            log.append((name, (clock.now() - START).total_seconds()))

    tasks = [asyncio.create_task(sleep(*row)) for row in (("c", 30), ("a", 10, 15), ("b", 10), ("late", 100))]  # type: ignore[arg-type]
    await loop_turns()
    assert clock.state.sleepers == 4
    assert clock.state.due == START + timedelta(seconds=10)
    assert await clock.advance(60) == 4
    assert log == [("a", 10), ("b", 10), ("a", 25), ("c", 30)]
    assert clock.now() == minutes(1)
    tasks[-1].cancel()
    await loop_turns()
    assert clock.state.sleepers == 0


async def test_time_goes_on_when_what_follows_is_done() -> None:
    clock, _ = await made()
    clock.freeze()
    settled: list[float] = []

    async def settle() -> None:
        settled.append(clock.monotonic())

    sleepers = [asyncio.create_task(clock.sleep(seconds)) for seconds in (1, 1, 5)]
    await loop_turns()
    await clock.advance(3, settle)
    assert settled == [1]
    await clock.advance(3, settle)
    assert settled == [1, 5]
    await asyncio.gather(*sleepers)


@pytest.mark.parametrize("seconds", [-1, 1e12])
async def test_an_advance_that_is_refused(seconds: float) -> None:
    clock, _ = await made()
    clock.freeze()
    sleeper = asyncio.create_task(clock.sleep(5))
    await loop_turns()
    with pytest.raises(ClockError):
        await clock.advance(seconds)
    assert (clock.now(), clock.state.sleepers) == (START, 1)
    sleeper.cancel()


@pytest.mark.parametrize(
    ("change", "mode", "now"),
    [
        (lambda clock: None, "offset", minutes(60)),
        (lambda clock: clock.set_offset(60), "offset", minutes(61)),
        (lambda clock: clock.set_speed(60), "speed", minutes(60)),
        (lambda clock: clock.freeze(), "frozen", minutes(60)),
    ],
)
async def test_an_advance_in_each_mode(change: Callable[[AdjustableClock], object], mode: str, now: datetime) -> None:
    clock, _ = await made()
    change(clock)
    await clock.advance(HOUR)
    assert clock.state[:2] == (mode, now)


async def test_advances_at_the_same_time_follow_each_other() -> None:
    clock, _ = await made()
    clock.freeze()
    await asyncio.gather(clock.advance(10), clock.advance(20), clock.advance(30))
    assert clock.now() == minutes(1)


async def test_sleepers_wake_by_themselves_as_time_passes() -> None:
    clock = AdjustableClock()
    clock.set_speed(1000)
    await clock.sleep(5)  # 5 ms
    clock.freeze()
    sleeper = asyncio.create_task(clock.sleep(0.001))
    await asyncio.sleep(0.01)
    assert not sleeper.done()
    clock.set_speed(1)
    await sleeper


async def test_a_cancelled_sleeper_is_not_due() -> None:
    clock, _ = await made()
    clock.freeze()
    sleeper = asyncio.create_task(clock.sleep(5))
    await loop_turns()
    sleeper.cancel()
    await loop_turns()
    assert clock.state.due is None
    assert await clock.advance(10) == 0
