"""The arguments of `noxu serve` about the election of the server that runs the controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noxu.arguments import values
from noxu.config import LeaderElection
from noxu.controllers import manager

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
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
    found = LeaderElection(
        options.leader_elect,
        options.leader_elect_lease_duration,
        options.leader_elect_renew_deadline,
        options.leader_elect_retry_period,
    )
    try:
        manager.check_leader_election(found)
    except ValueError as error:
        raise ValueError(f"argument --leader-elect: {error}") from None
    return found
