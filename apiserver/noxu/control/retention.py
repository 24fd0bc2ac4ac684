"""How long history lasts: compaction removes what was superseded before the oldest revision that is needed.

Every COMPACT_EVERY seconds the newest revision is remembered. The oldest one that is needed is that of so many rounds ago as
the history has to last. For a history of ten minutes, two rounds:

    round       0     1     2     3
    newest     10    25    25    40
    needed      0     0    10    25      nothing is removed before there have been two rounds

Pins (`noxu_storage.pins`) hold compaction at single revisions, whatever this says.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from noxu.config import COMPACT_EVERY
from noxu.control.arguments import duration
from noxu.features import meant
from noxu_storage.types import Revision

NAMED: Final = {"all": math.inf, "off": 0.0}


def history_of(text: str) -> float:
    """How long history is kept, in seconds, of `30m`, `all` (infinite) or `off` (0). Raises ValueError."""
    if text in NAMED:
        return NAMED[text]
    try:
        seconds = duration(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise ValueError(f"history: {text!r} is no duration, such as 30m, and not all or off{meant(text, NAMED)}")
    return seconds


class Retention:
    """The rounds of one server."""

    def __init__(self, seconds: float = COMPACT_EVERY) -> None:
        """`seconds`: how long history lasts at least; infinite: nothing is removed."""
        self._lasts = seconds
        rounds = 1 if math.isinf(seconds) else max(math.ceil(seconds / COMPACT_EVERY), 1)
        self._rounds: deque[Revision] = deque(maxlen=rounds)
        self.shown: Revision = 0
        """The oldest revision that a client is shown as the present; 0: none."""

    def oldest_needed(self) -> Revision:
        """The revision up to which history may be removed; 0: none of it."""
        if math.isinf(self._lasts) or len(self._rounds) < (self._rounds.maxlen or 1):
            return 0
        return min(self._rounds[0], self.shown) if self.shown else self._rounds[0]

    def end_round(self, newest: Revision) -> None:
        """A round ends with this revision as the newest one."""
        self._rounds.append(newest)  # the oldest round leaves
