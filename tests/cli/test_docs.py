"""The examples of commands in the pages print what they show, and the tables of docs/cli.md list every option."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from noxu import cli
from noxu.features import GATES, Features
from tests.docs.blocks import blocks, steps
from tests.rows import rows

ROOT: Final = Path(__file__).parents[2]
TEXT: Final = (ROOT / "docs" / "cli.md").read_text()
PAGES: Final = (
    "docs/cli.md",
    "docs/crd-upgrades.md",
    "docs/from-other-validators.md",
    "docs/from-schemas.md",
    "docs/kubernetes-versions.md",
    "docs/kuttl.md",
    "docs/tests-of-crds.md",
)
BLOCKS: Final = [block for block in blocks() if block.page in PAGES]
_PIPED: Final = re.compile(r"echo '(.*)' \| (.*)")
_CUT: Final = re.compile(r"(.*) \| head -n (\d+)")
_VARYING: Final = re.compile(
    r"\b\d[\d.e-]* ms\b|\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b|\b\d{4}-\d\d-\d\dT[\d:]{8}Z"
)
_ROW: Final = re.compile(r"^\| (.+?) \|", re.MULTILINE)
_CODE: Final = re.compile(r"`([^`]+)`")


class Example(NamedTuple):
    """A command, what it is documented to print to stdout and then to stderr, and its exit status if that is shown."""

    page: str
    line: str
    printed: str
    status: int | None


def examples() -> Iterator[Example]:
    for block in BLOCKS:
        if block.language == "console":
            shown = [(command.strip(), printed) for command, printed in steps(block.text)]
            for n, (line, printed) in enumerate(shown):
                if line != "echo $?":
                    status_shown = n + 1 < len(shown) and shown[n + 1][0] == "echo $?"
                    yield Example(block.page, line, printed, int(shown[n + 1][1]) if status_shown else None)


def stable(printed: str) -> str:
    """The output without what differs from run to run: durations, uids and times."""
    return _VARYING.sub("…", printed)


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.line)
def test_an_example_prints_the_documented_output(
    example: Example, run: Callable[..., Any], write: Callable[..., Path]
) -> None:
    for block in BLOCKS:
        if block.file and block.page == example.page:
            write(block.file, block.text)
    piped = _PIPED.fullmatch(example.line)
    stdin, line = piped.groups() if piped else ("", example.line)
    cut = _CUT.fullmatch(line)
    line, most = (cut[1], int(cut[2])) if cut else (line, None)
    ran = run(line.removeprefix("noxu "), stdin=stdin)
    printed = "".join((ran.out + ran.err).splitlines(keepends=True)[:most])
    assert stable(printed) == stable(example.printed)
    assert example.status in (None, ran.status)


def test_there_are_examples() -> None:
    assert len(list(examples())) >= 6


# -- options, as argparse knows them


def commands() -> dict[str, argparse.ArgumentParser]:
    return {name: cli.parser_of(name) for name in cli.COMMANDS}


def sections(command: str) -> str:
    """The sections of the page about a command."""
    return "".join(
        part for part in re.split(r"^(?=## )", TEXT, flags=re.MULTILINE) if re.match(rf"## noxu {command}\b(?!-)", part)
    )


def described(action: argparse.Action) -> str:
    """An argument as the first column of a table has it: `--data DIR`, `--output text\\|json`, `FILE...`."""
    if action.choices and action.metavar is None:
        value = r"\|".join(map(str, action.choices))
    else:
        value = str(action.metavar or action.dest.upper()).replace("|", r"\|") if action.nargs != 0 else ""
    if action.option_strings:
        return f"{action.option_strings[-1]} {value}".rstrip()
    return f"{value}..." if action.nargs in ("*", "+") else value


def first_column(text: str) -> list[str]:
    """The code in the first column of the tables of a text."""
    return [code for row in _ROW.findall(text) for code in _CODE.findall(row)]


EXTENDED: Final = {"run": "serve"}
"""Commands that have all options of another one. Their sections refer to it, and list what they have besides."""


@rows("command", list(commands()))
def test_the_tables_list_exactly_the_arguments_of_a_command(command: str) -> None:
    actions = {described(action) for action in commands()[command]._actions if action.dest != "help"}
    text = re.sub(r"^### .*?(?=^##|\Z)", "", sections(command), flags=re.MULTILINE | re.DOTALL)
    if (other := EXTENDED.get(command)) is not None:
        options = {described(action) for action in commands()[other]._actions if action.option_strings}
        assert options <= actions | {"--help"}
        assert f"[`noxu {other}`](#noxu-{other})" in text
        actions -= options
    assert set(first_column(text)) == actions


def test_every_command_has_a_section_and_is_in_the_first_table() -> None:
    listed = {code.split()[1] for code in first_column(TEXT.partition("\n## ")[0])}
    assert listed == set(commands())
    assert all(sections(command) for command in commands())


def test_every_option_in_an_example_exists() -> None:
    """In all pages: what follows `noxu COMMAND` up to the end of the line or of the code."""
    documents = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "docker-compose.yml"]
    known = {name: parser._option_string_actions for name, parser in commands().items()}
    used = [
        (document.name, command, option)
        for document in documents
        for command, rest in re.findall(r"\bnoxu ([a-z-]+)((?: [^`\n|]+)?)", document.read_text())
        if command in known
        for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest.partition(" -- ")[0])
    ]
    assert len(used) > 20
    assert [reference for reference in used if reference[2] not in known[reference[1]]] == []


def test_the_table_of_feature_gates_lists_every_gate_with_its_default() -> None:
    [text] = re.findall(r"^### Feature gates\n(.*?)(?=^##)", TEXT, re.MULTILINE | re.DOTALL)
    listed = dict(re.findall(r"^\| `(\w+)` \| (true|false) \|", text, re.MULTILINE))
    assert listed == {gate: str(getattr(Features(), field)).lower() for gate, field in GATES.items()}
