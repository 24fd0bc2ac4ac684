"""The arguments of `noxu skeleton`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noxu.arguments import checks

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Print the skeletons of schemas, which determine what pruning keeps. Exit status 1 if a value would be a struct "
        "and a map at the same time, 2 if an input cannot be read."
    )
    checks.add(command, "CRDs or OpenAPI v3 schemas")


def complete(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    checks.complete(options)
    checks.require_files(options)
