"""How long a controller sees the past: until it has started and has had its while, however slow the machine is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.exploration import run_steps, steps
from noxu.exploration.recording import ObjectPlace, StepResult
from noxu.exploration.run_programs import IDLE_WITHIN, KnownTimes
from noxu.exploration.run_steps import BEFORE_SLEEP, LOOKS_EVERY, WITH_VIEW
from noxu.exploration.settings import Exploration
from noxu.exploration.steps import WorkloadStep
from noxu.testing.errors import WaitTimeout
from noxu.values import Object
from tests.rows import rows

QUIET = 0.5  # seconds
PATIENCE = KnownTimes().patience


class SlowMachine:
    """A server and its time: a program that was ended at 0 s begins its watch at `starts`. `is_busy`: it never stops trying."""

    def __init__(self, starts: float, *, is_busy: bool, every: float = 0.1) -> None:
        self.now, self.starts, self.is_busy, self.every = 0.0, starts, is_busy, every

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
        """It watches when it starts; one that tries in vain deletes something from then on, `every` so many seconds."""
        asked = [(self.starts, "watch", "widgets", "", 200)]
        if self.is_busy:
            times = int(max(min(self.now - self.starts, 60.0), 0.0) / self.every)
            asked += [(self.starts + n * self.every, "delete", "configmaps", "data-a", 404) for n in range(times)]
        return [
            SimpleNamespace(
                user="controller",
                at=at,
                seconds=0.0,
                retry_after=0,
                verb=asked_verb,
                resource=resource,
                subresource="",
                namespace="",
                name=name,
                code=code,
            )
            for at, asked_verb, resource, name, code in asked
            if at <= self.now and verb in ("", asked_verb)
        ]

    def end_views(self, moves: Any) -> None:
        moves.views = []

    def wait(self, seconds: float) -> bool:
        """As of an event that does not come."""
        self.now += seconds
        return False


def programs(machine: SlowMachine) -> Any:
    program = SimpleNamespace(pid=1, lives=2, began=0.0)
    return SimpleNamespace(
        started=[program],
        users=["controller"],
        webhooks=0,
        known=KnownTimes((1,), 0.1, 0.1),
        clock=machine.monotonic,
        killed={},
        slept=0.0,
        left_out=0.0,
    )


LASTS = [
    ("at once", 0.0, False, 0.0, 2 * QUIET),
    ("late", 8.0, False, 8.0, 8.0 + WITH_VIEW),
    ("at once, and tries in vain", 0.0, True, WITH_VIEW, WITH_VIEW + 2 * QUIET),
    ("late, and tries in vain", 8.0, True, 8.0 + WITH_VIEW, 8.0 + 2 * WITH_VIEW + 2 * QUIET),
    ("never", 1e9, False, IDLE_WITHIN, IDLE_WITHIN + 2 * WITH_VIEW),
]
SLOWLY = [
    ("it has asked for each thing once or twice", 1.0, 4.0, 4.0 + WITH_VIEW),
    ("it has not asked for anything", 30.0, WITH_VIEW + IDLE_WITHIN, WITH_VIEW + IDLE_WITHIN + 2 * WITH_VIEW),
]


@rows(("starts", "is_busy", "least", "most"), [row[1:] for row in LASTS], ids=[row[0] for row in LASTS])
def test_a_view_lasts_until_the_controller_has_acted_on_it(
    starts: float, is_busy: bool, least: float, most: float
) -> None:
    machine = SlowMachine(starts, is_busy=is_busy)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(run_steps, "time", machine)
        moves: Any = SimpleNamespace(views=["explored-view-1"])
        assert run_steps.settle_with_moves(machine, programs(machine), QUIET, moves) == ""  # type: ignore[arg-type]
    assert least <= machine.now <= most


@rows(("every", "least", "most"), [row[1:] for row in SLOWLY], ids=[row[0] for row in SLOWLY])
def test_a_view_of_a_busy_controller_lasts_until_it_tries_again_and_again(
    every: float, least: float, most: float
) -> None:
    machine = SlowMachine(0.0, is_busy=True, every=every)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(run_steps, "time", machine)
        moves: Any = SimpleNamespace(views=["explored-view-1"])
        assert run_steps.settle_with_moves(machine, programs(machine), QUIET, moves) == ""  # type: ignore[arg-type]
    assert least <= machine.now <= most


class AskedToWait(SlowMachine):
    """It is refused at 0 s, with a second to wait, and asks again at `again`. It waits for a processor half of the time."""

    def __init__(self, again: float) -> None:
        super().__init__(0.0, is_busy=False)
        self.again = again

    def clock(self) -> float:
        return self.now / 2

    def await_silence(self, quiet: float, within: float) -> None:
        if self.now < self.again < self.now + quiet:
            self.now = self.again
        self.now += quiet

    def requests(self, verb: str = "") -> list[Any]:
        [asked] = super().requests("watch")
        asked.retry_after = 1
        return [asked]


def test_a_program_that_was_asked_to_wait_may_be_late_on_a_busy_machine() -> None:
    machine: Any = AskedToWait(2.2)
    programs_there = programs(machine)
    programs_there.clock = machine.clock
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(run_steps, "time", machine)
        assert run_steps.settle_with_moves(machine, programs_there, QUIET, SimpleNamespace(views=[])) == ""  # type: ignore[arg-type]
    assert machine.now >= machine.again


def test_a_run_that_is_never_idle_says_that_the_machine_is_busy() -> None:
    machine: Any = SlowMachine(0.0, is_busy=True)
    there = programs(machine)
    there.clock = lambda: machine.now / 4
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(run_steps, "time", machine)
        said = run_steps.settle_with_moves(machine, there, QUIET, SimpleNamespace(views=[]))  # type: ignore[arg-type]
    assert said.startswith("the controller asks again and again; the machine is busy: for ")
    assert machine.now >= 4 * IDLE_WITHIN  # it was given as much time to run as it would have on another machine


class AskedToWaitAgain(SlowMachine):
    """It is refused three times, with a second to wait each time."""

    def await_silence(self, quiet: float, within: float) -> None:
        following = next((at for at in (1.0, 2.0, 3.0) if self.now < at < self.now + quiet), 0.0)
        self.now = (following or self.now) + quiet

    def requests(self, verb: str = "") -> list[Any]:
        [watch] = super().requests("watch")
        refused = [SimpleNamespace(**{**vars(watch), "at": at, "verb": "patch", "retry_after": 1}) for at in range(3)]
        return [each for each in (watch, *refused) if each.at <= self.now and verb in ("", each.verb)]


def test_a_program_that_is_asked_to_wait_again_and_again_is_waited_for() -> None:
    machine: Any = AskedToWaitAgain(0.0, is_busy=False)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(run_steps, "time", machine)
        assert run_steps.settle_with_moves(machine, programs(machine), QUIET, SimpleNamespace(views=[])) == ""  # type: ignore[arg-type]
    assert 3.0 <= machine.now <= 4.0 + QUIET


class DyingLate(SlowMachine):
    """The program is killed at 0 s, and its process is there until 3 s; the next one begins its watch at `starts`."""

    def __init__(self, starts: float) -> None:
        super().__init__(starts, is_busy=False)
        self.programs = programs(self)
        [self.program] = self.programs.started
        self.program.lives, self.programs.killed = 1, {0: 1}

    def await_silence(self, quiet: float, within: float) -> None:
        super().await_silence(quiet, within)
        if self.now >= 3.0 and self.program.lives == 1:
            self.program.lives, self.program.began = 2, 3.0

    def requests(self, verb: str = "") -> list[Any]:
        [before] = SlowMachine(0.0, is_busy=False).requests("watch")
        return [before, *super().requests(verb)]


def test_a_view_lasts_until_the_next_life_of_a_program_that_dies_slowly() -> None:
    machine: Any = DyingLate(6.0)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(run_steps, "time", machine)
        moves: Any = SimpleNamespace(views=["explored-view-1"])
        assert run_steps.settle_with_moves(machine, machine.programs, QUIET, moves) == ""
    assert 6.0 <= machine.now <= 6.0 + WITH_VIEW


def test_a_view_that_begins_when_the_run_is_idle_is_waited_for() -> None:
    """What fires its trigger is written after the run was idle: the program has not started again by then."""

    class Late(DyingLate):
        def await_silence(self, quiet: float, within: float) -> None:
            super().await_silence(quiet, within)
            if not moves.views:
                self.program.lives, self.programs.killed = 1, {}  # not killed yet
                moves.views.append("explored-view-1")

    moves: Any = SimpleNamespace(views=[])
    machine: Any = Late(6.0)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(run_steps, "time", machine)
        run_steps.settle_with_moves(machine, machine.programs, QUIET, moves)
    assert machine.now >= 1.0


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
        run_steps.end_views_after_a_while(machine, programs(machine), moves, machine.wait)  # type: ignore[arg-type]
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
        run_steps.until_restored(machine, programs(machine), exploration, dict(MADE))
    assert waits <= machine.now <= waits + 3 * QUIET


class Sleeper(Resyncing):
    """A program that sleeps until `wakes`, when it makes what is missing, or fails again if it `fails`."""

    def __init__(self, wakes: float, *, fails: bool = False) -> None:
        super().__init__(1e9 if fails else wakes, [])
        self.sleeps_until = wakes

    def asleep_for(self, most: float) -> float:
        left = self.sleeps_until - self.now
        return left if 3.0 <= left <= most else 0.0

    def is_silent_until(self, moment: float) -> bool:
        return self.sleeps_until > moment

    def attempt(self, step: WorkloadStep, _server: Any) -> None:
        """The workload's step `wait`."""
        until = self.now + float(step.wanted["timeout"])
        if self.wakes > until:
            self.now = until
            raise WaitTimeout(f"waited {step.wanted['timeout']:g} s")
        self.now = max(self.now, self.wakes)


