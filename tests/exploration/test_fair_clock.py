"""A clock for limits that a busy machine does not make shorter."""

from __future__ import annotations

import os

from noxu.exploration import fair_clock
from noxu.exploration.fair_clock import LEAST, FairClock
from tests.rows import rows


@rows(
    "before, now, waited",
    [
        ({}, {}, 0.0),
        ({"1": 0.5}, {"1": 0.5}, 0.0),
        ({"1": 0.5}, {"1": 2.0}, 1.5),
        ({"1": 0.5, "2": 7.0}, {"1": 2.0, "2": 7.1}, 1.5),
        ({"1": 9.0}, {"2": 0.25}, 0.25),  # a new thread in a new process
        ({"1": 9.0}, {}, 0.0),
    ],
)
def test_the_thread_counts_that_has_waited_longest(
    before: dict[str, float], now: dict[str, float], waited: float
) -> None:
    assert fair_clock.longest(before, now) == waited


@rows(
    "looks, elapsed",
    [
        ([(4.0, 0.0, 0.0)], 4.0),
        ([(4.0, 3.0, 0.0)], 1.0),
        ([(4.0, 1.0, 0.0), (8.0, 3.0, 0.0)], 5.0),
        ([(4.0, 1.0, 1.0)], 2.0),  # it asks the server, which waits, too
        ([(4.0, 4.0, 4.0)], 4.0 * LEAST),
    ],
)
def test_the_clock_stands_still_while_a_program_waits(looks: list[tuple[float, float, float]], elapsed: float) -> None:
    seen, wall = iter([(0.0, 0.0, 0.0), *looks]), [0.0]

    def look() -> tuple[dict[str, float], dict[str, float]]:
        wall[0], program, own = next(seen)
        return {"1": program}, {"2": own}

    clock = FairClock(look, lambda: wall[0])
    assert [clock() for _ in looks][-1] == elapsed


@rows(
    "wall, elapsed, said",
    [
        (30.0, 30.0, ""),
        (30.0, 25.0, ""),
        (0.0, 0.0, ""),
        (30.0, 10.0, "; the machine is busy: for 20 of 30 s it waited for a processor"),
    ],
)
def test_a_busy_machine_is_said_to_be_busy(wall: float, elapsed: float, said: str) -> None:
    assert fair_clock.slowness(wall, elapsed) == said


def test_what_the_kernel_does_not_count_is_left_out() -> None:
    assert fair_clock.delays([0]) == {}
    assert all(seconds >= 0 for seconds in fair_clock.delays([os.getpid()]).values())
