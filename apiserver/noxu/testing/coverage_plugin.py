"""The coverage of schemas in a whole run of pytest: `--noxu-coverage`, with reports and a least percentage as pytest-cov has them.

    --noxu-coverage                                     a table at the end of the run
    --noxu-coverage-report=html:covered                 a page; text:FILE, json:FILE, term
    --noxu-coverage-fail-under=80                       the run fails if less is covered

What is written to all servers of the fixtures counts, and the cases of `noxu_tests`; not what servers begin with. Processes of
pytest-xdist send what they have collected to the one that started them. This plugin is registered only if an option asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import pytest

from noxu.coverage import reports, trees
from noxu.coverage.collecting import Collector
from noxu.coverage.reports import WantedReport
from noxu.process.server import Server
from noxu.testing import handle
from noxu.testing.handle import Noxu
from noxu.values import Object

_SENT: Final = "noxu_coverage"
"""What a process of pytest-xdist sends."""


def wanted(
    texts: Iterable[str] | None, least: str | None, config: pytest.Config
) -> tuple[Sequence[WantedReport], float | None]:
    """The reports and the least percentage that options give. Raises ValueError."""
    try:
        listed = [reports.wanted(text, config.invocation_params.dir) for text in texts or [reports.TERMINAL]]
    except ValueError as error:
        raise ValueError(f"noxu_coverage_report: {error}") from None
    try:
        return listed, None if not least else float(least)
    except ValueError:
        raise ValueError(f"noxu_coverage_fail_under: {least} is no number of percent") from None


class CoveragePlugin:
    """A plugin of pytest. `least` is in percent; None: no run fails."""

    def __init__(self, listed: Sequence[WantedReport], least: float | None) -> None:
        self._reports = listed
        self._least = least
        self.collector = Collector()
        self._sent: list[Object] = []
        self._servers: WeakKeyDictionary[Noxu, Server] = WeakKeyDictionary()
        handle.started.append(self._after_start)
        handle.stopping.append(self._before_stop)

    def pytest_unconfigure(self) -> None:
        handle.started.remove(self._after_start)
        handle.stopping.remove(self._before_stop)

    def _after_start(self, noxu: Noxu, server: Server) -> None:
        self._servers[noxu] = server  # another one after a restart
        self.collector.follow(server.plane)

    def _before_stop(self, noxu: Noxu) -> None:
        """A server is about to stop. Its definitions are those that count, also if nothing of them was written."""
        self.collector.add_definitions(self._servers[noxu].plane)

    # -- the session

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        sent = getattr(session.config, "workeroutput", None)
        if sent is not None:
            sent[_SENT] = self.collector.collected()  # of what JSON has, which is what xdist can send
        elif session.exitstatus == pytest.ExitCode.OK and reports.lack(self._trees(), self._least):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A process of pytest-xdist has ended."""
        if collected := getattr(node, "workeroutput", {}).get(_SENT):
            self._sent.append(collected)

    def _trees(self) -> list[Object]:
        return trees.trees(trees.merged_collections([*self._sent, self.collector.collected()]))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        made = self._trees()
        for report in self._reports:
            if report.path is None:
                terminalreporter.section("noxu coverage")
                terminalreporter.write_line(reports.as_text(made))
                continue
            try:
                terminalreporter.write_line(f"noxu coverage: {reports.write(report, made)}")
            except OSError as error:
                why = f"{report.path} cannot be written: {error.strerror or error}"
                terminalreporter.write_line(f"noxu coverage: {why}", red=True)
        if lack := reports.lack(made, self._least):
            terminalreporter.write_line(f"noxu: {lack}", red=True)
