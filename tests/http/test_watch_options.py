"""What a watch asks for, and in which order it is complained of."""

from __future__ import annotations

import random

import pytest

from noxu.http import watch
from noxu.http.watch import lifetime
from tests.http.conftest import GROUP, THINGS, Things

LIST_ONLY = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
UNMATCHED = "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
LEGACY = f"/apis/{GROUP}/v1/watch/{THINGS.removeprefix(f'/apis/{GROUP}/v1/')}"
REFUSED = [
    ("options before the form of the stream", THINGS, "watch=1&sendInitialEvents=true", "application/yaml", 422, "Forbidden: sendInitial"),
    ("its version as well", THINGS, "watch=1&resourceVersion=x", "application/yaml", 500, "strconv.ParseUint"),
    ("a form that nothing has before options", THINGS, "watch=1&sendInitialEvents=true", "text/plain", 406, "only the following"),
    ("then the form of the stream", THINGS, "watch=1", "application/yaml", 406, "application/json;stream=watch"),
    ("a path that watches without saying it has a list's options", LEGACY, "sendInitialEvents=true", "application/json", 422, LIST_ONLY),
    ("and if it says it, a watch's", LEGACY, "watch=1&sendInitialEvents=true", "application/json", 422, UNMATCHED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "query", "accept", "code", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_is_complained_of(things: Things, path: str, query: str, accept: str, code: int, message: str) -> None:
    reply = things.ask("GET", f"{path}?{query}&timeoutSeconds=1", Accept=accept)
    assert code == reply.code
    assert message in str(reply.body)


STREAMS = [
    ("a path that watches", LEGACY, "", "application/json", ["ADDED"]),
    ("with bookmarks, but none at the end of the initial events", LEGACY, "&allowWatchBookmarks=1", "application/json", ["ADDED"]),
    ("a watch that says it", THINGS, "&watch=1&allowWatchBookmarks=1", "application/json", ["ADDED", "BOOKMARK"]),
    ("objects as lists, which they are not", THINGS, "&watch=1",
     "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", []),
    ("no time at all", THINGS, "&watch=1&timeoutSeconds=-1", "application/json", []),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "query", "accept", "types"), [row[1:] for row in STREAMS], ids=[row[0] for row in STREAMS]
)
def test_what_a_stream_begins_with(
    things: Things, path: str, query: str, accept: str, types: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "BOOKMARK_AFTER_INITIAL", 60.0)
    things.create("a")
    query = query if "timeoutSeconds" in query else f"{query}&timeoutSeconds=1"
    reply = things.exchange("GET", f"{path}?{query[1:]}", Accept=accept)
    assert [line.split(b'"')[3].decode() for line in reply.splitlines()] == types


def test_a_watch_without_timeout_lasts_for_a_random_time_and_leaves_the_random_module_alone() -> None:
    random.seed(1)
    before = random.getstate()
    lifetimes = {lifetime(None, 1800) for _ in range(20)}
    assert len(lifetimes) > 1
    assert all(1800 <= each < 3600 for each in lifetimes)
    assert random.getstate() == before, "Programs that run the server in-process seed this generator."


@pytest.mark.parametrize(
    ("query", "types"),
    [
        ("", ["ADDED", "BOOKMARK", "BOOKMARK"]),
        ("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", ["ADDED", "BOOKMARK", "BOOKMARK"]),
        ("&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", []),
        ("&resourceVersion={revision}", []),
    ],
)
@pytest.mark.slow(every=4)
def test_a_short_watch_has_a_second_bookmark_only_after_initial_events(
    things: Things, query: str, types: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As upstream, whose usual bookmarks come a minute after the start and 2 s before the end."""
    monkeypatch.setattr(watch, "BOOKMARK_AFTER_INITIAL", 0.0)
    things.create("a")
    revision = things.ask("GET", THINGS).body["metadata"]["resourceVersion"]
    more = query.format(revision=revision)
    reply = things.exchange("GET", f"{THINGS}?watch=1&allowWatchBookmarks=1&timeoutSeconds=2{more}")
    assert [line.split(b'"')[3].decode() for line in reply.splitlines()] == types
