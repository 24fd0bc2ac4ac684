"""How long the failed pods of a DaemonSet stay on a node, before they are deleted: 1 s, 2 s, 4 s, … 15 minutes.

It is client-go's util/flowcontrol Backoff. A node where no pod has failed for twice the longest time begins again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

FIRST: Final = 1.0
LONGEST: Final = 900.0


class _Entry(NamedTuple):
    delay: float
    since: datetime


class FailureBackoff:
    """By what failed. It remembers only what has failed within twice the longest time."""

    def __init__(self) -> None:
        self._entries: dict[object, _Entry] = {}

    def remaining(self, key: object, now: datetime) -> float:
        """The seconds until the next one may be deleted; 0: now."""
        entry = self._entries.get(key)
        if entry is None or _is_over(entry, now):
            return 0.0
        return max(entry.delay - (now - entry.since).total_seconds(), 0.0)

    def failed(self, key: object, now: datetime) -> None:
        """One more is deleted."""
        entry = self._entries.get(key)
        again = entry is not None and not _is_over(entry, now)
        delay = min(entry.delay * 2, LONGEST) if entry is not None and again else FIRST
        self._entries = {one: found for one, found in self._entries.items() if not _is_over(found, now)}
        self._entries[key] = _Entry(delay, now)


def _is_over(entry: _Entry, now: datetime) -> bool:
    return (now - entry.since).total_seconds() > 2 * LONGEST
