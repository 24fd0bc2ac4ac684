"""The arguments of the commands about a running server, which ask it below /_noxu/."""

from __future__ import annotations

import argparse
from pathlib import Path

from noxu.arguments import values

# -- noxu user ---------------------------------------------------------------------------------------------------------


def add_user(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Print a kubeconfig for another user of a running server: with a token over HTTP, with a client certificate over TLS. "
        "The credentials are valid until the server stops for good."
    )
    command.add_argument("name", metavar="NAME", help="the name of the user")
    command.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="GROUP",
        help="a group of the user, besides system:authenticated; can be repeated",
    )
    command.add_argument("--uid", default="", help="the uid of the user, which only a token can have")
    command.add_argument(
        "--to", type=Path, metavar="FILE", help="write the kubeconfig to this file, which only its owner can read"
    )
    values.control(command, "kubeconfig")


def complete_user(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    values.check_control(options)
