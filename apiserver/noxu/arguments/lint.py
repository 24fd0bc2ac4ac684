"""The arguments of `noxu lint`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from noxu.arguments import checks

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Find errors in CRDs of v1 or v1beta1 as a server would, and say how to fix them. "
        "Exit status 1 if a CRD is not structural, 2 if an input cannot be read."
    )
    command.add_argument("--fix", action="store_true", help="write the structural v1 form, if it is unambiguous")
    command.add_argument(
        "--in-place",
        action="store_true",
        help="with --fix: show the difference, keep the files as FILE.bak, and rewrite them",
    )
    command.add_argument("--diff", action="store_true", help="with --fix: show the difference only")
    checks.add(command, "CRDs")
    checks.add_detail(command)


def complete(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    checks.complete(options)
    checks.check_detail(options)
    checks.require_files(options)
    if (options.in_place or options.diff) and not options.fix:
        raise ValueError("--in-place and --diff need --fix")
    if options.in_place and options.diff:
        raise ValueError("--in-place and --diff exclude each other: --in-place shows the difference, too")
    if (options.in_place or options.diff) and (options.output != "text" or Path("-") in options.files):
        raise ValueError("--in-place and --diff cannot be combined with --output or stdin")
