"""A pytest plugin: the end of a run lists what was skipped because something is absent, grouped by reason, with counts.

    ======================= skipped: something is absent =======================
    data: ../shared/crds          3 skipped   tests/conformance/test_crds.py, tests/crd/test_lint.py
    program: helm                 1 skipped   tests/clients/test_helm.py

A parametrized test whose parameters come from absent data counts as one. Other reasons to skip are listed below them,
then how to have what is optional. A run that skipped something for the lack of what the declared dependencies bring has
failed: the environment is not what pyproject.toml says.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests import optional

PREFIXES = ("data: ", "program: ", "package: ", "platform: ")  # see `optional`
Report = pytest.TestReport | pytest.CollectReport


@pytest.hookimpl(trylast=True)  # after the durations
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.stats.get("skipped", [])
    sections = {
        "skipped: something is absent": [*summary(reports), *advice(reports)],
        "failed: something is absent that a declared dependency brings": contradictions(reports),
    }
    for title, lines in sections.items():
        if lines:
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.line(line)


@pytest.hookimpl(tryfirst=True)  # before the terminal reporter prints the outcome
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):  # a worker of pytest-xdist reports to its controller
        return
    if session.exitstatus == pytest.ExitCode.OK and contradictions(reporter.stats.get("skipped", [])):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def summary(reports: Iterable[Report]) -> list[str]:
    """One line for each reason: first what is absent, then other reasons, each in alphabetical order."""
    skipped: dict[str, list[str]] = {}
    for report in reports:
        skipped.setdefault(reason_of(report), []).append(report.nodeid.partition("::")[0])
    reasons = sorted(skipped, key=lambda reason: (not reason.startswith(PREFIXES), reason))
    width = max((len(reason) for reason in reasons), default=0)
    return [
        f"{reason:{width}}  {len(skipped[reason]):4} skipped   {', '.join(sorted(set(skipped[reason])))}"
        for reason in reasons
    ]


def advice(reports: Iterable[Report]) -> list[str]:
    """How to have what is optional and absent."""
    absent = {reason_of(report).partition(",")[0].partition(" with ")[0] for report in reports}
    known = {reason.partition(": ../")[0]: optional.advice(reason) for reason in sorted(absent)}
    return [f"to have {reason.removeprefix('program: ')}: {how}" for reason, how in known.items() if how]


def contradictions(reports: Iterable[Report]) -> list[str]:
    """One line for each reason that the declared dependencies contradict."""
    brought = optional.declared()
    reasons = sorted({reason_of(report) for report in reports} & {*brought})
    return [f"{reason}: declared as {brought[reason]} in pyproject.toml" for reason in reasons]


def reason_of(report: Report) -> str:
    """The reason of a skip. A report has it as the last of (path, line, "Skipped: REASON"), also one from a worker."""
    details = report.longrepr
    text = details[2] if isinstance(details, (tuple, list)) else str(details)
    return str(text).removeprefix("Skipped: ")
