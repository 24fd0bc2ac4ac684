"""Decides whether concurrent operations on one object could have happened one after another, each at some moment between
its call and its answer (Herlihy and Wing, 1990). The search is that of Wing and Gong with Lowe's memory of what has been
tried, as in Porcupine: a depth-first search over the operations that may come next, which forgets nothing that failed.

An operation whose outcome is unknown (its request was cancelled, or the server was killed) may have happened at any
moment after its call, or not at all.

Example, with time from left to right: a read that is called after `update 2` was answered must not show 1.

    update 1  |-----|
    update 2          |-----|
    read             |-----------|   may show 1 or 2
    read                      |--|   must show 2
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import inf
from typing import Final, NamedTuple


class Outcome(Enum):
    DONE = "done"
    CONFLICT = "conflict"  # the object is at another revision than expected
    EXISTS = "exists"
    MISSING = "missing"
    UNKNOWN = "unknown"


class Operation(NamedTuple):
    """One request for the object. Times are in any unit; an unknown outcome has no answer, so it ends at infinity.

    `value` is what it writes, unique in its history, or what a read shows. `revision` is that of the object in the
    answer, 0 if the answer has none. `expected` is the precondition of an update or a delete, 0 for none. `read_at` is
    the revision of a list.
    """

    action: str  # create, update, patch, delete, read
    called: float
    answered: float
    outcome: Outcome
    value: str = ""
    revision: int = 0
    expected: int = 0
    read_at: int = 0


class State(NamedTuple):
    """The object, between two operations. `value` is empty while it does not exist.

    `revision` is 0 if it is unknown: a write whose outcome is unknown has no answer. It is above `floor`, the newest
    revision of the store that is known.
    """

    value: str = ""
    revision: int = 0
    floor: int = 0


ABSENT: Final = State()
MAX_STEPS: Final = 12_000_000  # a slow disk leaves many requests without an answer, and so more orders to try


class Undecided(Exception):
    """The search takes too long."""


def step(state: State, operation: Operation) -> State | None:
    """The state after an operation; None if the operation cannot happen in this state with this outcome."""
    action, outcome, revision = operation.action, operation.outcome, operation.revision
    exists = bool(state.value)
    if outcome is Outcome.EXISTS:
        return state if exists and action == "create" else None
    if outcome is Outcome.MISSING:
        if exists or action == "create" or (operation.read_at and operation.read_at < state.floor):
            return None
        return state._replace(floor=max(state.floor, operation.read_at))
    if action == "create":
        return None if exists else _written(state, operation)
    if not exists:
        return None
    if action == "read":
        if operation.value != state.value or (operation.read_at and operation.read_at < max(state.floor, revision)):
            return None
        if not _is_at(state, revision):
            return None
        return State(state.value, revision, max(state.floor, revision, operation.read_at))
    expected = operation.expected
    if outcome is Outcome.CONFLICT:
        return state if expected and state.revision != expected else None
    if expected:
        if not _is_at(state, expected):
            return None
        state = state._replace(floor=max(state.floor, expected))
    return State(floor=state.floor) if action == "delete" else _written(state, operation)


def _is_at(state: State, revision: int) -> bool:
    return state.revision == revision if state.revision else revision > state.floor


def _written(state: State, operation: Operation) -> State | None:
    if operation.outcome is Outcome.UNKNOWN:
        return State(operation.value, 0, state.floor)
    return State(operation.value, operation.revision, operation.revision) if operation.revision > state.floor else None


class _Search:
    """The operations that are not placed yet, as a list of calls and answers in the order of time, and the current state.

    An operation may come next if its call stands before the first answer in the list. `take` removes both from the list,
    `put_back` undoes that; the last one that was taken is put back first.
    """

    def __init__(self, history: Sequence[Operation], start: State) -> None:
        self.history = history
        self.events = sorted(
            [(operation.called, 0, number) for number, operation in enumerate(history)]
            + [(operation.answered, 1, number) for number, operation in enumerate(history) if operation.answered < inf]
        )
        # A place before the first event, the events, and a place behind the last one.
        self.following = [*range(1, len(self.events) + 2)]
        self.preceding = [-1, *range(len(self.events) + 1)]
        self.call_at = {number: place for place, (_, kind, number) in enumerate(self.events, 1) if not kind}
        self.answer_at = {number: place for place, (_, kind, number) in enumerate(self.events, 1) if kind}
        self.unanswered = len(self.answer_at)  # answers in the list
        self.revisions = sorted((each.revision for each in history if _has_written(each)), reverse=True)  # to come
        self.state = start
        self.done = 0  # the set of operations that were taken, as bits

    def next_ones(self) -> list[int]:
        """What may come next and leads to a state; what has a known outcome first.

        If an operation changes nothing, it is the only one to try: whatever is possible without it is possible after it.
        Writes come in the order of their revisions.
        """
        known, unknown = [], []
        place = self.following[0]
        while place <= len(self.events) and not self.events[place - 1][1]:
            number = self.events[place - 1][2]
            operation = self.history[number]
            if not _has_written(operation) or operation.revision == self.revisions[-1]:
                after = step(self.state, operation)
                if number not in self.answer_at:
                    unknown += [number] * (after is not None)
                elif after == self.state:
                    return [number]
                elif after is not None:
                    known.append(number)
            place = self.following[place]
        return known + unknown

    def take(self, number: int) -> State:
        """The state before the operation."""
        before, operation = self.state, self.history[number]
        after = step(before, operation)
        assert after is not None
        self.state, self.done = after, self.done | 1 << number
        for place in (self.call_at[number], self.answer_at.get(number)):
            if place is not None:
                self.following[self.preceding[place]] = self.following[place]
                self.preceding[self.following[place]] = self.preceding[place]
        self.unanswered -= number in self.answer_at
        if _has_written(operation):
            self.revisions.pop()
        return before

    def put_back(self, number: int, before: State) -> None:
        self.state, self.done = before, self.done & ~(1 << number)
        for place in (self.answer_at.get(number), self.call_at[number]):
            if place is not None:
                self.following[self.preceding[place]] = place
                self.preceding[self.following[place]] = place
        self.unanswered += number in self.answer_at
        if _has_written(self.history[number]):
            self.revisions.append(self.history[number].revision)


def _has_written(operation: Operation) -> bool:
    """Whether it has made a revision that is known."""
    return operation.outcome is Outcome.DONE and operation.action in ("create", "update", "patch")


def is_linearizable(history: Sequence[Operation], start: State = ABSENT) -> bool:
    """Raises Undecided after MAX_STEPS steps of the search."""
    search = _Search(history, start)
    tried: set[tuple[int, State]] = set()
    choices = [iter(search.next_ones())]
    taken: list[tuple[int, State]] = []  # with the state before
    for _ in range(MAX_STEPS):
        if not search.unanswered:
            return True
        number = next(choices[-1], None)
        if number is not None:
            taken.append((number, search.take(number)))
            reached = search.done, search.state
            choices.append(iter(() if reached in tried else search.next_ones()))
            tried.add(reached)
        elif taken:
            choices.pop()
            search.put_back(*taken.pop())
        else:
            return False
    raise Undecided(f"{len(history)} operations, {len(tried)} tried")
