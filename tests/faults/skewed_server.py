"""`noxu` with another time of day: `python -m tests.faults.skewed_server SECONDS serve …`; SECONDS are added to the time.

Only what the server writes and compares has that time (its `Clock`). That of the libraries, which set deadlines by it and
have them checked outside of Python, stays.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from noxu.cli import command
from noxu.clock import SystemClock


def skew(seconds: float) -> None:
    """Change the time of this process."""

    def now(_: SystemClock) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=seconds)

    SystemClock.now = now  # type: ignore[method-assign]


if __name__ == "__main__":
    skew(float(sys.argv.pop(1)))
    command()
