"""What a call costs: the processor time of this thread."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(function: Callable[[], object], *, calls: int, rounds: int) -> float:
    """The processor time of one call: the mean of `calls`, the best of several rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(calls):
            function()
        best = min(best, (time.thread_time() - start) / calls)
    return best
