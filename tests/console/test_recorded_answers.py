"""What a page is answered from a recording."""

from __future__ import annotations

from typing import Any, Final

from noxu.console.recorded_answers import answers
from noxu.recordings.lines import ServerRecording
from noxu.values import Object

WIDGETS: Final = {"resource": "widgets.example.com", "namespace": "default", "name": "a"}
OPERATOR: Final = {"user": "system:anonymous", "agent": "operator/v1 (linux)"}


def widget(size: int, revision: str = "") -> Object:
    metadata = {"name": "a", "namespace": "default"} | ({"resourceVersion": revision} if revision else {})
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}}


def write(revision: int, value: Object | None, **changes: Any) -> Object:
    usual = {"verb": "update", "event": "MODIFIED", "subresource": "", "user": "system:anonymous", "controller": ""}
    about = {"userAgent": "kubectl/v1", "requestID": "", "why": [], "object": value}
    return {"write": {"revision": revision, **usual, **WIDGETS, **about, **changes}, "at": revision / 10}


LINES: Final = [
    {"stored": widget(1), "revision": 3, **WIDGETS},
    {"step": 1, "at": 0.1, "client": OPERATOR, "id": "w", "watch": "/apis/example.com/v1/widgets?watch=true"},
    {"step": 2, "at": 0.4, "client": {"user": "jane", "agent": "kubectl/v1"}, "id": "p", "method": "PUT",
     "path": "/apis/example.com/v1/namespaces/default/widgets/a", "expect": {"code": 200}},
    write(5, widget(2), requestID="p", user="jane"),
    {"events": [{"type": "MODIFIED", "object": widget(2, "5")}, {"type": "BOOKMARK", "object": widget(0, "5")}], "of": 1, "at": 0.5},
    write(6, None, verb="delete", event="DELETED", userAgent="operator/v1", why=[{"how": "watch", "revision": 5}, {"how": "more"}]),
    {"step": 3, "at": 0.7, "client": OPERATOR, "id": "g", "method": "POST", "path": "/api/v1/namespaces/default/configmaps",
     "expect": {"code": 409, "body": {"reason": "AlreadyExists", "message": "it exists"}}},
    {"step": 4, "at": 0.8, "client": OPERATOR, "id": "n", "method": "GET", "path": "/api/v1/namespaces/default/configmaps/b",
     "expect": {"code": 404, "body": {"reason": "NotFound", "message": "there is none"}}},
]  # fmt: skip
ANSWERS: Final = answers(ServerRecording("1970-01-01T00:00:00Z", 3, "1.0", {}, LINES))


def test_steps_have_the_events_of_their_watches() -> None:
    steps = ANSWERS["/_noxu/console/recording"]["steps"]
    assert [(step["method"], len(step.get("events", ()))) for step in steps] == [
        ("WATCH", 2),
        ("PUT", 0),
        ("POST", 0),
        ("GET", 0),
    ]


def test_a_write_has_the_object_before_and_after() -> None:
    assert ANSWERS["/_noxu/console/change?revision=5"] == {"before": widget(1), "after": widget(2)}
    assert ANSWERS["/_noxu/console/change?revision=6"] == {"before": widget(2), "after": None}


def test_marks_are_those_of_the_live_timeline() -> None:
    marks = ANSWERS["/_noxu/console/timeline"]["marks"]
    assert [(mark["lane"], mark["what"], mark.get("code", 0)) for mark in marks] == [
        ("operator/v1", "watch", 200),
        ("kubectl/v1 jane", "write", 200),
        ("operator/v1", "write", 0),
        ("operator/v1", "refused", 409),
        ("operator/v1", "read", 404),  # what is not there has been looked for, and not refused
    ]
    assert (marks[1]["to"], marks[1]["because"], marks[2]["because"]) == (["operator/v1"], [], [5])
    assert (marks[3]["reason"], marks[3]["resource"]) == ("AlreadyExists", "configmaps")


def test_objects_are_those_at_the_end() -> None:
    assert ANSWERS["/_noxu/console/kinds"]["items"] == []
    earlier = answers(ServerRecording("", 3, "1.0", {}, LINES[:4]))
    [kind] = earlier["/_noxu/console/kinds"]["items"]
    assert (kind["resource"], kind["path"], kind["custom"]) == (
        "widgets.example.com",
        "/apis/example.com/v1/widgets",
        True,
    )
    assert [row["cells"][0] for row in earlier[kind["path"]]["rows"]] == ["a"]


def test_nothing_can_be_changed() -> None:
    assert not ANSWERS["/_noxu/console/session"]["mayWrite"]
