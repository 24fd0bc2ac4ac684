"""How much the JSONPaths of printer columns may look at and print: for one row, and for all rows of a request.

Upstream has no limits: `..a..a` takes quadratic time, and a hundred columns that print the whole object a hundred times its
size. When the budget of a row is spent, the cells of its other columns are empty, as if their paths had failed. The same
holds for the rows after the one with which the budget of a request is spent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from noxu.cpu_budget import spend

MAX_OF_ROW: Final = 100_000
"""Values that the paths of one row may look at; 8 characters of a cell count as one."""
MAX_OF_REQUEST: Final = 2_000_000
"""The same for all rows of a request."""

_SHORT: Final = 256  # characters of a cell that does not count
_CHARACTERS: Final = 8  # that count as a value
_VALUES_PER_CHECK: Final = 1000  # of the CPU budget


class Spent(Exception):
    """The budget of the row, or of the request, does not suffice."""


class CellBudget:
    """What the rows of one request may still look at. `cut_short`: the budget of the request left cells empty."""

    __slots__ = ("_of_request", "_of_row", "_unchecked", "cut_short")

    def __init__(self) -> None:
        self._of_request = MAX_OF_REQUEST
        self._of_row = MAX_OF_ROW
        self._unchecked = 0
        self.cut_short = False

    def begin_row(self) -> None:
        self._of_row = MAX_OF_ROW

    def take(self, values: int) -> None:
        """Raises Spent, and what the CPU budget raises."""
        self._of_row -= values
        self._of_request -= values
        self._unchecked += values
        if self._of_request < 0:
            self.cut_short = True
            raise Spent
        if self._of_row < 0:
            raise Spent
        if self._unchecked > _VALUES_PER_CHECK:
            spend(self._unchecked)
            self._unchecked = 0

    def take_cell(self, text: str) -> None:
        """Account for a cell. Raises Spent."""
        if len(text) > _SHORT:
            self.take(len(text) // _CHARACTERS)

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be looked at in this row."""
        if self._of_request < 0:
            self.cut_short = True
        return self._of_request < 0 or self._of_row < 0


CURRENT: Final[ContextVar[CellBudget | None]] = ContextVar("cell_budget", default=None)
"""The budget of the request whose rows are made; without one, each row has one of its own."""


@contextmanager
def limited_by(budget: CellBudget) -> Iterator[None]:
    """Inside, `budget` is the current one."""
    token = CURRENT.set(budget)
    try:
        yield
    finally:
        CURRENT.reset(token)
