"""The arguments of the commands about what clients of a running server have asked."""

from __future__ import annotations

import argparse
from typing import Final

from noxu.arguments import values

ROLE_OUTPUTS: Final = ("yaml", "json")
REPORT_OUTPUTS: Final = ("text", "json", "yaml", "html")

# -- noxu report -------------------------------------------------------------------------------------------------------


def add_report(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Report the manners of the clients of a running server: what each of them asks, what it does badly, and what to change. "
        "Requests are recorded from the first report on, or from the start with noxu serve --record-requests."
    )
    _client(command)
    command.add_argument("--since", metavar="TIME", help="later requests only: a duration until now, or a time")
    _output(command, REPORT_OUTPUTS)


def complete_report(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    values.check_control(options)


# -- noxu rbac ---------------------------------------------------------------------------------------------------------


def add_rbac(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Print the least ClusterRole and Roles that would have allowed what clients of a running server have asked. "
        "Requests are recorded from the first use on, or from the start with noxu serve --record-requests."
    )
    _client(command)
    command.add_argument("--user", metavar="NAME", help="only requests of this user (default: all)")
    command.add_argument("--since", metavar="TIME", help="later requests only: a duration until now, or a time")
    command.add_argument("--name", metavar="NAME", help="the name of the roles (default: that of the user agent)")
    values.repeated(
        command,
        "--bind",
        "USER",
        "bind the roles to a user, or to a service account, system:serviceaccount:NAMESPACE:NAME",
    )
    command.add_argument(
        "--any-name", action="store_true", help="do not limit rules to names that were always the same"
    )
    command.add_argument("--discovery", action="store_true", help="include discovery, which every user may read")
    _output(command, ROLE_OUTPUTS)


def complete_rbac(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    values.check_control(options)


# -- options of both ---------------------------------------------------------------------------------------------------


def _client(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--client", metavar="AGENT", help="only clients whose user agent begins so, such as operator/v1 (default: all)"
    )


def _output(command: argparse.ArgumentParser, outputs: tuple[str, ...]) -> None:
    values.server(command.add_argument_group("server", "By default that of your kubeconfig, as for kubectl."))
    command.add_argument(
        "-o", "--output", choices=outputs, default=outputs[0], help="the output format (default: %(default)s)"
    )
