"""The arguments of `noxu lint`."""

from __future__ import annotations

import argparse
from pathlib import Path

from noxu.apiserver.arguments import shared


def add(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Find errors in CRDs of v1 or v1beta1 as a server would, and say how to fix them. "
        "Exit status 1 if a CRD is not structural."
    )
    command.add_argument("--fix", action="store_true", help="write the structural v1 form, if it is unambiguous")
    command.add_argument(
        "--in-place", action="store_true", help="with --fix: rewrite the files instead of writing to stdout"
    )
    shared.output(command)
    command.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="YAML or JSON files, directories, - for stdin"
    )


def complete(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    if options.in_place and not options.fix:
        raise ValueError("--in-place needs --fix")
    if options.in_place and (options.output == "json" or Path("-") in options.files):
        raise ValueError("--in-place cannot be combined with --output json or stdin")
