"""The object time of a running server: setting it, and what happens while it is moved ahead."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.clock import AdjustableClock
from noxu.control import clock as control
from noxu.control_plane import ControlPlane, resource_of, running
from noxu.go.time import format_time
from noxu.manifests import loading
from noxu.values import Object
from noxu_storage.memory import MemoryStore
from tests.clocks import START, ManualClock, StoppedClock
from tests.control_planes import assemble
from tests.timing import loop_turns


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    clock = AdjustableClock(ManualClock())
    clock.freeze()
    async with running(assemble(MemoryStore(), clock=clock, controllers=("*",))) as plane:
        yield plane


def event(name: str) -> Object:
    involved = {"kind": "Pod", "name": "p", "namespace": "default"}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": involved}


async def names(plane: ControlPlane) -> list[str]:
    collection = await plane.reader.collection(resource_of(plane.served_resources, "", "events"))
    return [key.name for key in collection.keys]


async def test_what_expires_is_gone_when_the_advance_is_answered(plane: ControlPlane) -> None:
    await loading.apply(plane, event("a"))
    await loop_turns()
    await control.advance(plane.clock, plane.all_controllers, by=1800)
    await loading.apply(plane, event("b"))
    await loop_turns()
    moved = await control.advance(plane.clock, plane.all_controllers, by=1800)
    assert await names(plane) == ["b"]
    assert (moved["mode"], moved["now"]) == ("frozen", format_time(START + timedelta(hours=1)))
    await control.advance(plane.clock, plane.all_controllers, to=datetime(2026, 12, 31, tzinfo=UTC))
    assert await names(plane) == []


async def test_an_event_is_deleted_at_its_own_time(plane: ControlPlane) -> None:
    deleted: list[tuple[str, str]] = []

    class Deletions:
        def deliver(self, events: Any, revision: int) -> None:
            gone = [change.key for change in events if change.key.collection == "/events" and change.value is None]
            deleted.extend((key.name, format_time(plane.clock.now())) for key in gone)

        def end(self) -> None: ...

    for name in ("a", "b"):
        await loading.apply(plane, event(name))
        await loop_turns()
        await control.advance(plane.clock, plane.all_controllers, by=60)
    plane.cache.watchers[Deletions()] = None
    await control.advance(plane.clock, plane.all_controllers, by=365 * 86_400)
    assert deleted == [
        ("a", format_time(START + timedelta(hours=1))),
        ("b", format_time(START + timedelta(hours=1, minutes=1))),
    ]


async def test_each_of_a_thousand_times_is_reached(plane: ControlPlane) -> None:
    """What it costs is printed by `python -m benchmarks.clock`."""
    sleepers = [asyncio.create_task(plane.clock.sleep(60.0 * n)) for n in range(1, 1001)]
    await loop_turns()
    moved = await control.advance(plane.clock, plane.all_controllers, by=365 * 86_400)
    assert moved["woken"] >= 1000
    await asyncio.gather(*sleepers)


@pytest.mark.parametrize(
    ("wanted", "state"),
    [
        ({"mode": "frozen"}, {"mode": "frozen", "now": "2026-01-02T03:04:05Z", "speed": 0}),
        ({"mode": "frozen", "at": START - timedelta(hours=1)}, "cannot be set back to 2026-01-02T02:04:05Z"),
        ({"mode": "frozen", "at": START + timedelta(1)}, {"mode": "frozen", "now": "2026-01-03T03:04:05Z"}),
        ({"mode": "offset", "offset": 3600, "at": None}, {"mode": "offset", "offset": 3600, "now": "2026-01-02T04:04:05Z"}),
        ({"mode": "speed", "speed": 60}, {"mode": "speed", "speed": 60}),
        ({"mode": "real"}, {"mode": "real", "offset": 0}),
        ({"mode": "frozen", "speed": 2}, 'the mode frozen has no "speed": it has at'),
        ({"mode": "real", "at": START}, 'the mode real has no "at": it has no further fields'),
        ({"mode": "offset"}, 'the mode offset needs "offset"'),
        ({"mode": "speed"}, 'the mode speed needs "speed"'),
        ({"mode": "speed", "speed": -1}, "speed -1 is not between 0 and 1e+06"),
    ],
)  # fmt: skip
async def test_setting_the_clock(wanted: Mapping[str, Any], state: Object | str) -> None:
    clock = AdjustableClock(StoppedClock())
    if isinstance(state, dict):
        assert control.set_clock(clock, wanted).items() >= state.items()
        return
    before = control.state(clock)
    with pytest.raises(ApiError) as error:
        control.set_clock(clock, wanted)
    assert (error.value.code, control.state(clock)) == (400, before)
    assert state in error.value.message


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ({"by": -3600}, "cannot be advanced by -3600 s: object time never goes back"),
        ({"to": datetime(2020, 1, 1, tzinfo=UTC)}, "object time never goes back"),
        ({"by": 1e12}, "is beyond the year 9999"),
        ({}, "write how far"),
        ({"by": 60, "to": START}, "write how far"),
    ],
)
async def test_an_advance_that_is_refused(plane: ControlPlane, by: Mapping[str, Any], message: str) -> None:
    before = control.state(plane.clock)
    with pytest.raises(ApiError) as error:
        await control.advance(plane.clock, plane.all_controllers, **by)
    assert (error.value.code, control.state(plane.clock)) == (400, before)
    assert message in error.value.message


async def test_the_clock_of_a_program_is_its_own() -> None:
    assert control.state(StoppedClock()) == {"mode": "given", "now": "2026-01-02T03:04:05Z"}
    with pytest.raises(ApiError, match="set it there"):
        control.set_clock(StoppedClock(), {"mode": "real"})


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("real", {"mode": "real", "now": "2026-01-02T03:04:05Z"}),
        ("frozen", {"mode": "frozen", "now": "2026-01-02T03:04:05Z"}),
        ("frozen=2020-01-01T00:00:00Z", {"mode": "frozen", "now": "2020-01-01T00:00:00Z"}),
        ("offset=1h", {"mode": "offset", "now": "2026-01-02T04:04:05Z"}),
        ("offset=-1d", {"mode": "offset", "now": "2026-01-01T03:04:05Z"}),
        ("speed=60", {"mode": "speed", "speed": 60}),
        ("speed=fast", "fast is not a number, such as speed=60"),
        ("frosen", "frosen is none of real, offset, speed, frozen; did you mean frozen?"),
        ("frozen=1h", 'expected a time such as 2030-01-01T00:00:00Z, not "1h"'),
        ("offset=1 day", 'unknown unit " day" in duration "1 day"'),
    ],
)
async def test_the_clock_of_a_start(text: str, state: Object | str) -> None:
    clock = AdjustableClock(StoppedClock())
    if isinstance(state, dict):
        control.begin(clock, text)
        assert control.state(clock).items() >= state.items()
    else:
        with pytest.raises(ValueError, match=re.escape(state)):
            control.begin(clock, text)
