"""What happens on a server, as it happens: `GET /_noxu/console/stream`, a line of JSON for each BEAT in which something did.

    {"revision": 812, "writes": [[812, "MODIFIED", "widgets.example.com", "default", "a"]], "lost": 0}

The first line comes at once, and has the revision from which on the stream tells everything. One `Live` of a server makes
each line once, for all viewers: it follows the log while there is a viewer, and costs nothing while there is none. A viewer
that reads too slowly misses lines and is told how many writes (`lost`); it then asks again for what it shows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Final

from noxu.api import codec
from noxu.control.calls import ControlCall, ControlRoute, Lines
from noxu.control.running import Control
from noxu.control.write_log import described, kind_of
from noxu.registry.storage_form import is_temporary
from noxu.values import Object
from noxu_storage.types import Event, Revision

BEAT: Final = 0.1
"""Seconds between two lines: a reader sees no delay, and a thousand writes a second are ten lines."""
MAX_EVENTS: Final = 10_000  # of one line; the oldest are lost
MAX_LINES: Final = 50  # that a viewer has not read, before it loses some


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


class Live:
    """Follows the log of a server for its viewers. A watcher of the log (`noxu.registry.cache.LogWatcher`)."""

    def __init__(self, control: Control) -> None:
        self._cache = control.server.plane.cache
        self._viewers: set[Viewer] = set()
        self._events: deque[Event] = deque(maxlen=MAX_EVENTS)
        self._lost = 0  # events of the current line that did not fit
        self._revision: Revision = 0
        self._beating: asyncio.Task[None] | None = None
        self.is_over = asyncio.Event()
        control.closing.callback(self._close)

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines for one viewer, until the server stops or the connection ends."""
        viewer = Viewer()
        viewer.add(_line(self._cache.revision, (), 0))
        self._viewers.add(viewer)
        self._follow()
        try:
            while not self.is_over.is_set():
                await viewer.wakes.wait()
                viewer.wakes.clear()
                while viewer.lines:
                    yield viewer.lines.popleft()
        finally:
            self._viewers.discard(viewer)
            if not self._viewers:
                self._rest()

    # -- the log

    def deliver(self, events: Sequence[Event], revision: Revision) -> None:
        """Take events; the next line has them."""
        self._lost += max(len(self._events) + len(events) - MAX_EVENTS, 0)
        self._events.extend(events)
        self._revision = revision

    def end(self) -> None:
        """The cache begins again: what was between is not known."""
        self._lost += 1
        self._cache.watchers[self] = None

    def _follow(self) -> None:
        self._cache.watchers[self] = None
        if self._beating is None:
            self._beating = asyncio.get_running_loop().create_task(self._beat())

    def _rest(self) -> None:
        """The last viewer is gone."""
        self._cache.watchers.pop(self, None)
        self._events.clear()
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            if self._events or self._lost:
                line = _line(self._revision, self._events, self._lost)
                self._events.clear()  # in the same turn of the loop as the line was made
                self._lost = 0
                for viewer in self._viewers:
                    viewer.add(line)

    def _close(self) -> None:
        self.is_over.set()
        for viewer in self._viewers:
            viewer.wakes.set()
        self._rest()


def _line(revision: Revision, events: Sequence[Event], lost: int) -> bytes:
    line: Object = {
        "revision": revision,
        "writes": [_write(e) for e in events if not is_temporary(e.key)],
        "lost": lost,
    }
    return codec.encode(line, sort_keys=False) + b"\n"


def _write(event: Event) -> list[object]:
    where = described(event.key)
    return [event.revision, kind_of(event), where["resource"], where["namespace"], where["name"]]


async def stream(call: ControlCall) -> Lines:
    """The live stream."""
    return Lines(call.control.part(Live).lines())


ROUTES: Final = (ControlRoute("GET", "/_noxu/console/stream", stream, "What happens, a line of JSON at a time."),)
