"""How long a test waits for something on a machine that is slower than the author's, or that others use, too."""

from __future__ import annotations

import json
import os
import time

WRITTEN_FOR = 0.011  # seconds that `_work` takes on the machine for which the tests' figures were written


def patience(seconds: float) -> float:
    """What is promised for that machine when it is idle.

    As many times as there are programs waiting for each processor, and as this one takes longer for the same work.
    """
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return seconds * max(1.0, waiting) * max(1.0, min(_work() for _ in range(5)) / WRITTEN_FOR)


def _work() -> float:
    """The processor time of some work of the kind that a server does."""
    began = time.process_time()
    for _ in range(4):
        read = json.loads(_TEXT)
        sum(len(name) for one in read for name in one)
    return time.process_time() - began


_TEXT = json.dumps([{f"name{n % 50}": {"a": [n, str(n), None]}, "b": {"c": n / 3}} for n in range(2_000)])
