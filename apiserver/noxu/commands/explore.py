"""`noxu explore -- COMMAND`: find what breaks a controller.

    noxu explore explore.yaml -- ./bin/manager
    noxu explore -f config/crd --apply sample.yaml --delete -- ./bin/manager
    noxu explore explore.yaml --plan explore-1.yaml -- ./bin/manager      # run a plan again

The exit status is 0 if nothing was found, 1 if something was, and 2 if the controller cannot be explored: it does not exist, it
ends, or it does not do in a clean run what the workload waits for. What is found is written beside: a plan and a recording.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from noxu.api.errors import ApiError
from noxu.commands import calls, progress
from noxu.config import StartError
from noxu.exploration import attempts, exploring, learning, plans, report, results, runs, settings, steps
from noxu.exploration.attempts import Confirmed, Judged, Learnt
from noxu.exploration.exploring import Explored
from noxu.exploration.learning import UnusableController
from noxu.exploration.plans import PlanError, RunPlan
from noxu.exploration.run_steps import RunFailed
from noxu.exploration.runs import RunInterrupted
from noxu.exploration.settings import Exploration, SettingsError
from noxu.manifests.documents import LoadError
from noxu.process.signals import STOPPING
from noxu.process.supervision import BY_SIGNAL, NotRunnable
from noxu.testing.sources import documents

NOTHING_FOUND: Final = 0
FOUND: Final = 1
UNUSABLE: Final = 2


def run(options: argparse.Namespace) -> int:
    try:
        exploration = runs.check(_exploration(options))
        plan = None if options.plan is None else plans.read(options.plan)
        return _until_signal(lambda: _explore(options, exploration, plan))
    except NotRunnable as error:
        calls.complain(str(error))
        return error.status
    except UnusableController as error:
        for line in report.unusable_lines(error.findings, error.recording):
            print(line, file=sys.stderr)
        if options.format != "text":
            _print(options.format, Explored(unusable=error.findings), {})
        calls.complain("nothing is explored: the controller has to do without faults what the workload waits for")
        return UNUSABLE
    except ApiError as error:
        calls.complain(f"--plan: {error.message}; is it for these manifests?")
        return UNUSABLE
    except (SettingsError, PlanError, RunFailed, StartError, LoadError) as error:
        calls.complain(str(error))
        return UNUSABLE


def _exploration(options: argparse.Namespace) -> Exploration:
    """What the file and the options say. Raises SettingsError."""
    if options.config is not None:
        exploration = settings.read(options.config)
    else:
        exploration = Exploration((), ())
    given: dict[str, Any] = {
        "manifests": (*exploration.manifests, *(options.manifests or ())),
        "nodes": exploration.nodes if options.nodes is None else options.nodes,
        "classes": tuple(options.classes) or exploration.classes,
        "budget": options.budget or exploration.budget,
        "jobs": options.jobs or exploration.jobs,
        "quiet": options.quiet_for or exploration.quiet,
        "mutate": options.mutate or exploration.mutate,
        "workload": (*exploration.workload, *_workload(options)),
    }
    exploration = replace(exploration, **given)
    if options.passed_on:
        exploration = exploration.with_command(options.passed_on)
    if not exploration.controllers or not all(controller.command for controller in exploration.controllers):
        raise SettingsError(
            "there is no controller: write its command behind --, as in noxu explore explore.yaml -- ./manager"
        )
    if not exploration.workload:
        raise SettingsError("there is no workload: --apply sample.yaml, or `workload` in the file")
    return exploration


def _workload(options: argparse.Namespace) -> list[steps.WorkloadStep]:
    """The steps of --apply and --delete. Raises SettingsError."""
    written: list[dict[str, object]] = [{"apply": str(path)} for path in options.apply]
    if options.delete:
        written += [{"delete": named} for path in options.apply for named in _named(path)]
        written += [{"apply": str(path)} for path in options.apply]
    try:
        return steps.parse(written, Path()) if written else []
    except steps.StepError as error:
        raise SettingsError(str(error)) from None


def _named(path: Path) -> Iterator[dict[str, str]]:
    """The objects of a file, as a step deletes them."""
    for document in documents(path):
        metadata = document.value["metadata"]
        named = {"kind": f"{document.value['apiVersion']}/{document.value['kind']}", "name": metadata["name"]}
        yield named | ({"namespace": metadata["namespace"]} if metadata.get("namespace") else {})


def _until_signal(explore: Callable[[], int]) -> int:
    """The exit status of an exploration. SIGINT and SIGTERM end its runs, and what was found until then is reported."""
    received: list[int] = []

    def end(number: int, _frame: object) -> None:
        received.append(number)
        runs.interrupt_soon()

    runs.allow()
    before = {
        number: signal.signal(number, end)
        for number in STOPPING
        # as for a server: nohup(1) has SIGHUP ignored, and a shell SIGINT of what it runs in the background
        if number.name != "SIGHUP" or signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        status = explore()
    except RunInterrupted:
        calls.complain("the exploration was ended while it learnt from clean runs: nothing is found yet")
        status = UNUSABLE
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return BY_SIGNAL + received[0] if received else status


# -- exploring --------------------------------------------------------------------------------------------------------


def _explore(options: argparse.Namespace, exploration: Exploration, plan: RunPlan | None) -> int:
    outcome, began = Explored(), time.monotonic()
    files: dict[int, Sequence[str]] = {}
    note = _silent if options.quiet else _note
    if plan is not None or options.dry_run:
        exploration = replace(exploration, jobs=1)  # no runs at a time, for which each would need a network of its own
    note(f"learning from {exploration.clean_runs} clean runs")
    outcome.learnt = learnt = learning.learn(exploration)
    for line in (*report.mask_lines(outcome), *report.refusal_lines(learnt.recordings[0])):
        note(line)
    if learnt.ports:
        listed = ", ".join(map(str, learnt.ports))
        how = "each run has a network of its own" if learnt.has_networks else "one run at a time"
        note(f"the controller listens on port {listed}: {how}, and never two instances")
    chosen = [plan] * options.repeat if plan is not None else list(learnt.plans)
    if options.dry_run:
        for each in chosen:
            print(f"{each.klass:<11} {each.title}")
        return NOTHING_FOUND
    note(f"{len(chosen)} plans, {exploration.budget:g} s, {learnt.jobs} at a time")
    if plan is not None:
        return _replay(exploration, learnt, chosen, options.format)
    until = began + exploration.budget

    def note_progress() -> str:
        return report.progress_note(outcome, len(chosen), time.monotonic() - began, exploration.budget)

    with progress.shown("explore", "plans", quiet=options.quiet, note=note_progress) as report_progress:
        for happening in exploring.explore(exploration, learnt, chosen, until=until):
            outcome.add(happening)
            if isinstance(happening, Judged):
                report_progress(len(outcome.judged), len(chosen))
                continue
            files[happening.number] = list(map(str, results.saved(options.output, happening, learnt.recordings[0])))
            if options.format == "text":
                lines = report.finding_lines(happening, files[happening.number], learnt.recordings[0])
                print("\n".join(lines), flush=True)
    outcome.finish(chosen, time.monotonic() - began)
    _print(options.format, outcome, files)
    return FOUND if outcome.findings else NOTHING_FOUND


def _replay(exploration: Exploration, learnt: Learnt, chosen: Sequence[RunPlan], form: str) -> int:
    """Run one plan, as often as it is wanted."""
    say = print if form == "text" else _silent
    outcome, began = Explored(learnt), time.monotonic()
    for number, plan in enumerate(chosen, 1):
        judged = attempts.attempt(replace(exploration, sleeps=attempts.SLEEPS), learnt, plan)
        if judged.failed:
            raise RunFailed(judged.failed)
        outcome.add(judged)
        for finding in judged.findings:
            say(f"run {number}: {finding.sentence}")
            for line in finding.details:
                say(f"  {line}")
        if judged.recording is not None and judged.findings:
            first, *others = judged.findings
            outcome.add(Confirmed(number, first, others, plan, judged.recording, is_stable=True))
        else:
            say(f"run {number}: nothing is found{'' if judged.had_effect else ': nothing of the plan has happened'}")
    shown = len(outcome.findings)
    if len(chosen) > 1:
        say(f"{shown} of {len(chosen)} runs show something")
    outcome.finish(chosen, time.monotonic() - began)
    if form != "text":
        _print(form, outcome, {})
    if not shown and not any(judged.had_effect for judged in outcome.judged):
        calls.complain("--plan: nothing of it has happened: is it for these manifests and this workload?")
        return UNUSABLE
    return FOUND if shown else NOTHING_FOUND


def _print(form: str, outcome: Explored, files: dict[int, Sequence[str]]) -> None:
    if form == "json":
        print(json.dumps(report.as_value(outcome, files), indent=2))
    elif form == "junit":
        print(report.as_junit(outcome), end="")
    else:
        print("\n".join(report.summary_lines(outcome)))


def _note(text: str) -> None:
    print(f"noxu: {text}", file=sys.stderr, flush=True)


def _silent(_text: str) -> None:
    pass
