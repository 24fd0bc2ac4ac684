"""The arguments of the commands before an upgrade: preview and convert. Those of diff are in `past`."""

from __future__ import annotations

import argparse
from pathlib import Path

from noxu.arguments import etcd, values
from noxu.config import DEFAULT_DATA


def add_preview(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Show what new CRDs change for the objects that are stored: which are refused, or only forgiven by ratcheting, "
        "what is pruned, what gets a default, which versions go. It only reads. Exit status 1 if something is refused or "
        "lost, 2 if something cannot be read."
    )
    values.repeated(command, "-f", "PATH", "the new CRDs: files, directories, - for stdin", parse=Path, dest="files")
    values.repeated(
        command, "--old", "PATH", "files with the former CRDs and the objects, in place of stored ones", parse=Path
    )
    command.add_argument(
        "--requests",
        type=Path,
        metavar="FILE",
        help="a recording: which of its clients' requests would be answered in another way",
    )
    command.add_argument(
        "--limit",
        type=values.count,
        default=5,
        metavar="N",
        help="objects, and requests of a client, to list for each CRD (default: %(default)s)",
    )
    command.add_argument(
        "--strict", action="store_true", help="exit status 1 for what is forgiven or gets a default, too"
    )
    command.add_argument(
        "--output",
        choices=("text", "json", "junit", "markdown"),
        default="text",
        help="the output format (default: %(default)s)",
    )
    values.quiet(command)
    stored = command.add_argument_group("stored objects", "Where they are, unless --old has them.")
    values.server(stored).add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"the data directory, which no server may be using (default: {DEFAULT_DATA})",
    )
    etcd.add_etcd(command, "The objects are in etcd. Servers that use it may run.", writes=False)


def complete_preview(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    if not options.files:
        raise ValueError("give the new CRDs with -f PATH: a file, a directory, or - for stdin")
    options.etcd = etcd.etcd(options)
    values.check_location(options)
    values.check_server(options)
    if options.old and (options.server or options.kubeconfig or options.data or options.etcd is not None):
        raise ValueError(
            "--old has the objects in files: it excludes --server, --kubeconfig, --data and --etcd-servers"
        )


# -- noxu convert ------------------------------------------------------------------------------------------------------


def add_convert(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Convert custom resources in files to another version of their CRD, or check that objects that are converted and "
        "converted back are what they were. Exit status 1 if a conversion fails or loses something, 2 if an input cannot "
        "be read."
    )
    values.repeated(
        command, "-f", "PATH", "CRDs and objects: files, directories, - for stdin", parse=Path, dest="files"
    )
    command.add_argument("--to", default="", metavar="VERSION", help="the version, such as v2")
    command.add_argument(
        "--round-trips",
        type=values.count,
        metavar="N",
        help="convert N generated objects of each version, and those in the files, to each other version and back",
    )
    command.add_argument("--seed", default="0", help="another seed generates other objects (default: %(default)s)")
    values.repeated(
        command,
        "--function",
        "CRD=MODULE:NAME",
        "a function in Python that converts in place of the webhook",
        parse=_function,
        dest="functions",
    )
    values.repeated(
        command,
        "--webhook-service",
        "NAMESPACE/NAME[:PORT]=HOST:PORT",
        "the address of webhooks that refer to this service of a cluster",
        parse=values.service,
    )
    values.output(command)


def _function(text: str) -> tuple[str, str]:
    name, _, place = text.partition("=")
    if not (name and all(place.partition(":"))):
        raise values.refused("must be CRD=MODULE:NAME, such as widgets.example.com=conversion:convert")
    return name, place


def complete_convert(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    if not options.files:
        raise ValueError("give the CRDs and objects with -f PATH: a file, a directory, or - for stdin")
    if not options.to and options.round_trips is None:
        raise ValueError("give --to VERSION, or --round-trips N")
    if options.output != "text" and options.round_trips is None:
        raise ValueError("--output is for --round-trips")
