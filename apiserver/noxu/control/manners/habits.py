"""The bad habits of clients of an API server: what each one is called, what to do instead, and how often it is tolerated.

What is tolerated are occurrences per client. A conflict is no fault by itself, nor is a write that changes nothing: of these some
are. Everything else is tolerated on request only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from noxu.control.recorded_requests import RecordedRequest


class Habit(NamedTuple):
    """A kind of bad manners. `advice` is a sentence that says what to change."""

    title: str
    advice: str
    tolerated: int = 0


class SeenHabit(NamedTuple):
    """One occurrence: `note` says what was seen, and the requests are the evidence, the oldest first."""

    habit: str
    note: str
    requests: Sequence[RecordedRequest]


HABITS: Final[Mapping[str, Habit]] = {
    "hot_loops": Habit(
        "hot loop",
        "Write an object when something has changed, not because the last write came back as an event: compare before writing, "
        "and reconcile on changes of the generation.",
    ),
    "fights": Habit(
        "fight",
        "Let one of the two own the field: leave it out of what the other one writes, or apply it server-side without force.",
    ),
    "lost_updates": Habit(
        "lost update",
        "Send the resourceVersion that was read with a PUT, so that a change by others in between is a conflict; or patch only "
        "the own fields.",
    ),
    "no_op_writes": Habit(
        "write that changes nothing",
        "Compare with the object in the cache of an informer before writing, and write only what differs.",
        tolerated=5,
    ),
    "conflicts": Habit(
        "conflict",
        "Patch or apply only the own fields, which needs no resourceVersion; or read again before the next attempt, and write "
        "from one place.",
        tolerated=5,
    ),
    "early_retries": Habit(
        "retry before Retry-After",
        "Wait as many seconds as the header Retry-After of the answer says before the same request is sent again.",
    ),
    "retries_without_backoff": Habit(
        "retries without back-off",
        "Double the wait after each failure, from some milliseconds up to a minute, with some chance in it.",
    ),
    "polling": Habit(
        "polling",
        "Watch instead of asking again and again: an informer lists once, and is told of each change.",
    ),
    "unlimited_lists": Habit(
        "large list at once",
        "List in pages (limit=500, then continue), or from the watch cache of the server (resourceVersion=0).",
    ),
    "watches_again": Habit(
        "watch that ends soon and begins again",
        "Keep a watch open for minutes (timeoutSeconds of 300 and more), and wait longer after each failure.",
    ),
    "watches_from_start": Habit(
        "watch that begins at the start again",
        "Go on from the resourceVersion of the last event or bookmark: without it, each connection sends all objects again.",
    ),
    "unknown_fields": Habit(
        "unknown field",
        "Correct the name of the field, or update the types: the server drops what the schema does not have. "
        "fieldValidation=Strict refuses it.",
    ),
    "deprecated_versions": Habit(
        "deprecated version",
        "Use the version that the warning of the server names.",
    ),
}
"""By name, the most harmful ones first."""


def tolerated(given: Mapping[str, int | None]) -> dict[str, int | None]:
    """How often each habit is tolerated, given the numbers that differ; None: always. Raises ValueError for an unknown habit."""
    from_table: dict[str, int | None] = {name: habit.tolerated for name, habit in HABITS.items()}
    for name, number in given.items():
        if name not in HABITS:
            raise ValueError(f"{name} is no habit: there are {', '.join(HABITS)}")
        if number is not None and (type(number) is not int or number < 0):
            raise ValueError(f"{name}: {number!r} is no number of occurrences")
    return from_table | dict(given)
