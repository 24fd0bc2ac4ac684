"""The manners of clients in a whole run of pytest: `--noxu-report [FILE]`, and `noxu_manners`, which fails tests.

    --noxu-report                       a report of all servers of the session, at the end of the run
    --noxu-report report.html           as a file: .html, .json, or text
    noxu_manners = polite               a test fails if a client has a bad habit in it more often than it is tolerated
    noxu_manners = polite conflicts=20 polling=any

A server is asked when a test ends, and before it stops. Processes of pytest-xdist send their reports to the one that started
them. This plugin is registered only if an option asks for it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from noxu.api import codec
from noxu.control.manners.habits import HABITS, tolerated
from noxu.control.manners.page import as_page
from noxu.control.manners.report import impolite, merged
from noxu.control.manners.text import as_text
from noxu.features import meant
from noxu.testing import handle
from noxu.testing.errors import Stopped
from noxu.testing.handle import Noxu
from noxu.testing.plugin import TERMINAL
from noxu.values import Object
from noxu_storage.types import StoreError

POLITE: Final = "polite"
"""The word for the numbers of HABITS."""
ANY: Final = "any"
_SENT: Final = "noxu_reports"
"""What a process of pytest-xdist sends."""
Thresholds = Mapping[str, int | None]


def thresholds(words: Sequence[str]) -> Thresholds:
    """What `noxu_manners` says: `polite`, HABIT=NUMBER, HABIT=any. Raises ValueError."""
    given: dict[str, int | None] = {}
    for word in words:
        name, equals, number = word.partition("=")
        if word == POLITE:
            continue
        if name not in HABITS:
            raise ValueError(f"{name} is no habit: there are {', '.join(HABITS)}{meant(name, HABITS)}")
        if not equals or not (number == ANY or number.isdecimal()):
            raise ValueError(f"{word}: write {name}=NUMBER or {name}={ANY}")
        given[name] = None if number == ANY else int(number)
    tolerated(given)
    return given


class Manners:
    """A plugin of pytest. `file` None: no report. `limits` None: no test fails."""

    def __init__(self, file: str | None, limits: Thresholds | None) -> None:
        self._file = file
        self._limits = limits
        self._reports: list[Object] = []
        self._of_test: dict[Noxu, int] | None = None  # the newest request of each server when the test began
        self._stopped: list[Object] = []  # of servers that have stopped during the test
        handle.stopping.append(self._before_stop)

    def pytest_unconfigure(self) -> None:
        handle.stopping.remove(self._before_stop)

    def _before_stop(self, server: Noxu) -> None:
        """A server is about to stop; its requests end here."""
        if self._file is not None:
            self._reports += _ask(server, 0)
        if self._of_test is not None and self._limits is not None:
            self._stopped += _ask(server, self._of_test.get(server, 0))

    # -- a test

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        self._of_test = {server: requests.last for server, requests in handle.running.items()}
        self._stopped = []
        try:
            result = yield
            if self._limits is not None:
                servers = sorted(handle.running, key=lambda server: server.url)
                now = [report for server in servers for report in _ask(server, self._of_test.get(server, 0))]
                _refuse([*self._stopped, *now], self._limits)
            return result
        finally:
            self._of_test, self._stopped = None, []

    # -- the session

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        sent = getattr(session.config, "workeroutput", None)
        if sent is not None:
            sent[_SENT] = self._reports  # of what JSON has, which is what xdist can send

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A process of pytest-xdist has ended."""
        self._reports += getattr(node, "workeroutput", {}).get(_SENT, ())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        if self._file is None:
            return
        report = merged(self._reports)
        if self._file == TERMINAL:
            terminalreporter.section("noxu report")
            terminalreporter.write_line(as_text(report))
            return
        path = config.invocation_params.dir / self._file
        try:
            _write(path, report)
        except OSError as error:
            terminalreporter.write_line(f"noxu report: {path} cannot be written: {error.strerror or error}", red=True)
        else:
            terminalreporter.write_line(f"noxu report: {path}")


def _ask(server: Noxu, after: int) -> list[Object]:
    """The report about the requests of a server after this one; none if it has stopped, or its store is broken on purpose."""
    try:
        return [server.report_after(after).value]
    except (Stopped, StoreError):
        return []


def _refuse(reports: Sequence[Object], limits: Thresholds) -> None:
    """Fail the test if clients have bad manners."""
    if sentences := impolite(merged(reports), limits):
        pytest.fail("\n".join(["clients have bad manners:", *(f"- {each}" for each in sentences)]), pytrace=False)


def _write(path: Path, report: Object) -> None:
    """Raises OSError."""
    text = {".html": as_page, ".json": _json}.get(path.suffix, _text)(report)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _json(report: Object) -> str:
    return codec.pretty(report, sort_keys=False).decode()


def _text(report: Object) -> str:
    return f"{as_text(report)}\n"
