"""`noxu clock`: what it asks, what it prints, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from noxu.testing.handle import Noxu

Run = Callable[..., Any]


def test_it_freezes_and_advances(run: Run, noxu: Noxu) -> None:
    at = f"--server {noxu.url}"
    assert run(f"clock {at}").out.splitlines()[1].startswith("real ")
    frozen = run(f"clock freeze 2099-01-01T00:00:00Z {at} -o json").json
    assert (frozen["mode"], frozen["now"]) == ("frozen", "2099-01-01T00:00:00Z")
    moved = run(f"clock advance 1d12h {at}")
    assert moved.status == 0
    title, row = (line.split() for line in moved.out.splitlines())
    assert title == ["MODE", "NOW", "OFFSET", "SPEED", "DUE"]
    assert row[:2] == ["frozen", "2099-01-02T12:00:00Z"]
    assert run(f"clock advance-to 2099-02-01T00:00:00Z {at} -o json").json["now"] == "2099-02-01T00:00:00Z"
    assert run(f"clock speed 60 {at} -o yaml").out.startswith("mode: speed")
    back = run(f"clock real {at}")
    assert (back.status, back.out) == (1, "")
    assert "cannot be set back" in back.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("advance", "advance needs a DURATION"),
        ("real 1h", "real takes no value"),
        ("speed fast", "fast is not a number, such as 60"),
        ("stop", "invalid choice: 'stop'"),
    ],
)
def test_what_it_refuses(run: Run, words: str, message: str) -> None:
    ran = run(f"clock {words} --server http://127.0.0.1:1")
    assert ran.status == 2
    assert message in ran.err


def test_a_duration_that_the_server_refuses(run: Run, noxu: Noxu) -> None:
    ran = run(f"clock advance soon --server {noxu.url}")
    assert ran.status == 1
    assert 'by: expected a duration such as "1m30s", or seconds, not "soon"' in ran.err
