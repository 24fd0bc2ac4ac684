"""Round trips of the corpus: what schemas explain, and what they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import corpus, round_trips
from noxu.upgrades.round_trips import RoundTrip
from tests.definitions import version, widgets


class TwoVersions:
    """A definition of the corpus whose v2 has forgotten the colour."""

    name = "widgets.example.com"
    file = Path("widgets.yaml")
    has_conversion_webhook = False

    @property
    def value(self) -> dict:
        size = {"size": {"type": "integer", "default": 1}}
        properties = {**size, "colour": {"type": "string"}}
        first, second = (
            {"type": "object", "properties": {"spec": {"type": "object", "required": list(each), "properties": each}}}
            for each in (properties, size)
        )
        return widgets(version(first), {**version(second), "name": "v2", "storage": False})


def test_what_a_schema_prunes_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "definitions", lambda: [TwoVersions()])
    assert [(pair.way, len(pair.changed), list(pair.unexplained)) for pair in round_trips.pairs([], 2)] == [
        ("v1 → v2 → v1", 2, []),
        ("v2 → v1 → v2", 0, []),
    ]
    assert list(round_trips.pairs(["gears"], 2)) == []


def test_what_a_schema_does_not_prune_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def losing(value: dict, *_: object) -> RoundTrip:
        return RoundTrip(value, [("spec.size", 1, None)])

    monkeypatch.setattr(corpus, "definitions", lambda: [TwoVersions()])
    monkeypatch.setattr(round_trips, "round_trip", losing)
    assert [len(pair.unexplained) for pair in round_trips.pairs([], 2)] == [2, 2]
