"""The memory of an evaluation: a limit on the bytes of the values that it makes, besides the limit on its cost.

Upstream's costs do not bound them: `a + a` costs 1 for lists of any length, `replace` a fifth of the text that it
reads, and a literal of a thousand elements as much as an empty one. So every maker of a value announces its size
(`allocate`) before it makes it, and the evaluation ends when all sizes together exceed MAX_BYTES.

A value that several others share counts as often as it is written out, printed, converted or compared: [[x, x], [x, x]] is
as large as it prints, however little memory it takes.

    [1].map(a, a + a)      2 elements of 8 bytes, and a list

Sizes are those of Python's objects, roughly. Small values whose cost alone bounds their number are not announced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from noxu.cel.errors import MemoryExceeded
from noxu.cpu_budget import CpuBudget

MAX_BYTES: Final = 16 * 1024 * 1024
"""Of the values that one expression makes; the variables of a policy and its expressions share it."""

ELEMENT: Final = 8  # of a list
LIST: Final = 64
MAP: Final = 300
ENTRY: Final = 160  # of a map
MEMBER: Final = 160  # of a set that is made to compare lists
WRAPPED: Final = 64  # an element of an array in an object
PRINTED: Final = 64  # the text of an element, besides its characters
COMPARED: Final = 16  # an element that is compared or visited
TEXT: Final = 56  # besides its characters
PARSED: Final = 64  # a character of a duration or timestamp that is parsed
LONG_TEXT: Final = 1024  # characters; reading shorter ones is not announced
_WIDE: Final = 4  # bytes of a character, in a text that is not ASCII
_BYTES_PER_UNIT: Final = 256  # of processor time: about a microsecond
_BYTES_PER_CHECK: Final = 32 * 1024  # of the CPU budget


class Memory:
    """What one evaluation, or several that share it, may still allocate: `left` bytes."""

    __slots__ = ("_cpu_budget", "_next_check", "left")

    def __init__(self, cpu_budget: CpuBudget | None = None) -> None:
        self._cpu_budget = cpu_budget
        self.restore(MAX_BYTES)

    def restore(self, left: int) -> None:
        """Set the bytes that are left, once earlier values are no longer kept."""
        self.left = left
        self._next_check = 0 if self._cpu_budget is None else left - _BYTES_PER_CHECK

    @property
    def used(self) -> int:
        return MAX_BYTES - self.left

    def allocate(self, size: int) -> None:
        """Raises MemoryExceeded, and the errors of the CPU budget."""
        self.left -= size
        if self.left < self._next_check:
            self._check(size)

    def _check(self, size: int) -> None:
        if self.left < 0:
            raise MemoryExceeded(MAX_BYTES)
        if self._cpu_budget is not None:
            self._cpu_budget.check(size // _BYTES_PER_UNIT)
            self._next_check = max(self.left - _BYTES_PER_CHECK, 0)


CURRENT: Final[ContextVar[Memory | None]] = ContextVar("cel_memory", default=None)
"""The memory of the evaluation in progress."""


@contextmanager
def limited_to(memory: Memory) -> Iterator[None]:
    """Inside, `memory` is the current one."""
    token = CURRENT.set(memory)
    try:
        yield
    finally:
        CURRENT.reset(token)


def allocate(size: int) -> None:
    """Announce that many bytes to the evaluation in progress, if there is one. Raises MemoryExceeded."""
    memory = CURRENT.get()
    if memory is not None:
        memory.allocate(size)


def allocate_text(length: int, *parts: str) -> None:
    """Announce a text of that many characters, which are those of `parts`."""
    memory = CURRENT.get()
    if memory is not None:
        memory.allocate(TEXT + (length if all(map(str.isascii, parts)) else length * _WIDE))


def allocate_reading(text: str, weight: int = 1) -> None:
    """Announce that a function reads a text whose length its cost does not count. `weight`: bytes for a character."""
    if len(text) > LONG_TEXT:
        allocate(len(text) * weight)
