"""Tests of kuttl in `noxu test`: run them, and report each step as a case `TEST/STEP`.

A step that fails is reported at the document that it asserts, or at the one that is refused:

    e2e/install/00-assert.yaml: install/0-deploy: failed
      e2e/install/00-assert.yaml:5:3: status.readyReplicas: Deployment kuttl-install/web: status.readyReplicas: it is 1, not 2
          status:
        -   readyReplicas: 2
        +   readyReplicas: 1
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from noxu.cases.running import Observe
from noxu.commands.case_reports import CaseReport, finding, with_lines
from noxu.commands.findings import Checked
from noxu.kuttl import running, steps
from noxu.kuttl.running import KuttlOutcome, StepOutcome
from noxu.releases import named


def run(options: argparse.Namespace, directories: Sequence[Path], observe: Observe) -> dict[Path, list[CaseReport]]:
    """The reports of the tests in directories. `options.names` selects those whose names contain one of them."""
    tests = [steps.read(directory, options.given) for directory in directories]
    chosen = [test for test in tests if not options.names or any(name in test.name for name in options.names)]
    reports: dict[Path, list[CaseReport]] = {directory: [] for directory in directories}
    several, advice = len(options.kubernetes) > 1, _WITHOUT_NODES if options.nodes is None else ""
    for outcome in running.run(chosen, options.nodes, options.kubernetes, observe):
        reports[outcome.test.directory] += _reports(outcome, advice, several=several)
    return reports


_WITHOUT_NODES: Final = "there are no nodes, so no controller makes pods, and none is ready: --nodes 1 simulates one"
_WORKLOADS: Final = ("Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob")


def _reports(outcome: KuttlOutcome, advice: str, *, several: bool) -> Iterator[CaseReport]:
    """The steps of a test. `several`: it is run as several releases of Kubernetes. `advice`: what workloads lack."""
    version = f" ({named(outcome.release)})" if several else ""
    for document, problems in groupby(outcome.problems, key=lambda problem: problem.document):
        found = [finding(document, "unreadable", problem.field, problem.message) for problem in problems]
        yield CaseReport("", "unusable", [Checked(document, outcome.test.name + version, "unreadable", found)])
    for step in outcome.steps:
        yield _step_report(step, f"{outcome.test.name}/{step.step.name}{version}", advice)


def _step_report(outcome: StepOutcome, name: str, advice: str) -> CaseReport:
    if not outcome.failures:
        return CaseReport(name, "passed", [Checked(outcome.step.first, name, "valid", [])])
    checked = []
    for document, failures in groupby(outcome.failures, key=lambda failure: failure.document):
        found = [
            finding(document, "step", failure.field, with_lines(failure.message, failure.diff))._replace(
                advice=advice if document.kind in _WORKLOADS else ""
            )
            for failure in failures
        ]
        checked.append(Checked(document, name, "refused", found))
    return CaseReport(name, "failed", checked)
