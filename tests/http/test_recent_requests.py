"""The requests of a server in a test: what clients asked, and how they were answered."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from noxu import ApiError, Noxu
from tests.testing.widgets import DEFINITION, widget

pytestmark = pytest.mark.noxu(DEFINITION)
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def send(noxu: Noxu, method: str, path: str, value: Any = None, content: str = "json") -> int:
    body = None if value is None else json.dumps(value).encode()
    headers = {"Content-Type": f"application/{content}", "User-Agent": "operator/1 (test)"}
    try:
        with urllib.request.urlopen(urllib.request.Request(noxu.url + path, body, headers, method=method)) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_what_clients_asked_in_order_with_codes(noxu: Noxu) -> None:
    noxu.create(widget("mine"))  # the test's own requests do not count
    for request in (
        ("POST", WIDGETS, widget("a")),
        ("POST", WIDGETS, widget("a")),
        ("GET", f"{WIDGETS}/a"),
        ("PATCH", f"{WIDGETS}/a/status", {"status": {"ready": True}}, "merge-patch+json"),
        ("DELETE", f"{WIDGETS}/b"),
        ("GET", "/version"),
        ("GET", f"{WIDGETS}?limit=x"),
    ):
        send(noxu, *request)
    asked = [(each.verb, each.resource, each.subresource, each.name, each.code) for each in noxu.requests()]
    assert asked == [
        ("create", "widgets.example.com", "", "a", 201),
        ("create", "widgets.example.com", "", "a", 409),
        ("get", "widgets.example.com", "", "a", 200),
        ("patch", "widgets.example.com", "status", "a", 200),
        ("delete", "widgets.example.com", "", "b", 404),
        ("", "", "", "", 200),
        ("list", "widgets.example.com", "", "", 400),
    ]


SELECTIONS: list[tuple[str, tuple[Any, ...], dict[str, Any], list[str]]] = [
    ("a kind", ("widgets",), {}, ["create a", "get a", "get b"]),
    ("another name of the kind", ("Widget.example.com",), {}, ["create a", "get a", "get b"]),
    ("a kind and a name", ("widgets", "a"), {}, ["create a", "get a"]),
    ("an object", (widget("a"),), {}, ["create a", "get a"]),
    ("a verb", (), {"verb": "get"}, ["get a", "get b", "get c"]),
    ("a code", (), {"code": 404}, ["get b", "get c"]),
    ("a namespace", (), {"namespace": "default"}, ["create a", "get a", "get b", "get c"]),
    ("a user", (), {"user": "jane"}, []),
    ("a subresource", (), {"subresource": "status"}, []),
    ("the handle", (), {"by_handle": True}, ["create mine"]),
    ("all", (), {"by_handle": None, "verb": "create"}, ["create mine", "create a"]),
]


@pytest.mark.parametrize(
    ("what", "options", "expected"), [row[1:] for row in SELECTIONS], ids=[row[0] for row in SELECTIONS]
)
def test_they_are_selected_by(what: Any, options: Any, expected: list[str], noxu: Noxu) -> None:
    noxu.create(widget("mine"))
    send(noxu, "POST", WIDGETS, widget("a"))
    for path in (f"{WIDGETS}/a", f"{WIDGETS}/b", "/api/v1/namespaces/default/pods/c"):
        send(noxu, "GET", path)
    assert [f"{each.verb} {each.name}" for each in noxu.requests(*what, **options)] == expected


def test_a_request_has_its_client_and_its_refusal(noxu: Noxu) -> None:
    send(noxu, "POST", WIDGETS, widget("a", size=9))
    [request] = noxu.requests()
    assert (request.user, request.user_agent, request.method) == ("system:anonymous", "operator/1 (test)", "POST")
    assert (request.reason, request.path) == ("Invalid", WIDGETS)
    assert str(request).startswith(f'422  POST {WIDGETS}  (operator/1)  Invalid: Widget.example.com "a" is invalid')


def test_a_watch_is_listed_while_it_runs(noxu: Noxu) -> None:
    with noxu.watch("widgets"):
        [watch] = noxu.requests(verb="watch", by_handle=True)
        assert (watch.code, watch.seconds) == (200, 0)


def test_malformed_requests_are_listed(noxu: Noxu) -> None:
    assert send(noxu, "GET", "/api/v1/namespaces/%2E%2E/pods") == 400
    [request] = noxu.requests()
    assert (request.code, request.verb) == (400, "")


def test_what_is_known_about_a_refused_write(noxu: Noxu) -> None:
    before = noxu._requests.last
    with pytest.raises(ApiError):
        noxu.create(widget("a", siez=3, low=4))
    send(noxu, "GET", f"{WIDGETS}/b")  # no write
    [refusal] = noxu._requests.refused(before)
    assert refusal.request.code == 422
    pruned, ruled = refusal.notes()
    assert (pruned.path, pruned.hint) == ("spec.siez", "did you mean spec.size?")
    assert (ruled.path, ruled.rule) == ("spec", "!has(self.low) || self.low <= self.size")
    assert ruled.values == {"has(self.low)": "true", "self.low": "4", "self.size": "1"}
    assert noxu._requests.refused(refusal.request.number) == []
