"""A server whose objects repeat from run to run, for golden files of whole objects (`--deterministic SEED`).

The same requests, one after the other, give the same objects:

- uids, the suffixes of generated names, the addresses and node ports of services follow from the seed;
- time begins at a fixed date and stands still but for TICK with each write, so that later objects are younger;
- a request begins when the controllers have done what earlier requests require of them, so their writes have one order.

What depends on keys is random still: tokens, certificates. Clients that write at the same time have the order in which they
arrive.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final

from noxu.clock import AdjustableClock, Clock
from noxu.control.settling import busy, settled
from noxu.control_plane import ControlPlane
from noxu_storage.types import FIRST, Event, Revision

TICK: Final = 1.0  # seconds; the times of objects have whole ones


class TickPerWrite:
    """A `LogWatcher` that lets TICK pass with each revision, those before it was made included."""

    def __init__(self, clock: AdjustableClock) -> None:
        self._clock = clock
        self._seen: Revision = FIRST

    def deliver(self, events: Sequence[Event], revision: Revision) -> None:
        # of the revision, not of the number of events: when the log is followed from does not matter
        seen, self._seen = self._seen, revision
        self._clock.tick(TICK * (revision - seen))

    def end(self) -> None:
        """What was missed has no time of its own."""


async def begin(plane: ControlPlane) -> None:
    """Let time pass with writes, from the state in which the controllers have created their first objects."""
    await settled(plane.all_controllers)
    clock: Clock = plane.clock
    if isinstance(clock, AdjustableClock):
        plane.cache.watchers[TickPerWrite(clock)] = None


def until_settled(plane: ControlPlane) -> Awaitable[None] | None:
    """What a request waits for: the controllers have settled. None: they have."""
    return settled(plane.all_controllers) if busy(plane.all_controllers) else None
