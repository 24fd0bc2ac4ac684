"""The arguments of `noxu validate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from noxu.arguments import checks, etcd, shared
from noxu.config import DEFAULT_DATA

if TYPE_CHECKING:
    import argparse

_OF_FILES: Final = {
    "--old": "old",
    "--independent": "independent",
    "--skip": "skip",
    "--reject": "reject",
    "--allow-empty": "allow_empty",
    "--strict": "strict",
    "--ignore-unknown-kinds": "ignore_unknown_kinds",
    "--create-namespace": "create_namespace",
    "--errors-only": "errors_only",
    "--verbose": "verbose",
    "--feature-gates": "feature_gates",
    "-j": "jobs",
    "--no-cache": "no_cache",
}


def add(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Validate objects without a server, as a server would. Exit status 1 if an object is refused, 2 if an input "
        "cannot be read."
    )
    checks.add(command, "CRDs and objects")
    checks.add_detail(command)
    command.add_argument(
        "--ignore-unknown-kinds", action="store_true", help="skip objects of kinds that no CRD in the files defines"
    )
    command.add_argument(
        "--create-namespace",
        action="store_true",
        help="as for noxu serve; namespaces that no file makes exist in any case",
    )
    shared.feature_gates(command)
    shared.quiet(command)
    stored = command.add_argument_group(
        "stored objects",
        "Find stored objects that their CRDs refuse. CRDs in files replace the stored ones.",
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
    if options.stored:
        checks.refuse(
            options, _OF_FILES, "stored objects are validated as they are; the option is for objects in files"
        )
    shared.set_features(options)
    checks.complete(options)
    checks.check_detail(options)
    if not options.stored and any(
        (options.data, options.server, options.kubeconfig, options.context, options.insecure_skip_tls_verify)
    ):
        raise ValueError("--data, --server, --kubeconfig, --context and --insecure-skip-tls-verify need --stored")
    options.etcd = etcd.etcd(options)
    if not options.stored and options.etcd is not None:
        raise ValueError("--etcd-servers needs --stored")
    shared.check_location(options)
    shared.check_server(options)
    if options.stored and options.output not in shared.OUTPUTS:
        raise ValueError(f"--stored has no output format {options.output}")
    if not options.stored:
        checks.require_files(options)
