"""`noxu test`: run cases that lie beside manifests, without a server, and report those that fail.

    noxu test tests/                  # all files *_test.yaml
    noxu test --update tests/         # what came becomes what is expected, in `stored` and `converted`
    noxu test --coverage tests/       # and which parts of the schemas they have shown
    noxu test --kubernetes 1.29,1.37 tests/   # as these versions, whatever the files give
    noxu test --watch .               # again, whenever a file changes that a file of cases names

Directories of kuttl's tests are run, too, each against a server of its own:

    noxu test --nodes 3 -f config/crd tests/e2e

A case that fails has findings at the fields that it expects, each with a diff in YAML, and what the stages of the write said.
With `--watch` files are looked at a hundred times a second, or less often if there are so many that it would take more than a
twentieth of a processor. A change is run when two looks, five milliseconds apart, have found the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import count as endless
from pathlib import Path
from typing import Final, NamedTuple

from noxu import garbage
from noxu.api import codec
from noxu.cases import case_files, golden, running
from noxu.cases.case_files import Case
from noxu.cases.golden import NotWritten
from noxu.cases.outcomes import FileOutcome
from noxu.cases.running import Observe
from noxu.commands import calls, case_reports, findings, reports
from noxu.commands.case_reports import CaseReport
from noxu.commands.findings import Checked
from noxu.commands.reports import Style
from noxu.kuttl import steps as kuttl_tests
from noxu.manifests.watch import Signatures, WatchedPaths
from noxu.observability.logs import shown_on
from noxu.values import Object

COVERAGE: Final = "noxu.commands.case_coverage"
KUTTL: Final = "noxu.commands.kuttl"
EVERY: Final = 0.01  # seconds between two looks at the files
SHARE: Final = 20  # a look may take one part of so many of a processor
SETTLED: Final = 0.005  # seconds without a change: a file may be half written
MOST_LOOKS: Final = 20  # until they settle; a file that changes all the time does not keep the others waiting


def run(options: argparse.Namespace) -> int:
    """Exit status 0: all cases pass; 1: one fails, or less is covered than is wanted; 2: one cannot be run."""
    with garbage.seldom_collected(ends=options.own_process):
        if options.watch:
            for _ in watched(options, endless()):
                sys.stdout.flush()
        return _run_once(options, _units(options))


def _run_once(options: argparse.Namespace, units: Sequence[Path]) -> int:
    ran = _ran(options, units)
    if options.update:
        try:
            for path in _updated(ran):
                print(f"{path}: updated", file=sys.stderr)
        except NotWritten as error:
            calls.complain(str(error))
            return findings.UNREADABLE
        ran = _ran(options, units)
    cases = [case for unit in ran.units for case in unit.cases]
    empty = [] if options.allow_empty else [*_empty(options), *_unnamed(options, cases)]
    status = _report(options, [*cases, *map(case_reports.missing, empty)])
    if options.coverage:
        status = max(status, import_module(COVERAGE).report(options, ran.collections))
    return status


class UnitRun(NamedTuple):
    """A file of cases with its outcome, or a directory of a test of kuttl."""

    cases: Sequence[CaseReport]
    outcome: FileOutcome | None = None


class _Ran(NamedTuple):
    """`collections`: what collectors of coverage have collected, one of each process."""

    units: Sequence[UnitRun]
    collections: Sequence[Object] = ()


def _units(options: argparse.Namespace) -> list[Path]:
    """The files of cases, and the directories of kuttl's tests."""
    return [*case_files.found(options.paths), *kuttl_tests.found(options.paths)]


