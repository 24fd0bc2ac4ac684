"""Clocks whose time of day a test sets."""

from __future__ import annotations

from datetime import UTC, datetime

from noxu.apiserver.clock import SystemClock


class StoppedClock(SystemClock):
    """The time of day never changes, so nothing that depends on it depends on the speed of the machine."""

    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
