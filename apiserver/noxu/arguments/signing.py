"""The arguments of `noxu serve` about certificates of users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group(
        "certificates of users", "The CA that signs approved CertificateSigningRequests: see docs/profiles.md."
    )
    for what, name in (("certificate", "cert"), ("key", "key")):
        group.add_argument(
            f"--cluster-signing-{name}-file",
            type=Path,
            metavar="FILE",
            help=f"the {what} of that CA, in PEM (default: a CA of the server)",
        )
