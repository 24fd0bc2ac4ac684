"""The past, as the handle has it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.testing.errors import UnknownKind
from noxu.testing.handle import Noxu
from noxu.testing.past import text_of
from noxu.values import Object
from tests import definitions
from tests.clocks import START, ManualClock
from tests.rows import rows

DEFINITION = definitions.widgets(definitions.version({"type": "object", "x-kubernetes-preserve-unknown-fields": True}))


def widget(**spec: Any) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "labels": {"x": "y"}},
        "spec": spec,
    }


class Past:
    """A server with a widget that was 1 and then 2 in size; its definition is gone."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.noxu = Noxu(manifests=[DEFINITION], clock=self.clock)


@pytest.fixture
def past() -> Iterator[Past]:
    past = Past()
    with past.noxu:
        yield past


def test_objects_as_they_were(past: Past) -> None:
    noxu = past.noxu
    [first] = noxu.apply(widget(size=1))
    past.clock.jump(600)
    [second] = noxu.apply(widget(size=2))
    noxu.delete("customresourcedefinitions", "widgets.example.com")
    for moment in (first, int(first["metadata"]["resourceVersion"]), "-5m", timedelta(minutes=1), START):
        view = noxu.at(moment)
        assert view.get("widgets", "a")["spec"] == {"size": 1}
        assert view.get(first)["spec"] == {"size": 1}
        assert [item["kind"] for item in view.list("Widget", labels={"x": "y"})] == ["Widget"]
        assert view.list(first, labels="x=z") == []
    assert noxu.at(second).get(second)["spec"] == {"size": 2}
    with pytest.raises(UnknownKind, match="no kind 'gadgets' is served"):
        noxu.at(first).get("gadgets", "a")
    with pytest.raises(ApiError, match="does not exist yet"):
        noxu.at(99_999).get("widgets", "a")


def test_a_snapshot_is_a_moment(past: Past) -> None:
    past.noxu.apply(widget(size=1))
    base = past.noxu.snapshot("base")
    past.noxu.apply(widget(size=2))
    assert past.noxu.at("base").get("widgets", "a")["spec"] == {"size": 1}
    assert past.noxu.at(base).get("widgets", "a")["spec"] == {"size": 1}
    assert "-  size: 1\n+  size: 2" in past.noxu.diff("base")


def test_what_changed_who_wrote_it_and_since_when(past: Past) -> None:
    noxu = past.noxu
    [first] = noxu.apply(widget(size=1, colour="red"))
    [second] = noxu.apply(widget(size=2, colour="red"))
    number = second["metadata"]["resourceVersion"]
    assert "-  size: 1\n+  size: 2" in noxu.diff(first)
    assert noxu.diff(first, second, "widgets", "a") == noxu.diff(first, "now", second)
    assert noxu.diff(second) == noxu.diff(first, "now", "configmaps") == ""
    blamed = noxu.blame("widgets", "a")
    assert blamed == noxu.blame(second)
    assert f"\n{number}  2026-01-02T03:04:05Z  noxu    size: 2\n" in blamed
    assert [line for line in noxu.blame(first, at=first).splitlines() if line.startswith(f"{number} ")] == []
    found = noxu.bisect("widgets", "a", "self.spec.size == 2")
    assert found["revision"] == int(number)
    assert noxu.bisect(first, "self.spec.size == 3")["revision"] is None
    with pytest.raises(ApiError, match="is no condition on self in CEL"):
        noxu.bisect(first, "self.")


async def test_in_coroutines() -> None:
    async with Noxu(manifests=[DEFINITION]) as noxu:
        before = (await noxu.create({**widget(), "metadata": {"name": "b"}}))["metadata"]["resourceVersion"]
        await noxu.create(widget())
        assert await noxu.at(before).list("widgets") != await noxu.at("now").list("widgets")
        assert (await noxu.at("now").get("widgets", "a"))["kind"] == "Widget"
        assert "+kind: Widget" in await noxu.diff(before)
        assert "kind: Widget" in await noxu.blame("widgets", "a")
        assert (await noxu.bisect("widgets", "a", "true"))["states"] == 1


TEXTS: list[tuple[str, Any, str]] = [
    ("a text", "-5m", "-5m"),
    ("a revision", 7, "7"),
    ("a time", START, "2026-01-02T03:04:05.678901Z"),
    ("a time without a zone", START.replace(tzinfo=None), "2026-01-02T03:04:05.678901Z"),
    ("how long ago", timedelta(minutes=1, milliseconds=5), "-60.005000s"),
    ("an object", {"metadata": {"resourceVersion": "7"}}, "7"),
    ("a snapshot", {"name": "base", "revision": 7}, "7"),
]


@rows(("moment", "text"), [row[1:] for row in TEXTS], ids=[row[0] for row in TEXTS])
def test_moments_as_texts(moment: Any, text: str) -> None:
    assert text_of(moment) == text
