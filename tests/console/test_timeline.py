"""What is drawn of writes and requests: lanes, who was shown what, and why a client wrote."""

from __future__ import annotations

from typing import Any

from noxu.console.timeline import (
    MAX_CAUSES,
    MAX_RECENT,
    RecentEvents,
    Sight,
    Sights,
    call_marks,
    in_order,
    is_awaited,
    lane,
    mark_of,
    receivers,
    request_mark,
    request_marks,
    write_row,
)
from noxu.control.recorded_requests import RecordedRequest
from noxu.control.recorded_writes import RecordedWrite
from noxu.registry.authors import Author, WatchScope
from noxu.registry.trace import HookCall
from noxu_storage.types import Event, Key, KeyValue
from tests.rows import rows

WIDGETS = "example.com/widgets"


def event(revision: int, name: str = "a", previous: bytes | None = None, value: bytes | None = b"{}") -> Event:
    key = Key(WIDGETS, "default/", name)
    return Event(key, revision, value, None if previous is None else KeyValue(key, previous, revision - 1))


def scope(partition: str | None = None, name: str = "", collection: str = WIDGETS) -> WatchScope:
    return WatchScope(collection, partition, name)


def request(verb: str = "update", code: int = 200, agent: str = "operator/v1 (linux)", **other: Any) -> RecordedRequest:
    known = {"number": 5, "method": "PUT", "path": "/apis/x", "resource": "widgets.example.com", "subresource": ""}
    place = {"namespace": "default", "name": "a", "user": "system:anonymous"}
    return RecordedRequest(**{**known, **place, "verb": verb, "code": code, "user_agent": agent, **other})


@rows(
    "user, agent, controller, name",
    [
        ("system:anonymous", "kubectl/v1.37.0 (linux/amd64) kubernetes/abc", "", "kubectl/v1.37.0"),
        ("jane", "kubectl/v1.37.0 (linux/amd64)", "", "kubectl/v1.37.0 jane"),
        ("", "", "deployment-controller", "noxu deployment-controller"),
        ("jane", "", "", "client jane"),
        ("", "", "", "noxu"),
    ],
)
def test_a_client_has_a_lane(user: str, agent: str, controller: str, name: str) -> None:
    assert lane(user, agent, controller) == name


@rows(
    "sight, is_shown",
    [
        (Sight("a", scope(), 1, 9), True),
        (Sight("a", scope("default/"), 1, 9), True),
        (Sight("a", scope("default/", "a"), 1, 9), True),
        (Sight("a", scope("other/"), 1, 9), False),
        (Sight("a", scope("default/", "b"), 1, 9), False),
        (Sight("a", scope(), 7, 9), False),  # it began later
        (Sight("a", scope(), 1, 6), False),  # it has not come so far
        (Sight("a", scope()._replace(labels="x=y"), 1, 9), False),  # its selectors decide
    ],
)
def test_a_watch_is_sent_an_event(sight: Sight, is_shown: bool) -> None:
    shown = Sights([sight]).showing(event(7).key)
    assert receivers(event(7), shown.sights, lambda *_: False) == (["a"] if is_shown else [])


@rows(
    "sights, expected",
    [
        ([Sight("a", scope(), 1, 9), Sight("b", scope("default/"), 2, 8)], ["a", "b"]),
        ([Sight("a", scope(), 1, 9), Sight("a", scope("default/"), 2, 8)], ["a"]),  # two watches of one client
        ([Sight("a", scope(), 1, 9), Sight("b", scope("default/", "a"), 7, 8)], ["a"]),
        ([Sight("a", scope(), 1, 6), Sight("b", scope(), 1, 9)], ["b"]),
        ([Sight("a", scope()._replace(labels="x=y"), 1, 9), Sight("b", scope(), 1, 9)], ["b"]),
    ],
)
def test_each_client_that_was_sent_an_event_is_a_receiver(sights: list[Sight], expected: list[str]) -> None:
    shown = Sights(sights).showing(event(7).key)
    assert receivers(event(7), shown.sights, lambda *_: False) == expected
    if shown.after < 7 <= shown.upto:
        assert shown.lanes == expected


def causes(*, after: int, upto: int, reads: tuple[Any, ...] = (), previous: RecordedWrite | None = None) -> list[int]:
    recent = RecentEvents()
    recent.add([event(revision, "a" if revision % 2 else "b") for revision in range(2, 20)])
    author = Author("update", watching=((scope("default/", "a"), after),), shown=(upto,))
    return recent.causes(RecordedWrite(11, 0.0, author, reads), previous)


def test_a_write_follows_from_what_its_client_was_shown_since_the_previous_one() -> None:
    before = RecordedWrite(6, 0.0, Author(watching=((scope("default/", "a"), 1),), shown=(5,)))
    assert causes(after=1, upto=9) == [9, 7, 5, 3]
    assert causes(after=1, upto=9, previous=before) == [9, 7]
    assert causes(after=1, upto=20) == [9, 7, 5, 3]  # not from itself
    assert causes(after=9, upto=9, reads=((Key(WIDGETS, "default/", "b"), 4),)) == [4]
    assert len(causes(after=1, upto=9)) <= MAX_CAUSES


