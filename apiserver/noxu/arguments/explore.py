"""The arguments of `noxu explore`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from noxu.arguments import values

OUTPUTS: Final = ("text", "json", "junit")
CLASSES: Final = ("crash", "stale", "unobserved", "ambiguous", "refused", "drift", "order", "workload", "spec")
BUDGET: Final = "10m"


def add_explore(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Find what breaks a controller: run it again and again against the same workload, each time with one thing that a "
        "cluster does sooner or later, and say in sentences what went wrong. See docs/explore.md."
    )
    command.add_argument(
        "config", nargs="?", type=Path, metavar="FILE", help="explore.yaml; without it, what is given by options"
    )
    values.repeated(command, "--manifests", "FILE", "what every run begins with, such as CRDs", parse=Path)
    command.add_argument("-f", dest="manifests", action="append", type=Path, metavar="FILE", help="the same")
    values.repeated(command, "--apply", "FILE", "a step of the workload: apply these objects", parse=Path)
    command.add_argument("--delete", action="store_true", help="delete what was applied at the end, and apply it again")
    command.add_argument("--nodes", type=values.nodes, metavar="NUMBER", help="simulated nodes, see docs/workloads.md")
    command.add_argument("--plan", type=Path, metavar="FILE", help="run this plan only, such as explore-1.yaml")
    command.add_argument(
        "--repeat", type=values.count, default=1, metavar="NUMBER", help="how often to run --plan (default: 1)"
    )
    values.repeated(command, "--class", "CLASS", f"plans of this class only: {', '.join(CLASSES)}", dest="classes")
    command.add_argument(
        "--budget", type=values.seconds, metavar="DURATION", help=f"for how long to explore (default: {BUDGET})"
    )
    command.add_argument(
        "-j",
        "--jobs",
        type=values.count,
        metavar="NUMBER",
        help="runs at the same time (default: as many as keep the processors busy, at most 16)",
    )
    command.add_argument(
        "--quiet-for",
        type=values.seconds,
        metavar="DURATION",
        help="how long a controller that has nothing to do is silent (default: 300ms)",
    )
    command.add_argument("--mutate", action="store_true", help="change fields of the custom resources, too")
    command.add_argument("--dry-run", action="store_true", help="print the plans, and run none")
    command.add_argument(
        "--output",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="where plans and recordings of findings are written (default: here)",
    )
    command.add_argument(
        "-o", "--format", choices=OUTPUTS, default="text", help="the form of the report (default: text)"
    )
    command.add_argument("-q", "--quiet", action="store_true", help="show no progress")


def complete_explore(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    for name in options.classes:
        if name not in CLASSES:
            raise ValueError(f"--class {name}: there are {', '.join(CLASSES)}")
    if options.config is None and not options.apply:
        raise ValueError("what to explore: name a file such as explore.yaml, or give --apply sample.yaml")
    if options.repeat != 1 and options.plan is None:
        raise ValueError("--repeat is about --plan")
    if options.repeat < 1:
        raise ValueError("--repeat must be at least 1")
