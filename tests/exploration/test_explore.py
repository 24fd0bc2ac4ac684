"""Controllers of fifty lines with a bug, and their twins without it, are explored: each bug is found, and no twin is accused."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from conformance import taught
from noxu.exploration import attempts, judging, learning, plans, pod_mounts, recording, runs, settings
from noxu.exploration.run_steps import RunFailed
from noxu.exploration.settings import ControllerCommand, Exploration
from tests.timing import HANGS_AFTER

TAUGHT = Path(__file__).parent / "taught"
QUIET = 0.5  # seconds


def exploration(module: str, *arguments: str) -> Exploration:
    """A single clean run: these controllers do nothing by chance."""
    case = next(bug for bug in taught.BUGS if bug.name == module)
    command = (sys.executable, "-m", f"tests.exploration.taught.{module}", *arguments)
    return replace(taught.exploration(case, command), clean_runs=1, quiet=QUIET, start_within=HANGS_AFTER)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        pytest.param(("--bug",), ["secrets default/a is missing at the end"], id="bug"),
        pytest.param((), [], id="twin"),
    ],
)
def test_a_crash_between_two_writes(arguments: tuple[str, ...], found: list[str]) -> None:
    explored = exploration("crash", *arguments)
    learnt = learning.learn(explored)
    judged = attempts.attempt(explored, learnt, learnt.plans[0])
    assert judged.had_effect, judged
    assert [finding.sentence for finding in judged.findings if finding.kind == "missing"] == found
    assert (judged.findings == []) == (not found)
    assert judged.recording is not None
    file = recording.RunFile(judged.plan.value, judged.recording)
    plan, read, *_ = recording.from_bytes(recording.to_bytes(file))
    assert plans.parse(plan).value == judged.plan.value
    assert [change.place for change in read.changes] == [change.place for change in judged.recording.changes]
    assert judging.judge(learnt.clean, judged.plan, read) == judged.findings


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "plan", "found"),
    [
        (
            "stale",
            "it was created, and it has written configmaps data-a, and sees widgets as it was when its deletion began",
            "the controller deleted configmaps default/data-a",
        ),
        (
            "spec",
            "spec.paused becomes true",
            "setting a field back does not lead back: configmaps default/a-paused is there",
        ),
    ],
)
def test_a_bug_is_found(name: str, plan: str, found: str) -> None:
    """All of them, and their twins: `python -m conformance.taught`."""
    explored = exploration(name, "--bug")
    learnt = learning.learn(explored)
    [chosen] = [each for each in learnt.plans if plan in each.title]
    judged = attempts.attempt(explored, learnt, chosen)
    assert judged.findings, judged
    assert judged.findings[0].sentence.startswith(found)


@pytest.mark.slow
def test_a_bug_in_go_is_found(tmp_path: Path) -> None:
    """One of them: the controllers in Go have a client of their own, and end and start at once."""
    if not shutil.which("go"):
        pytest.skip("there is no compiler of Go")
    binary = taught.built(tmp_path)
    [case] = [bug for bug in taught.BUGS if bug.name == "crash"]
    explored = replace(
        taught.exploration(case, [str(binary), "crash", "--bug"]), clean_runs=1, quiet=QUIET, start_within=HANGS_AFTER
    )
    learnt = learning.learn(explored)
    judged = attempts.attempt(explored, learnt, learnt.plans[0])
    assert "secrets default/a is missing at the end" in [finding.sentence for finding in judged.findings]


def test_an_invariant_about_what_there_is_not_is_refused() -> None:
    explored = exploration("crash")
    [misspelt] = settings.parse({"invariants": [{"idle": "objects('wigdets').size() > 0"}]}, TAUGHT).invariants
    with pytest.raises(
        RunFailed, match=r"invariants: objects\('wigdets'\).*: no kind 'wigdets' is served; did you mean widgets"
    ):
        runs.run(replace(explored, invariants=(misspelt,)), plans.CLEAN)


def test_a_program_that_ends_at_once_is_named() -> None:
    ends = ControllerCommand((sys.executable, "-c", "raise SystemExit('no flag --kubeconfig')"))
    with pytest.raises(RunFailed, match=r"status 1 before it asked for anything:\n(?s:.*)no flag --kubeconfig"):
        runs.run(replace(exploration("crash"), controllers=(ends,)), plans.CLEAN)


def test_a_program_gets_nothing_of_the_persons_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_A_PERSON", "x")
    shows = ControllerCommand((sys.executable, "-c", "import os; print(sorted(os.environ)); raise SystemExit(1)"))
    with pytest.raises(RunFailed) as failed:
        runs.run(replace(exploration("crash"), controllers=(shows,)), plans.CLEAN)
    assert "SECRET_OF_A_PERSON" in os.environ
    assert "SECRET_OF_A_PERSON" not in str(failed.value)
    assert "KUBECONFIG" in str(failed.value)


@pytest.mark.skipif(bool(pod_mounts.failure()), reason="platform: mounts of a program's own")
def test_a_program_in_a_pod_finds_the_files_of_the_pod_and_no_kubeconfig() -> None:
    shown = "import os; print(sorted(os.environ), os.path.exists(os.environ['FILE'])); raise SystemExit(1)"
    file = {"FILE": str(pod_mounts.PLACE / "token")}
    shows = ControllerCommand((sys.executable, "-c", shown), file, in_cluster=True)
    with pytest.raises(RunFailed) as failed:
        runs.run(replace(exploration("crash"), controllers=(shows,)), plans.CLEAN)
    assert "'KUBERNETES_SERVICE_HOST'" in str(failed.value)
    assert "] True" in str(failed.value)
    assert "KUBECONFIG" not in str(failed.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workload: [{aply: a.yaml}]", r"workload\[0\]: there is no step 'aply'; did you mean apply"),
        ("workload: [{apply: gone.yaml}]", r"workload\[0\]\.apply: there is no file .*gone\.yaml"),
        ("workload: [{wait: {kind: Widget, name: a}}]", r"workload\[0\]\.wait: it lacks for"),
        ("contrller: {command: [a]}", r"contrller: there is no such field"),
        ("controller: {comand: [a]}", r"controller\.comand: there is no such field"),
        ("controller: {hosts: {db: here}}", r"controller\.hosts: it has addresses by names"),
        ("resync: 30", r"resync: it is a duration, such as 10m"),
        ("kinds: [gone.json]", r"kinds: there is no file .*gone\.json"),
        ("budget: 10", r"budget: it is a duration, such as 10m"),
        ("invariants: [{always: a, idle: b}]", r"invariants\[0\]: it has one of always, idle"),
        ("beside: {hosts: {db: 127.0.0.1}}", r"beside\.hosts: there is no such field: there are command, environment"),
        ("beside: [{directory: .}]", r"beside: it lacks command"),
        ("stages: [gone.yaml]", r"stages: there is no file .*gone\.yaml"),
        ("nodes: -1", r"nodes: it is a number that is not negative"),
        ("exec: fail", r"exec: it is `succeed`, or a list of rules"),
        ("exec: [{command: [ls]}]", r"exec\[0\]\.pods: it is required"),
        ("exec: [{pods: a, stdot: x}]", r"exec\[0\]\.stdot: .*stdout"),
    ],
)
def test_what_is_misspelt_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "explore.yaml"
    file.write_text(text)
    with pytest.raises(settings.SettingsError, match=message):
        settings.read(file)


def test_stages_are_about_simulated_nodes(tmp_path: Path) -> None:
    with pytest.raises(settings.SettingsError, match=r"stages: there are no pods without simulated nodes"):
        runs.check(replace(exploration("crash"), stages=(tmp_path / "stages.yaml",)))


def test_what_a_controller_connects_to_is_new_in_each_run(tmp_path: Path) -> None:
    file = tmp_path / "lives"
    beside = ControllerCommand((sys.executable, "-c", _BESIDE, str(file)))
    explored = replace(exploration("crash"), beside=(beside,))
    for number in (1, 2):
        runs.run(explored, plans.CLEAN)
        assert len(file.read_text().split()) == number
    for pid in file.read_text().split():
        assert not Path("/proc", pid).exists()


_BESIDE = """
import os, sys, time
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(600)
"""


def test_what_is_beside_the_controller_and_ends_is_named() -> None:
    beside = ControllerCommand((sys.executable, "-c", "raise SystemExit('no module named stub')"))
    with pytest.raises(RunFailed, match=r"beside: .* ended with status 1:\n(?s:.*)no module named stub"):
        runs.run(replace(exploration("crash"), beside=(beside,)), plans.CLEAN)
