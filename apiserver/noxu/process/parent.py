"""The end of the process that has started this one, for `--exit-with-parent`.

Linux can send a signal when the parent ends (PR_SET_PDEATHSIG), but means the thread that has started the process: a test
runner whose worker thread ends is still there. So the kernel is asked about the process (pidfd_open); where it cannot be,
the parent's id is read every second.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Final

POLL: Final = 1.0  # seconds


async def ended(parent: int) -> None:
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
