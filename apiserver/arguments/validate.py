"""The arguments of `noxu validate`."""

from __future__ import annotations

import argparse
from pathlib import Path

from noxu.apiserver.arguments import etcd, shared
from noxu.apiserver.config import DEFAULT_DATA


def add(command: argparse.ArgumentParser) -> None:
    command.description = "Validate objects without a server, as a server would. Exit status 1 if an object is refused."
    command.add_argument(
        "-f",
        dest="files",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="CRDs and objects: YAML or JSON files, directories, - for stdin; can be repeated",
    )
    command.add_argument("--strict", action="store_true", help="refuse unknown and duplicate fields")
    command.add_argument(
        "--ignore-unknown-kinds", action="store_true", help="skip objects of kinds that no CRD in the files defines"
    )
    shared.feature_gates(command)
    shared.output(command)
    shared.quiet(command)
    stored = command.add_argument_group(
        "stored objects",
        "Find stored objects that their CRDs refuse. CRDs given with -f replace the stored ones.",
    )
    stored.add_argument("--stored", action="store_true", help="validate stored objects")
    shared.server(stored).add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"the data directory, which no server may be using (default: {DEFAULT_DATA})",
    )
    etcd.add(command, "With --stored: the objects are in etcd. Servers that use it may run.", writes=False)


def complete(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    shared.set_features(options)
    if not options.stored and any(
        (options.data, options.server, options.kubeconfig, options.context, options.insecure_skip_tls_verify)
    ):
        raise ValueError("--data, --server, --kubeconfig, --context and --insecure-skip-tls-verify need --stored")
    options.etcd = etcd.etcd(options)
    if not options.stored and options.etcd is not None:
        raise ValueError("--etcd-servers needs --stored")
    shared.check_location(options)
    if not options.stored and not options.files:
        raise ValueError("nothing to validate: give -f or --stored")
