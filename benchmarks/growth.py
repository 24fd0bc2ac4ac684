"""Growth curves: what operations cost with 1, 10, 100 … objects, definitions and watchers.

Flat is best. Each curve of each server has a budget of time; a server whose next step would exceed it stops there, and
its curve ends with the last step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, NamedTuple

from benchmarks.load import MERGE, Request, Requests, send_all
from benchmarks.operations import (
    Operation,
    Subject,
    Usage,
    encode,
    measure,
    measure_watch,
    patches,
)
from benchmarks.results import Measured, Point
from benchmarks.servers import DEFINITIONS
from benchmarks.workloads import Workload

CLIENTS: Final = 16
CONSTANT: Final = 0.6  # seconds of a phase with watchers that do not depend on their number
FAILED: Final = (SystemExit, OSError, TimeoutError)
"""A server that refuses or is lost ends its curve, not the run."""
STEPS: Final = {1: (1,), 2: (1, 3)}  # steps per decade


def sizes(largest: int, per_decade: int = 1) -> list[int]:
    """1, 10, 100 … or 1, 3, 10, 30 … up to `largest`, which is the last one."""
    found, decade = [], 1
    while decade <= largest:
        found += [step * decade for step in STEPS[per_decade] if step * decade <= largest]
        decade *= 10
    return found if found and found[-1] == largest else [*found, largest]


def _created_and_deleted(subject: Subject, _: int) -> Requests:
    path = subject.collection("grown")
    while True:
        name = f"t-{next(subject.serial)}"
        yield Request("POST", path, encode(subject.value(name, "grown")), status=201)
        yield Request("DELETE", f"{path}/{name}")


def _first(subject: Subject, _: int) -> Requests:
    while True:
        yield Request("GET", f"{subject.collection('grown')}/o-000000")


def _page(subject: Subject, _: int) -> Requests:
    while True:
        yield Request("GET", f"{subject.collection('grown')}?limit=100")


_patched = patches(MERGE, Workload.merge_patch, namespace="grown")

OPERATIONS: Final = (
    Operation("get", CLIENTS, _first),
    Operation("create and delete", CLIENTS, _created_and_deleted),
    Operation("merge patch", 1, _patched),
    Operation("page of 100", 1, _page),
)


class Growing:
    """One server on one curve. `grow` brings it to a size and returns whether it got there in its time."""

    def __init__(self, subject: Subject, seconds: float) -> None:
        self.subject = subject
        self.size = 0
        self._left = seconds
        self._rate = 0.0

    def fits(self, size: int) -> bool:
        return not self._rate or (size - self.size) / self._rate < self._left

    def took(self, number: int, seconds: float) -> None:
        """Tell what a step has taken that leaves nothing behind."""
        self.size, self._rate = 0, number / max(seconds, 0.01)

    async def grow(self, size: int, fill: Callable[[Subject, int, int, float], Coroutine[Any, Any, int]]) -> bool:
        if not self.fits(size):
            return False
        start, first = time.perf_counter(), self.size
        self.size = await fill(self.subject, first, size, self._left)
        taken = time.perf_counter() - start
        self._left -= taken
        if size - first >= 50:
            self._rate = (self.size - first) / taken
        return self.size == size


async def _fill_objects(subject: Subject, first: int, end: int, seconds: float) -> int:
    return await subject.fill("grown", first, end, seconds)


def _fill_definitions(filled: list[Measured], size: int) -> Callable[..., Coroutine[Any, Any, int]]:
    """Creates definitions, and adds what one of them has cost to `filled`."""

    async def fill(subject: Subject, first: int, end: int, seconds: float) -> int:
        numbers = iter(range(first, end))
        done: list[int] = []

        def requests() -> Requests:
            for n in numbers:
                body = subject.definition(f"grown{n}")
                subject.definitions.append(body["metadata"]["name"])
                yield Request("POST", DEFINITIONS, encode(body), status=201)
                done.append(n)

        usage, start = Usage(subject.server), time.perf_counter()
        await send_all(subject.server.target, [requests() for _ in range(min(8, end - first))], seconds=seconds)
        await subject.usable(f"grown{max(done)}")
        taken = time.perf_counter() - start
        filled.append(usage.measured("create a definition", subject.server.name, size, len(done), taken, []))
        return first + len(done)

    return fill


class Limits(NamedTuple):
    """The largest sizes, how many seconds a server has to grow on one curve, and those of a phase."""

    objects: int = 100_000
    definitions: int = 1_000
    watchers: int = 10_000
    seconds: float = 60.0
    per_decade: int = 1
    phase: float = 0.4


async def measure_growth(subjects: Sequence[Subject], limits: Limits, say: Callable[[str], None]) -> list[Point]:
    points: list[Point] = []
    for subject in subjects:
        await subject.namespace("grown")

    async def measured_by_all(curve: str, size: int, operations: Iterable[Operation]) -> None:
        for operation in operations:
            for each in list(growing):
                try:
                    measured = await measure(each.subject, operation, size, limits.phase)
                    points.append(Point(curve, size, measured))
                except FAILED as error:
                    give_up(each, error)

    def give_up(each: Growing, reason: object) -> None:
        growing.remove(each)
        say(f"the curve of {each.subject.server.name} ends: {reason}")

    async def grow_all(size: int, fill: Callable[[Subject, int, int, float], Coroutine[Any, Any, int]]) -> None:
        for each in list(growing):
            try:
                if not await each.grow(size, fill):
                    give_up(each, f"its time is not enough for {size:,}")
            except FAILED as error:
                give_up(each, error)

    growing = [Growing(subject, limits.seconds) for subject in subjects]
    for size in sizes(limits.objects, limits.per_decade):
        say(f"growth: {size:,} objects")
        await grow_all(size, _fill_objects)
        await measured_by_all("objects", size, OPERATIONS)
    growing = [Growing(subject, limits.seconds) for subject in subjects]
    for size in sizes(limits.watchers, limits.per_decade):
        say(f"growth: {size:,} watchers")
        for each in list(growing):
            if not each.fits(size):
                give_up(each, f"its time is not enough for {size:,}")
                continue
            start = time.perf_counter()
            try:
                measured = await measure_watch(each.subject, size, size, limits.phase)
            except FAILED as error:
                give_up(each, error)
                continue
            points.append(Point("watchers", size, measured._replace(operation="event")))
            each.took(size, time.perf_counter() - start - limits.phase - CONSTANT)
    growing = [Growing(subject, limits.seconds) for subject in subjects]
    for size in sizes(limits.definitions, limits.per_decade):
        say(f"growth: {size:,} definitions")
        filled: list[Measured] = []
        await grow_all(size, _fill_definitions(filled, size))
        points += [Point("definitions", size, each) for each in filled]
        await measured_by_all("definitions", size, OPERATIONS[:3])
    return points