def _ran(options: argparse.Namespace, units: Sequence[Path]) -> _Ran:
    # what a process needs, without what is computed from the options
    given = {name: getattr(options, name) for name in _USED}
    run_units = partial(_run_units, argparse.Namespace(**given))
    if options.jobs == 1 or len(units) < 2:
        return run_units(units)
    from concurrent.futures import ProcessPoolExecutor  # takes long to import

    jobs = min(options.jobs, len(units))
    parts = [units[n::jobs] for n in range(jobs)]
    with ProcessPoolExecutor(jobs) as pool:
        of_parts = list(pool.map(run_units, parts))
    in_order = [of_parts[n % jobs].units[n // jobs] for n in range(len(units))]
    return _Ran(in_order, [collected for part in of_parts for collected in part.collections])


_USED: Final = ("names", "update", "coverage", "kubernetes", "given", "nodes")


def _run_units(options: argparse.Namespace, units: Sequence[Path]) -> _Ran:
    """In any process."""
    run_observed = partial(_run_observed, options, units)
    if not options.coverage:
        return _Ran(run_observed(running.nothing))
    ran, collected = import_module(COVERAGE).counted(run_observed)
    return _Ran(ran, [collected])


def _run_observed(options: argparse.Namespace, units: Sequence[Path], observe: Observe) -> list[UnitRun]:
    directories = [unit for unit in units if unit.is_dir()]
    files = [unit for unit in units if unit not in directories]
    chosen = _chosen(options.names)
    outcomes = running.run_paths(files, chosen, observe, updates=options.update, releases=options.kubernetes)
    ran = {
        file: UnitRun(list(case_reports.of_file(outcome)), outcome)
        for file, outcome in zip(files, outcomes, strict=True)
    }
    if directories:
        of_directories = import_module(KUTTL).run(options, directories, observe)
        ran |= {directory: UnitRun(cases) for directory, cases in of_directories.items()}
    return [ran[unit] for unit in units]


def _chosen(names: Sequence[str]) -> Callable[[Case], bool]:
    return lambda case: not names or any(name in case.name for name in names)


def _updated(ran: _Ran) -> Iterator[Path]:
    for unit in ran.units:
        if unit.outcome is not None:
            yield from golden.update(unit.outcome)


def _empty(options: argparse.Namespace) -> Iterator[Checked]:
    """The paths without a file of cases, and options for tests of kuttl without one."""
    tests = kuttl_tests.found(options.paths)
    for path in options.paths:
        if not case_files.found([path]) and not kuttl_tests.found([path]):
            yield findings.nothing([path], "contains no file *_test.yaml, and no test of kuttl")
    if not tests and (options.given or options.nodes is not None):
        yield findings.nothing(options.paths, "-f and --nodes are for tests of kuttl, and there are none")


def _unnamed(options: argparse.Namespace, cases: Sequence[CaseReport]) -> Iterator[Checked]:
    """That no case has the name that --run gives."""
    if options.names and not cases:
        yield findings.nothing(options.paths, f"no case has a name with {' or '.join(options.names)}")


# -- again, when files change -----------------------------------------------------------------------------------------


_Named = dict[Path, tuple[Signatures, list[Path]]]
"""What files and directories were when they were last read, and the paths that they name."""


def watched(options: argparse.Namespace, rounds: Iterable[int], every: float = EVERY) -> Iterator[int]:
    """Run all files, and in each later round those that a change concerns. Yields the exit status of each run."""
    seen: dict[Path, Signatures] | None = None
    named: _Named = {}
    for _ in rounds:
        began = time.process_time()
        states = _states(options, named)
        if seen is not None and states != seen:
            states = _settled(options, named, states)
        concerned = [unit for unit, state in states.items() if seen is None or seen.get(unit) != state]
        if concerned or seen is None:
            print(f"-- {time.strftime('%H:%M:%S')}")
            yield _run_once(options, concerned)
        seen = states
        pause = max(every, 0.0 if concerned else SHARE * (time.process_time() - began))
        time.sleep(pause)


def _states(options: argparse.Namespace, named: _Named) -> dict[Path, Signatures]:
    return {unit: _state(unit, named) for unit in _units(options)}


def _settled(options: argparse.Namespace, named: _Named, states: dict[Path, Signatures]) -> dict[Path, Signatures]:
    """What the files are when they do not change any more, or have changed for MOST_LOOKS."""
    for _ in range(MOST_LOOKS):
        time.sleep(SETTLED)
        before, states = states, _states(options, named)
        if states == before:
            break
    return states


def _state(unit: Path, named: _Named) -> Signatures:
    """What a file of cases, and the files that it names, are now. It is read when it has changed: `named` keeps their names."""
    own = _signatures([unit])
    if unit not in named or named[unit][0] != own:
        read = kuttl_tests.read if unit.is_dir() else case_files.read
        named[unit] = own, sorted(read(unit).files)
    return own | _signatures(named[unit][1])


def _signatures(paths: list[Path]) -> Signatures:
    merged: Signatures = {}
    for signatures in WatchedPaths(paths, []).signatures().values():
        merged |= signatures
    return merged


# -- output -----------------------------------------------------------------------------------------------------------


def _report(options: argparse.Namespace, cases: Sequence[CaseReport]) -> int:
    checked = [each for case in cases for each in case.checked]
    if options.output in reports.FORMATS:
        print(reports.FORMATS[options.output](checked, "test"))
    elif options.output == "json":
        print(codec.pretty(case_reports.as_json(cases), sort_keys=False).decode())
    else:
        style = Style(colours=shown_on(sys.stdout))
        for line in case_reports.lines(cases, style, verbose=options.verbose):
            print(line)
    return findings.exit_status(checked)
