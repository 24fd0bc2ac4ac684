"""Locations are written as field paths."""

from __future__ import annotations

from noxu.api.field import Location, path_of
from tests.rows import rows


@rows(
    ("location", "path"),
    [
        (None, ""),
        ((None, "spec"), "spec"),
        (((None, "spec"), "a"), "spec.a"),
        ((((None, "spec"), 0), 10), "spec[0][10]"),
        (((None, "spec"), "b.c/d"), "spec.b.c/d"),
        ((None, 0), "[0]"),
        (((None, 0), "a"), "[0].a"),
        ((None, ".a"), ".a"),
        (((None, "spec"), ""), "spec."),
    ],
)
def test_the_path_of_a_location(location: Location, path: str) -> None:
    assert path_of(location) == path


def test_a_long_path_is_written_without_recursion() -> None:
    location: Location = None
    for _ in range(100_000):
        location = (location, 0)
    assert path_of(location) == "[0]" * 100_000
    while location:
        location = location[0]
