"""The picture of the terminal shows what the programs print."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import pytest

from docs import terminal_picture

VARYING: Final = re.compile(
    r"\([\d.]+ ms\)|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z"
)
"""What differs from run to run: durations, uids, times."""


def steady(lines: list[str]) -> list[str]:
    return [VARYING.sub("…", line) for line in lines]


@pytest.mark.slow
def test_the_picture_is_of_a_session_as_it_runs_today() -> None:
    steps = list(terminal_picture.session(Path(sys.executable).parent))
    picture = terminal_picture.drawn(terminal_picture.text_of(steps))
    assert "$ kubectl get widgets" in terminal_picture.shown(picture)
    assert steady(terminal_picture.shown(terminal_picture.PICTURE.read_text())) == steady(
        terminal_picture.shown(picture)
    )


def test_the_picture_loads_nothing() -> None:
    assert re.findall(r"(?:href|src|url\()\W*https?:", terminal_picture.PICTURE.read_text()) == []
