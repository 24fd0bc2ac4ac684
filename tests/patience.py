"""How long a test waits for something on a machine that others use, too."""

from __future__ import annotations

import os


def patience(seconds: float) -> float:
    """What is promised for an idle machine, as many times as there are programs waiting for each processor."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
