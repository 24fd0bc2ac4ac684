"""What `noxu test` reports: cases, and the steps of kuttl's tests, each with a verdict and with findings in files.

{"cases": [{"file": …, "line": 4, "column": 3, "name": …, "verdict": "failed", "findings": […]}],
 "unusable": [{"file": …, "findings": […]}], "summary": {"cases": 1, "passed": 0, "failed": 1, "unusable": 0}}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from noxu.api.field import ROOT
from noxu.api.field import Path as FieldPath
from noxu.cases import judging
from noxu.cases.outcomes import CaseOutcome, FileOutcome, Verdict
from noxu.commands import by_release, findings, reports
from noxu.commands.findings import Checked, Finding
from noxu.commands.reports import Style
from noxu.manifests.documents import Document
from noxu.values import Json, Object

RESULTS: Final[dict[Verdict, findings.Result]] = {"passed": "valid", "failed": "refused", "unusable": "unreadable"}
_COLOURS: Final = {"passed": "green", "failed": "red", "unusable": "red"}


class CaseReport(NamedTuple):
    """A case or a step; with the name "" what is no case, but should have some. `place`: where it is in its document.

    `checked`: the documents that its findings are about, at least one. `is_listed`: its verdict is a line of its own.
    """

    name: str
    verdict: Verdict
    checked: Sequence[Checked]
    place: FieldPath = ROOT
    is_listed: bool = True

    @property
    def document(self) -> Document:
        return self.checked[0].document


def missing(checked: Checked) -> CaseReport:
    """Of a path that has no case."""
    return CaseReport("", "unusable", [checked], is_listed=False)


def of_file(outcome: FileOutcome) -> Iterator[CaseReport]:
    """The cases of a file, or the one report of a file that cannot be run."""
    document = outcome.file.document
    if outcome.problems:
        found = [
            by_release.advised(finding(document, "unreadable", problem.field, problem.message))
            for problem in outcome.problems
        ]
        yield CaseReport("", "unusable", [Checked(document, "", "unreadable", found)])
    for each in outcome.outcomes:
        checked = Checked(document, each.case.name, RESULTS[each.verdict], list(_findings(document, each)))
        yield CaseReport(each.case.name, each.verdict, [checked], each.case.path)


def _findings(document: Document, outcome: CaseOutcome) -> Iterator[Finding]:
    for problem in outcome.problems:
        yield finding(document, "unusable", problem.field, problem.message)
    for n, found in enumerate(outcome.differences):
        field = judging.place(outcome.case, found)
        explained = outcome.explanation if n == len(outcome.differences) - 1 else ()
        text = with_lines(found.message, [*found.diff, *explained])
        yield finding(document, found.field.partition(".")[0] or "allowed", field, text)


def finding(document: Document, rule: str, field: FieldPath, message: str) -> Finding:
    return Finding("error", rule, message, field, "", document.position(field))


def with_lines(message: str, lines: Sequence[str]) -> str:
    return "\n".join([message, *(f"  {line}" for line in lines)])


# -- output -----------------------------------------------------------------------------------------------------------


def lines(cases: Sequence[CaseReport], style: Style, *, verbose: bool) -> Iterator[str]:
    """Each case that does not pass, with its findings, and how many there are of all."""
    counts = _counts(cases)
    for case in cases:
        if case.is_listed and (case.verdict != "passed" or verbose):
            about = f"{case.checked[0].title}: " if case.checked[0].title else ""
            yield f"{case.document.file}: {about}{style.of(case.verdict, _COLOURS[case.verdict])}"
        for checked in case.checked:
            for found in checked.findings:
                yield from reports.finding_lines(checked, found, style)
    number = counts.pop("cases")
    listed = [
        style.of(f"{many} {what}", _COLOURS[what]) if many else f"{many} {what}"
        for what, many in counts.items()
        if many or what != "unusable"
    ]
    yield f"{number} case{'' if number == 1 else 's'}: {', '.join(listed)}"


def _counts(cases: Sequence[CaseReport]) -> dict[str, int]:
    verdicts = [case.verdict for case in cases if case.name]
    counts: dict[str, int] = {"cases": len(verdicts)}
    for verdict in RESULTS:
        counts[verdict] = verdicts.count(verdict)
    counts["unusable"] += sum(not case.name for case in cases)
    return counts


def as_json(cases: Sequence[CaseReport]) -> Json:
    return {
        "cases": [_case_as_json(case) for case in cases if case.name],
        "unusable": [
            {"file": case.document.file, "findings": _findings_as_json(case)} for case in cases if not case.name
        ],
        "summary": _counts(cases),
    }


def _case_as_json(case: CaseReport) -> Object:
    line, column = case.document.position(case.place) or (None, None)
    return {
        "file": case.document.file,
        "line": line,
        "column": column,
        "name": case.name,
        "verdict": case.verdict,
        "findings": _findings_as_json(case),
    }


def _findings_as_json(case: CaseReport) -> list[Object]:
    """Those in another file than the case's name it."""
    file = case.document.file
    return [
        {**shown, **({} if checked.document.file == file else {"file": checked.document.file})}
        for checked in case.checked
        for shown in findings.as_json(checked.findings)
    ]
