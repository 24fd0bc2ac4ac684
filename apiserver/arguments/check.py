"""The arguments of `noxu check`."""

from __future__ import annotations

import argparse
from pathlib import Path

from noxu.apiserver.arguments import shared


def add(command: argparse.ArgumentParser) -> None:
    command.description = "Verify every row of a data file. Exit status 1 if there are problems."
    shared.quiet(command)
    command.add_argument("file", type=Path, metavar="FILE", help="the .db file, or the data directory")
