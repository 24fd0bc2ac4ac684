"""Lists: which parameter is complained of first, pages, selectors, and which state is shown."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.http.conftest import GROUP, Things

BAD_TOKEN = "invalid continue token: continue key is not valid: "
NO_VERSION = BAD_TOKEN + "server does not recognize this encoded version "
NO_NUMBER = 'strconv.ParseInt: parsing "x": invalid syntax'
NOT_WITH_CONTINUE = "specifying resource version is not allowed when using continue"


def token(**parts: Any) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": 1, "start": "a", **parts})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


WRONG: list[tuple[str, str, int, str]] = [
    ("numbers before selectors", "limit=x&labelSelector==", 400, NO_NUMBER),
    ("numbers before tokens", f"continue={token()}&limit=x", 400, NO_NUMBER),
    ("selectors before options", "labelSelector==&resourceVersionMatch=x", 400,
     "found '=', expected: !, identifier, or 'end of string'"),
    ("options before the fields that there are", "fieldSelector=spec.zzz=1&resourceVersionMatch=Exact", 422,
     'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless '
     "resourceVersion is provided"),
    ("fields before versions", "fieldSelector=spec.zzz=1&resourceVersion=x", 400,
     "field label not supported: spec.zzz"),
    ("tokens before versions", "continue=e30&resourceVersion=x", 400, NO_VERSION),
    ("tokens before the two together", "continue=e30&resourceVersion=5", 400, NO_VERSION),
    ("a good token and a version", f"continue={token()}&resourceVersion=5", 400, NOT_WITH_CONTINUE),
    ("a good token and no version", f"continue={token()}&resourceVersion=x", 400, NOT_WITH_CONTINUE),
    ("a token that is no base64", "continue=!!", 400, BAD_TOKEN + "illegal base64 data at input byte 0"),
    ("a token without a state", f"continue={token(rv=0)}", 400,
     BAD_TOKEN + "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
    ("a token without a key", f"continue={token(start='')}", 400,
     BAD_TOKEN + "encoded start key empty (version meta.k8s.io/v1)"),
    ("a token that leads elsewhere", f"continue={token(start='../a')}", 400, BAD_TOKEN + "../a"),
    ("no version", "resourceVersion=x", 400,
     'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax'),
    ("initial events of a list", "sendInitialEvents=true", 422,
     'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list'),
    ("a match without a version", "resourceVersionMatch=NotOlderThan", 422,
     'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless '
     "resourceVersion is provided"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "code", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_complained_of(things: Things, query: str, code: int, message: str) -> None:
    reply = things.ask("GET", f"?{query}")
    assert (reply.code, reply.message) == (code, message)


SELECTED: list[tuple[str, list[str]]] = [
    ("?labelSelector=app%3Da", ["a1", "a2"]),
    ("?labelSelector=app!%3Da", ["b1", "c"]),
    ("?labelSelector=app in (a,b)", ["a1", "a2", "b1"]),
    ("?labelSelector=app notin (a)", ["b1", "c"]),
    ("?labelSelector=app", ["a1", "a2", "b1"]),
    ("?labelSelector=!app", ["c"]),
    ("?labelSelector=n>1", ["a2"]),
    ("?labelSelector=app%3Da,n<2", ["a1"]),
    ("?fieldSelector=metadata.name%3Da1", ["a1"]),
    ("?fieldSelector=spec.color%3Dblue", ["b1"]),
    ("?fieldSelector=spec.color!%3Dblue", ["a1", "a2", "c"]),
    ("?fieldSelector=spec.color%3Dred&labelSelector=app", ["a1", "a2"]),
    ("?fieldSelector=metadata.namespace%3Dother", []),
]


@pytest.fixture
def labelled(things: Things) -> Things:
    things.create("a2", metadata={"labels": {"app": "a", "n": "2"}})
    things.create("a1", metadata={"labels": {"app": "a", "n": "1"}})
    things.create("c")
    things.create("b1", metadata={"labels": {"app": "b"}}, color="blue")
    return things


@pytest.mark.parametrize(("query", "expected"), SELECTED)
def test_selectors(labelled: Things, query: str, expected: list[str]) -> None:
    assert labelled.names(query.replace(" ", "%20").replace(">", "%3E").replace("<", "%3C")) == expected


def test_pages_show_one_state(things: Things) -> None:
    for name in "edcba":
        things.create(name)
    first = things.ask("GET", "?limit=2").body
    things.create("bb")
    things.ask("DELETE", "/d")
    assert first["metadata"]["remainingItemCount"] == 3
    second = things.ask("GET", f"?limit=2&continue={first['metadata']['continue']}").body
    third = things.ask("GET", f"?limit=2&continue={second['metadata']['continue']}").body
    shown = [item["metadata"]["name"] for page in (first, second, third) for item in page["items"]]
    assert shown == ["a", "b", "c", "d", "e"]
    assert {page["metadata"]["resourceVersion"] for page in (first, second, third)} == {
        first["metadata"]["resourceVersion"]
    }
    assert "continue" not in third["metadata"] or third["metadata"]["continue"] == ""


def test_how_many_remain_is_unknown_under_a_selector(labelled: Things) -> None:
    page = labelled.ask("GET", "?limit=1&labelSelector=app").body["metadata"]
    assert page["continue"]
    assert "remainingItemCount" not in page


def test_an_old_state(things: Things) -> None:
    then = things.create("a")["metadata"]["resourceVersion"]
    things.create("b")
    assert things.names(f"?resourceVersion={then}&resourceVersionMatch=Exact") == ["a"]
    assert things.names(f"?resourceVersion={then}&resourceVersionMatch=NotOlderThan") == ["a", "b"]
    assert things.names(f"?resourceVersion={then}") == ["a", "b"]
    assert things.names("?resourceVersion=0") == ["a", "b"]


def test_all_namespaces(things: Things) -> None:
    things.create("a")
    names = [item["metadata"]["name"] for item in things.ask("GET", f"/apis/{GROUP}/v1/things").body["items"]]
    assert names == ["a"]


def test_another_version(things: Things) -> None:
    things.create("a", color="blue")
    shown = things.ask("GET", f"/apis/{GROUP}/v2/namespaces/default/things").body
    assert (shown["apiVersion"], shown["kind"]) == (f"{GROUP}/v2", "ThingList")
    assert [(item["apiVersion"], item["spec"]) for item in shown["items"]] == [(f"{GROUP}/v2", {"color": "blue"})]


LIMITED: list[tuple[str, str, list[str], bool]] = [
    ("a name in a namespace", "?fieldSelector=metadata.name%3Da&limit=1", ["a"], False),
    ("a name and labels that match", "?fieldSelector=metadata.name%3Da&labelSelector=!x&limit=1", ["a"], False),
    ("a name and labels that do not", "?fieldSelector=metadata.name%3Da&labelSelector=x&limit=1", [], False),
    ("two names", "?fieldSelector=metadata.name%3Da,metadata.name%3Db&limit=1", [], False),
    ("a name that is excluded", "?fieldSelector=metadata.name!%3Da&limit=1", ["b"], True),
    ("another field", "?fieldSelector=spec.color%3Dred&limit=1", ["a"], True),
    ("a name in all namespaces", f"/apis/{GROUP}/v1/things?fieldSelector=metadata.name%3Da&limit=1", ["a"], True),
    ("a name and a namespace", f"/apis/{GROUP}/v1/things?fieldSelector=metadata.name%3Da,"
     "metadata.namespace%3Ddefault&limit=1", ["a"], False),
    ("the name of a built-in object", "/api/v1/namespaces?fieldSelector=metadata.name%3Ddefault&limit=1",
     ["default"], False),
]  # fmt: skip


@pytest.mark.parametrize(("rest", "names", "has_more"), [row[1:] for row in LIMITED], ids=[row[0] for row in LIMITED])
def test_the_list_of_a_single_object_has_one_page(things: Things, rest: str, names: list[str], has_more: bool) -> None:
    for name in "abc":
        things.create(name)
    page = things.ask("GET", rest).body
    assert [item["metadata"]["name"] for item in page["items"]] == names
    assert bool(page["metadata"].get("continue")) == has_more


def test_the_list_of_a_single_object_that_continues_another_may_have_more_pages(things: Things) -> None:
    for name in "abc":
        things.create(name)
    token = things.ask("GET", "?limit=1").body["metadata"]["continue"]
    page = things.ask("GET", f"?limit=1&fieldSelector=metadata.name%3Db&continue={token}").body
    assert [item["metadata"]["name"] for item in page["items"]] == ["b"]
    assert page["metadata"]["continue"]
