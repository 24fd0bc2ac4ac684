"""How long a controller sees the past: until it has started and has had its while, however slow the machine is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.exploration import run_steps
from noxu.exploration.recording import ObjectPlace
from noxu.exploration.run_programs import IDLE_WITHIN, KnownTimes
from noxu.exploration.run_steps import LOOKS_EVERY, WITH_VIEW
from noxu.exploration.settings import Exploration
from tests.rows import rows

QUIET = 0.5  # seconds


class SlowMachine:
    """A server and its time: a program that was ended at 0 s begins its watch at `starts`. `is_busy`: it never stops trying."""

    def __init__(self, starts: float, *, is_busy: bool) -> None:
        self.now, self.starts, self.is_busy = 0.0, starts, is_busy

    def monotonic(self) -> float:
        return self.now

    time = monotonic

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def await_silence(self, quiet: float, within: float) -> None:
        if self.now < self.starts < self.now + quiet:
            self.now = self.starts  # with a request
        if self.is_busy and self.now >= self.starts:
            self.now += within
            raise ApiError(504, "the controller asks again and again")
        self.now += quiet

    def requests(self, verb: str = "") -> list[Any]:
        is_there = verb == "watch" and self.now >= self.starts
        return [SimpleNamespace(user="controller", at=self.starts, retry_after=0)] if is_there else []

    def end_views(self, moves: Any) -> None:
        moves.views = []

    def wait(self, seconds: float) -> bool:
        """As of an event that does not come."""
        self.now += seconds
        return False


def programs() -> Any:
    program = SimpleNamespace(pid=1, lives=2, began=0.0)
    return SimpleNamespace(started=[program], users=["controller"], webhooks=0, known=KnownTimes((1,), 0.1, 0.1))


LASTS = [
    ("at once", 0.0, False, 0.0, 2 * QUIET),
    ("late", 8.0, False, 8.0, 8.0 + WITH_VIEW),
    ("at once, and tries in vain", 0.0, True, WITH_VIEW, WITH_VIEW + 2 * QUIET),
    ("late, and tries in vain", 8.0, True, 8.0 + WITH_VIEW, 8.0 + 2 * WITH_VIEW + 2 * QUIET),
    ("never", 1e9, False, IDLE_WITHIN, IDLE_WITHIN + 2 * WITH_VIEW),
]


@rows(("starts", "is_busy", "least", "most"), [row[1:] for row in LASTS], ids=[row[0] for row in LASTS])
def test_a_view_lasts_until_the_controller_has_acted_on_it(
    starts: float, is_busy: bool, least: float, most: float
) -> None:
    machine = SlowMachine(starts, is_busy=is_busy)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(run_steps, "time", machine)
        moves: Any = SimpleNamespace(views=["explored-view-1"])
        assert run_steps.settle_with_moves(machine, programs(), QUIET, moves) == ""  # type: ignore[arg-type]
    assert least <= machine.now <= most


WHILE_THE_WORKLOAD_WAITS = [
    ("at once", 0.0, WITH_VIEW),
    ("late", 8.0, 8.0 + WITH_VIEW),
    ("never", 1e9, IDLE_WITHIN + WITH_VIEW),
]


@rows(
    ("starts", "ends"), [row[1:] for row in WHILE_THE_WORKLOAD_WAITS], ids=[row[0] for row in WHILE_THE_WORKLOAD_WAITS]
)
def test_a_view_ends_while_the_workload_waits(starts: float, ends: float) -> None:
    machine = SlowMachine(starts, is_busy=True)
    moves: Any = SimpleNamespace(views=["explored-view-1"])
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(run_steps, "time", machine)
        run_steps.end_views_after_a_while(machine, programs(), moves, machine.wait)  # type: ignore[arg-type]
    assert not moves.views
    assert ends <= machine.now <= ends + 3 * LOOKS_EVERY


class Resyncing(SlowMachine):
    """A controller that looks at everything at `wakes`: until then its ConfigMap is not what it was."""

    def __init__(self, wakes: float, drifted: list[Any]) -> None:
        super().__init__(0.0, is_busy=False)
        self.wakes, self.drifted = wakes, drifted

    def stored(self) -> list[Any]:
        return MADE if self.now >= self.wakes else self.drifted


CONFIG = ObjectPlace("configmaps", "default", "a")
MADE: list[Any] = [(CONFIG, {"metadata": {"name": "a", "resourceVersion": "7"}, "data": {"n": "1"}})]
RESYNC = 30.0
DRIFTS = [
    ("what was deleted comes again", [], 12.0, 12.0),
    ("what was changed is put back", [(CONFIG, {"metadata": {}, "data": {"n": "2"}})], 12.0, 12.0),
    ("it never does", [], 1e9, RESYNC),
    ("only what the server counts differs", [(CONFIG, {"metadata": {"name": "a"}, "data": {"n": "1"}})], 1e9, 0.0),
    ("an owner of pods makes others", [*MADE, (ObjectPlace("pods", "default", "b"), {})], 1e9, 0.0),
]


@rows(("drifted", "wakes", "waits"), [row[1:] for row in DRIFTS], ids=[row[0] for row in DRIFTS])
def test_a_drift_is_waited_for_as_long_as_the_controller_sleeps(drifted: list[Any], wakes: float, waits: float) -> None:
    machine: Any = Resyncing(wakes, drifted)
    exploration = Exploration((), (), quiet=QUIET, resync=RESYNC)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(run_steps, "time", machine)
        run_steps.until_restored(machine, programs(), exploration, dict(MADE))
    assert waits <= machine.now <= waits + 3 * QUIET
