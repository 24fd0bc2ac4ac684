"""Clocks whose time of day a test sets."""

from __future__ import annotations

from datetime import UTC, datetime

from noxu.apiserver.clock import SystemClock


class StoppedClock(SystemClock):
    """Every moment has the same time of day: what the order of times decides does not depend on the machine's speed."""

    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
