"""The arguments of `noxu export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from noxu.arguments import etcd, shared
from noxu.config import DEFAULT_DATA

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write objects as YAML that `kubectl apply` and `noxu serve` take: without their status, what servers set and "
        "allocate, and the objects that servers make. Exit status 1 if something cannot be read or written."
    )
    selection = command.add_argument_group("selection")
    selection.add_argument(
        "-n",
        "--namespace",
        action="append",
        default=[],
        metavar="NAMESPACE",
        help="objects in this namespace only; can be repeated",
    )
    selection.add_argument(
        "-A",
        "--all-namespaces",
        action="store_true",
        help="objects in all namespaces, and of the cluster (the default)",
    )
    selection.add_argument(
        "-l", "--selector", default="", metavar="SELECTOR", help="objects with these labels: a=b,c!=d"
    )
    selection.add_argument(
        "--owned",
        action="store_true",
        help="also objects that others own, such as the pods of a Job, without their owners",
    )
    command.add_argument(
        "--to",
        type=Path,
        metavar="FILE",
        help="a .yaml file to write, or a folder with a file for each object (default, and -: stdout)",
    )
    shared.server(command.add_argument_group("location of the objects")).add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"the data directory, which no server may be using (default: {DEFAULT_DATA})",
    )
    etcd.add(command, "The objects are in etcd. Servers that use it may run.", writes=False)
    shared.quiet(command)
    command.add_argument(
        "kinds",
        nargs="*",
        metavar="KIND",
        help="the kinds to export, as kubectl names them: widgets,configmaps or widgets.example.com (default: all)",
    )


def complete(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    if options.to == Path("-"):
        options.to = None
    options.etcd = etcd.etcd(options)
    shared.check_location(options)
    shared.check_server(options)
    if options.namespace and options.all_namespaces:
        raise ValueError("--namespace and --all-namespaces exclude each other")
    from noxu.api.errors import ApiError
    from noxu.api.selectors import parse_labels  # only of this command

    try:
        options.labels = parse_labels(options.selector)
    except (ValueError, ApiError) as error:
        raise ValueError(f"argument --selector: {error}") from None
