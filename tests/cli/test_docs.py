"""docs/cli.md tells the truth: its examples give what they show, and it names every command and option."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from apiserver import cli

TEXT: Final = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
_FENCED: Final = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PIPED: Final = re.compile(r"echo '(.*)' \| (.*)")


class Example(NamedTuple):
    """A command, and the lines that it is shown to print, to stdout and then to stderr."""

    line: str
    printed: str
    status: int | None


def examples() -> Iterator[Example]:
    for language, _, block in _FENCED.findall(TEXT):
        if language == "console":
            steps = [step.partition("\n") for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
            for n, (line, _, printed) in enumerate(steps):
                if line != "echo $?":
                    asked = n + 1 < len(steps) and steps[n + 1][0] == "echo $?"
                    yield Example(line, printed, int(steps[n + 1][2]) if asked else None)


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.line)
def test_an_example_prints_what_it_shows(example: Example, run: Callable[..., Any], write: Callable[..., Path]) -> None:
    for _, file, block in _FENCED.findall(TEXT):
        if file:
            write(file, block)
    piped = _PIPED.fullmatch(example.line)
    stdin, line = piped.groups() if piped else ("", example.line)
    ran = run(line.removeprefix("noxu "), stdin=stdin)
    assert ran.out + ran.err == example.printed
    assert example.status in (None, ran.status)


def commands() -> dict[str, argparse.ArgumentParser]:
    [found] = [one for one in cli.parser()._actions if isinstance(one, argparse._SubParsersAction)]
    return dict(found.choices)


def test_there_are_examples() -> None:
    assert len(list(examples())) >= 6


@pytest.mark.parametrize("command", list(commands()))
def test_every_command_and_option_is_named(command: str) -> None:
    sections = [part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE) if part.startswith(f"noxu {command}")]
    assert sections
    for action in commands()[command]._actions:
        for option in action.option_strings:
            if option not in ("-h", "--help"):
                assert any(re.search(rf"`{option}\b", section) for section in sections), option
