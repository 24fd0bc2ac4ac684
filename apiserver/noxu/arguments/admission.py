"""The arguments of `noxu serve` about admission plug-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noxu import features
from noxu.controllers import manager

if TYPE_CHECKING:
    import argparse


def add(command: argparse._ArgumentGroup) -> None:
    command.add_argument(
        "--disable-admission-plugins",
        action="append",
        default=[],
        metavar="PLUGIN,...",
        help=f"do not run these admission plug-ins: {', '.join(features.PLUGINS)}; can be repeated",
    )
    command.add_argument(
        "--enable-admission-plugins",
        action="append",
        default=[],
        metavar="PLUGIN,...",
        help="run these admission plug-ins, too; enabled by default are all that can be disabled except "
        f"{', '.join(features.OFF_PLUGINS)}, and in the profile envtest {', '.join(features.WITH_CONTROLLERS)}; can be "
        "repeated",
    )


def plugins(options: argparse.Namespace, controllers: tuple[str, ...] | None) -> frozenset[str]:
    """The plug-ins that run. Raises ValueError."""
    return features.select_plugins(
        features.plugin_names(options.enable_admission_plugins),
        features.plugin_names(options.disable_admission_plugins),
        controllers=manager.has_accounts(options.profile, controllers),
    )
