"""What came of a case, and how that differs from what it expects.

A `CaseResult` is what the pipeline did. A `Difference` is about one field of `expect`, with the lines of a diff in YAML:

    - spec:
    -   size: 3
    + spec:
    +   size: 1
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.api.field import Path as FieldPath
from noxu.api.json_patches import field_path, steps
from noxu.cases.case_files import Case, CaseFile, CaseProblem
from noxu.registry.trace import Step, Trace
from noxu.releases import listed
from noxu.values import Json, Object

Verdict = Literal["passed", "failed", "unusable"]


class CaseResult(NamedTuple):
    """What a write did. `error` is why it was denied, None if it was accepted; `stored` is what would be stored then.

    `pruned` are the paths of unknown fields. `converted` is the object at the version of `convert`, and `returned` what it is
    when it is converted back. `trace` has the steps of the write if it was traced.
    """

    error: ApiError | None = None
    warnings: Sequence[str] = ()
    stored: Object | None = None
    pruned: Sequence[str] = ()
    converted: Object | None = None
    returned: Object | None = None
    trace: Trace = []  # noqa: RUF012 - never changed


class Difference(NamedTuple):
    """`field` is in `expect`; `diff` the lines of a diff, if there is one. `got`: what came instead, for a golden field."""

    field: FieldPath
    message: str
    diff: Sequence[str] = ()
    got: Json = None


class CaseOutcome(NamedTuple):
    """The outcome of one case. `explanation`: the stages that say something, line by line, if it failed.

    `problems`: why it could not be run.
    """

    case: Case
    differences: Sequence[Difference] = ()
    explanation: Sequence[str] = ()
    problems: Sequence[CaseProblem] = ()

    @property
    def verdict(self) -> Verdict:
        return "unusable" if self.problems else "failed" if self.differences else "passed"


class FileOutcome(NamedTuple):
    """The outcomes of a file's cases, in its order. `problems`: why none of them could be run."""

    file: CaseFile
    outcomes: Sequence[CaseOutcome] = ()
    problems: Sequence[CaseProblem] = ()


def of_releases(by_release: Mapping[int, FileOutcome]) -> FileOutcome:
    """The outcomes of a file as several releases of Kubernetes: what only some of them say begins with these."""
    outcomes = [*by_release.values()]
    if len(outcomes) == 1:
        return outcomes[0]
    cases: dict[str, dict[int, CaseOutcome]] = {}
    for release, outcome in by_release.items():
        for each in outcome.outcomes:
            cases.setdefault(each.case.name, {})[release] = each
    problems = {release: outcome.problems for release, outcome in by_release.items()}
    return FileOutcome(outcomes[0].file, [_case_of_releases(ran) for ran in cases.values()], _together(problems))


def _case_of_releases(by_release: Mapping[int, CaseOutcome]) -> CaseOutcome:
    ran = by_release.items()
    return CaseOutcome(
        next(iter(by_release.values())).case,
        _together({release: outcome.differences for release, outcome in ran}),
        next((outcome.explanation for _, outcome in ran if outcome.explanation), ()),
        _together({release: outcome.problems for release, outcome in ran}),
    )


_Said = TypeVar("_Said", Difference, CaseProblem)


def _together(by_release: Mapping[int, Sequence[_Said]]) -> list[_Said]:
    """What releases say, each thing once."""
    said: list[tuple[_Said, list[int]]] = []
    for release, each in ((release, each) for release, several in by_release.items() for each in several):
        same = next((having for other, having in said if other == each), None)
        if same is None:
            said.append((each, [release]))
        else:
            same.append(release)
    return [
        each if len(having) == len(by_release) else each._replace(message=f"{listed(having)}: {each.message}")
        for each, having in said
    ]


def diff(expected: Json, got: Json) -> list[str]:
    """The lines that differ, with some around them: `-` expected, `+` got."""
    before, after = (_yaml_lines(value) for value in (expected, got))
    lines = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]  # without the names of files
    return [f"{line[0]} {line[1:]}" for line in lines if not line.startswith("@@")]


def _yaml_lines(value: Json) -> list[str]:
    return [] if value is None else codec.to_yaml(value).decode().splitlines()


def explanation(trace: Trace) -> Iterator[str]:
    """What the stages of a write say: changes by policies, notes, and for rules that failed the values in them."""
    for step in trace:
        lines = [] if step.stage == "persist" else list(_step_lines(step))  # which says that it is a dry run
        if lines:
            yield f"{step.stage.replace('_', ' ')}:"
            yield from (f"  {line}" for line in lines)


def _step_lines(step: Step) -> Iterator[str]:
    if step.stage.startswith(_CHANGERS):
        for change in step.patch:
            value = codec.encode(change["value"], sort_keys=False).decode() if "value" in change else ""
            yield f"{change['op']} {field_path(steps(change['path']))}{f' = {value}' if value else ''}"
    for note in step.notes:
        yield f"{note.path + ': ' if note.path else ''}{note.message}{f' ({note.hint})' if note.hint else ''}"
        if note.rule:
            yield f"  rule: {note.rule}"
        yield from (f"  {name} = {value}" for name, value in note.values.items())


_CHANGERS = ("policy ", "plug-in ")
