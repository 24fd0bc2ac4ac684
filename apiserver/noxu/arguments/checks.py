"""The arguments that the commands without a server have in common: validate, explain-write, lint and skeleton."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from noxu.arguments import values

if TYPE_CHECKING:
    import argparse

OUTPUTS: Final = ("text", "json", "junit", "sarif", "github")


def add(command: argparse.ArgumentParser, what: str) -> None:
    """`what` is in the files."""
    command.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help=f"{what}: YAML or JSON files, directories, - for stdin"
    )
    command.add_argument(
        "-f",
        dest="named",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="the same; can be repeated",
    )
    command.add_argument(
        "--old",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="the former objects, which those in the files update; can be repeated",
    )
    command.add_argument(
        "--independent", action="store_true", help="objects of the same name in different files are no updates"
    )
    for option, what_happens in (
        ("--skip", "skip objects of these kinds"),
        ("--reject", "refuse objects of these kinds"),
    ):
        command.add_argument(
            option,
            action="append",
            default=[],
            type=values.kinds,
            metavar="KIND,...",
            help=f"{what_happens}: Pod, or apps/v1/Deployment; can be repeated",
        )
    command.add_argument("--allow-empty", action="store_true", help="a path without objects is not an error")
    command.add_argument(
        "--strict", action="store_true", help="unknown and duplicate fields, and what lint warns about, are errors"
    )
    command.add_argument(
        "-j",
        dest="jobs",
        type=values.jobs,
        metavar="N",
        help="check in N processes; 0: as many as there are processors (default: 1)",
    )
    command.add_argument(
        "--no-cache", action="store_true", help="neither use nor keep files and results in the user's cache"
    )
    command.add_argument("--output", choices=OUTPUTS, default="text", help="the output format (default: %(default)s)")


def add_detail(command: argparse.ArgumentParser) -> None:
    """Add the options that choose what a report in text lists."""
    detail = command.add_mutually_exclusive_group()
    detail.add_argument(
        "--errors-only", action="store_true", help="list errors only; what has none, and warnings, are counted"
    )
    detail.add_argument(
        "--verbose",
        action="store_true",
        help="list everything: on a terminal, too, what has no findings; and warnings that repeat one by one",
    )


def check_detail(options: argparse.Namespace) -> None:
    """Raises ValueError if they are given for another output."""
    if options.output != "text" and (options.errors_only or options.verbose):
        raise ValueError("--errors-only and --verbose are for --output text")


def complete(options: argparse.Namespace) -> None:
    """Set `options.files` to all paths, `options.skip` and `options.reject` to all kinds, and `options.jobs` to their number."""
    options.jobs = options.jobs or 1
    options.files = [*options.paths, *options.named]
    options.skip = frozenset(kind for kinds in options.skip for kind in kinds)
    options.reject = frozenset(kind for kinds in options.reject for kind in kinds)


def refuse(options: argparse.Namespace, names: Mapping[str, str], why: str) -> None:
    """Before `complete`. Raises ValueError if one of the options is given. `names` are those of their values."""
    given = [option for option, name in names.items() if getattr(options, name)]
    if given:
        raise ValueError(f"{given[0]}: {why}")


def require_files(options: argparse.Namespace) -> None:
    """Raises ValueError if there is no path."""
    if not options.files:
        raise ValueError("give a PATH: a file, a directory, or - for stdin")
