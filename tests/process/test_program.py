"""How often a program under test lives, how long it waits between two lives, and what its log has."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest

from noxu.process.program import MAX_PAUSE, ONCE, LogError, ProgramLog, ProgramRun
from noxu.process.supervision import Supervised
from tests.rows import rows


@rows(
    ("run", "lives"),
    [
        (ONCE, [1]),
        (ProgramRun(restarts=2), [1, 2, 3]),
        (ProgramRun(restarts=None), [1, 2, 3, 4, 5]),
    ],
)
def test_the_lives_of_a_program(run: ProgramRun, lives: list[int]) -> None:
    assert list(islice(run.lives(), 5)) == lives


def test_the_first_restarts_come_at_once_and_later_ones_wait() -> None:
    pauses = [ONCE.pause_before(life) for life in range(1, 12)]
    assert pauses[:6] == [0, 0, 0, 0.2, 0.4, 0.8]
    assert pauses == sorted(pauses)
    assert ONCE.pause_before(1_000_000) == MAX_PAUSE


def test_a_note_is_one_line(tmp_path: Path) -> None:
    with ProgramLog(tmp_path / "log") as log:
        log.note("start 1: sh -c echo a\necho b")
        log.note("x" * 1000)
    first, second = (tmp_path / "log").read_text().splitlines()
    assert first.partition("Z ")[2] == "start 1: sh -c echo a echo b"
    assert second.endswith("Z " + "x" * 300)


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot be written: Is a directory"):
        ProgramLog(tmp_path).__enter__()


def test_without_a_file_there_is_no_log() -> None:
    with ProgramLog(None) as log:
        log.note("start")
        assert log.output is None


def test_what_does_not_run_gets_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group 0 would be that of the caller."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "killpg", lambda pid, number: sent.append((pid, number)), raising=False)
    program = Supervised(leads_group=True)
    program.send(9)
    program.pid = 42
    program.send(9)
    assert sent == [(42, 9)]
