"""Object time passes while a step waits: as fast as the run is idle, from one due time to the next.

A simulated pod that is ready ten seconds after its start is ready at once, if nothing else happens meanwhile. The program under
test has its own clock, so what it waits for by itself takes as long as it takes. At most as much object time passes as the step
may wait, so that nothing else of a cluster, such as the end of old events, happens because of it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager
from typing import Final

from noxu.api.errors import ApiError
from noxu.exploration.meanwhile import meanwhile
from noxu.testing.errors import Stopped
from noxu.testing.handle import Noxu

QUIET: Final = 0.1  # seconds without a request, after which time passes
LOOK_EVERY: Final = 0.02  # seconds
PASSES_WITHIN: Final = 20.0  # seconds, when nothing is waited for meanwhile: a controller may be busy


def passing_time(noxu: Noxu, at_most: float) -> AbstractContextManager[None]:
    """Let up to `at_most` seconds of object time pass while the block runs."""
    return meanwhile("time", lambda over: _pass_until(noxu, at_most, at_most, over))


def pass_time(noxu: Noxu, seconds: float) -> None:
    """Let object time pass, from one due time to the next, until nothing is due within that."""
    with contextlib.suppress(Stopped, CancelledError):  # the exploration is ended
        _pass_until(noxu, seconds, min(seconds, PASSES_WITHIN), threading.Event(), ends_early=True)


def _pass_until(noxu: Noxu, left: float, within: float, over: threading.Event, *, ends_early: bool = False) -> None:
    until = time.monotonic() + within
    while left > 0 and time.monotonic() < until and not over.wait(LOOK_EVERY):
        with contextlib.suppress(ApiError):  # it is busy: time passes by itself, up to the same moment
            noxu.idle(QUIET, QUIET * 2)
            state = noxu.clock.state()
            if ends_early and state.due is None:
                return
            if over.is_set() or state.due is None:
                continue
            step = max((state.due - state.now).total_seconds(), 0.0) + 0.001
            if step > left:
                return
            noxu.clock.advance(step)
            left -= step
