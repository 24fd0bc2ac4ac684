"""`noxu test`: run cases that lie beside manifests, without a server, and report those that fail.

    noxu test tests/                  # all files *_test.yaml
    noxu test --update tests/         # what came becomes what is expected, in `stored` and `converted`
    noxu test --coverage tests/       # and which parts of the schemas they have shown
    noxu test --kubernetes 1.29,1.37 tests/   # as these versions, whatever the files give
    noxu test --watch .               # again, whenever a file changes that a file of cases names

A case that fails has findings at the fields that it expects, each with a diff in YAML, and what the stages of the write said.
With `--watch` files are polled ten times a second, or less often if there are so many that it would take more than a fiftieth
of a processor.
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
from noxu.api.field import Path as FieldPath
from noxu.cases import case_files, golden, judging, running
from noxu.cases.case_files import Case
from noxu.cases.golden import NotWritten
from noxu.cases.outcomes import CaseOutcome, FileOutcome, Verdict
from noxu.commands import calls, findings, reports
from noxu.commands.findings import Checked, Finding
from noxu.commands.reports import Style
from noxu.manifests.documents import Document
from noxu.manifests.watch import SHARE, Signatures, WatchedPaths
from noxu.observability.logs import shown_on
from noxu.values import Json, Object

COVERAGE: Final = "noxu.commands.case_coverage"
EVERY: Final = 0.1  # seconds between two looks at the files
_RESULTS: Final[dict[Verdict, findings.Result]] = {"passed": "valid", "failed": "refused", "unusable": "unreadable"}
_COLOURS: Final = {"passed": "green", "failed": "red", "unusable": "red"}


def run(options: argparse.Namespace) -> int:
    """Exit status 0: all cases pass; 1: one fails, or less is covered than is wanted; 2: one cannot be run."""
    with garbage.seldom_collected(ends=options.own_process):
        if options.watch:
            for _ in watched(options, endless()):
                sys.stdout.flush()
        return _run_once(options, case_files.found(options.paths))


def _run_once(options: argparse.Namespace, files: Sequence[Path]) -> int:
    ran = _ran(options, files)
    if options.update:
        try:
            for path in _updated(ran.outcomes):
                print(f"{path}: updated", file=sys.stderr)
        except NotWritten as error:
            calls.complain(str(error))
            return findings.UNREADABLE
        ran = _ran(options, files)
    empty = [] if options.allow_empty else [*_empty(options.paths), *_unnamed(options, ran.outcomes)]
    status = _report(options, ran.outcomes, empty)
    if options.coverage:
        status = max(status, import_module(COVERAGE).report(options, ran.collections))
    return status


class _Ran(NamedTuple):
    """`collections`: what collectors of coverage have collected, one of each process."""

    outcomes: list[FileOutcome]
    collections: Sequence[Object] = ()


def _ran(options: argparse.Namespace, files: Sequence[Path]) -> _Ran:
    run_files = partial(_run_files, tuple(options.names), options.update, options.coverage, options.kubernetes)
    if options.jobs == 1 or len(files) < 2:
        return run_files(files)
    from concurrent.futures import ProcessPoolExecutor  # takes long to import

    jobs = min(options.jobs, len(files))
    parts = [files[n::jobs] for n in range(jobs)]
    with ProcessPoolExecutor(jobs) as pool:
        of_parts = list(pool.map(run_files, parts))
    outcomes = [of_parts[n % jobs].outcomes[n // jobs] for n in range(len(files))]
    return _Ran(outcomes, [collected for part in of_parts for collected in part.collections])


def _run_files(
    names: Sequence[str], updates: bool, coverage: bool, releases: Sequence[int], files: Sequence[Path]
) -> _Ran:
    """In any process."""
    if not coverage:
        return _Ran(running.run_paths(files, _chosen(names), updates=updates, releases=releases))
    outcomes, collected = import_module(COVERAGE).run(files, _chosen(names), updates=updates, releases=releases)
    return _Ran(outcomes, [collected])


def _chosen(names: Sequence[str]) -> Callable[[Case], bool]:
    return lambda case: not names or any(name in case.name for name in names)


def _updated(outcomes: Iterable[FileOutcome]) -> Iterator[Path]:
    for outcome in outcomes:
        yield from golden.update(outcome)


def _empty(paths: Iterable[Path]) -> Iterator[Checked]:
    """The paths without a file of cases."""
    for path in paths:
        if not case_files.found([path]):
            yield findings.nothing([path], "contains no file *_test.yaml")


def _unnamed(options: argparse.Namespace, outcomes: Iterable[FileOutcome]) -> Iterator[Checked]:
    """That no case has the name that --run gives."""
    if options.names and not any(outcome.outcomes or outcome.problems for outcome in outcomes):
        yield findings.nothing(options.paths, f"no case has a name with {' or '.join(options.names)}")


# -- again, when files change -----------------------------------------------------------------------------------------


def watched(options: argparse.Namespace, rounds: Iterable[int], every: float = EVERY) -> Iterator[int]:
    """Run all files, and in each later round those that a change concerns. Yields the exit status of each run."""
    seen: dict[Path, Signatures] | None = None
    named: dict[Path, tuple[Signatures, list[Path]]] = {}
    for _ in rounds:
        began = time.process_time()
        states = {file: _state(file, named) for file in case_files.found(options.paths)}
        concerned = [file for file, state in states.items() if seen is None or seen.get(file) != state]
        if concerned or seen is None:
            print(f"-- {time.strftime('%H:%M:%S')}")
            yield _run_once(options, concerned)
        seen = states
        pause = max(every, 0.0 if concerned else SHARE * (time.process_time() - began))
        time.sleep(pause)


def _state(file: Path, named: dict[Path, tuple[Signatures, list[Path]]]) -> Signatures:
    """What a file of cases, and the files that it names, are now. It is read when it has changed: `named` keeps their names."""
    own = _signatures([file])
    if file not in named or named[file][0] != own:
        named[file] = own, sorted(case_files.read(file).files)
    return own | _signatures(named[file][1])


def _signatures(paths: list[Path]) -> Signatures:
    merged: Signatures = {}
    for signatures in WatchedPaths(paths, []).signatures().values():
        merged |= signatures
    return merged


# -- output -----------------------------------------------------------------------------------------------------------


def _report(options: argparse.Namespace, outcomes: Sequence[FileOutcome], empty: Sequence[Checked]) -> int:
    checked = [*(each for outcome in outcomes for each in checks(outcome)), *empty]
    if options.output in reports.FORMATS:
        print(reports.FORMATS[options.output](checked, "test"))
    elif options.output == "json":
        print(codec.pretty(_as_json(outcomes, empty), sort_keys=False).decode())
    else:
        style = Style(colours=shown_on(sys.stdout))
        for line in lines(outcomes, empty, style, verbose=options.verbose):
            print(line)
    return findings.exit_status(checked)


def checks(outcome: FileOutcome) -> Iterator[Checked]:
    """The outcomes of a file's cases as findings: those of a case that fails, or of a file that cannot be run."""
    document = outcome.file.document
    if outcome.problems:
        found = [_finding(document, "unreadable", problem.field, problem.message) for problem in outcome.problems]
        yield Checked(document, "", "unreadable", found)
    for each in outcome.outcomes:
        yield Checked(document, each.case.name, _RESULTS[each.verdict], list(_findings(document, each)))


