"""The arguments of `noxu completion`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import argparse

SHELLS: Final = ("bash", "zsh", "fish")


def add(command: argparse.ArgumentParser) -> None:
    command.description = "Print what makes a shell complete the commands, options and values of noxu."
    command.add_argument("shell", choices=SHELLS, help="the shell")
