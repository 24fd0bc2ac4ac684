"""What clean runs show: how many of them there are, and how many runs may go on at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest

from noxu.exploration import learning, runs
from noxu.exploration.learning import allowed_processors, jobs_for, learn
from noxu.exploration.recording import RunRecording
from noxu.exploration.run_steps import RunFailed
from noxu.exploration.settings import ControllerCommand, Exploration
from tests.exploration import recordings
from tests.rows import rows

EXPLORATION = Exploration((ControllerCommand(("true",), directory=Path()),), (), (), jobs=4)
BEARABLE = [
    ("a run that sleeps most of the time", 6.0, 95.0, 2, 16),
    ("one that waits for half of the time", 2.4, 4.8, 2, 4),
    ("one that computes", 3.0, 3.0, 2, 2),
    ("one that keeps several processors busy", 8.0, 2.0, 2, 2),
    ("one that has used nothing that is counted", 0.0, 1.0, 2, 16),
    ("more processors than runs may go on", 3.0, 3.0, 64, 16),
]


@rows(("used", "seconds", "processors", "jobs"), [row[1:] for row in BEARABLE], ids=[row[0] for row in BEARABLE])
def test_so_many_runs_keep_the_processors_busy(used: float, seconds: float, processors: int, jobs: int) -> None:
    assert jobs_for(used, seconds, processors) == jobs


QUOTAS = [
    ("max 100000", 8),
    ("200000 100000", 2),
    ("150000 100000", 2),
    ("10000 100000", 1),
    ("1600000 100000", 8),
    ("", 8),
]


@rows(("quota", "processors"), QUOTAS)
def test_a_control_group_may_have_fewer_processors(quota: str, processors: int) -> None:
    assert allowed_processors(8, quota) == processors


def test_the_shortest_clean_run_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A longer one may have slept for some seconds, as later ones need not."""
    found = iter([replace(at(), seconds=20.0), replace(at(), seconds=4.0)])
    clock = iter([0.0, 2.0])
    monkeypatch.setattr(runs, "run", lambda *_: next(found))
    monkeypatch.setattr(learning, "_processor_seconds", lambda: next(clock))
    monkeypatch.setattr(learning, "_processors", lambda: 2)
    assert learn(replace(EXPLORATION, jobs=0)).jobs == 4


def at(*ports: int, without_secret: bool = False, status: int | None = None) -> RunRecording:
    """A clean run of a controller that listens there."""
    script = recordings.clean()
    if without_secret:
        script.changes = [change for change in script.changes if change.place.resource != recordings.SECRETS]
        script.there = {place: value for place, value in script.there.items() if place.resource != recordings.SECRETS}
    recording = script.recording(ports=ports)
    return replace(recording, lives=[life._replace(status=status) for life in recording.lives])


CLEAN_RUNS = [
    ("it listens on no port", 4, [at(), at()], [], 2, 4, False),
    ("networks show the same", 4, [at(80)], [at(80), at(80)], 3, 4, True),
    ("one run at a time needs no networks", 1, [at(80), at(80)], [], 2, 1, False),
    ("networks show what the second run does", 4, [at(80, without_secret=True), at(80)], [at(80), at(80)], 4, 4, True),
    ("networks show something else", 4, [at(80), at(80)], [at(80, without_secret=True)] * 2, 2, 1, False),
    ("it fails in networks", 4, [at(80), at(80)], [at(80, status=1), at(80, status=1)], 2, 1, False),
    ("it fails in one of them", 4, [at(80)], [at(80), at(80, status=1)], 2, 4, True),
    (
        "no run comes about in a network",
        4,
        [at(80), at(80)],
        [RunFailed("it ended"), RunFailed("it ended")],
        2,
        1,
        False,
    ),
    ("one of them does not", 4, [at(80)], [RunFailed("it ended"), at(80)], 2, 4, True),
]


@rows(
    ("jobs", "here", "elsewhere", "number", "at_a_time", "has_networks"),
    [row[1:] for row in CLEAN_RUNS],
    ids=[row[0] for row in CLEAN_RUNS],
)
def test_clean_runs(
    jobs: int,
    here: Sequence[RunRecording],
    elsewhere: Sequence[RunRecording | RunFailed],
    number: int,
    at_a_time: int,
    has_networks: bool,
) -> None:
    left, in_networks = iter(here), iter(elsewhere)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(runs, "run", lambda *_: next(left))
        monkeypatch.setattr(learning, "RunWorkers", lambda *_, **__: Workers(in_networks))
        learnt = learn(replace(EXPLORATION, jobs=jobs))
    assert (len(learnt.recordings), learnt.jobs, learnt.has_networks) == (number, at_a_time, has_networks)
    assert (list(left), list(in_networks)) == ([], [])


class Workers:
    """Processes whose clean runs show this."""

    def __init__(self, shown: Iterator[RunRecording | RunFailed]) -> None:
        self.shown = shown

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def clean_run(self) -> RunRecording:
        found = next(self.shown)
        if isinstance(found, RunFailed):
            raise found
        return found