def _findings(document: Document, outcome: CaseOutcome) -> Iterator[Finding]:
    for problem in outcome.problems:
        yield _finding(document, "unusable", problem.field, problem.message)
    for n, found in enumerate(outcome.differences):
        field = judging.place(outcome.case, found)
        explained = outcome.explanation if n == len(outcome.differences) - 1 else ()
        text = "\n".join([found.message, *(f"  {line}" for line in [*found.diff, *explained])])
        yield _finding(document, found.field.partition(".")[0] or "allowed", field, text)


def _finding(document: Document, rule: str, field: FieldPath, message: str) -> Finding:
    return Finding("error", rule, message, field, "", document.position(field))


def lines(outcomes: Sequence[FileOutcome], empty: Sequence[Checked], style: Style, *, verbose: bool) -> Iterator[str]:
    """Each case that does not pass, with its findings, and how many there are of all."""
    counts = _counts(outcomes, empty)
    for outcome in outcomes:
        verdicts = ["unusable"] * bool(outcome.problems) + [each.verdict for each in outcome.outcomes]
        for checked, verdict in zip(checks(outcome), verdicts, strict=True):
            if verdict != "passed" or verbose:
                about = f"{checked.title}: " if checked.title else ""
                yield f"{checked.document.file}: {about}{style.of(verdict, _COLOURS[verdict])}"
            for found in checked.findings:
                yield from reports.finding_lines(checked, found, style)
    for checked in empty:
        for found in checked.findings:
            yield from reports.finding_lines(checked, found, style)
    cases = counts.pop("cases")
    listed = [
        style.of(f"{number} {what}", _COLOURS[what]) if number else f"{number} {what}"
        for what, number in counts.items()
        if number or what != "unusable"
    ]
    yield f"{cases} case{'' if cases == 1 else 's'}: {', '.join(listed)}"


def _counts(outcomes: Sequence[FileOutcome], empty: Sequence[Checked]) -> dict[str, int]:
    verdicts = [each.verdict for outcome in outcomes for each in outcome.outcomes]
    counts: dict[str, int] = {"cases": len(verdicts)}
    for verdict in _RESULTS:
        counts[verdict] = verdicts.count(verdict)
    counts["unusable"] += sum(bool(outcome.problems) for outcome in outcomes) + len(empty)
    return counts


def _as_json(outcomes: Sequence[FileOutcome], empty: Sequence[Checked]) -> Json:
    cases = [_case_as_json(outcome, each) for outcome in outcomes for each in outcome.outcomes]
    broken = [each for outcome in outcomes if outcome.problems for each in checks(outcome) if each.title == ""]
    return {
        "cases": cases,
        "unusable": [
            {"file": each.document.file, "findings": findings.as_json(each.findings)} for each in [*broken, *empty]
        ],
        "summary": _counts(outcomes, empty),
    }


def _case_as_json(outcome: FileOutcome, case: CaseOutcome) -> Object:
    document = outcome.file.document
    line, column = document.position(case.case.path) or (None, None)
    return {
        "file": document.file,
        "line": line,
        "column": column,
        "name": case.case.name,
        "verdict": case.verdict,
        "findings": findings.as_json(_findings(document, case)),
    }
