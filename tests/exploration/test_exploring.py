"""What is reported of a plan that was run, and run again: the gravest finding that both runs show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from noxu.exploration import attempts, exploring
from noxu.exploration.attempts import Confirmed, Judged, JudgeRun, Learnt
from noxu.exploration.exploring import Candidates, HeldFindings
from noxu.exploration.findings import RunFinding
from noxu.exploration.judging import clean_runs, judge
from noxu.exploration.masks import learn
from noxu.exploration.plans import CLEAN, RunPlan
from noxu.exploration.run_programs import KnownTimes
from noxu.exploration.settings import ControllerCommand, Exploration
from noxu.values import Object
from tests.exploration import recordings
from tests.exploration.recordings import Script
from tests.rows import rows

EXPLORATION = Exploration((ControllerCommand(("true",), directory=Path()),), (), (), jobs=1)
RECORDING = recordings.clean().recording()
MASK = learn([RECORDING])
LEARNT = Learnt([RECORDING], MASK, clean_runs([RECORDING], MASK), KnownTimes(), ())
PLAN = CLEAN._replace(klass="stale")
SENTENCES = {
    "busy": RunFinding("busy", "configmaps", "the controller goes on writing"),
    "deleted": RunFinding("deleted", "configmaps data-a", "the controller deleted data-a"),
    "missing": RunFinding("missing", "configmaps data-a", "data-a is missing"),
}


def judged(kinds: Sequence[str], plan: RunPlan = PLAN) -> Judged:
    return Judged(plan, [SENTENCES[kind] for kind in kinds], RECORDING, 0.1)


def explored(
    monkeypatch: pytest.MonkeyPatch, plans: Sequence[RunPlan], *outcomes: Sequence[str], noise: Sequence[str] = ()
) -> list[Confirmed]:
    """What an exploration confirms whose runs show this, one after the other, and one more clean run shows the noise."""
    runs: Iterator[Sequence[str]] = iter(outcomes)
    monkeypatch.setattr(exploring, "patient_clean_run", lambda *_: RECORDING if noise else None)
    shown = [finding for kind, finding in SENTENCES.items() if kind not in noise]
    monkeypatch.setattr(exploring, "judging_with", lambda *_: lambda *_: shown)
    for module in (attempts, exploring):
        monkeypatch.setattr(module, "attempt", lambda _, __, plan: judged(next(runs), plan))
    happened = exploring.explore(EXPLORATION, LEARNT, plans, until=float("inf"))
    return [happening for happening in happened if isinstance(happening, Confirmed)]


CONFIRMED = [
    ("the same again", ["deleted"], [["deleted"]], "deleted", True, []),
    ("another one besides", ["deleted"], [["deleted", "missing"]], "deleted", True, ["missing"]),
    ("nothing again", ["deleted"], [[]], "deleted", False, []),
    ("another one instead, by chance", ["deleted"], [["missing"], []], "deleted", False, []),
    ("the first one, then another one", ["deleted"], [["missing"], ["deleted"]], "deleted", False, []),
    ("another one with more patience", ["busy"], [["missing"], ["deleted", "missing"]], "missing", True, ["deleted"]),
    ("the gravest does not, as on a busy machine", ["busy", "deleted"], [["deleted"]], "deleted", True, []),
    ("the gravest is new", ["deleted"], [["busy", "deleted"]], "deleted", True, ["busy"]),
]


@rows(
    ("first", "again", "kind", "is_stable", "others"), [row[1:] for row in CONFIRMED], ids=[row[0] for row in CONFIRMED]
)
def test_a_finding_that_shows_again(
    first: list[str], again: list[list[str]], kind: str, is_stable: bool, others: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        [confirmed] = explored(monkeypatch, [PLAN], first, *again)
    assert (confirmed.finding.kind, confirmed.is_stable) == (kind, is_stable)
    assert [other.kind for other in confirmed.others] == others


def test_what_another_clean_run_shows_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    [found] = explored(monkeypatch, [PLAN], ["deleted"], ["deleted"], noise=["deleted"])
    assert (found.is_stable, found.is_noise) == (False, True)


def test_a_finding_waits_for_the_clean_run() -> None:
    held, [first, second] = HeldFindings(lambda _: shows("deleted")), [confirmed_as(number) for number in (1, 2)]
    assert held.settled(judged(["busy", "deleted"])) == [judged(["busy", "deleted"])]
    assert held.settled(first) == []
    assert held.settled(RECORDING) == [first]
    assert held.settled(second) == [second]
    assert held.settled(judged(["busy", "deleted"])) == [judged(["deleted"])]  # as it is judged from now on


def shows(*kinds: str) -> JudgeRun:
    return lambda _plan, _recording: [SENTENCES[kind] for kind in kinds]


def test_without_a_clean_run_nothing_is_noise() -> None:
    held, found = HeldFindings(lambda _: shows()), confirmed_as(1)
    assert (held.settled(found), held.settled(None)) == ([], [found])


def confirmed_as(number: int) -> Confirmed:
    return Confirmed(number, SENTENCES["deleted"], (), PLAN, RECORDING, is_stable=True)


def further(size: str) -> Script:
    """A run in which the controller goes on after a second: the usual clean runs have ended before."""
    script = recordings.clean()
    script.write("controller", "patch", recordings.CONFIGS, "a", data={"size": size})
    return script


def with_another_secret() -> Script:
    script = further("3")
    script.write("controller", "patch", recordings.SECRETS, "a", type="other")
    return script


NOISE = [
    ("a patient run is further, also a clean one", further("1"), recordings.CONFIGS, True),
    ("what differs among clean runs is noise, whatever it is here", further("3"), recordings.CONFIGS, True),
    ("another object differs", with_another_secret(), recordings.SECRETS, False),
]


@rows(("script", "resource", "expected"), [row[1:] for row in NOISE], ids=[row[0] for row in NOISE])
def test_which_findings_one_more_clean_run_makes_noise(script: Script, resource: str, expected: bool) -> None:
    recording = script.recording()
    finding = next(each for each in judge(LEARNT.clean, PLAN, recording) if each.subject.startswith(resource))
    found = attempts.judging_with(EXPLORATION, LEARNT, further("1").recording())(PLAN, recording)
    assert (finding.signature not in [each.signature for each in found]) is expected


def test_what_was_confirmed_once_is_not_confirmed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = explored(monkeypatch, [PLAN, PLAN], ["busy", "deleted"], ["deleted"], ["deleted"])
    assert [(each.number, each.finding.kind) for each in found] == [(1, "deleted")]


BY_CHANCE = [
    ("the next plan shows it each time", [["deleted"], [], ["deleted"], ["deleted"]], [False, True]),
    ("the next but one", [["deleted"], [], ["deleted"], [], ["deleted"], ["deleted"]], [False, False, True]),
    ("after so many it is chance", [["deleted"], []] * 3 + [["deleted"]] * 2, [False] * 3),
    ("once it has shown again, that is enough", [["deleted"], ["deleted"], ["deleted"], ["deleted"]], [True]),
]


@rows(("outcomes", "stable"), [row[1:] for row in BY_CHANCE], ids=[row[0] for row in BY_CHANCE])
def test_what_a_plan_shows_by_chance_hides_no_other_plan(outcomes: list[list[str]], stable: list[bool]) -> None:
    plans = [PLAN] * (len(outcomes) - len(stable))
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert [each.is_stable for each in explored(monkeypatch, plans, *outcomes)] == stable


def test_plans_that_were_judged_meanwhile_are_confirmed_instead() -> None:
    """With several runs at once other plans show the same before it is known that the first one does not."""
    candidates, first, second = Candidates(), judged(["deleted"]), judged(["deleted"])
    assert (candidates.judged(first), candidates.judged(second)) == (first, None)
    assert candidates.confirmed(Confirmed(1, first.findings[0], [], PLAN, RECORDING, is_stable=False)) is second
    assert candidates.confirmed(Confirmed(2, first.findings[0], [], PLAN, RECORDING, is_stable=True)) is None
    assert candidates.judged(first) is None


MARK = {"when": {"created": "widgets"}, "mark": "old", "before": True}
FIRED = [
    ("nothing", [], False),
    ("a revision has a name, and what was to follow did not come", [{"move": MARK}], False),
    ("the past is shown", [{"move": MARK}, {"move": {"when": {}, "view": {"resource": "widgets"}}}], True),
    ("a fault has hit", [{"rule": "crash"}], True),
]


@rows(("fired", "had_effect"), [row[1:] for row in FIRED], ids=[row[0] for row in FIRED])
def test_whether_anything_of_a_plan_has_happened(fired: list[Object], had_effect: bool) -> None:
    recording = recordings.clean().recording(fired=fired)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("noxu.exploration.runs.run", lambda *_: recording)
        assert attempts.attempt(EXPLORATION, LEARNT, PLAN).had_effect is had_effect
