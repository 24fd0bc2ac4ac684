"""Stop a process on SIGINT (Ctrl-C), SIGTERM, SIGHUP (its terminal is closed), SIGBREAK (Windows), or with its parent.

SIGHUP has no effect if the process was started with it ignored, as by nohup(1).

The event loops of Windows have no `add_signal_handler`. There a handler of the interpreter wakes the loop: asyncio lets
signals interrupt its waiting (`signal.set_wakeup_fd`).

For `--exit-with-parent`, the process ends with the one that has started it. Linux can send a signal then
(PR_SET_PDEATHSIG), but means the thread that has started the process: a test runner whose worker thread ends is still
there. So the kernel is asked about the process (pidfd_open); where it cannot be, the parent's id is read every second.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Final

STOPPING: Final = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if name in signal.Signals.__members__
)

STUCK_FOR: Final = 10.0  # seconds: longer than any callback may take


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


def end_if_stuck(loop: asyncio.AbstractEventLoop, seconds: float = STUCK_FOR) -> None:
    """End the process if its event loop does not react to a signal for so long: what keeps it busy is a bug.

    Called in the main thread, after `on_stop`. The interpreter runs handlers of its own also while the loop is busy. On
    Windows, where `on_stop` needs them, nothing is done.
    """
    if sys.platform == "win32":
        return

    def watch(number: int, _frame: object) -> None:
        reacted = threading.Event()
        loop.call_soon_threadsafe(reacted.set)
        threading.Thread(target=end, args=(number, reacted), name="noxu-stop", daemon=True).start()

    def end(number: int, reacted: threading.Event) -> None:
        if not reacted.wait(seconds) and not loop.is_closed():
            sys.stderr.write(f"noxu: the server does not react to signal {number} for {seconds:g} s: it is ended\n")
            sys.stderr.flush()
            os._exit(128 + number)

    for number in STOPPING:
        if signal.getsignal(number) not in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(number, watch)


# -- the parent --------------------------------------------------------------------------------------------------------


POLL: Final = 1.0  # seconds


async def parent_ended(parent: int) -> None:
    """Return when the process `parent`, which was the parent of this one, has ended."""
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):  # it has ended, or the kernel is too old
            handle = os.pidfd_open(parent)
            try:
                if os.getppid() == parent:  # else the id may be that of another process by now
                    await _readable(handle)
            finally:
                os.close(handle)
    while os.getppid() == parent:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(POLL)


async def _readable(handle: int) -> None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(handle, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(handle)
