"""Bad habits in requests: what is one, and what is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from noxu.control.manners import asking
from noxu.control.manners.habits import SeenHabit
from noxu.control.recorded_requests import RecordedRequest
from tests.control.manners.recordings import asked, request
from tests.rows import rows

WATCH = "resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=300"


def at(times: Sequence[float], what: str, **more: Any) -> list[RecordedRequest]:
    """The same request at these times."""
    return asked(*(f"{time:g} {what}" for time in times), **more)


def watches(times: Sequence[float], lasting: float, query: str = WATCH) -> list[RecordedRequest]:
    return at(times, "watch", query=f"watch=true&{query}", seconds=lasting)


def every(seconds: float, number: int) -> list[float]:
    return [n * seconds for n in range(number)]


def after(*waits: float) -> list[float]:
    """Times with these seconds in between."""
    return [0.0, *accumulate(waits)]


BACKOFF = [0.0, 0.005, 0.015, 0.035, 0.075, 0.155]

ROWS: list[tuple[str, Callable[[Sequence[RecordedRequest]], Any], list[RecordedRequest], list[str]]] = [
    (
        "a conflict",
        asking.conflicts,
        asked("0 update a 409 Conflict"),
        ["widgets.example.com default/a was changed by others since it was read"],
    ),
    ("an object that exists is no conflict", asking.conflicts, asked("0 create a 409 AlreadyExists"), []),
    ("a write that succeeds is no conflict", asking.conflicts, asked("0 update a"), []),
    (
        "a retry before Retry-After",
        asking.early_retries,
        [request("0 list 429", retry_after=2), request("0.5 list")],
        ["repeated after 500 ms, Retry-After was 2 s"],
    ),
    ("a retry after it", asking.early_retries, [request("0 list 429", retry_after=2), request("2 list")], []),
    ("a retry a bit early", asking.early_retries, [request("0 list 429", retry_after=2), request("1.9 list")], []),
    ("another request meanwhile", asking.early_retries, [request("0 list 429", retry_after=2), request("1 get a")], []),
    (
        "another object meanwhile",
        asking.early_retries,
        [request("0 create a 429", retry_after=2), request("1 create b")],
        [],
    ),
    (
        "the answer counts, not the request",
        asking.early_retries,
        [request("0 list 503", retry_after=1, seconds=5.0), request("5.5 list")],
        ["repeated after 500 ms, Retry-After was 1 s"],
    ),
    (
        "a request in parallel is no retry",
        asking.early_retries,
        [request("0 list 503", retry_after=1, seconds=5.0), request("3 list")],
        [],
    ),
    (
        "retries at the same pace",
        asking.retries_without_backoff,
        at(every(0.01, 5), "create a 500 InternalError"),
        ["4 times again after 500 InternalError, every 10 ms"],
    ),
    (
        "retries without a pause",
        asking.retries_without_backoff,
        at(every(0.001, 9), "create a 422 Invalid"),
        ["8 times again after 422 Invalid, every 1 ms"],
    ),
    (
        "retries without a pause on a busy machine",
        asking.retries_without_backoff,
        at(after(0.002, 0.03, 0.005, 0.001, 0.09, 0.003), "create a 500 InternalError"),
        ["6 times again after 500 InternalError, every 4 ms"],
    ),
    (
        "retries without a pause on a very busy machine",
        asking.retries_without_backoff,
        at(after(0.02, 0.05, 0.01, 0.3, 0.03, 0.02), "create a 500 InternalError"),
        ["6 times again after 500 InternalError, every 25 ms"],
    ),
    (
        "the back-off of client-go on a busy machine",
        asking.retries_without_backoff,
        at(after(0.075, 0.080, 0.090, 0.110, 0.150, 0.230), "create a 500"),
        [],
    ),
    (
        "a back-off whose first wait was long on a busy machine",
        asking.retries_without_backoff,
        at(after(0.075, 0.01, 0.02, 0.04, 0.08, 0.16), "create a 500"),
        [],
    ),
    (
        "the back-off of client-go on a busy machine, and an event in between",
        asking.retries_without_backoff,
        at(after(0.035, 0.001, 0.025, 0.02, 0.04, 0.08), "create a 500"),
        [],
    ),
    (
        "waits that grow slowly",
        asking.retries_without_backoff,
        at(after(0.01, 0.02, 0.03, 0.04, 0.05, 0.06), "create a 500"),
        [],
    ),
    ("the back-off of client-go", asking.retries_without_backoff, at(BACKOFF, "create a 500"), []),
    ("a GET that finds nothing is no failure", asking.retries_without_backoff, at(every(0.01, 9), "get a 404"), []),
    ("client-go's retries on conflict", asking.retries_without_backoff, at(every(0.01, 5), "update a 409 Conflict"), []),
    ("a few retries", asking.retries_without_backoff, at(every(0.01, 4), "create a 500"), []),
    ("a success ends a row", asking.retries_without_backoff, at(every(0.01, 5), "create a 201"), []),
    ("seconds in between", asking.retries_without_backoff, at(every(2, 9), "create a 500"), []),
    (
        "different objects are no retries",
        asking.retries_without_backoff,
        asked(*(f"{n / 100} create x{n} 500" for n in range(9))),
        [],
    ),
    ("a GET every second", asking.polling, at(every(1, 12), "get a"), ["12 times, every 1 s"]),
    ("a GET that finds nothing", asking.polling, at(every(0.1, 10), "get a 404"), ["10 times, every 100 ms"]),
    ("a LIST every five seconds", asking.polling, at(every(5, 10), "list"), ["10 times, every 5 s"]),
    (
        "a GET every second, and once late",
        asking.polling,
        at([*every(1, 8), 9.5, 10.5], "get a"),
        ["10 times, every 1 s"],
    ),
    ("nine times", asking.polling, at(every(1, 9), "get a"), []),
    ("every ten minutes", asking.polling, at(every(600, 12), "list"), []),
    ("irregular", asking.polling, at([0, 1, 5, 5.5, 9, 20, 21, 28, 30, 31, 40], "get a"), []),
    (
        "a read before each write",
        asking.polling,
        [each for n in range(12) for each in asked(f"{n} get a", f"{n}.1 update a")],
        [],
    ),
    ("a Lease", asking.polling, at(every(2, 12), "get a", resource="leases.coordination.k8s.io"), []),
    ("pages", asking.polling, at(every(1, 12), "list", query="limit=500&continue=abc"), []),
    ("a large list", asking.unlimited_lists, asked("0 list", objects=2000), ["2000 objects in one answer"]),
    ("a small list", asking.unlimited_lists, asked("0 list", objects=500), []),
    ("a large list in pages", asking.unlimited_lists, asked("0 list", objects=2000, query="limit=500"), []),
    ("the next page", asking.unlimited_lists, asked("0 list", objects=2000, query="limit=0&continue=x"), []),
    ("from the cache", asking.unlimited_lists, asked("0 list", objects=2000, query="resourceVersion=0"), []),
    ("a limit of 0 is none", asking.unlimited_lists, asked("0 list", objects=501, query="limit=0"), ["501 objects in one answer"]),
    ("a list that is refused", asking.unlimited_lists, asked("0 list 403", objects=2000), []),
    (
        "a watch that ends every second",
        asking.watches_again,
        watches(every(1, 7), 0.5),
        ["6 times again in 5 s, after lasting 500 ms"],
    ),
    ("a watch that is renewed after minutes", asking.watches_again, watches(every(300, 9), 299), []),
    ("several watches at once", asking.watches_again, watches([0.0] * 9, 0.0), []),
    ("a watch again, a few times", asking.watches_again, watches(every(1, 4), 0.5), []),
    ("another resource version is the same watch", asking.watches_again, [
        *watches(every(1, 3), 0.5, "resourceVersion=1"), *watches([3.0, 4.0, 5.0], 0.5, "resourceVersion=2&timeoutSeconds=9")
    ], ["5 times again in 4 s, after lasting 500 ms"]),
    ("other labels are another watch", asking.watches_again, [
        *watches(every(1, 3), 0.5, "labelSelector=a"), *watches([3.0, 4.0, 5.0], 0.5, "labelSelector=b")
    ], []),
    ("a watch from the start", asking.watches_from_start, watches(every(60, 4), 30, ""), ["3 times again from the start"]),
    ("a watch from revision 0", asking.watches_from_start, watches(every(60, 3), 30, "resourceVersion=0"), [
        "2 times again from the start"
    ]),
    ("a program that is started again", asking.watches_from_start, watches(every(60, 2), 30, ""), []),
    ("a watch that goes on", asking.watches_from_start, watches(every(60, 9), 30), []),
    (
        "a field that is unknown",
        asking.unknown_fields,
        asked("0 create a 201", "1 update a", unknown=("spec.sise",)),
        ["spec.sise of widgets.example.com, 2 times"],
    ),
    ("known fields", asking.unknown_fields, asked("0 create a 201"), []),
    (
        "a deprecated version",
        asking.deprecated_versions,
        asked("0 get a", deprecation="example.com/v1 Widget is deprecated"),
        ["example.com/v1 Widget is deprecated, once"],
    ),
    ("a version in use", asking.deprecated_versions, asked("0 get a"), []),
]  # fmt: skip


@rows("name, habit, requests, notes", ROWS, ids=[row[0] for row in ROWS])
def test_what_is_seen(
    name: str,
    habit: Callable[[Sequence[RecordedRequest]], Any],
    requests: list[RecordedRequest],
    notes: list[str],
) -> None:
    seen: list[SeenHabit] = list(habit(requests))
    assert [each.note for each in seen] == notes
    assert all(each.requests and set(map(id, each.requests)) <= set(map(id, requests)) for each in seen), name


def test_every_habit_of_requests_is_in_a_table() -> None:
    assert {row[1] for row in ROWS} == set(asking.HABITS_OF_REQUESTS)


def test_without_requests_nothing_is_seen() -> None:
    assert [each for habit in asking.HABITS_OF_REQUESTS for each in habit([])] == []
