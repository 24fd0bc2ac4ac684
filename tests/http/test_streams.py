"""The validators of watch streams: a good stream passes, and each promise that is broken is noticed by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.http.streams import VALIDATORS, Seen, Step, Watched, judge, violations
from tests.rows import rows

RED, GREEN = {"color": "red"}, {"color": "green"}
A, B, C = ("ns", "a"), ("ns", "b"), ("ns", "c")

HISTORY = [
    Step(2, A, None, RED),
    Step(3, B, None, RED),
    Step(4, A, RED, GREEN),
    Step(5, B, RED, RED | {"n": 1}),
    Step(6, A, GREEN, RED),
    Step(6, C, None, RED),
    Step(7, B, RED | {"n": 1}, None),
    Step(8, A, RED, RED | {"n": 2}),
]


def mark(revision: int) -> Seen:
    return Seen("BOOKMARK", revision, ("", ""), {})


GOOD = [
    Seen("DELETED", 4, A, RED),
    mark(4),
    Seen("MODIFIED", 5, B, RED | {"n": 1}),
    Seen("ADDED", 6, A, RED),
    Seen("ADDED", 6, C, RED),
    Seen("DELETED", 7, B, RED | {"n": 1}),
    Seen("MODIFIED", 8, A, RED | {"n": 2}),
    mark(9),
]
INITIAL = [Seen("ADDED", 2, A, RED), Seen("ADDED", 3, B, RED)]


def watched(events: list[Seen], initial: list[Seen] = INITIAL, upto: int = 9) -> Watched:
    return Watched(3, events, initial, lambda place, value: value["color"] == "red", upto)


def changed(n: int, **fields: Any) -> list[Seen]:
    return [*GOOD[:n], GOOD[n]._replace(**fields), *GOOD[n + 1 :]]


def without(*numbers: int) -> list[Seen]:
    return [event for n, event in enumerate(GOOD) if n not in numbers]


def test_a_good_stream_breaks_no_promise() -> None:
    judge(watched(GOOD), HISTORY)
    judge(watched([], upto=0), HISTORY)
    judge(watched(GOOD[:3], upto=0), HISTORY)


BROKEN: dict[str, tuple[str, Callable[[], Watched]]] = {
    "an object that was not asked for": ("filterable", lambda: watched(changed(3, object=GREEN))),
    "an initial object that was not asked for": (
        "filterable",
        lambda: watched(GOOD, [INITIAL[0]._replace(object=GREEN), INITIAL[1]]),
    ),
    "two events the wrong way round": ("ordered", lambda: watched([*GOOD[:5], GOOD[6], GOOD[5], GOOD[7]])),
    "an event from before the start": ("ordered", lambda: watched([Seen("ADDED", 3, B, RED), *GOOD])),
    "an event twice": ("unique", lambda: watched([*GOOD[:3], *GOOD[2:]])),
    "an initial object twice": ("unique", lambda: watched(GOOD, [*INITIAL, INITIAL[0]])),
    "half of a commit": ("atomic", lambda: watched(without(4))),
    "a bookmark in a commit": ("bookmarkable", lambda: watched([*GOOD[:4], mark(6), *GOOD[4:]])),
    "a bookmark ahead of events": ("bookmarkable", lambda: watched(changed(1, revision=5))),
    "the first event missing": ("resumable", lambda: watched(without(0))),
    "MODIFIED for what was not there": ("is_create", lambda: watched(changed(3, type="MODIFIED"))),
    "ADDED for what was there": ("is_create", lambda: watched(changed(2, type="ADDED"))),
    "DELETED for what was not there": ("is_create", lambda: watched(changed(4, type="DELETED"))),
    "an event missing": ("reliable", lambda: watched(without(2))),
    "the last event missing": ("reliable", lambda: watched(GOOD[:6])),
    "an initial object missing": ("reliable", lambda: watched(GOOD, INITIAL[:1])),
    "an old initial object": ("reliable", lambda: watched(GOOD, [INITIAL[0], INITIAL[1]._replace(object=RED | {"n": 0})])),
    "another object than was there": ("previous_value", lambda: watched(changed(5, object=RED))),
}  # fmt: skip


@rows("broken", BROKEN)
def test_a_broken_promise_is_noticed(broken: str) -> None:
    name, stream = BROKEN[broken]
    assert name in violations(stream(), HISTORY)


def test_every_promise_is_broken_by_some_stream() -> None:
    assert {name for name, _ in BROKEN.values()} == {validator.__name__ for validator in VALIDATORS}
    assert len(VALIDATORS) == 9
