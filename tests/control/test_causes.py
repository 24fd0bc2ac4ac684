"""Why a client wrote: small recordings in, causes out."""

from __future__ import annotations

from collections.abc import Sequence

from noxu.control.causes import Cause, Happened, causes, covers, spans
from noxu.control.recorded_writes import RecordedWrite, Shown
from noxu.registry.authors import Author, Followed, WatchScope
from noxu_storage.types import Key
from tests.rows import rows

WIDGETS = WatchScope("g/widgets", None)
IN_A = WatchScope("g/widgets", "a/")
ONE = WatchScope("g/widgets", "a/", name="x")
GADGETS = WatchScope("g/gadgets", None)

X, Y, OTHER = Key("g/widgets", "a/", "x"), Key("g/widgets", "a/", "y"), Key("g/widgets", "b/", "x")
GADGET = Key("g/gadgets", "a/", "x")
LOG = [
    Happened(3, X, "ADDED"),
    Happened(4, Y, "ADDED"),
    Happened(5, OTHER, "ADDED"),
    Happened(6, X, "MODIFIED"),
    Happened(7, GADGET, "ADDED"),
    Happened(8, X, "MODIFIED"),
    Happened(9, Y, "DELETED"),
]


def write(followed: Sequence[Followed] = (), reads: Sequence[Shown] = (), revision: int = 10) -> RecordedWrite:
    author = Author(
        "update",
        user="controller",
        watching=tuple((scope, since) for scope, since, _ in followed),
        shown=tuple(upto for *_, upto in followed),
    )
    return RecordedWrite(revision, 0.0, author, tuple(reads))


def watched(revision: int) -> Cause:
    [event] = [event for event in LOG if event.revision == revision]
    return Cause("watch", revision, event.key, event.kind)


@rows(
    "name, now, previous, expected",
    [
        ("nothing was shown", write(), None, []),
        ("since the watch began", write([Followed(WIDGETS, 4, 8)]), None, [8, 6, 5]),
        ("since the previous write", write([Followed(WIDGETS, 4, 8)]), write([Followed(WIDGETS, 4, 6)]), [8]),
        ("nothing since the previous write", write([Followed(WIDGETS, 4, 8)]), write([Followed(WIDGETS, 4, 8)]), []),
        ("in a namespace", write([Followed(IN_A, 2, 8)]), None, [8, 6, 4, 3]),
        ("one object", write([Followed(ONE, 2, 8)]), None, [8, 6, 3]),
        ("two watches", write([Followed(ONE, 6, 9), Followed(GADGETS, 0, 7)]), None, [8, 7]),
        ("two watches of the same", write([Followed(IN_A, 6, 9), Followed(WIDGETS, 6, 9)]), None, [9, 8]),
        ("another watch before", write([Followed(IN_A, 6, 9)]), write([Followed(GADGETS, 0, 9)]), [9, 8]),
        ("a watch that began again", write([Followed(IN_A, 8, 9)]), write([Followed(IN_A, 2, 6)]), [9, 8]),
        ("a watch that began with all objects", write([Followed(WIDGETS, 0, 8)]), None, [8, 5, 4]),
        ("requests that overtook each other", write([Followed(WIDGETS, 0, 6)]), write([Followed(WIDGETS, 0, 8)]), []),
    ],
)
def test_the_events_of_watches(
    name: str, now: RecordedWrite, previous: RecordedWrite | None, expected: Sequence[int]
) -> None:
    assert causes(now, previous, LOG) == [watched(revision) for revision in expected], name


def test_what_was_read() -> None:
    now = write([Followed(IN_A, 6, 9)], [(GADGET, 7), (X, 8), (WIDGETS, 9)])
    assert causes(now, None, LOG) == [
        watched(9),
        Cause("list", 9, WIDGETS),
        watched(8),
        Cause("get", 7, GADGET),
    ]


def test_selectors_are_the_callers() -> None:
    now = write([Followed(IN_A._replace(labels="a=b"), 2, 9)])
    found = causes(now, None, LOG, lambda scope, event: covers(scope, event) and event.revision == 4)
    assert found == [watched(4)]


def test_spans_are_what_has_to_be_read_of_the_log() -> None:
    now = write([Followed(IN_A, 2, 8), Followed(GADGETS, 3, 3)])
    assert spans(now, write([Followed(IN_A, 2, 4)])) == [(IN_A, 4, 8)]
