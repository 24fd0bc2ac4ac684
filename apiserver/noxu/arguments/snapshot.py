"""The arguments of `noxu snapshot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from noxu.arguments import etcd, shared
from noxu.config import DEFAULT_DATA

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Copy all stored objects at one revision into a new file, which `noxu copy` restores. Exit status 1 if something "
        "cannot be copied."
    )
    command.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"the data directory, which no server may be using (default: {DEFAULT_DATA})",
    )
    etcd.add(command, "The objects are in etcd. Servers that use it may run.", writes=False)
    shared.quiet(command)
    command.add_argument("file", type=Path, metavar="FILE", help="the .db file to make")


def complete(options: argparse.Namespace) -> None:
    """Set `options.source`, `options.destination` and `options.merge`. Raises ValueError."""
    options.etcd = etcd.etcd(options)
    if options.etcd is not None and options.data is not None:
        raise ValueError("--etcd-servers excludes --data")
    if options.file.suffix != ".db":
        raise ValueError("FILE has to end with .db")
    options.source = options.etcd or options.data or DEFAULT_DATA
    options.destination, options.merge = options.file, False
