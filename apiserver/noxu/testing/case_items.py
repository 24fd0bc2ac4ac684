"""The files of cases of `noxu test` as tests of pytest: a file is a collector, and each case a test.

The option `noxu_tests` names the files and directories. The cases of a file are run together when the first of them is wanted:
that takes less than a millisecond each, and none sees another one. A case that fails reports the field of its file, the diff,
and what the stages of the write said.

A directory of a test of kuttl is one test; `noxu_nodes` says how many nodes it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest

from noxu.cases import judging, running
from noxu.cases.case_files import SUFFIXES, CaseFile, read
from noxu.cases.outcomes import CaseOutcome, FileOutcome
from noxu.kuttl import running as steps_running
from noxu.kuttl import steps
from noxu.kuttl.running import KuttlOutcome

COVERAGE: Final = "noxu_coverage"
"""The name of the plugin that counts what cases show, if there is one."""


def collector(
    parent: pytest.Collector, path: Path, named: Iterable[Path], nodes: int | None = None
) -> pytest.Collector | None:
    """The collector of a file; None if it is in none of the directories that are named, and neither a file of cases, nor the
    first one of a test of kuttl, which has so many nodes.
    """
    if any(path == each or (each in path.parents and path.name.endswith(SUFFIXES)) for each in named):
        made: CaseCollector = CaseCollector.from_parent(parent, path=path)
        return made
    if any(each in path.parents for each in named) and path == steps.first_file(path.parent):
        found: KuttlCollector = KuttlCollector.from_parent(parent, path=path)
        found.nodes = nodes
        return found
    return None


class CaseFailure(Exception):
    """A case that fails, or a file that cannot be run. The message is the report."""


class CaseCollector(pytest.File):
    """The cases of a file."""

    @cached_property
    def read(self) -> CaseFile:
        return read(self.path)

    @cached_property
    def ran(self) -> FileOutcome:
        """In a thread, which has no event loop: the loop of a test may be open here."""
        with ThreadPoolExecutor(1) as thread:
            coverage = self.config.pluginmanager.get_plugin(COVERAGE)
            observe = running.nothing if coverage is None else coverage.collector.follow
            return thread.submit(running.run, [self.read], observe=observe).result()[0]

    def collect(self) -> Iterator[pytest.Item]:
        if self.read.problems:
            raise CaseFailure("\n".join(self.placed(each.field, each.message) for each in self.read.problems))
        for case in self.read.cases:
            yield CaseItem.from_parent(self, name=case.name)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        return _said(excinfo) or super().repr_failure(excinfo)

    def placed(self, field: str, message: str) -> str:
        return f"{self.read.document.place(field)}: {field}: {message}"


class CaseItem(pytest.Item):
    """One case."""

    parent: CaseCollector

    def runtest(self) -> None:
        ran = self.parent.ran
        if ran.problems:
            raise CaseFailure("\n".join(self.parent.placed(each.field, each.message) for each in ran.problems))
        outcome = next(each for each in ran.outcomes if each.case.name == self.name)
        if outcome.verdict != "passed":
            raise CaseFailure("\n".join(self._lines(outcome)))

    def _lines(self, outcome: CaseOutcome) -> Iterator[str]:
        for problem in outcome.problems:
            yield self.parent.placed(problem.field, problem.message)
        for found in outcome.differences:
            yield self.parent.placed(judging.place(outcome.case, found), found.message)
            yield from (f"  {line}" for line in found.diff)
        yield from outcome.explanation

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        return _said(excinfo) or super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        case = next(case for case in self.parent.read.cases if case.name == self.name)
        position = self.parent.read.document.position(case.path)
        return self.path, position.line - 1 if position else None, self.name


class KuttlCollector(pytest.File):
    """The directory of a test of kuttl: its first file stands for it."""

    nodes: int | None = None

    def collect(self) -> Iterator[pytest.Item]:
        yield KuttlItem.from_parent(self, name=self.path.parent.name)


class KuttlItem(pytest.Item):
    """One test, with all its steps."""

    parent: KuttlCollector

    def runtest(self) -> None:
        coverage = self.config.pluginmanager.get_plugin(COVERAGE)
        observe = running.nothing if coverage is None else coverage.collector.follow
        with ThreadPoolExecutor(1) as thread:  # which has no event loop
            test = steps.read(self.path.parent)
            [outcome] = thread.submit(steps_running.run, [test], self.parent.nodes, (), observe).result()
        if lines := list(self._lines(outcome)):
            raise CaseFailure("\n".join(lines))

    def _lines(self, outcome: KuttlOutcome) -> Iterator[str]:
        for document, field, message in outcome.problems:
            yield f"{document.place(field)}: {field}: {message}" if field else f"{document.place()}: {message}"
        for step in outcome.steps:
            for failure in step.failures:
                place = failure.document.place(failure.field)
                yield f"{place}: step {step.step.name}: {failure.message}"
                yield from (f"  {line}" for line in failure.diff)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        return _said(excinfo) or super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


def _said(excinfo: Any) -> str:
    """What a failure says, without a traceback; "" for an error in what runs cases."""
    return str(excinfo.value) if isinstance(excinfo.value, CaseFailure) else ""
