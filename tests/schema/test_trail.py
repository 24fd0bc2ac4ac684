"""Trails are written as field paths."""

from __future__ import annotations

import pytest

from apiserver.schema.trail import Trail, written


@pytest.mark.parametrize(
    ("trail", "path"),
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
def test_written(trail: Trail, path: str) -> None:
    assert written(trail) == path


def test_a_long_trail_is_written_without_recursion() -> None:
    trail: Trail = None
    for _ in range(100_000):
        trail = (trail, 0)
    assert written(trail) == "[0]" * 100_000
    while trail:
        trail = trail[0]
