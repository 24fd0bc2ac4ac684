"""What happens on a server, as it happens: `GET /_noxu/console/stream`, a line of JSON for each BEAT in which something did.

    {"revision": 812, "lost": 0, "columns": ["revision", "at", …], "writes": [[812, 1767225600.5, …]],
     "marks": [{"key": "r1235", …}], "received": [[811, "operator/v1", 1767225600.25]]}

The first line comes at once, without anything but the revision from which on the stream has everything. One `Live` of a
server makes each line once, for all viewers. It follows the log while there is a viewer, so a write costs nothing more while
there is none; requests are recorded while there is one, unless a report about clients wants them anyway. What is made of both is made
a portion at a time, so that no other request waits for it. A viewer that reads too slowly misses lines, and the next one says so (`lost`); it then asks again for what it shows.

Writes are rows of `columns`: a page makes marks of them, as `mark_of` does. `marks` are those of requests that wrote nothing, and of
calls of webhooks, as in the timeline (`noxu.console.timeline`). A watch that shows an event later than in the beat of its write,
because its client does not read or a fault holds it back, is in `received` when it has. What was before is `GET
/_noxu/console/timeline`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from typing import Final

from noxu.api import codec
from noxu.console.details import FORGOTTEN_AFTER
from noxu.console.timeline import (
    ID,
    WRITE_COLUMNS,
    Sight,
    Sights,
    call_marks,
    in_order,
    lane,
    mark_of,
    request_marks,
    with_calls,
)
from noxu.console.write_marks import PORTION, Happened, WriteMarks
from noxu.containment import Contained
from noxu.control.arguments import INTEGER, Argument
from noxu.control.calls import ControlCall, ControlRoute, Download, Lines
from noxu.control.recorded_requests import Answered, RecordedRequest, RequestRecord
from noxu.control.recorded_writes import RecordedWrite
from noxu.control.running import Control
from noxu.control.write_log import UNKNOWN_WRITERS, Selected, newest
from noxu.registry.authors import Ended
from noxu.registry.storage_form import is_temporary
from noxu.values import Json, Object
from noxu_storage.types import Event, Key, Revision

BEAT: Final = 0.1
"""Seconds between two lines: a reader sees no delay, and a thousand writes a second are ten lines."""
LINGER: Final = 2.0
"""Seconds after the last viewer for which requests are recorded: it may only load its page again, or go to another view."""
MAX_EVENTS: Final = 10_000  # of one line; the oldest are lost
MAX_LINES: Final = 50  # that a viewer has not read, before it loses some
ENCODED: Final = 500  # marks that are encoded before other tasks run: below a millisecond
DEFAULT_LIMIT: Final = 1_000
MAX_LIMIT: Final = 5_000


class Viewer:
    """One connection: the lines that it has not been sent yet."""

    def __init__(self) -> None:
        self.lines: deque[bytes] = deque(maxlen=MAX_LINES)
        self.lost = False
        self.wakes = asyncio.Event()

    def add(self, line: bytes) -> None:
        self.lost |= len(self.lines) == MAX_LINES
        self.lines.append(line)
        self.wakes.set()

    def lose(self) -> None:
        """A line could not be made."""
        self.lost = True
        self.wakes.set()


class Live:
    """Follows the log of a server for its viewers. A watcher of the log (`noxu.registry.cache.LogWatcher`)."""

    def __init__(self, control: Control) -> None:
        self.began = time.time()
        """By which a page knows that another process answers, whose revisions and requests are numbered anew."""
        self._server = control.server
        self._cache = control.server.plane.cache
        self._viewers: set[Viewer] = set()
        self._events: deque[tuple[float, Sequence[Event]]] = deque()
        self._waiting = 0  # how many these are
        self._lost = 0  # events of the current line that did not fit
        self._revision: Revision = 0
        self._write_marks = WriteMarks(control.server.plane.served_resources)
        self._answered = 0  # of the requests, those that lines have had
        self._forgetting: asyncio.TimerHandle | None = None
        self._beating: asyncio.Task[None] | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self.is_over = asyncio.Event()
        control.closing.callback(self._close)

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """The lines for one viewer, until the server stops or the connection ends."""
        viewer = Viewer()
        viewer.add(_line(self._cache.revision, 0))
        self._viewers.add(viewer)
        self._follow()
        try:
            while not self.is_over.is_set():
                await viewer.wakes.wait()
                viewer.wakes.clear()
                if viewer.lost:
                    viewer.lost = False
                    yield _line(self._revision, 1)
                while viewer.lines:
                    yield viewer.lines.popleft()
        finally:
            self._viewers.discard(viewer)
            if not self._viewers:
                self._rest()

    def requests(self) -> RequestRecord:
        """What clients have asked, as far as it is recorded."""
        record = self._server.interventions.begin_requests()
        if not self._viewers and self._lingering is None:
            self._server.interventions.end_requests()
        return record

    # -- the log

    def deliver(self, events: Sequence[Event], revision: Revision) -> None:
        """Take events; the next line has them. A writer waits for this, so it does no more."""
        self._events.append((time.time(), events))
        self._waiting += len(events)
        while self._waiting > MAX_EVENTS:
            self._shorten()
        self._revision = revision

    def _shorten(self) -> None:
        """Lose the oldest events that wait: of a large batch only what is too much."""
        at, events = self._events.popleft()
        lost = min(len(events), self._waiting - MAX_EVENTS)
        if lost < len(events):
            self._events.appendleft((at, events[lost:]))
        self._waiting -= lost
        self._lost += lost

    def end(self) -> None:
        """The cache begins again: what was between is not known."""
        self._lost += 1
        self._cache.watchers[self] = None

    def _follow(self) -> None:
        self._cache.watchers[self] = None
        if self._forgetting is not None:
            self._forgetting.cancel()
            self._forgetting = None
        self._server.interventions.keep_details(wanted=True)
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
        if self._beating is None:
            self._answered = self._server.interventions.begin_requests().answered
            self._beating = asyncio.get_running_loop().create_task(self._beat())

    def _rest(self) -> None:
        """The last viewer is gone."""
        self._cache.watchers.pop(self, None)
        self._events.clear()
        self._write_marks.awaited.clear()
        self._waiting = self._lost = 0  # the next one begins with what is stored then
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None
            self._server.interventions.keep_details(wanted=False)
            forget = self._server.interventions.details().clear
            self._forgetting = asyncio.get_running_loop().call_later(FORGOTTEN_AFTER, forget)
            self._lingering = asyncio.get_running_loop().call_later(LINGER, self._leave)

    def _leave(self) -> None:
        """It was the last viewer, and no other one has come."""
        self._lingering = None
        self._server.interventions.end_requests()

    def _close(self) -> None:
        self.is_over.set()
        for viewer in self._viewers:
            viewer.wakes.set()
        self._rest()
        if self._forgetting is not None:
            self._forgetting.cancel()
        if self._lingering is not None:
            self._lingering.cancel()

    # -- a line

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            with Contained("a line of the console's stream") as contained:
                await self._make_line()
            if contained.error is not None:
                for viewer in self._viewers:
                    viewer.lose()

    async def _make_line(self) -> None:
        """Make the line of a beat for all viewers, if something has happened."""
        record = self._server.interventions.begin_requests()
        if not (self._events or self._lost or self._write_marks.awaited or record.answered > self._answered):
            return
        taken, self._events = self._events, deque()
        happened = [(at, event) for at, batch in taken for event in batch]
        lost, self._lost, self._waiting = self._lost, 0, 0
        requests = record.newest(record.answered - self._answered)
        self._answered = record.answered  # in the same turn of the loop
        collections = {event.key.collection for _, event in happened}
        hidden = {collection for collection in collections if is_temporary(Key(collection, "", ""))}
        if hidden:  # what is no object of the API is not shown
            happened = [each for each in happened if each[1].key.collection not in hidden]
        sights = self.sights({*collections, *(each.event.key.collection for each in self._write_marks.awaited)})
        now = time.time()
        received = [[revision, name, now] for revision, name in await self._write_marks.received(sights)]
        writes, marks = await self._drawn(happened, requests, sights)
        if not (writes or marks or lost or received):
            return
        line = _line(self._revision, lost, await _encoded(writes), await _encoded(marks), received)
        for viewer in self._viewers:
            viewer.add(line)

    async def _drawn(
        self, happened: Sequence[Happened], requests: Sequence[Answered], sights: Sights
    ) -> tuple[list[list[Json]], list[Object]]:
        """The rows of writes, and the marks of requests that wrote nothing and of calls."""
        history, interventions = self._server.history, self._server.interventions
        if history is not None and happened:
            await history.take()
        known = {} if history is None else history.known
        by_id = {request[0]: request for request in requests}
        writes = await self._write_marks.of(happened, known, by_id, sights)
        written = {row[ID] for row in writes}
        others = [request for request in requests if request[0] not in written]
        marks = await _marks_of_requests(interventions.begin_requests().recorded, others)
        calls = interventions.details().calls
        if calls:
            marks = with_calls(marks, calls)
            marks += [call for row in writes if row[ID] in calls for call in call_marks(mark_of(row), calls[row[ID]])]
        return writes, marks

    def sights(self, collections: Collection[str]) -> Sights:
        """The watches of all clients that show collections, and how far each has come now."""
        history = self._server.history
        watches = {} if history is None else history.journal.watches
        return Sights(
            Sight(name, scope, since, stream.after, not isinstance(stream, Ended))
            for client, watching in watches.items()
            for name in (lane(*client),)
            for stream, (scope, since) in zip(watching.streams, watching.scopes, strict=True)
            if scope.collection in collections
        )


# -- the parts of a line ----------------------------------------------------------------------------------------------


async def _marks_of_requests(
    recorded: Callable[[Answered], RecordedRequest], answered: Sequence[Answered]
) -> list[Object]:
    found: list[Object] = []
    for first in range(0, len(answered), PORTION):
        found += request_marks(map(recorded, answered[first : first + PORTION]))
        await asyncio.sleep(0)
    return found


async def _encoded(made: Sequence[Json]) -> bytes:
    """Rows or marks as JSON."""
    pieces = []
    for first in range(0, len(made), ENCODED):
        pieces.append(codec.encode_for_page(made[first : first + ENCODED])[1:-1])
        if len(made) > ENCODED:
            await asyncio.sleep(0)
    return b"[%b]" % b",".join(pieces)


def _line(
    revision: Revision, lost: int, writes: bytes = b"[]", marks: bytes = b"[]", received: Sequence[list[object]] = ()
) -> bytes:
    line: Object = {
        "revision": revision,
        "lost": lost,
        "columns": WRITE_COLUMNS,
        "writes": codec.Encoded(writes),
        "marks": codec.Encoded(marks),
        "received": received,
    }
    return codec.encode_for_page(line) + b"\n"


async def stream(call: ControlCall) -> Lines:
    """The live stream."""
    return Lines(call.control.part(Live).lines())


# -- what was before --------------------------------------------------------------------------------------------------


async def timeline(call: ControlCall) -> Download:
    """The marks until now, the newest writes and all requests that are recorded since the first of them. Raises StoreError."""
    server, store, live = call.control.server, call.plane.store, call.control.part(Live)
    limit = min(max(call.query["limit"], 1), MAX_LIMIT)
    found = await newest(store, Selected(limit=limit))
    by_revision: dict[Revision, RecordedWrite] = {}
    if server.history is not None and found.events:
        wanted = await server.history.between(found.events[0].revision - 1, found.events[-1].revision)
        by_revision = {write.revision: write for write in wanted}
    record = live.requests()
    requests, watches = record.newest(record.limit), record.watches()
    by_id = {request[0]: request for request in requests}
    sights = live.sights({event.key.collection for event in found.events})
    loop_began = time.time() - asyncio.get_running_loop().time()
    happened: list[Happened] = []
    for event in found.events:
        write, at = by_revision.get(event.revision), 0.0
        if write is not None:
            arrived = write.author.arrived
            # the clock of the server may be set: times of requests are those of the machine
            at = loop_began + arrived if arrived else write.seconds
        # revisions are in order, whatever the clock was
        happened.append((max(at, happened[-1][0] if happened else 0.0), event))
    rows = await WriteMarks(call.plane.served_resources).of(happened, by_revision, by_id, sights)
    writes = [mark_of(row) for row in rows]
    written = {write.author.request_id for write in by_revision.values()}
    others = [request for request in requests if request[0] not in written][-limit:]
    asked = [*await _marks_of_requests(record.recorded, others), *request_marks(watches)]
    first = happened[0][0] if len(happened) >= limit else 0.0
    marks = in_order([*writes, *(mark for mark in asked if mark["at"] >= first)])
    made = with_calls(marks, server.interventions.details().calls)
    answer: Object = {
        "marks": codec.Encoded(await _encoded(made)),
        "began": live.began,
        "requestsMissBefore": record.misses_before,
        "note": UNKNOWN_WRITERS if server.history is None else "",
    }
    return Download(codec.encode_for_page(answer), "application/json")


ROUTES: Final = (
    ControlRoute("GET", "/_noxu/console/stream", stream, "What happens, a line of JSON at a time."),
    ControlRoute(
        "GET",
        "/_noxu/console/timeline",
        timeline,
        "What has happened: the newest writes and requests as marks.",
        query={"limit": Argument(INTEGER, f"how many writes, at most {MAX_LIMIT}", DEFAULT_LIMIT)},
    ),
)
