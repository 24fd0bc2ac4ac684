"""The arguments of `noxu help`."""

from __future__ import annotations

import argparse

from noxu.apiserver.arguments.parsers import COMMANDS


def add(command: argparse.ArgumentParser) -> None:
    command.description = "Describe a command and its options, or list all commands."
    command.add_argument("about", nargs="?", choices=tuple(COMMANDS), metavar="COMMAND", help="the command")
