"""The marks of writes: what is known of each one, and what making them costs a server."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final, cast

import noxu
from noxu.console.timeline import Sight, Sights, mark_of
from noxu.console.write_marks import WriteMarks
from noxu.control.recorded_writes import RecordedWrite
from noxu.registry.authors import Author, WatchScope
from noxu.registry.served_resources import LiveResources
from noxu_storage.types import Event, Key
from tests.rows import rows

WIDGETS = "example.com/widgets"
FOLDER: Final = noxu.__path__[0]


def event(revision: int, namespace: str = "default") -> Event:
    return Event(Key(WIDGETS, f"{namespace}/", f"w{revision}"), revision, b"{}", None)


def written(revision: int, request_id: str = "") -> RecordedWrite:
    return RecordedWrite(revision, 0.0, Author("create", agent="operator/v1", request_id=request_id))


async def marks(events: Sequence[Event], sights: Sights, requests: Any = None) -> list[dict[str, Any]]:
    writes = {each.revision: written(each.revision, "x") for each in events}
    made = WriteMarks(cast(LiveResources, None))
    return [mark_of(row) for row in await made.of([(1.0, each) for each in events], writes, requests or {}, sights)]


@rows(
    "sight, to",
    [
        (Sight("a", WatchScope(WIDGETS, None), 1, 99), [["a"], ["a"], ["a"]]),
        (Sight("a", WatchScope(WIDGETS, "other/"), 1, 99), [[], ["a"], []]),
        (Sight("a", WatchScope(WIDGETS, "default/", "w7"), 1, 99), [["a"], [], []]),
        (Sight("a", WatchScope(WIDGETS, None), 1, 8), [["a"], ["a"], []]),
        (Sight("a", WatchScope(WIDGETS, None, labels="x=y"), 1, 99), [[], [], []]),
    ],
)
async def test_each_write_has_those_that_were_shown_it(sight: Sight, to: list[list[str]]) -> None:
    events = [event(7), event(8, "other"), event(9)]
    assert [mark["to"] for mark in await marks(events, Sights([sight]))] == to


async def test_all_writes_of_a_request_have_it() -> None:
    """As of a DELETE of a collection."""
    asked = {"x": ("x", 5, 200, "DELETE", "/apis/x", 0.25, ())}
    found = await marks([event(7), event(8)], Sights(), asked)
    assert [(mark["request"], mark["code"], mark["seconds"]) for mark in found] == [(5, 200, 0.25)] * 2


async def test_what_a_watch_shows_later_is_received_once() -> None:
    made = WriteMarks(cast(LiveResources, None))
    behind, come = (Sights([Sight("a", WatchScope(WIDGETS, None), 1, upto)]) for upto in (6, 7))
    await made.of([(1.0, event(7))], {}, {}, behind)
    assert await made.received(behind) == []
    assert await made.received(come) == [(7, "a")]
    assert await made.received(come) == []


async def test_a_further_write_is_one_call() -> None:
    """Of a function of ours: a call costs a server that writes a thousand objects a second a two-thousandth of its time."""
    sights = Sights([Sight("a", WatchScope(WIDGETS, None), 1, 9_999)])
    made = WriteMarks(cast(LiveResources, None))
    counts = []
    for count in (10, 10, 60):
        happened = [(1.0, event(revision)) for revision in range(2, count + 2)]
        writes = {each.revision: written(each.revision, str(each.revision)) for _, each in happened}
        asked = {name: (name, 1, 200, "POST", "/x", 0.1, ()) for name in (w.author.request_id for w in writes.values())}
        calls: list[str] = []

        def profile(frame: FrameType, what: str, _: object, calls: list[str] = calls) -> None:
            if what == "call" and frame.f_code.co_filename.startswith(FOLDER):
                calls.append(frame.f_code.co_qualname)

        sys.setprofile(profile)
        try:
            await made.of(happened, writes, asked, sights)
        finally:
            sys.setprofile(None)
        counts.append(len(calls))
    assert counts[2] - counts[1] == 50
