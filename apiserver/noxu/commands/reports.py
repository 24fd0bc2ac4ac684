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

    def shows(self, each: Checked) -> bool:
        return self.detail == "all" or any(map(self.tells, each.findings))

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
    for each in checked:
        if style.shows(each):
            title = f"{each.title}: " if each.title else ""
            yield f"{each.document.source}: {title}{result(each.result, style)}{update(each)}"
            for finding in filter(style.tells, each.findings):
                yield from finding_lines(each, finding, style)


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
    found: dict[Repeated, list[tuple[Checked, Finding]]] = {}
    for each in checked:
        for finding in each.findings:
            if finding.level == "warning" and finding.rule in _GROUPED:
                found.setdefault(_same(finding), []).append((each, finding))
    return {same: places for same, places in found.items() if len(places) > _MANY}


def _same(finding: Finding) -> Repeated:
    return finding.rule, finding.message, finding.advice


def ungrouped(each: Checked, groups: Container[Repeated]) -> Checked:
    """The document with the findings that are in no group."""
    return each._replace(findings=[finding for finding in each.findings if _same(finding) not in groups])


def group_lines(groups: Mapping[Repeated, Sequence[tuple[Checked, Finding]]], style: Style = PLAIN) -> Iterator[str]:
    """Each group of warnings, with the first of its places."""
    for (_, message, advice), places in groups.items():
        files = len({each.document.file for each, _ in places})
        where = f"{len(places)} fields" + (f" in {files} files" if files > 1 else "")
        yield f"{style.of('warning:', 'yellow')} {message} ({where})"
        if advice:
            yield style.of(f"    {advice}", "dim")
        for each, finding in places[:_MANY]:
            yield f"    {place(each, finding)}: {finding.field}".rstrip(": ")
        yield f"    and {len(places) - _MANY} more; --verbose lists all of them"


def update(each: Checked) -> str:
    """Which update a document was judged as, "" if its object is new."""
    return f", as an update by kubectl {each.update}" if each.update else ""


def finding_lines(each: Checked, finding: Finding, style: Style = PLAIN) -> Iterator[str]:
    yield indented(f"{_coloured_place(each, finding, style)}: {_warning(finding, style)}{finding.text}")
    if finding.advice:
        yield style.of(f"    {finding.advice}", "dim")


def print_findings(checked: Iterable[Checked]) -> None:
    """Print findings to stderr, for commands that print something else to stdout."""
    style = on_stderr()
    for each in checked:
        about = f"{each.title}: " if each.title else ""
        for finding in each.findings:
            where = _coloured_place(each, finding, style)
            print(f"{where}: {_warning(finding, style)}{about}{finding.text}", file=sys.stderr)
            if finding.advice:
                print(style.of(f"    {finding.advice}", "dim"), file=sys.stderr)


def on_stderr() -> Style:
    return Style(colours=shown_on(sys.stderr))


def place(each: Checked, finding: Finding) -> str:
    """`a.yaml:4:8`; only the file if there is no position."""
    file, position = each.document.file, finding.position
    return f"{file}:{position.line}:{position.column}" if position else file


def indented(text: str) -> str:
    return "  " + text.replace("\n", "\n  ")


def _coloured_place(each: Checked, finding: Finding, style: Style) -> str:
    return style.of(place(each, finding), "red" if finding.level == "error" else "yellow")


def _warning(finding: Finding, style: Style) -> str:
    return "" if finding.level == "error" else f"{style.of(f'{finding.level}:', 'yellow')} "


# -- JUnit ------------------------------------------------------------------------------------------------------------


def junit(checked: Sequence[Checked], command: str) -> str:
    """A test suite for each file, a test case for each document; a warning is output of its test case."""
    root = ET.Element("testsuites", {"name": f"noxu {command}", **_counts(checked)})
    for file, group in groupby(checked, key=lambda each: each.document.file):
        cases = list(group)
        suite = ET.SubElement(root, "testsuite", {"name": _xml(file), **_counts(cases)})
        suite.set("skipped", str(sum(each.result == "skipped" for each in cases)))
        for each in cases:
            _test_case(suite, each)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False)


def _counts(checked: Sequence[Checked]) -> dict[str, str]:
    return {
        "tests": str(len(checked)),
        "failures": str(sum(each.has_errors and each.result != "unreadable" for each in checked)),
        "errors": str(sum(each.result == "unreadable" for each in checked)),
        "time": "0",
    }


def _test_case(suite: ET.Element, each: Checked) -> None:
    name = each.title or each.document.source
    case = ET.SubElement(suite, "testcase", {"name": _xml(name), "classname": _xml(each.document.file), "time": "0"})
    errors = [finding for finding in each.findings if finding.level == "error"]
    warnings = [finding for finding in each.findings if finding.level != "error"]
    if each.result == "skipped":
        ET.SubElement(case, "skipped")
    if errors:
        kind = "error" if each.result == "unreadable" else "failure"
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        element = ET.SubElement(case, kind, {"message": _xml(errors[0].text + more), "type": errors[0].rule})
        element.text = _xml("\n".join(line for finding in errors for line in finding_lines(each, finding)))
    if warnings:
        output = ET.SubElement(case, "system-out")
        output.text = _xml("\n".join(line for finding in warnings for line in finding_lines(each, finding)))


def _xml(text: str) -> str:
    """A text without the characters that XML cannot have."""
    return _NOT_XML.sub("\ufffd", text)


# -- SARIF ------------------------------------------------------------------------------------------------------------


def sarif(checked: Sequence[Checked], command: str) -> str:
    """One run; a finding is a result, whose rule is the kind of finding."""
    found = [(each, finding) for each in checked for finding in each.findings]
    rules = sorted({finding.rule for _, finding in found})
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
                "results": [_result(each, finding, rules.index(finding.rule)) for each, finding in found],
            }
        ],
    }
    return codec.pretty(log, sort_keys=False).decode()


def _result(each: Checked, finding: Finding, rule: int) -> Object:
    physical: Object = {"artifactLocation": {"uri": uri(each.document.file)}}
    if finding.position:
        physical["region"] = {"startLine": finding.position.line, "startColumn": finding.position.column}
    location: Object = {"physicalLocation": physical}
    if finding.field:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.field}]
    about = f"{each.title}: " if each.title else ""
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
    return "\n".join(_workflow_command(each, finding, command) for each in checked for finding in each.findings)


def _workflow_command(each: Checked, finding: Finding, command: str) -> str:
    properties = {"file": each.document.file}
    if finding.position:
        properties |= {"line": str(finding.position.line), "col": str(finding.position.column)}
    properties["title"] = f"noxu {command}: {finding.rule}"
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    about = f"{each.title}: " if each.title else ""
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
