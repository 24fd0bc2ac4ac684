"""When Python collects garbage: never while a process starts, seldom while it works, and not at its end.

A collection visits all containers that are not frozen, and stops the thread. A start makes hardly any garbage: modules
and stored objects live until the end of the process. Measured, in processor time: `noxu serve` until it is ready 0.18 s
instead of 0.21 (`python -m benchmarks.start`); `noxu validate` of 10,000 objects four fifths, and another eighth less
because its memory is not freed at the end, object by object.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from typing import Final, NoReturn

OF_A_SERVER: Final = (20_000, 1, 100)
"""For gc.set_threshold. A decoded object consists of hundreds of containers, which are hardly ever part of a cycle.

A collection takes half a microsecond for each object that it visits, and stops the event loop: one of generation 1 visits
three times 20,000 at most. One of generation 2, which visits all, waits for four million new objects.
"""
_SELDOM: Final = (2_000_000, 20, 20)


def postpone() -> None:
    """Collect nothing until `begin`."""
    gc.disable()


def begin(thresholds: tuple[int, int, int] | None = None) -> None:
    """Collect garbage from now on, but never what there is now."""
    if thresholds is not None:
        gc.set_threshold(*thresholds)
    gc.freeze()
    gc.enable()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Collect nothing, and never look for garbage in what is made meanwhile."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def seldom_collected(*, ends: bool) -> Iterator[None]:
    """Collect garbage seldom. `ends`: the process ends afterwards, so that nothing is collected then."""
    before = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        if not ends:
            gc.set_threshold(*before)
            gc.unfreeze()


def end_process(status: int) -> NoReturn:
    """End the process with an exit status, without freeing its memory. What was written is flushed, if that is possible."""
    if "logging" in sys.modules:
        sys.modules["logging"].shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or there is none
            stream.flush()
    os._exit(status)
