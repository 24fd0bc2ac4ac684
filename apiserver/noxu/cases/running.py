"""Run files of cases: those that are given the same share a control plane, and no case sees another one.

A case is run without a trace, which costs a tenth. If it fails, or expects what only a trace tells, it is run once more with
one, which explains it: the stage that has refused the object, the rule, and the values in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from noxu.api import codec
from noxu.api.field import child
from noxu.cases import planes
from noxu.cases.case_files import Case, CaseFile, CaseProblem, read
from noxu.cases.judging import differences, needs_trace
from noxu.cases.outcomes import CaseOutcome, FileOutcome, explanation, of_releases
from noxu.cases.planes import UnusableCase
from noxu.control_plane import ControlPlane
from noxu.registry.offload import without_threads
from noxu.releases import NEWEST

Chosen = Callable[[Case], bool]
Observe = Callable[[ControlPlane], object]
"""Is called with a control plane that has what is given, before the cases are written to it."""


def every(_: Case) -> bool:
    return True


def nothing(_: ControlPlane) -> None: ...


def run_paths(
    paths: Iterable[Path],
    chosen: Chosen = every,
    observe: Observe = nothing,
    *,
    updates: bool = False,
    releases: Sequence[int] = (),
) -> list[FileOutcome]:
    """Read and run files. `updates`: see `case_files.read`. `releases` of Kubernetes replace those that files give."""
    files = [read(path, updates=updates) for path in paths]
    return run([file._replace(releases=releases) for file in files] if releases else files, chosen, observe)


def run(files: Sequence[CaseFile], chosen: Chosen = every, observe: Observe = nothing) -> list[FileOutcome]:
    """The outcomes of files, in their order."""
    return asyncio.run(_run(files, chosen, observe))


async def _run(files: Sequence[CaseFile], chosen: Chosen, observe: Observe) -> list[FileOutcome]:
    outcomes: dict[int, dict[int, FileOutcome]] = {id(file): {} for file in files}  # of each file by release
    together: dict[tuple[int, bytes], list[CaseFile]] = {}
    for file in files:
        if file.problems:
            outcomes[id(file)][NEWEST] = FileOutcome(file, problems=file.problems)
            continue
        given = _given_key(file)
        for release in file.releases:
            together.setdefault((release, given), []).append(file)
    with without_threads():
        for (release, _), members in together.items():
            async with planes.given_plane(members[0].given, release) as (plane, problems):
                observe(plane)
                for file in members:
                    ran = [] if problems else [await _case(plane, case) for case in file.cases if chosen(case)]
                    outcomes[id(file)][release] = FileOutcome(file, ran, problems)
    return [of_releases(outcomes[id(file)]) for file in files]


def _given_key(file: CaseFile) -> bytes:
    """The same for files that are given the same."""
    given = {name: [document.value for document in listed] for name, listed in file.given.items()}
    return codec.encode(given, sort_keys=True)


async def _case(plane: ControlPlane, case: Case) -> CaseOutcome:
    try:
        traced = needs_trace(case.expect)
        result = await planes.run(plane, case, traced=traced)
        found = differences(case, result)
        if found and not traced:
            result = await planes.run(plane, case, traced=True)
        return CaseOutcome(case, found, list(explanation(result.trace)) if found else ())
    except UnusableCase as error:
        field, message = error.problem
        return CaseOutcome(case, problems=[CaseProblem(child(case.path, field), message)])
