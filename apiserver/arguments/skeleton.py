"""The arguments of `noxu skeleton`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Print the skeleton of every schema in a file, which determines what pruning keeps. Exit status 1 if a value "
        "would be a struct and a map at the same time."
    )
    command.add_argument(
        "--output", choices=("yaml", "json"), default="yaml", help="the output format (default: %(default)s)"
    )
    command.add_argument("file", type=Path, metavar="FILE", help="CRDs or an OpenAPI v3 schema; - for stdin")
