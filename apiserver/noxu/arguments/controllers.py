"""The arguments of `noxu serve` about controllers, their election, and admission plug-ins."""

from __future__ import annotations

import argparse

from noxu import features
from noxu.arguments import values
from noxu.config import LeaderElection
from noxu.controllers import manager

# -- controllers -------------------------------------------------------------------------------------------------------


def add_controllers(command: argparse._ArgumentGroup) -> None:
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
        f"available: {', '.join(manager.AVAILABLE)}, and with --nodes {', '.join(manager.OF_WORKLOADS)}",
    )


def controllers(options: argparse.Namespace) -> tuple[str, ...] | None:
    """The list of controllers; None: that of the profile. Raises ValueError."""
    option, items = "--profile", None
    try:
        manager.check_profile(options.profile)
        if options.controllers is not None:
            option = "--controllers"
            items = tuple(item for text in options.controllers if text for item in text.split(","))
            manager.check_controllers(items, has_nodes=options.nodes is not None)
    except ValueError as error:
        raise ValueError(f"argument {option}: {error}") from None
    return items


# -- admission plug-ins ------------------------------------------------------------------------------------------------


def add_plugins(command: argparse._ArgumentGroup) -> None:
    values.repeated(
        command,
        "--disable-admission-plugins",
        "PLUGIN,...",
        f"do not run these admission plug-ins: {', '.join(features.PLUGINS)}",
    )
    values.repeated(
        command,
        "--enable-admission-plugins",
        "PLUGIN,...",
        "run these admission plug-ins, too; enabled by default are all that can be disabled except "
        f"{', '.join(features.OFF_PLUGINS)}, and in the profile envtest {', '.join(features.WITH_CONTROLLERS)}",
    )


def plugins(options: argparse.Namespace, controllers: tuple[str, ...] | None) -> frozenset[str]:
    """The plug-ins that run. Raises ValueError."""
    return features.select_plugins(
        features.plugin_names(options.enable_admission_plugins),
        features.plugin_names(options.disable_admission_plugins),
        controllers=manager.has_accounts(options.profile, controllers),
    )


# -- the election of the server that runs the controllers --------------------------------------------------------------


def add_leader_election(command: argparse.ArgumentParser) -> None:
    default = LeaderElection()
    group = command.add_argument_group(
        "leader election", "Which of several servers runs the controllers: see docs/etcd.md."
    )
    group.add_argument(
        "--leader-elect",
        type=values.boolean,
        metavar="BOOL",
        help="run the controllers only while this server is the leader of those with the same store "
        "(default: true with --etcd-servers, else false)",
    )
    for name, seconds, what in (
        ("lease-duration", default.lease_duration, "after which others replace a leader that does not renew its Lease"),
        ("renew-deadline", default.renew_deadline, "after which a leader that cannot renew it stops its controllers"),
        ("retry-period", default.retry_period, "between attempts to acquire or renew it"),
    ):
        group.add_argument(
            f"--leader-elect-{name}",
            type=values.seconds,
            default=seconds,
            metavar="DURATION",
            help=f"the time {what} (default: {seconds:g}s)",
        )


def leader_election(options: argparse.Namespace) -> LeaderElection:
    """Raises ValueError."""
    election = LeaderElection(
        options.leader_elect,
        options.leader_elect_lease_duration,
        options.leader_elect_renew_deadline,
        options.leader_elect_retry_period,
    )
    try:
        manager.check_leader_election(election)
    except ValueError as error:
        raise ValueError(f"argument --leader-elect: {error}") from None
    return election
