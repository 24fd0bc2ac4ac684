"""The parsers of arguments: argparse, with shorter errors."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import NoReturn

from noxu.arguments.commands import COMMANDS, RUNS_A_COMMAND, arguments_of, examples_of
from noxu.config import own_version


def parser() -> Parser:
    """The parser of arguments without a command."""
    top = Parser(
        prog="noxu",
        description="The Kubernetes API for your CustomResourceDefinitions.",
        epilog=examples_of(""),
        formatter_class=_Formatter,
    )
    top.add_argument("--version", action=_Version, help="print the version and exit")
    commands = top.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary)
    return top


def parser_of(name: str) -> Parser:
    """The parser of the arguments of a command."""
    command = Parser(prog=f"noxu {name}", epilog=examples_of(name), formatter_class=_Formatter)
    arguments_of(name).add(command)
    command.usage = command.short_usage + (" -- COMMAND" if name in RUNS_A_COMMAND else "")
    return command


class Parser(argparse.ArgumentParser):
    """Whose help begins with what the command does, and whose errors are short and say what may have been meant."""

    def format_help(self) -> str:
        """The description, the usage, examples, and the arguments in their groups."""
        description, epilog = self.description, self.epilog
        self.description = self.epilog = None
        usage, _, arguments = super().format_help().partition("\n\n")
        self.description, self.epilog = description, epilog
        formatter = self._get_formatter()
        formatter.add_text(description)
        parts = (formatter.format_help(), usage, epilog, arguments)
        return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"

    @property
    def short_usage(self) -> str:
        """The usage with the arguments that have to be given, and `[OPTION]...` for all others."""
        required = [
            f"{action.option_strings[-1]} {action.metavar}"
            for action in self._actions
            if action.required and action.option_strings
        ]
        values = []
        for action in self._actions:
            if not action.option_strings:
                name = (
                    action.metavar if action.choices is None or action.metavar else "|".join(map(str, action.choices))
                )
                values.append(
                    f"[{name} ...]" if action.nargs == "*" else f"[{name}]" if action.nargs == "?" else str(name)
                )
        return " ".join([self.prog, *required, "[OPTION]...", *values])

    @property
    def options(self) -> dict[str, argparse.Action]:
        """The options by their names."""
        return self._option_string_actions

    @property
    def positional(self) -> list[argparse.Action]:
        """The arguments without a name."""
        return [action for action in self._actions if not action.option_strings]

    def error(self, message: str) -> NoReturn:
        hint = f"noxu help {self.prog.removeprefix('noxu')}".replace("  ", " ").strip()
        self.exit(2, f"`{hint}` describes the arguments\n{self.prog}: error: {message}{self._meant(message)}\n")

    def _meant(self, message: str) -> str:
        """` (did you mean --tls?)`, for the first word of a message that is similar to an option or a value."""
        choices = [str(choice) for action in self._actions for choice in action.choices or ()]
        _, _, words = message.partition("unrecognized arguments: ")
        wrong = [(word.partition("=")[0], list(self._option_string_actions)) for word in words.split()]
        if match := re.search(r"invalid choice: '([^']*)'", message):
            wrong.append((match[1], choices))
        similar = (difflib.get_close_matches(word, accepted, 1) for word, accepted in wrong)
        return next((f" (did you mean {matches[0]}?)" for matches in similar if matches), "")


class _Formatter(argparse.HelpFormatter):
    """Wraps texts between words, and not at the hyphens in names."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class _Version(argparse.Action):
    """Looks up the version only when the option is given."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:  # noqa: A002 - argparse's name
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        sys.stdout.write(f"noxu {own_version()}\n")
        parser.exit()
