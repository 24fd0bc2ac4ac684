"""A pytest plugin: the end of a run lists what was skipped because something is absent, grouped by reason, with counts.

    ======================= skipped: something is absent =======================
    data: ../shared/crds          3 skipped   tests/conformance/test_crds.py, tests/crd/test_lint.py
    program: helm                 1 skipped   tests/clients/test_helm.py

A parametrized test whose parameters come from absent data counts as one. Other reasons to skip are listed below them.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

PREFIXES = ("data: ", "program: ", "package: ", "platform: ")  # see `optional`


@pytest.hookimpl(trylast=True)  # after the durations
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = summary(terminalreporter.stats.get("skipped", []))
    if lines:
        terminalreporter.section("skipped: something is absent")
        for line in lines:
            terminalreporter.line(line)


def summary(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> list[str]:
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


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The reason of a skip. A report has it as the last of (path, line, "Skipped: REASON"), also one from a worker."""
    details = report.longrepr
    text = details[2] if isinstance(details, (tuple, list)) else str(details)
    return str(text).removeprefix("Skipped: ")
