"""The options that validate, explain-write, lint and skeleton have in common, and their exit statuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from noxu.commands.findings import rounds, shared_with
from noxu.manifests.documents import Document
from tests.optional import needs_platform

Make = Callable[..., Any]

COMMANDS = ("validate", "explain-write", "lint", "skeleton")
each_command = pytest.mark.parametrize("command", COMMANDS)

# A case: the arguments, and the exit status of each command.
STATUSES: list[tuple[str, str, tuple[int, int, int, int]]] = [
    ("nothing is wrong", "good.json", (0, 0, 0, 0)),
    ("a CRD is refused", "bad.json", (1, 1, 1, 1)),
    ("a file does not exist", "good.json none.json", (2, 2, 2, 2)),
    ("a document cannot be read", "good.json broken.yaml", (2, 2, 2, 2)),
    ("that is more than a finding", "bad.json broken.yaml", (2, 2, 2, 2)),
    ("a file is empty", "good.json empty.yaml", (2, 2, 2, 2)),
    ("a directory is empty", "good.json nothing", (2, 2, 2, 2)),
    ("stdin is empty", "good.json -", (2, 2, 2, 2)),
    ("that is allowed", "--allow-empty good.json empty.yaml nothing -", (0, 0, 0, 0)),
    ("there is nothing at all, which is allowed", "--allow-empty empty.yaml", (0, 0, 0, 0)),
    ("there is no path", "", (2, 2, 2, 2)),
    ("an option is unknown", "good.json --nonsense", (2, 2, 2, 2)),
    ("the kind is skipped", "bad.json --skip CustomResourceDefinition --allow-empty", (0, 0, 0, 0)),
    ("the kind is rejected", "good.json --reject CustomResourceDefinition", (1, 1, 1, 1)),
]


@pytest.fixture
def files(write: Make, crd: Make, here: Any) -> None:
    write("good.json", crd(size={"type": "integer"}))
    write(
        "bad.json", crd({"type": "object", "properties": {"a": {"properties": {"b": {}}, "additionalProperties": {}}}})
    )
    write("broken.yaml", "a: [")
    write("empty.yaml", "# nothing\n")
    (here / "nothing").mkdir()


@pytest.mark.usefixtures("files")
@each_command
@pytest.mark.parametrize(("line", "statuses"), [row[1:] for row in STATUSES], ids=[row[0] for row in STATUSES])
def test_the_exit_status_is_the_same_for_all_commands(
    run: Make, command: str, line: str, statuses: tuple[int, int, int, int]
) -> None:
    assert run(f"{command} {line}").status == statuses[COMMANDS.index(command)]


@pytest.mark.usefixtures("files")
@each_command
def test_every_format_says_what_is_wrong_and_where(run: Make, command: str) -> None:
    line = f"{command} good.json bad.json broken.yaml --output"
    assert ET.fromstring(run(f"{line} junit").out).get("errors") == "1"
    [sarif] = json.loads(run(f"{line} sarif").out)["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in sarif["results"]]
    assert {place["artifactLocation"]["uri"] for place in places} == {"bad.json", "broken.yaml"}
    assert all(place["region"]["startLine"] >= 1 for place in places)
    assert "::error file=broken.yaml,line=2,col=1," in run(f"{line} github").out
    assert [run(f"{line} {output}").status for output in ("text", "json", "junit", "sarif", "github")] == [2] * 5


@pytest.mark.usefixtures("files")
@each_command
def test_nothing_of_go_is_printed(run: Make, write: Make, command: str) -> None:
    write("wrong.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {names: 3}\n")
    for line in ("wrong.yaml", "broken.yaml", "wrong.yaml --strict"):
        ran = run(f"{command} {line}")
        assert ran.status in (1, 2)
        assert not any(word in ran.out + ran.err for word in ("<nil>", "Go struct", "Go value", "unmarshal"))


@each_command
def test_a_url_is_piped_into_the_same_command(run: Make, command: str) -> None:
    ran = run(f"{command} https://example.com/a.yaml")
    assert ran.status == 2
    assert f"curl -fsSL https://example.com/a.yaml | noxu {command} -" in ran.out + ran.err


@pytest.mark.usefixtures("files")
@each_command
def test_former_objects_that_cannot_be_read_are_named(
    run: Make, command: str, caplog: pytest.LogCaptureFixture
) -> None:
    """They are no errors: a change may add the directory, or mend the file."""
    assert run(f"{command} good.json --old none --old broken.yaml --old good.json").status == 0
    assert caplog.messages == [
        "--old: nothing is compared with none: no such file or directory",
        "--old: nothing is compared with broken.yaml:2:1: not valid YAML: did not find expected node content",
    ]


# -- rounds


def objects(file: str, *names: str) -> list[Document]:
    return [Document({"kind": "A", "metadata": {"name": name}}, file) for name in names]


def test_files_are_in_one_round_unless_they_have_objects_of_one_name() -> None:
    documents = [*objects("a", "x", "x"), *objects("b", "y"), *objects("c", "y", "z"), *objects("d", "x"), *objects("e", "x")]  # fmt: skip
    assert [[document.file for document in members] for members in rounds(documents)] == [
        ["a", "a", "b"],
        ["c", "c", "d"],
        ["e"],
    ]


def test_objects_without_a_name_never_conflict() -> None:
    assert len(rounds([*objects("a", ""), *objects("b", "")])) == 1


def test_a_round_shares_the_crds_and_policies_of_others() -> None:
    crd = Document({"kind": "CustomResourceDefinition", "metadata": {"name": "as"}}, "a")
    policy = Document({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "P", "metadata": {"name": "p"}}, "a")
    [widget] = objects("a", "x")
    own = crd._replace(file="b")
    assert shared_with([*objects("b", "x")], [crd, policy, widget, crd]) == [crd, policy]
    assert shared_with([own], [crd, policy]) == [policy]


@pytest.fixture
def not_utf8(here: Path, crd: Make) -> str:
    """A file whose name is no UTF-8."""
    name = os.fsdecode(b"caf\xe9.json")
    Path(here, name).write_text(json.dumps(crd()))
    return name


any_file_name = needs_platform("file names that are no UTF-8", present=sys.platform == "linux")


@any_file_name
@each_command
@pytest.mark.parametrize("output", ["json", "junit", "sarif"])
def test_reports_are_text_whatever_the_name_of_a_file(run: Make, not_utf8: str, command: str, output: str) -> None:
    ran = run(f"{command} {not_utf8} --output {output}")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.encode()  # there are no surrogates


@any_file_name
def test_lines_have_the_bytes_of_the_name_of_a_file(here: Path, not_utf8: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "noxu", "validate", not_utf8],
        cwd=here,
        env=os.environ | {"XDG_CACHE_HOME": str(here / "cache"), "PYTHONIOENCODING": "utf-8:strict"},
        capture_output=True,
        check=False,
    )
    assert ran.stdout.splitlines()[0] == b"caf\xe9.json: CustomResourceDefinition widgets.example.com: valid"
    assert (ran.returncode, ran.stderr) == (0, b"")
