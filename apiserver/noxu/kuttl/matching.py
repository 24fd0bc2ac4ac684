"""Whether an object has what an assert names, as kuttl judges it (internal/utils/subset.go).

An object matches if it has every field of what is expected, with the same value. A list has to have as many items, and each one
matches the item in its place; a field that is null has to be there, and be null. What is not named may be anything.

    expected {spec: {ports: [{port: 80}]}}      got {spec: {ports: [{port: 80, name: http}], type: ClusterIP}}      matches
    expected {spec: {ports: [{port: 80}]}}      got {spec: {ports: []}}                                             does not
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from noxu.api.field import Path as FieldPath
from noxu.api.field import child, index
from noxu.go.text import compact_json
from noxu.values import Json, Object, equal


class Differing(NamedTuple):
    """A field of what is expected, and how it differs."""

    field: FieldPath
    message: str


def mismatches(expected: Json, got: Json, place: FieldPath = "") -> Iterator[Differing]:
    """All of them, in the order of what is expected, which is no deeper than `case_files.DEEPEST`."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for name, value in expected.items():
            if name not in got:
                yield Differing(child(place, name), "it is missing")
            else:
                yield from mismatches(value, got[name], child(place, name))
    elif isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            yield Differing(place, f"it has {_items(got)}, not {len(expected)}")
            return
        for n, (item, other) in enumerate(zip(expected, got, strict=True)):
            yield from mismatches(item, other, index(place, n))
    elif not equal(expected, got):
        yield Differing(place, f"it is {_shown(got)}, not {_shown(expected)}")


def nearest(expected: Object, objects: Iterable[Object]) -> tuple[Object, list[Differing]] | None:
    """The object that differs in the fewest fields, the first of several; None if there is no object."""
    compared = [(each, list(mismatches(expected, each))) for each in objects]
    return min(compared, key=lambda pair: len(pair[1]), default=None)


def _items(value: list[Json]) -> str:
    return "1 item" if len(value) == 1 else f"{len(value)} items"


def _shown(value: Json) -> str:
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else compact_json(value)
