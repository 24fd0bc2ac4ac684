"""The arguments of `noxu serve` about what users may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noxu import features

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("authorization", "What users may do: see docs/authorization.md.")
    group.add_argument(
        "--authorization-mode",
        action="append",
        default=None,
        metavar="MODE,...",
        help=f"who decides what users may do, asked in the given order: {', '.join(features.MODES)} (default: AlwaysAllow; "
        "RBAC in the profile cluster, and on other addresses than loopback)",
    )


def modes(options: argparse.Namespace) -> tuple[str, ...] | None:
    """None: those of the profile. Raises ValueError."""
    if options.authorization_mode is None:
        return None
    try:
        return features.modes(options.authorization_mode)
    except ValueError as error:
        raise ValueError(f"argument --authorization-mode: {error}") from None
