"""The arguments of `noxu migrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from noxu.arguments import etcd, shared
from noxu.config import DEFAULT_DATA

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Rewrite stored objects in the storage version of their CRD, and remove other versions from its "
        "storedVersions. Exit status 1 if an object cannot be rewritten."
    )
    shared.server(command.add_argument_group("location of the objects")).add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"the data directory, which no server may be using (default: {DEFAULT_DATA})",
    )
    etcd.add(command, "The objects are in etcd. Servers that use it may run.", writes=False)
    shared.output(command)
    shared.quiet(command)
    command.add_argument(
        "names",
        nargs="*",
        metavar="CRD",
        help="the CRDs whose objects to rewrite (default: all CRDs with several storedVersions)",
    )


def complete(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    options.etcd = etcd.etcd(options)
    shared.check_location(options)
    shared.check_server(options)
