"""What `noxu` says about itself: help, examples, versions."""

from __future__ import annotations

import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import pytest

from noxu import cli
from noxu.arguments.commands import EXAMPLES
from noxu.config import KUBERNETES_VERSION
from tests.rows import rows

Run = Callable[..., Any]


@pytest.mark.parametrize("line", ["", "--help", "help"])
def test_the_commands_are_listed_with_examples(run: Run, line: str) -> None:
    ran = run(line)
    assert (ran.status, ran.err) == (0, "")
    assert re.findall(r"^    ([a-z-]+)", ran.out, re.MULTILINE) == list(cli.COMMANDS)
    assert all(example in ran.out for example, _ in EXAMPLES[""])


@pytest.mark.parametrize("command", list(cli.COMMANDS))
def test_the_help_of_a_command_begins_with_what_it_does_and_examples(run: Run, command: str) -> None:
    ran = run(f"help {command}")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == run(f"{command} --help").out
    sentence, usage, examples, *arguments = ran.out.split("\n\n")
    parser = cli.parser_of(command)
    assert " ".join(sentence.split()) == " ".join(str(parser.description).split())
    assert usage == f"usage: {parser.usage}"
    assert examples.startswith("examples:\n  noxu ") or EXAMPLES[command][0][0] in examples
    assert examples.count("\n      ") == len(EXAMPLES[command]) > 0
    assert all(name in "\n".join(arguments) for name in parser._option_string_actions)


@pytest.mark.parametrize("columns", [80, 100])
def test_no_line_of_a_help_is_too_long(run: Run, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = [line for command in ("", *cli.COMMANDS) for line in run(f"{command} --help".strip()).out.splitlines()]
    assert len(lines) > 300
    assert [line for line in lines if len(line) > columns] == []


def test_the_options_of_the_server_are_in_groups() -> None:
    groups = {group.title: group for group in cli.parser_of("serve")._action_groups}
    alone = [action.option_strings[-1] for action in groups.pop("options")._group_actions]
    assert alone == ["--help"]
    assert groups.pop("positional arguments")._group_actions == []
    assert list(groups)[:4] == ["files", "address", "data", "kubeconfig"]


def test_no_name_is_broken_at_its_hyphens(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "garbage-collector-controller" in run("help serve").out


def lines() -> Iterator[str]:
    """The commands of Noxu in the examples."""
    for examples in EXAMPLES.values():
        for line, _ in examples:
            yield from re.findall(r"\bnoxu ([^|&)>]+)", line)


@rows("line", list(lines()))
def test_the_arguments_in_an_example_are_valid(line: str) -> None:
    cli.options_of(*(lambda words: (words[0], words[1:]))(shlex.split(line)))


@pytest.mark.parametrize("line", ["help nothing", "nothing", "--nothing", "--", "-- serve"])
def test_unknown_commands(run: Run, line: str) -> None:
    ran = run(line)
    assert (ran.status, ran.out) == (2, "")


ERRORS: list[tuple[str, list[str]]] = [
    ("serv", ["`noxu help` describes the arguments", "noxu: error: argument COMMAND: invalid choice: 'serv' (choose from … (did you mean serve?)"]),
    ("serve --tsl --x", ["`noxu help serve` describes the arguments", "noxu serve: error: unrecognized arguments: --tsl --x (did you mean --tls?)"]),
    ("serve --memroy=1", ["`noxu help serve` describes the arguments", "noxu serve: error: unrecognized arguments: --memroy=1 (did you mean --memory?)"]),
    ("lint a --output sarfi", ["`noxu help lint` describes the arguments", "noxu lint: error: argument --output: invalid choice: 'sarfi' (choose from … (did you mean sarif?)"]),
    ("copy", ["`noxu help copy` describes the arguments", "noxu copy: error: the following arguments are required: --from, --to"]),
    ("check a --zzz", ["`noxu help check` describes the arguments", "noxu check: error: unrecognized arguments: --zzz"]),
    ("completion", ["`noxu help completion` describes the arguments", "noxu completion: error: the following arguments are required: shell"]),
]  # fmt: skip


@pytest.mark.parametrize(("line", "printed"), ERRORS, ids=[row[0] for row in ERRORS])
def test_an_error_is_short_and_says_what_may_have_been_meant(run: Run, line: str, printed: list[str]) -> None:
    ran = run(line)
    assert (ran.status, ran.out) == (2, "")
    assert [re.sub(r"\(choose from [^)]*\)", "(choose from …", line) for line in ran.err.splitlines()] == printed


def test_the_versions(run: Run) -> None:
    expected = {
        "noxu": version("noxu"),
        "kubernetes": KUBERNETES_VERSION,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    assert run("version --output json").json == expected
    assert run("version").out == "".join(f"{name} {value}\n" for name, value in expected.items())
    assert run("--version").out == f"noxu {version('noxu')}\n"


@pytest.mark.parametrize("line", ["", "help lint", "version", "__complete serve --"])
def test_no_module_of_the_server_is_imported_for(line: str) -> None:
    code = (
        f"import sys; from noxu import cli; cli.main({line.split()!r}); "
        "print([name for name in ('asyncio', 'aiohttp', 'noxu.registry') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"