def test_the_events_in_which_causes_are_looked_for_are_bounded() -> None:
    recent = RecentEvents()
    for first in range(0, 5 * MAX_RECENT, 3):
        recent.add([event(first + n) for n in range(3)])
    assert len(recent._keys) == len(recent._revisions) <= 2 * MAX_RECENT
    assert recent._revisions[-1] == first + 2


OTHERS = [scope(f"team-{n}/") for n in range(1000)]


@rows(
    "shown, found",
    [
        ([scope()], 1),
        ([scope("default/"), scope("default/", "a"), scope(None, "a")], 3),
        ([scope("default/", "b"), scope(collection="apps/deployments")], 0),
        ([*OTHERS, scope()], 1),  # those of other namespaces are not looked at
    ],
)
def test_the_watches_that_may_show_an_object(shown: list[WatchScope], found: int) -> None:
    assert len(Sights(Sight("a", each, 1, 9) for each in shown).showing(event(7).key).sights) == found


@rows(
    "sight, had, awaited",
    [
        (Sight("a", scope(), 1, 6), [], True),
        (Sight("a", scope(), 1, 6), ["a"], False),
        (Sight("a", scope(), 1, 7), [], False),  # its selectors leave it out
        (Sight("a", scope(), 1, 6, is_open=False), [], False),
    ],
)
def test_an_event_is_awaited_by_watches_that_are_behind(sight: Sight, had: list[str], awaited: bool) -> None:
    assert is_awaited(event(7), [sight], had) == awaited


@rows(
    "asked, what",
    [
        (request(), "unchanged"),
        (request(code=409, reason="Conflict", message="changed"), "refused"),
        (request("get", 404), "read"),  # what is not there has been looked for, and not refused
        (request("list", 404), "read"),
        (request("get", 403), "refused"),
        (request("update", 404), "refused"),
        (request("watch", 404), "refused"),
        (request("get"), "read"),
        (request("list"), "read"),
        (request("watch", 0), "watch"),
        (request("", 200), None),
        (request("list", agent="Mozilla/5.0 (X11)"), None),
        (request("create", agent="Mozilla/5.0 (X11)"), "unchanged"),
    ],
)
def test_a_request_that_wrote_nothing_has_a_mark(asked: RecordedRequest, what: str | None) -> None:
    mark = request_mark(asked)
    assert (None if mark is None else mark["what"]) == what


def test_a_write_has_one_mark_with_its_request() -> None:
    author = Author("update", "status", "", "operator/v1 (linux)", "operator", "x")
    asked = ("x", 5, 200, "PUT", "/apis/x", 0.0, ())
    row = write_row(event(7, previous=b"{}"), 2.5, RecordedWrite(7, 1.0, author), asked, [6], ["kubectl"])
    assert mark_of(row) == {
        "key": "7", "at": 2.5, "lane": "operator/v1", "what": "write", "verb": "update", "subresource": "status",
        "resource": "widgets.example.com", "namespace": "default", "name": "a", "revision": 7, "event": "MODIFIED",
        "because": [6], "to": ["kubectl"], "id": "x", "manager": "operator",
        "code": 200, "request": 5, "method": "PUT", "path": "/apis/x", "seconds": 0.0,
    }  # fmt: skip
    refused = request(code=409, id="y", at=1.0, number=6)
    assert [each["key"] for each in in_order([mark_of(row), *request_marks([refused])])] == ["r6", "7"]


@rows(
    "revision, previous, value, verb",
    [(1, None, b"{}", "create"), (1, b"{}", b"{}", "update"), (1, b"{}", None, "delete")],
)
def test_a_write_of_unknown_authors_has_a_verb(revision: int, previous: Any, value: Any, verb: str) -> None:
    mark = mark_of(write_row(event(revision, "a", previous, value), 0.0, None, None, [], []))
    assert mark == {
        "key": "1", "at": 0.0, "lane": "noxu", "what": "write", "verb": verb, "subresource": "", "resource": "widgets.example.com",
        "namespace": "default", "name": "a", "revision": 1, "event": mark["event"], "because": [], "to": [],
    }  # fmt: skip


def test_the_calls_of_a_write_follow_it() -> None:
    caller = {
        "id": "x",
        "at": 2.0,
        "lane": "kubectl",
        "resource": "widgets",
        "namespace": "",
        "name": "a",
        "subresource": "",
    }
    [first, second] = call_marks(caller, [HookCall("tag.io", 0.1, "", 2), HookCall("small", 0.1, "too big", 0)])
    assert (first["key"], first["lane"], first["caller"], first["from"]) == ("x/1", "webhook tag.io", "x", "kubectl")
    assert (first["changes"], second["message"], second["at"]) == (2, "too big", 2.0)
