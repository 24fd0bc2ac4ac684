"""`noxu test`: exit statuses, formats, selection, processes, golden values, files that change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from noxu import cli
from noxu.commands import test as command
from tests.cli.conftest import Run, Write

CASES: Final = """
apiVersion: noxu.dev/v1
kind: Test
cases:
- name: a map
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: c}}
  expect: {stored: {data: {b: c}}}
- name: another map
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: c}}
  expect: {stored: {data: {b: d}}}
"""


@pytest.mark.parametrize(
    ("line", "status", "last"),
    [
        ("test .", 1, "2 cases: 1 passed, 1 failed"),
        ("test --run another .", 1, "1 case: 0 passed, 1 failed"),
        ("test --verbose --run a a_test.yaml", 1, "2 cases: 1 passed, 1 failed"),
        ("test --run third .", 2, "0 cases: 0 passed, 0 failed, 1 unusable"),
        ("test absent", 2, "0 cases: 0 passed, 0 failed, 1 unusable"),
        ("test empty", 2, "0 cases: 0 passed, 0 failed, 1 unusable"),
        ("test --allow-empty empty", 0, "0 cases: 0 passed, 0 failed"),
    ],
)
def test_the_exit_status_and_the_last_line(run: Run, write: Write, line: str, status: int, last: str) -> None:
    write("a_test.yaml", CASES)
    write("empty/a.txt", "")
    ran = run(line)
    assert (ran.status, ran.out.splitlines()[-1]) == (status, last)


@pytest.mark.parametrize("line", ["test", "test --update --watch .", "test --watch --output json ."])
def test_invalid_arguments(run: Run, line: str) -> None:
    assert run(line).status == 2


def test_formats(run: Run, write: Write) -> None:
    write("a_test.yaml", CASES)
    [suite] = ET.fromstring(run("test --output junit .").out)
    assert [(case.get("name"), [child.tag for child in case]) for case in suite] == [
        ("a map", []),
        ("another map", ["failure"]),
    ]
    found = run("test --output json .").json
    assert [(case["name"], case["line"], case["verdict"]) for case in found["cases"]] == [
        ("a map", 4, "passed"),
        ("another map", 7, "failed"),
    ]
    assert run("test --output github .").out.startswith(
        "::error file=a_test.yaml,line=9,col=12,title=noxu test%3A stored::another map: "
    )
    [result] = run("test --output sarif .").json["runs"][0]["results"]
    assert result["ruleId"] == "stored"


@pytest.mark.slow
def test_processes_give_the_same_report(run: Run, write: Write) -> None:
    for name in "abc":
        write(f"{name}_test.yaml", CASES.replace("a map", f"map {name}"))
    assert run("test -j2 .") == run("test .")


def test_what_came_is_accepted(run: Run, write: Write) -> None:
    path = write("a_test.yaml", CASES)
    ran = run("test --update .")
    assert (ran.status, ran.out, ran.err) == (0, "2 cases: 2 passed, 0 failed\n", "a_test.yaml: updated\n")
    assert path.read_text() == CASES.lstrip("\n").replace("{b: d}", "{b: c}")


def test_files_are_run_again_when_they_change(
    run: Run, write: Write, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A change of what a file names concerns it, and no other file."""
    given = "given: {objects: [objects]}\ncases:"
    write("a_test.yaml", CASES.replace("cases:", given))
    write("b_test.yaml", CASES.replace("a map", "one of b"))
    write("objects/a.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}})

    def rounds() -> Iterator[int]:
        yield 1
        write("objects/b.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
        yield 2
        yield 3
        write("b_test.yaml", CASES.replace("{b: d}", "{b: c}"))
        yield 4

    capsys.readouterr()
    options = cli.options_of("test", ["--watch", "."])
    statuses = list(command.watched(options, rounds(), every=0))
    lines = [line for line in capsys.readouterr().out.splitlines() if "case" in line and "passed" in line]
    assert statuses == [1, 1, 0]
    assert lines == ["4 cases: 2 passed, 2 failed", "2 cases: 1 passed, 1 failed", "2 cases: 2 passed, 0 failed"]


def test_what_a_version_lacks_names_the_one_that_brought_it(run: Run, write: Write) -> None:
    policy = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: a}}"
    write("a_test.yaml", CASES.replace("cases:", "given: {policies: [p.yaml]}\ncases:", 1))
    write("p.yaml", policy)
    out = run("test --kubernetes 1.29 a_test.yaml").out
    assert "\n    Kubernetes has this kind in admissionregistration.k8s.io/v1 since 1.30.\n" in out


MAP: Final = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: %s}}"


@pytest.mark.parametrize(
    ("line", "status", "last"),
    [
        ("test e2e", 1, "2 cases: 1 passed, 1 failed"),
        ("test e2e/good .", 1, "4 cases: 2 passed, 2 failed"),
        ("test --run good e2e", 0, "1 case: 1 passed, 0 failed"),
        ("test --run nothing e2e", 2, "0 cases: 0 passed, 0 failed, 1 unusable"),
        ("test --kubernetes 1.31,1.37 e2e/good", 0, "2 cases: 2 passed, 0 failed"),
        ("test --nodes 1 a_test.yaml", 2, "2 cases: 1 passed, 1 failed, 1 unusable"),
        ("test -f absent.yaml e2e/good", 2, "0 cases: 0 passed, 0 failed, 1 unusable"),
    ],
)
def test_tests_of_kuttl(run: Run, write: Write, line: str, status: int, last: str) -> None:
    write("a_test.yaml", CASES)
    write("e2e/good/00-a.yaml", MAP % "c")
    write("e2e/good/00-assert.yaml", MAP % "c")
    write("e2e/bad/00-assert.yaml", MAP % "d")
    ran = run(line)
    assert (ran.status, ran.out.splitlines()[-1]) == (status, last)


def test_a_step_of_kuttl_is_reported_at_what_it_asserts(run: Run, write: Write) -> None:
    write("e2e/bad/00-deploy.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: d}}")
    write(
        "e2e/bad/00-assert.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: c}\n---\napiVersion: v1\nkind: Pod\n",
    )
    assert run("test e2e").out == (
        "e2e/bad/00-assert.yaml: bad/0-deploy: failed\n"
        '  e2e/bad/00-assert.yaml:4:8: data.b: ConfigMap kuttl-bad/a: data.b: it is "d", not "c"\n'
        "      apiVersion: v1\n      data:\n    -   b: c\n    +   b: d\n      kind: ConfigMap\n      metadata:\n"
        "  e2e/bad/00-assert.yaml:6:1: there are no pods in namespace kuttl-bad\n"
        "    there are no nodes, so no controller makes pods, and none is ready: --nodes 1 simulates one\n"
        "1 case: 0 passed, 1 failed\n"
    )
    found = run("test --output json e2e").json["cases"][0]
    assert [found["name"], found["verdict"], len(found["findings"])] == ["bad/0-deploy", "failed", 2]
    [suite] = ET.fromstring(run("test --output junit e2e").out)
    assert [case.get("name") for case in suite] == ["bad/0-deploy", "bad/0-deploy"]
