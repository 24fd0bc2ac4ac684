"""`noxu completion`: the words that may follow, and the scripts of the shells that ask for them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noxu import cli
from noxu.commands.about import SCRIPTS, candidates
from tests.optional import needs_program
from tests.rows import rows

ROOT = Path(__file__).parents[2]

WORDS: list[tuple[str, list[str], list[str]]] = [
    ("a command", ["l"], ["lint", "log"]),
    ("an option without a command", ["--v"], ["--version"]),
    ("an unknown command", ["nothing", ""], []),
    ("an option", ["check", "--h"], ["--help"]),
    ("a value", ["serve", "--log", "j"], ["json"]),
    ("a value in the same word", ["serve", "--log=j"], ["--log=json"]),
    ("a value in a word of its own, as in bash", ["serve", "--log", "=", "j"], ["json"]),
    ("all values, as in bash", ["serve", "--log", "="], ["text", "json"]),
    ("a value of another option", ["serve", "--port", ""], []),
    ("a file", ["serve", "--data", ""], [":files"]),
    ("a place that may be a file", ["copy", "--from", ""], [":files"]),
    ("a file in the same word", ["serve", "--data=d"], [":files"]),
    ("an argument that is a file", ["serve", "--memory", ""], [":files"]),
    ("an argument that is a word", ["completion", "z"], ["zsh"]),
    ("an argument that is a command", ["help", "s"], ["serve", "skeleton", "stubs", "snapshot"]),
]


@rows(("words", "lines"), [row[1:] for row in WORDS], ids=[row[0] for row in WORDS])
def test_what_completes(words: list[str], lines: list[str]) -> None:
    assert [line.partition("\t")[0] for line in candidates(words)] == lines


def test_all_commands_and_options_are_offered_with_descriptions() -> None:
    assert candidates([""])[: len(cli.COMMANDS)] == [f"{name}\t{what}" for name, what in cli.COMMANDS.items()]
    for command in cli.COMMANDS:
        offered = [line.partition("\t") for line in candidates([command, "-"])]
        assert {name for name, _, _ in offered} == set(cli.parser_of(command)._option_string_actions)
        assert all(what and "\n" not in what for _, _, what in offered)


@pytest.mark.parametrize("shell", list(SCRIPTS))
def test_the_script_of(run: Callable[..., Any], shell: str) -> None:
    assert run(f"completion {shell}").out == SCRIPTS[shell]
    if shutil.which(shell):  # its syntax
        subprocess.run([shell, "-n"], input=SCRIPTS[shell], text=True, check=True)


IN_BASH: list[tuple[str, list[str], list[str]]] = [
    ("a command", ["noxu", "expla"], ["explain-write"]),
    ("an option", ["noxu", "serve", "--mem"], ["--memory"]),
    ("a value", ["noxu", "serve", "--log", "=", "t"], ["text"]),
    ("a file", ["noxu", "check", ""], []),
]


@needs_program("bash")
@pytest.mark.parametrize(("words", "replies"), [row[1:] for row in IN_BASH], ids=[row[0] for row in IN_BASH])
def test_bash_completes(tmp_path: Path, words: list[str], replies: list[str]) -> None:
    noxu = tmp_path / "noxu"
    noxu.write_text(f'#!/bin/sh\nexec {sys.executable} -m noxu "$@"\n')
    noxu.chmod(0o755)
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        f"{SCRIPTS['bash']}\ncompopt() {{ :; }}  # works during a completion only\n"
        f'COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _noxu; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    ran = subprocess.run(
        ["bash", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
    )
    assert [*filter(None, ran.stdout.splitlines())] == replies
