"""The arguments of `noxu version`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noxu.arguments import shared

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    command.description = "Print the versions of Noxu, of the Kubernetes API that it serves, and of Python."
    shared.output(command)
