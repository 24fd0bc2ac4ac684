"""The arguments of `noxu help`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noxu.arguments.commands import COMMANDS

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    command.description = "Describe a command and its options, or list all commands."
    command.add_argument("about", nargs="?", choices=tuple(COMMANDS), metavar="COMMAND", help="the command")
