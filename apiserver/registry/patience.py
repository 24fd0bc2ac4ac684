"""How long the rules of an object may run: CEL's costs bound that only roughly.

It is the time of the thread that counts, not that of the wall: a busy machine refuses nothing that an idle one takes.
"""

from __future__ import annotations

import sys
from time import thread_time
from typing import Final

from apiserver.cel.errors import Interrupted

LONGEST: Final = 1.0  # seconds; no rule runs longer
IN_THE_LOOP: Final = 0.02  # seconds for all rules of an object that is worked on in the event loop


AHEAD: Final = 20_000  # units of cost that are done at once; one takes about a microsecond


class TakesLong(Exception):
    """This is not for the event loop."""


class Patience:
    """For a thread of its own: a rule that takes too long ends with an error."""

    def __init__(self) -> None:
        self._end = 0.0

    def begin(self) -> None:
        self._end = thread_time() + LONGEST

    def check(self, ahead: int = 0) -> None:
        if thread_time() > self._end:
            raise Interrupted

    def rest(self) -> None:
        """There is time enough."""

    def load(self, module: str) -> None:
        """There is time enough."""


class Impatience:
    """For the event loop: what takes long is to be done again, elsewhere."""

    def __init__(self) -> None:
        self._end = 0.0

    def begin(self) -> None:
        """All rules share the time, which starts when somebody asks."""

    def check(self, ahead: int = 0) -> None:
        if ahead > AHEAD:
            raise TakesLong
        now = thread_time()
        self._end = self._end or now + IN_THE_LOOP
        if now > self._end:
            raise TakesLong

    def rest(self) -> None:
        self.check()

    def load(self, module: str) -> None:
        """To import what is large takes long."""
        if module not in sys.modules:
            raise TakesLong
