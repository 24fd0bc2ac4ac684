"""What a controller has said, as a report shows it: the error first, and no line in JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.exploration.report import MAX_LINE, log_lines

ZAP = {"level": "error", "ts": 1.5, "logger": "controller", "msg": "Reconciler error", "request": "default/a",
       "error": 'no matches for kind "PodDisruptionBudget"', "stacktrace": "main.main\n\tmain.go:1"}  # fmt: skip
SHOWN = [
    (
        "zap, whose error comes after what takes the most room",
        ZAP,
        'error Reconciler error: no matches for kind "PodDisruptionBudget" logger=controller request=default/a',
    ),
    ("slog", {"time": "now", "level": "INFO", "msg": "synced", "name": "a"}, "INFO synced name=a"),
    ("logrus", {"level": "warning", "msg": "slow", "err": "timeout", "time": "now"}, "warning slow: timeout"),
    ("zerolog", {"level": "error", "error": "gone", "message": "cannot list\nall"}, "error cannot list all: gone"),
    ("another object", {"kind": "Status"}, '{"kind": "Status"}'),
]


@pytest.mark.parametrize(("said", "shown"), [row[1:] for row in SHOWN], ids=[row[0] for row in SHOWN])
def test_a_line_in_json_is_shown_as_a_sentence(said: Any, shown: str) -> None:
    assert log_lines(json.dumps(said)) == [shown]


@pytest.mark.parametrize("line", ["I0102 03:04:05 controller.go:1] started", "{no JSON", '{"msg": 1'])
def test_other_lines_are_shown_as_they_are(line: str) -> None:
    assert log_lines(f"\n{line}\n") == [line]


def test_the_newest_lines_are_shown_and_long_ones_are_cut() -> None:
    assert log_lines("one\n\ntwo\n" + "x" * 1000, 2) == ["two", "x" * MAX_LINE]
