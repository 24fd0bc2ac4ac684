"""The arguments of `noxu serve` about what it does by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noxu.controllers import manager

if TYPE_CHECKING:
    import argparse


def add(command: argparse._ArgumentGroup) -> None:
    command.add_argument(
        "--profile",
        choices=tuple(manager.PROFILES),
        default="local",
        help="what the server does by itself, see docs/profiles.md: local: runs controllers, every user may do everything; "
        "cluster: runs controllers, with TLS and RBAC; envtest: runs none, as kube-apiserver (default: %(default)s)",
    )
    command.add_argument(
        "--controllers",
        action="append",
        default=None,
        metavar="LIST",
        help="controllers of kube-controller-manager to run, instead of the profile's: * for all, NAME, -NAME; "
        f"available: {', '.join(manager.AVAILABLE)}",
    )


def controllers(options: argparse.Namespace) -> tuple[str, ...] | None:
    """The list of controllers; None: that of the profile. Raises ValueError."""
    option, found = "--profile", None
    try:
        manager.check_profile(options.profile)
        if options.controllers is not None:
            option = "--controllers"
            found = tuple(item for text in options.controllers if text for item in text.split(","))
            manager.check_controllers(found)
    except ValueError as error:
        raise ValueError(f"argument {option}: {error}") from None
    return found
