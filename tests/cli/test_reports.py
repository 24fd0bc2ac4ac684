"""The formats for other programs: JUnit, SARIF and GitHub's workflow commands have the structure that readers expect."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from noxu.commands.findings import Checked, Finding
from noxu.commands.reports import FORMATS, uri
from noxu.manifests.documents import Document
from noxu.manifests.positions import Position

SIZE = Finding("error", "invalid", "must be 1, not\n 0 <% \x01", "spec.size", "Write 1.", Position(4, 8))
COLOR = Finding("warning", "unknown-field", "unknown field", "spec.color", "", Position(5, 3))
MISSING = Finding("error", "unreadable", "no such file")
CHECKED = [
    Checked(Document({}, "d/a b.yaml"), "Widget a", "refused", [SIZE, COLOR, SIZE]),
    Checked(Document({}, "d/a b.yaml", 2), "Widget b", "valid", [COLOR]),
    Checked(Document({}, "c.yaml"), "Widget c", "skipped"),
    Checked(Document({}, "none, or:so"), "", "unreadable", [MISSING]),
]

# The elements of the schema of Jenkins' plug-in, their attributes, and what they may contain.
JUNIT: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "version"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "assertions", "time", "classname", "status", "class", "file", "line", "group", "url"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "skipped": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "failure": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}  # fmt: skip


def test_junit_has_only_the_elements_and_attributes_of_the_schema() -> None:
    root = ET.fromstring(FORMATS["junit"](CHECKED, "validate"))
    for element in root.iter():
        attributes, below = JUNIT[element.tag]
        assert element.attrib.keys() <= attributes
        assert {child.tag for child in element} <= below


def test_junit_has_a_suite_for_each_file_and_a_case_for_each_document() -> None:
    root = ET.fromstring(FORMATS["junit"](CHECKED, "validate"))
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {"tests": "4", "failures": "1", "errors": "1"}  # fmt: skip
    suites = [(suite.get("name"), suite.get("tests"), suite.get("skipped")) for suite in root]
    assert suites == [("d/a b.yaml", "2", "0"), ("c.yaml", "1", "1"), ("none, or:so", "1", "0")]
    cases = [(case.get("name"), [(part.tag, part.get("message")) for part in case]) for case in root.iter("testcase")]
    assert cases == [
        ("Widget a", [("failure", "spec.size: must be 1, not\n 0 <% \ufffd (and 1 more)"), ("system-out", None)]),
        ("Widget b", [("system-out", None)]),
        ("Widget c", [("skipped", None)]),
        ("none, or:so", [("error", "no such file")]),
    ]
    assert "  d/a b.yaml:4:8: spec.size: must be 1" in str(root.findtext(".//failure"))


def sarif() -> Any:
    return json.loads(FORMATS["sarif"](CHECKED, "validate"))


def test_sarif_has_what_its_schema_requires() -> None:
    log = sarif()
    assert log.keys() == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    assert run["tool"]["driver"]["name"] == "noxu validate"
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    assert run["invocations"] == [{"executionSuccessful": False, "exitCode": 2}]
    assert run["columnKind"] == "unicodeCodePoints"
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["level"] in ("error", "warning", "note", "none")
        assert rules[result["ruleIndex"]] == result["ruleId"]
        for location in result["locations"]:
            region = location["physicalLocation"].get("region", {"startLine": 1, "startColumn": 1})
            assert all(number >= 1 for number in region.values())


# The objects of a log, by the property that they are in: what the schema requires of them, and what else we have there.
SARIF: dict[str, tuple[set[str], set[str]]] = {
    "": ({"version", "runs"}, {"$schema"}),
    "runs": ({"tool"}, {"invocations", "columnKind", "results"}),
    "tool": ({"driver"}, set()),
    "driver": ({"name"}, {"semanticVersion", "rules"}),
    "rules": ({"id"}, {"shortDescription"}),
    "shortDescription": ({"text"}, set()),
    "invocations": ({"executionSuccessful"}, {"exitCode"}),
    "results": ({"message"}, {"ruleId", "ruleIndex", "level", "locations"}),
    "message": ({"text"}, set()),
    "locations": (set(), {"physicalLocation", "logicalLocations"}),
    "physicalLocation": ({"artifactLocation"}, {"region"}),
    "artifactLocation": (set(), {"uri"}),
    "region": ({"startLine"}, {"startColumn"}),
    "logicalLocations": (set(), {"fullyQualifiedName"}),
}


def test_sarif_has_only_the_properties_of_the_schema() -> None:
    """The schema allows no others, and no two equal rules or results' locations."""
    seen = set()
    below = [("", sarif())]
    while below:
        name, value = below.pop()
        if isinstance(value, list):
            below += [(name, item) for item in value]
            if name in ("rules", "locations", "logicalLocations"):
                assert all(item not in value[n + 1 :] for n, item in enumerate(value))
        elif isinstance(value, dict):
            required, other = SARIF[name]
            assert required <= value.keys() <= required | other, name
            seen.add(name)
            below += value.items()
        else:
            assert isinstance(value, str | int)
            assert value != ""
    assert seen == SARIF.keys()


def test_sarif_says_where_a_finding_is() -> None:
    first, *_, last = sarif()["runs"][0]["results"]
    assert first["message"]["text"].startswith("Widget a: spec.size: must be 1")
    assert first["message"]["text"].endswith("\nWrite 1.")
    assert first["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "d/a%20b.yaml"},
                "region": {"startLine": 4, "startColumn": 8},
            },
            "logicalLocations": [{"fullyQualifiedName": "spec.size"}],
        }
    ]
    assert last["locations"] == [{"physicalLocation": {"artifactLocation": {"uri": "none%2C%20or%3Aso"}}}]


@pytest.mark.parametrize(("file", "reference"), [("a/ä.yaml", "a/%C3%A4.yaml"), ("/a/b.yaml", "file:///a/b.yaml")])
def test_files_are_uris(file: str, reference: str) -> None:
    assert uri(file) == reference


def test_workflow_commands_are_escaped() -> None:
    assert FORMATS["github"](CHECKED, "lint").splitlines() == [
        "::error file=d/a b.yaml,line=4,col=8,title=noxu lint%3A invalid::Widget a: spec.size: must be 1, not%0A 0 <%25 \x01%0AWrite 1.",
        "::warning file=d/a b.yaml,line=5,col=3,title=noxu lint%3A unknown-field::Widget a: spec.color: unknown field",
        "::error file=d/a b.yaml,line=4,col=8,title=noxu lint%3A invalid::Widget a: spec.size: must be 1, not%0A 0 <%25 \x01%0AWrite 1.",
        "::warning file=d/a b.yaml,line=5,col=3,title=noxu lint%3A unknown-field::Widget b: spec.color: unknown field",
        "::error file=none%2C or%3Aso,title=noxu lint%3A unreadable::no such file",
    ]


def test_without_findings_the_formats_are_valid() -> None:
    nothing = [Checked(Document({}, "a.yaml"), "Widget a", "valid")]
    assert FORMATS["github"](nothing, "lint") == ""
    assert json.loads(FORMATS["sarif"](nothing, "lint"))["runs"][0]["results"] == []
    assert ET.fromstring(FORMATS["junit"](nothing, "lint")).get("failures") == "0"
