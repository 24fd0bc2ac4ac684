"""The marks of writes in the order of their revisions: each with what it follows from, and the clients that were shown it.

A mark is made once for all viewers. At a thousand writes a second each call of a function for each of them is a two-thousandth of
what the server does: so what can be done for many at once is. `python -m benchmarks.console_instructions` measures it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from noxu.console.controller_causes import ControllerCauses
from noxu.console.timeline import (
    RecentEvents,
    Sight,
    Sights,
    has_selectors,
    is_awaited,
    receivers,
    write_row,
)
from noxu.control.recorded_requests import Answered
from noxu.control.recorded_writes import RecordedWrite
from noxu.control.write_log import selecting, weight_of
from noxu.registry.authors import WatchScope
from noxu.registry.offload import offload
from noxu.registry.served_resources import LiveResources
from noxu.values import Json
from noxu_storage.types import Event, Key, Revision

PORTION: Final = 100  # marks that are made before other tasks run: about 1 ms
MAX_AWAITED: Final = 200  # events that a watch has not shown yet, and that are looked at again

Happened = tuple[float, Event]
"""An event, and when it happened: seconds since 1970, of the machine."""


class Awaited(NamedTuple):
    """An event that a watch has not shown yet: the lanes that `had` it, and whether selectors select it."""

    event: Event
    had: set[str]
    selected: Callable[[WatchScope, Event], bool]


class WriteMarks:
    """Makes them, a portion at a time. It knows what was before those that it is given."""

    def __init__(self, served: LiveResources) -> None:
        self.awaited: deque[Awaited] = deque(maxlen=MAX_AWAITED)
        self._recent = RecentEvents()
        self._of_controllers = ControllerCauses(served)
        self._newest = self._of_controllers.newest

    async def of(
        self,
        happened: Sequence[Happened],
        writes: Mapping[Revision, RecordedWrite],
        requests: Mapping[str, Answered],
        sights: Sights,
    ) -> list[list[Json]]:
        """Those of events, as rows. `writes`: who wrote, as far as it is known; `requests`: by Audit-Id."""
        found: list[list[Json]] = []
        place, shown = None, sights.showing(_NOWHERE)
        for first in range(0, len(happened), PORTION):
            portion = happened[first : first + PORTION]
            self._recent.add([event for _, event in portion])
            for at, event in portion:
                key, revision, _, _ = event
                self._newest[key] = revision
                write, request, because = writes.get(revision), None, _NO_CAUSES
                if write is not None:
                    author = write.author
                    request = requests.get(author.request_id)
                    if author.controller:
                        because = self._of_controllers.causes(event)
                    elif write.reads or author.watching:
                        because = self._recent.causes(write, writes.get(write.previous))
                if key[:2] != place or sights.have_names:
                    place, shown = key[:2], sights.showing(key)
                is_shown_to_all = shown.after < revision <= shown.upto
                to = shown.lanes if is_shown_to_all else await self._sent(event, shown.sights)
                found.append(write_row(event, at, write, request, because, to))
            self._of_controllers.forget()
            await asyncio.sleep(0)
        return found

    async def _sent(self, event: Event, watching: Sequence[Sight]) -> list[str]:
        """The lanes that have been sent an event; it is kept if others may still be."""
        selected = await _selected(event, watching)
        to = receivers(event, watching, selected)
        if is_awaited(event, watching, to):
            self.awaited.append(Awaited(event, set(to), selected))
        return to

    async def received(self, sights: Sights) -> list[tuple[Revision, str]]:
        """What lanes have been sent since their events were awaited."""
        found: list[tuple[Revision, str]] = []
        waiting, self.awaited = self.awaited, deque(maxlen=MAX_AWAITED)
        for number, each in enumerate(waiting, 1):
            watching = sights.showing(each.event.key).sights
            for name in receivers(each.event, watching, each.selected):
                if name not in each.had:
                    each.had.add(name)
                    found.append((each.event.revision, name))
            if is_awaited(each.event, watching, each.had):
                self.awaited.append(each)
            if not number % PORTION:
                await asyncio.sleep(0)
        return found


_NO_CAUSES: Final[list[Revision]] = []  # it is shared, and not changed
_NOWHERE: Final = Key("", "", "")


async def _selected(event: Event, watching: Sequence[Sight]) -> Callable[[WatchScope, Event], bool]:
    """Whether the selectors of watches select an event. Its object is decoded once, a large one in a thread."""
    scopes = {sight.scope for sight in watching if has_selectors(sight.scope)}
    if not scopes:
        return _never_asked
    found = await offload(weight_of(event), selecting, scopes, event)
    return lambda scope, _: scope in found


def _never_asked(scope: WatchScope, event: Event) -> bool:
    raise NotImplementedError
