"""The signals that stop a process: SIGINT (Ctrl-C), SIGTERM, SIGHUP (its terminal is closed), and on Windows SIGBREAK.

SIGHUP does not, if the process was started with it ignored: that is what nohup(1) does.

The event loops of Windows have no `add_signal_handler`. There a handler of the interpreter wakes the loop: asyncio lets
signals interrupt its waiting (`signal.set_wakeup_fd`).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Final

STOPPING: Final = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if name in signal.Signals.__members__
)


class Interrupted(Exception):
    """A signal has ended the process before its work was done."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number


def on_stop(loop: asyncio.AbstractEventLoop, react: Callable[[int], object]) -> None:
    """Call `react` in the event loop with the number of each signal. Called in the main thread."""
    for number in STOPPING:
        if number.name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN:
            continue
        try:
            loop.add_signal_handler(number, react, int(number))
        except NotImplementedError:
            signal.signal(number, lambda number, _frame: loop.call_soon_threadsafe(react, number))
