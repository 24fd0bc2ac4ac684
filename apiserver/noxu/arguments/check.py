"""The arguments of `noxu check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from noxu.arguments import etcd, shared

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    command.description = "Verify everything that a data file or etcd has. Exit status 1 if there are problems."
    shared.quiet(command)
    etcd.add(command, "Verify what etcd has under a prefix, instead of a file.", writes=False)
    command.add_argument("file", nargs="?", type=Path, metavar="FILE", help="the .db file, or the data directory")


def complete(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    options.etcd = etcd.etcd(options)
    if (options.file is None) == (options.etcd is None):
        raise ValueError("give either FILE or --etcd-servers")
