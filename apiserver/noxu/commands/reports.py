"""Findings as people and other programs read them: text, JUnit's XML, SARIF 2.1.0, and the commands of GitHub's workflows.

JUnit has no standard: the elements and attributes are those of the schema of Jenkins' plug-in, which other readers accept,
too (https://github.com/jenkinsci/xunit-plugin, junit-10.xsd). A document is a test case, a file a test suite. SARIF is
https://docs.oasis-open.org/sarif/sarif/v2.1.0; a workflow command is `::error file=a.yaml,line=4,col=8::text`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple
from urllib.parse import quote_from_bytes
from xml.etree import ElementTree as ET

from noxu.api import codec
from noxu.commands.findings import Checked, Finding, exit_status
from noxu.config import own_version
from noxu.observability.logs import coloured, shown_on
from noxu.schema.lint import REMARKS
from noxu.values import Object

if TYPE_CHECKING:
    import argparse

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Style(NamedTuple):
    """How text is printed.

    `detail`: of `errors`, only those, and the documents that have some; of `findings`, all documents that have some; of
    `all`, all documents. `groups`: whether warnings that repeat are printed together, at the end. `colours`: whether there
    are some.
    """

    detail: Detail = "all"
    groups: bool = False
    colours: bool = False

    def of(self, text: str, colour: str) -> str:
        return coloured(text, colour, shown=self.colours)

    def shows(self, checked: Checked) -> bool:
        return self.detail == "all" or any(map(self.tells, checked.findings))

    def tells(self, finding: Finding) -> bool:
        return self.detail != "errors" or finding.level == "error"


Detail = Literal["errors", "findings", "all"]
PLAIN: Final = Style()
COLOURS: Final = {"valid": "green", "refused": "red", "unreadable": "red", "skipped": "dim", "accepted": "green"}


def style(options: argparse.Namespace) -> Style:
    """The style that options choose for stdout. On a terminal documents without findings are only counted."""
    detail: Detail = "findings" if sys.stdout.isatty() else "all"
    if options.errors_only:
        detail = "errors"
    return Style("all" if options.verbose else detail, not options.verbose, shown_on(sys.stdout))


def lines(checked: Iterable[Checked], style: Style = PLAIN) -> Iterator[str]:
    """Each document with its result, and below it its findings: `a.yaml:4:8: spec.size: …`."""
    for outcome in checked:
        if style.shows(outcome):
            title = f"{outcome.title}: " if outcome.title else ""
            yield f"{outcome.document.source}: {title}{result(outcome.result, style)}{update(outcome)}"
            for finding in filter(style.tells, outcome.findings):
                yield from finding_lines(outcome, finding, style)


def result(text: str, style: Style) -> str:
    return style.of(text, COLOURS.get(text, "bold"))


def count(number: int, noun: str, style: Style = PLAIN, colour: str = "bold") -> str:
    """`2 violations`, in a colour unless it is 0."""
    text = f"{number} {noun}" if number == 1 or not noun.isalpha() else f"{number} {noun}s"
    return style.of(text, colour) if number else text


Repeated = tuple[str, str, str]
"""What findings that repeat have in common: rule, message and advice."""
_GROUPED: Final = {*REMARKS, "duplicate-key"}
_MANY: Final = 3
"""Warnings that are the same but for their fields are printed one by one up to this number."""


def repeated(checked: Iterable[Checked]) -> dict[Repeated, list[tuple[Checked, Finding]]]:
    """The warnings that occur more than _MANY times in documents, with the places where they do."""
    places_of: dict[Repeated, list[tuple[Checked, Finding]]] = {}
    for outcome in checked:
        for finding in outcome.findings:
            if finding.level == "warning" and finding.rule in _GROUPED:
                places_of.setdefault(_same(finding), []).append((outcome, finding))
    return {same: places for same, places in places_of.items() if len(places) > _MANY}


def _same(finding: Finding) -> Repeated:
    return finding.rule, finding.message, finding.advice


def ungrouped(checked: Checked, groups: Container[Repeated]) -> Checked:
    """The document with the findings that are in no group."""
    return checked._replace(findings=[finding for finding in checked.findings if _same(finding) not in groups])


def group_lines(groups: Mapping[Repeated, Sequence[tuple[Checked, Finding]]], style: Style = PLAIN) -> Iterator[str]:
    """Each group of warnings, with the first of its places."""
    for (_, message, advice), places in groups.items():
        files = len({checked.document.file for checked, _ in places})
        where = f"{len(places)} fields" + (f" in {files} files" if files > 1 else "")
        yield f"{style.of('warning:', 'yellow')} {message} ({where})"
        if advice:
            yield style.of(f"    {advice}", "dim")
        for checked, finding in places[:_MANY]:
            yield f"    {place(checked, finding)}: {finding.field}".rstrip(": ")
        yield f"    and {len(places) - _MANY} more; --verbose lists all of them"


def update(checked: Checked) -> str:
    """Which update a document was judged as, "" if its object is new."""
    return f", as an update by kubectl {checked.update}" if checked.update else ""


def finding_lines(checked: Checked, finding: Finding, style: Style = PLAIN) -> Iterator[str]:
    yield indented(f"{_coloured_place(checked, finding, style)}: {_warning(finding, style)}{finding.text}")
    if finding.advice:
        yield style.of(f"    {finding.advice}", "dim")


def print_findings(checked: Iterable[Checked]) -> None:
    """Print findings to stderr, for commands that print something else to stdout."""
    style = on_stderr()
    for outcome in checked:
        about = f"{outcome.title}: " if outcome.title else ""
        for finding in outcome.findings:
            where = _coloured_place(outcome, finding, style)
            print(f"{where}: {_warning(finding, style)}{about}{finding.text}", file=sys.stderr)
            if finding.advice:
                print(style.of(f"    {finding.advice}", "dim"), file=sys.stderr)


def on_stderr() -> Style:
    return Style(colours=shown_on(sys.stderr))


def place(checked: Checked, finding: Finding) -> str:
    """`a.yaml:4:8`; only the file if there is no position."""
    file, position = checked.document.file, finding.position
    return f"{file}:{position.line}:{position.column}" if position else file


def indented(text: str) -> str:
    return "  " + text.replace("\n", "\n  ")


def _coloured_place(checked: Checked, finding: Finding, style: Style) -> str:
    return style.of(place(checked, finding), "red" if finding.level == "error" else "yellow")


def _warning(finding: Finding, style: Style) -> str:
    return "" if finding.level == "error" else f"{style.of(f'{finding.level}:', 'yellow')} "


# -- JUnit ------------------------------------------------------------------------------------------------------------


def junit(checked: Sequence[Checked], command: str) -> str:
    """A test suite for each file, a test case for each document; a warning is output of its test case."""
    root = ET.Element("testsuites", {"name": f"noxu {command}", **_counts(checked)})
    for file, group in groupby(checked, key=lambda outcome: outcome.document.file):
        cases = list(group)
        suite = ET.SubElement(root, "testsuite", {"name": _xml(file), **_counts(cases)})
        suite.set("skipped", str(sum(outcome.result == "skipped" for outcome in cases)))
        for case in cases:
            _test_case(suite, case)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False)


def _counts(checked: Sequence[Checked]) -> dict[str, str]:
    return {
        "tests": str(len(checked)),
        "failures": str(sum(outcome.has_errors and outcome.result != "unreadable" for outcome in checked)),
        "errors": str(sum(outcome.result == "unreadable" for outcome in checked)),
        "time": "0",
    }


def _test_case(suite: ET.Element, checked: Checked) -> None:
    name = checked.title or checked.document.source
    case = ET.SubElement(suite, "testcase", {"name": _xml(name), "classname": _xml(checked.document.file), "time": "0"})
    errors = [finding for finding in checked.findings if finding.level == "error"]
    warnings = [finding for finding in checked.findings if finding.level != "error"]
    if checked.result == "skipped":
        ET.SubElement(case, "skipped")
    if errors:
        kind = "error" if checked.result == "unreadable" else "failure"
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        element = ET.SubElement(case, kind, {"message": _xml(errors[0].text + more), "type": errors[0].rule})
        element.text = _xml("\n".join(line for finding in errors for line in finding_lines(checked, finding)))
    if warnings:
        output = ET.SubElement(case, "system-out")
        output.text = _xml("\n".join(line for finding in warnings for line in finding_lines(checked, finding)))


def _xml(text: str) -> str:
    """A text without the characters that XML cannot have."""
    return _NOT_XML.sub("\ufffd", text)


# -- SARIF ------------------------------------------------------------------------------------------------------------


def sarif(checked: Sequence[Checked], command: str) -> str:
    """One run; a finding is a result, whose rule is the kind of finding."""
    pairs = [(outcome, finding) for outcome in checked for finding in outcome.findings]
    rules = sorted({finding.rule for _, finding in pairs})
    status = exit_status(checked)
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": f"noxu {command}",
                        "semanticVersion": own_version(),
                        "rules": [{"id": rule, "shortDescription": {"text": rule.replace("-", " ")}} for rule in rules],
                    }
                },
                "invocations": [{"executionSuccessful": status < 2, "exitCode": status}],
                "columnKind": "unicodeCodePoints",
                "results": [_result(outcome, finding, rules.index(finding.rule)) for outcome, finding in pairs],
            }
        ],
    }
    return codec.pretty(log, sort_keys=False).decode()


def _result(checked: Checked, finding: Finding, rule: int) -> Object:
    physical: Object = {"artifactLocation": {"uri": uri(checked.document.file)}}
    if finding.position:
        physical["region"] = {"startLine": finding.position.line, "startColumn": finding.position.column}
    location: Object = {"physicalLocation": physical}
    if finding.field:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.field}]
    about = f"{checked.title}: " if checked.title else ""
    advice = f"\n{finding.advice}" if finding.advice else ""
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": finding.level,
        "message": {"text": f"{about}{finding.text}{advice}"},
        "locations": [location],
    }


def uri(file: str) -> str:
    """A relative reference for a relative path, which readers resolve in the checkout; else a file URI."""
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote_from_bytes(os.fsencode(path.as_posix()))


# -- GitHub -----------------------------------------------------------------------------------------------------------


def github(checked: Iterable[Checked], command: str) -> str:
    """A workflow command for each finding."""
    return "\n".join(_workflow_command(item, finding, command) for item in checked for finding in item.findings)


def _workflow_command(checked: Checked, finding: Finding, command: str) -> str:
    properties = {"file": checked.document.file}
    if finding.position:
        properties |= {"line": str(finding.position.line), "col": str(finding.position.column)}
    properties["title"] = f"noxu {command}: {finding.rule}"
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    about = f"{checked.title}: " if checked.title else ""
    advice = f"\n{finding.advice}" if finding.advice else ""
    return f"::{finding.level} {written}::{_data(f'{about}{finding.text}{advice}')}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


FORMATS: Final[dict[str, Callable[[Sequence[Checked], str], str]]] = {
    "junit": junit,
    "sarif": sarif,
    "github": github,
}
"""The formats that all commands have, besides text and JSON."""
