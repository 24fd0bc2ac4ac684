"""A server whose objects repeat from run to run, for golden files of whole objects (`--deterministic SEED`).

The same requests, one after the other, give the same objects:

- uids, the suffixes of generated names, the addresses and node ports of services follow from the seed;
- time begins at EPOCH and stands still but for TICK with each write, so that later objects are younger;
- a request begins when the controllers have done what earlier requests require of them, so their writes have one order.

What depends on keys is random still: tokens, certificates. Clients that write at the same time have the order in which they
arrive.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from noxu.clock import AdjustableClock
from noxu.control.settling import busy, settled
from noxu.controllers.controller import Reconciler
from noxu_storage.types import Event, Revision

EPOCH: Final = datetime(2024, 1, 1, tzinfo=UTC)
TICK: Final = 1.0  # seconds; the times of objects have whole ones


def begin(clock: AdjustableClock) -> None:
    """Stand at EPOCH."""
    clock.start_at(EPOCH)
    clock.freeze()


class TickPerWrite:
    """A `LogWatcher` that lets TICK pass with each write."""

    def __init__(self, clock: AdjustableClock) -> None:
        self._clock = clock

    def deliver(self, events: Sequence[Event], revision: Revision) -> None:
        self._clock.tick(TICK * len(events))

    def end(self) -> None:
        """What was missed has no time of its own."""


def turn(controllers: Sequence[Reconciler[Any]]) -> Awaitable[None] | None:
    """Wait until the controllers have settled; None: they have."""
    return settled(controllers) if busy(controllers) else None
