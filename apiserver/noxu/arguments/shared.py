"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from noxu.features import GATES, parse_gates

if TYPE_CHECKING:
    import argparse

OUTPUTS: Final = ("text", "json")


def feature_gates(command: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add --feature-gates, which `set_features` reads."""
    command.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,...",
        help=f"enable or disable features: {', '.join(GATES)}",
    )


def set_features(options: argparse.Namespace) -> None:
    """Set `options.features`. Raises ValueError."""
    try:
        options.features = parse_gates(options.feature_gates)
    except ValueError as error:
        raise ValueError(f"argument --feature-gates: {error}") from None


def output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--output", choices=OUTPUTS, default="text", help="the output format (default: %(default)s)")


def quiet(command: argparse.ArgumentParser) -> None:
    command.add_argument("--quiet", action="store_true", help="do not show progress on stderr")


def check_location(options: argparse.Namespace) -> None:
    """Raises ValueError if `options.etcd` is not the only location of the objects."""
    if options.etcd is not None and (options.data or options.server or options.kubeconfig):
        raise ValueError("--etcd-servers excludes --data, --server and --kubeconfig")


def check_server(options: argparse.Namespace) -> None:
    """Raises ValueError for options about a server or kubeconfig that is not given."""
    if options.context and not options.kubeconfig:
        raise ValueError("--context needs --kubeconfig")
    if options.insecure_skip_tls_verify and not (options.server or options.kubeconfig):
        raise ValueError("--insecure-skip-tls-verify needs --server or --kubeconfig")


def server(options: argparse._ArgumentGroup) -> argparse._MutuallyExclusiveGroup:
    """Add the options that select a running server. Returns the group for alternatives to them."""
    alternatives = options.add_mutually_exclusive_group()
    alternatives.add_argument("--server", metavar="URL", help="the URL of a running server")
    alternatives.add_argument("--kubeconfig", type=Path, metavar="FILE", help="the kubeconfig of a running server")
    options.add_argument(
        "--context", metavar="NAME", help="the context of the kubeconfig (default: its current context)"
    )
    options.add_argument(
        "--insecure-skip-tls-verify", action="store_true", help="do not verify the server's certificate"
    )
    return alternatives