PASSES = [
    ("the workload waits for up to a minute", [30.0, 60.0], False, [60.0]),
    ("the workload waits for nothing", [], False, []),
    ("the end is the usual one", [30.0], True, []),
]


@pytest.mark.parametrize(("waits", "is_usual", "passed"), [row[1:] for row in PASSES], ids=[row[0] for row in PASSES])
def test_what_is_due_at_another_end_happens_as_it_does_while_a_step_waits(
    waits: list[float], is_usual: bool, passed: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as pods that are ready ten seconds after their start: the last step had nothing to wait for any more."""
    machine, seen = Sleeper(1e9), list[float]()
    server: Any = machine
    steps_ = tuple(WorkloadStep("wait", {"kind": "Widget", "name": "a", "timeout": seconds}, {}) for seconds in waits)
    monkeypatch.setattr(run_steps, "time", machine)
    monkeypatch.setattr(run_steps, "pass_time", lambda _server, seconds: seen.append(seconds))
    run_steps.more_time(
        server, programs(machine), Exploration((), steps_, quiet=QUIET), StepResult("end", 0.1), lambda _: is_usual
    )
    assert seen == passed


SLEEPERS = [
    ("it tries again after a minute", 70.0, Sleeper(60.0), True, 60.0),
    ("and fails again", 70.0, Sleeper(60.0, fails=True), False, 60.0),
    ("it sleeps for longer than anything is waited for", 70.0, Sleeper(300.0), False, 0.0),
    ("it never wakes by itself", 70.0, Sleeper(1e9), False, 0.0),
    ("no finding is confirmed", 0.0, Sleeper(60.0), False, 0.0),
]


@pytest.mark.parametrize(
    ("sleeps", "machine", "succeeds", "slept"), [row[1:] for row in SLEEPERS], ids=[row[0] for row in SLEEPERS]
)
def test_a_program_that_sleeps_before_it_tries_again_is_waited_for(
    sleeps: float, machine: Sleeper, succeeds: bool, slept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Any = machine
    exploration = Exploration((), (), quiet=QUIET, sleeps=sleeps)
    wait = WorkloadStep("wait", {"kind": "Widget", "name": "a", "for": "create", "timeout": 30.0}, {})
    monkeypatch.setattr(run_steps, "time", machine)
    monkeypatch.setattr(steps, "run", machine.attempt)
    machine.now = 0.0
    moves: Any = SimpleNamespace(views=[], frozen=set(), to_list={}, through=0)
    done = run_steps.run_step(server, programs(machine), wait, exploration, 1, moves)
    assert (not done.failure) is succeeds
    assert max(30.0, slept) <= machine.now <= max(30.0, slept) + BEFORE_SLEEP + 3 * QUIET
    machine.now = 0.0
    run_steps.more_time(server, programs(machine), exploration, done, lambda stored: stored == MADE)
    assert (machine.stored() == MADE) is succeeds
    assert slept <= machine.now <= slept + BEFORE_SLEEP + 3 * QUIET


WIDGET = ObjectPlace("widgets", "default", "a")
ENDS = {"metadata": {"deletionTimestamp": "2026-11-28T22:17:07Z", "finalizers": ["example.com/a"]}}
HIDING = [
    ("it is shown as it was before", {"widgets"}, ENDS, True),
    ("nothing ends", {"widgets"}, {"metadata": {}}, False),
    ("something else is shown as it was", {"configmaps"}, ENDS, False),
    ("states are held, until another one comes", set(), ENDS, False),
]


@pytest.mark.parametrize(("frozen", "stored", "ends"), [row[1:] for row in HIDING], ids=[row[0] for row in HIDING])
def test_a_view_ends_when_the_workload_would_change_what_waits_for_the_controller(
    frozen: set[str], stored: Object, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine: Any = Sleeper(0.0)
    machine.stored = lambda: [(WIDGET, stored)]
    seen = list[bool]()
    moves: Any = SimpleNamespace(views=["explored-view-1"], frozen=frozen, to_list={}, through=0)
    monkeypatch.setattr(run_steps, "time", machine)
    monkeypatch.setattr(steps, "run", lambda *_: seen.append(not moves.views))
    machine.end_views = lambda _moves: moves.views.clear() or True
    apply = WorkloadStep("apply", {}, {})
    run_steps.run_step(machine, programs(machine), apply, Exploration((), (), quiet=QUIET), 2, moves)
    assert seen == [ends]


class Daemon(Sleeper):
    """A program that does something every five seconds, and never what is missing."""

    def asleep_for(self, most: float) -> float:
        left = 5.0 - self.now % 5.0
        return left if 3.0 <= left <= most else 0.0

    def is_silent_until(self, moment: float) -> bool:
        return False


def test_a_program_that_sleeps_again_and_again_is_not_waited_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    machine: Any = Daemon(1e9, fails=True)
    monkeypatch.setattr(run_steps, "time", machine)
    exploration = Exploration((), (), quiet=QUIET, sleeps=70.0)
    run_steps.more_time(machine, programs(machine), exploration, StepResult("end", 0.0), lambda _: False)
    assert 70.0 <= machine.now <= 70.0 + PATIENCE + BEFORE_SLEEP + 3 * QUIET


def refused(*ids: str, rule: str = "refused") -> list[Any]:
    asked = {"verb": "create", "resource": "configmaps"}
    return [{"rule": rule, "request": {**asked, "id": each}} for each in ids]


@rows(
    "fired, asked, sleeps, is_so",
    [
        (refused("1", "2"), ["1", "2"], 60.0, True),
        (refused("1", "2"), ["1", "2"], 2.0, True),
        (refused("1", "2"), ["1", "2", "3"], 60.0, False),
        (refused("1", "2"), ["1", "2"], 0.0, False),
        (refused("1"), ["1"], 60.0, False),
        ([*refused("0", rule="another"), *refused("1")], ["0", "1"], 60.0, False),
        ([{"rule": "refused", "move": {}}], [], 60.0, False),
        ([], ["1"], 60.0, False),
    ],
    ids=[
        "a minute after each refusal",
        "a short while after each",
        "the next attempt was not refused by the plan",
        "it is not known to sleep",
        "nothing says that it will try again",
        "nor that it has",
        "no request was hit",
        "no fault",
    ],
)
def test_a_program_tries_again_if_it_has_and_sleeps_since_the_plan_refused_that(
    fired: list[Any], asked: list[str], sleeps: float, is_so: bool
) -> None:
    requests = [SimpleNamespace(user="controller", verb="create", resource="configmaps", id=each) for each in asked]
    requests.append(SimpleNamespace(user="controller", verb="patch", resource="widgets", id="status"))
    requests.append(SimpleNamespace(user="workload", verb="create", resource="configmaps", id="another"))
    server: Any = SimpleNamespace(requests=lambda: requests, asleep_for=lambda most, least: min(sleeps, most))
    there: Any = SimpleNamespace(users=["controller"])
    assert run_steps.tries_again(server, there, fired) is is_so
