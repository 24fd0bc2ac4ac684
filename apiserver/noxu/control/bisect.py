"""When a condition on an object became true: its value along the states of the object, of which the changes are kept.

Nothing says that a condition stays true once it is, so all states are evaluated, in their order, instead of halving them:

    revision      12     40     57     71        changes: false at 12, true at 40, false at 57, true at 71
    self.ok       false  true   false  true      first: 40

Where an expression has no value, because a field is missing or has another type, the condition is not met, as for
`noxu.wait` and `kubectl wait`; the reason is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from noxu import cel
from noxu.control.object_states import ObjectState
from noxu_storage.types import Revision

MAX_CHANGES: Final = 1_000
"""Changes of a condition that are kept: the first ones."""


class ConditionChange(NamedTuple):
    """A revision at which a condition began to be met, or no longer was. `why`: why it had no value, "" if it had one."""

    revision: Revision
    is_met: bool
    why: str


class ConditionHistory:
    """The changes of one condition. Raises ValueError for a text that is no condition."""

    def __init__(self, condition: str) -> None:
        self._condition = cel.AwaitedCondition(condition)
        self.changes: list[ConditionChange] = []
        self.states = 0
        """How many states were evaluated."""

    @property
    def first(self) -> Revision | None:
        """The first revision at which it was met, None if it never was."""
        return next((change.revision for change in self.changes if change.is_met), None)

    def add(self, states: Iterable[ObjectState]) -> None:
        """Evaluate the next states. Takes long, at worst the time of one expression for each state."""
        for revision, value in states:
            self.states += 1
            outcome = self._condition.evaluate(value)
            is_met = not outcome.error and outcome.value is True
            why = outcome.error or ("" if isinstance(outcome.value, bool) else "its value is neither true nor false")
            before = self.changes[-1].is_met if self.changes else None
            if is_met is not before and len(self.changes) < MAX_CHANGES:
                self.changes.append(ConditionChange(revision, is_met, why))
