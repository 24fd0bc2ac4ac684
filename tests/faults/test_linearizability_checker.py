"""The checker of linearizability finds what it is for, and nothing else."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from tests.faults.linearizability import ABSENT, Operation, Outcome, State, is_linearizable, step

pytestmark = pytest.mark.slow(every=10)

DONE, CONFLICT, EXISTS, MISSING, UNKNOWN = Outcome


def create(called: float, answered: float, value: str, revision: int) -> Operation:
    return Operation("create", called, answered, DONE, value, revision)


def update(called: float, answered: float, value: str, expected: int, revision: int) -> Operation:
    return Operation("update", called, answered, DONE, value, revision, expected)


def patch(called: float, answered: float, value: str, revision: int) -> Operation:
    return Operation("patch", called, answered, DONE, value, revision)


def read(called: float, answered: float, value: str, revision: int, read_at: int = 0) -> Operation:
    return Operation("read", called, answered, DONE, value, revision, read_at=read_at)


def missing(called: float, answered: float, action: str = "read", read_at: int = 0) -> Operation:
    return Operation(action, called, answered, MISSING, read_at=read_at)


def delete(called: float, answered: float, expected: int = 0) -> Operation:
    return Operation("delete", called, answered, DONE, expected=expected)


def lost(action: str, called: float, value: str = "", expected: int = 0) -> Operation:
    return Operation(action, called, inf, UNKNOWN, value, expected=expected)


A = create(0, 1, "a", 5)

HISTORIES = {
    "nothing happens": ([], True),
    "a read after a write shows it": ([A, read(2, 3, "a", 5)], True),
    "a read during a write shows it or not": ([A, read(0, 1, "a", 5), missing(0, 1)], True),
    "a stale read: the write was answered before": ([A, missing(2, 3)], False),
    "a stale read of the value before": ([A, update(2, 3, "b", 5, 6), read(4, 5, "a", 5)], False),
    "two concurrent reads disagree": ([A, update(2, 9, "b", 5, 6), read(3, 4, "b", 6), read(3, 4, "a", 5)], True),
    "a read goes back": ([A, update(2, 9, "b", 5, 6), read(3, 4, "b", 6), read(5, 6, "a", 5)], False),
    "a read of what was never written": ([A, read(2, 3, "z", 5)], False),
    "a read with the wrong revision": ([A, read(2, 3, "a", 6)], False),
    "a lost update: two updates of the same revision": (
        [A, update(2, 5, "b", 5, 6), update(2, 5, "c", 5, 7)], False
    ),
    "one of two updates of the same revision conflicts": (
        [A, update(2, 5, "b", 5, 6), Operation("update", 2, 5, CONFLICT, "c", expected=5)], True
    ),
    "a conflict although nothing has changed": ([A, Operation("update", 2, 5, CONFLICT, "c", expected=5)], False),
    "a conflict with a write of unknown outcome": (
        [A, lost("patch", 2, "b"), Operation("update", 3, 5, CONFLICT, "c", expected=5)], True
    ),
    "two creates succeed": ([A, create(0, 1, "b", 6)], False),
    "one of two creates fails": ([A, Operation("create", 0, 1, EXISTS, "b")], True),
    "a create fails although nothing is there": ([A, delete(2, 3), Operation("create", 4, 5, EXISTS, "b")], False),
    "a revision goes back": ([A, patch(2, 3, "b", 4)], False),
    "a revision goes back after a delete": ([A, delete(2, 3), create(4, 5, "b", 5)], False),
    "patches in any order": ([A, patch(2, 5, "b", 7), patch(2, 5, "c", 6), read(6, 7, "b", 7)], True),
    "the patch of the lower revision wins": ([A, patch(2, 5, "b", 7), patch(2, 5, "c", 6), read(6, 7, "c", 6)], False),
    "an acknowledged delete is lost": ([A, delete(2, 3), read(4, 5, "a", 5)], False),
    "a delete of another revision": ([A, delete(2, 3, expected=4)], False),
    "a list older than an answered write": ([A, patch(2, 3, "b", 7), read(4, 5, "b", 7, read_at=6)], False),
    "an empty list older than an answered write": ([A, delete(2, 3), missing(4, 5, read_at=4)], False),
    "a write below the revision of an earlier list": ([A, read(2, 3, "a", 5, read_at=9), patch(4, 5, "b", 8)], False),
    "an unknown write is seen": ([A, lost("patch", 2, "b"), read(8, 9, "b", 7)], True),
    "an unknown write is never seen": ([A, lost("patch", 2, "b"), read(8, 9, "a", 5)], True),
    "an unknown write happens late": ([A, lost("patch", 2, "b"), read(3, 4, "a", 5), read(8, 9, "b", 7)], True),
    "an unknown write is seen before its call": ([A, read(2, 3, "b", 7), lost("patch", 4, "b")], False),
    "an unknown write disappears": ([A, lost("patch", 2, "b"), read(3, 4, "b", 7), read(8, 9, "a", 5)], False),
    "an unknown write happens twice": (
        [A, lost("patch", 2, "b"), read(3, 4, "b", 6), patch(5, 6, "c", 7), read(7, 8, "b", 9)], False
    ),
    "an unknown update of a revision that is gone": (
        [A, patch(2, 3, "b", 6), lost("update", 4, "c", expected=5), read(8, 9, "c", 7)], False
    ),
    "an unknown delete is seen": ([A, lost("delete", 2), missing(3, 4)], True),
    "an unknown delete does not explain a lost create": ([missing(0, 1), A._replace(called=2, answered=3),
                                                          lost("delete", 6), missing(4, 5)], False),
    "an unknown write, and an update of its revision": (
        [A, lost("patch", 2, "b"), update(8, 9, "c", 6, 7), read(10, 11, "c", 7)], True
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history(name: str) -> None:
    history, expected = HISTORIES[name]
    for seed in range(5):
        shuffled = Random(seed).sample(history, len(history))
        assert is_linearizable(shuffled) is expected


def a_history(random: Random, count: int, clients: int) -> list[Operation]:
    """A linearizable history: each operation takes effect at a random moment between its call and its answer."""
    state, revision = ABSENT, 1
    history: list[Operation] = []
    free_at = [0.0] * clients
    for moment in range(1, count + 1):
        client = min(range(clients), key=lambda each: (free_at[each], random.random()))
        called = max(free_at[client], moment - random.uniform(0.01, clients))
        answered = moment + random.uniform(0.01, clients / 2)
        free_at[client] = answered
        exists = bool(state.value)
        action = random.choice(["read", "update", "patch", "delete", "read"]) if exists else "create"
        if called > moment:
            called = moment - 0.001
        revision += random.randrange(1, 3)
        value = f"v{moment}" if action != "read" else state.value
        expected = state.revision if action == "update" else 0
        shown = state.revision if action == "read" else 0 if action == "delete" else revision
        operation = Operation(action, called, answered, DONE, value if action != "delete" else "", shown, expected)
        after = step(state, operation)
        assert after is not None
        state = after
        history.append(operation)
    return history


@pytest.mark.parametrize("seed", range(10))
def test_a_seeded_violation_is_found_in_a_large_history(seed: int) -> None:
    random = Random(seed)
    history = a_history(random, 400, 8)
    assert is_linearizable(history)
    reads = [number for number, operation in enumerate(history) if operation.action == "read"]
    updates = [number for number, operation in enumerate(history) if operation.action == "update"]
    late = [number for number in reads if number > 100]
    stale = list(history)
    old = history[min(reads)]
    at = random.choice(late)
    stale[at] = stale[at]._replace(value=old.value, revision=old.revision)
    assert not is_linearizable(stale)
    lost_update = list(history)
    twice = random.choice(updates)
    lost_update.append(history[twice]._replace(value="other", revision=history[twice].revision + 1))
    assert not is_linearizable(lost_update)


def test_the_model_knows_a_state_by_its_revision() -> None:
    assert step(State("a", 5, 5), read(0, 1, "a", 5)) == State("a", 5, 5)
    assert step(State("a", 0, 5), read(0, 1, "a", 7)) == State("a", 7, 7)
    assert step(State("a", 0, 5), read(0, 1, "a", 5)) is None
