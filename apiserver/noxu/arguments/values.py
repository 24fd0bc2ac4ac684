"""The values of options, and options that several commands have."""

from __future__ import annotations

import argparse
import ipaddress
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from noxu import releases
from noxu.config import HTTPS_PORT, MAX_NODES, ServiceName
from noxu.control.retention import history_of
from noxu.expressions import expression
from noxu.features import GATES, parse_gates
from noxu.go.time import SECOND, parse_duration


def refused(message: str) -> Exception:
    """What the type of an argument raises for an invalid value."""
    return argparse.ArgumentTypeError(message)


MAX_PORT: Final = 65535


def port(text: str) -> int:
    if not text.isdecimal() or int(text) > MAX_PORT:
        raise refused("must be a number from 0 to 65535")
    return int(text)


_PORTS: Final = expression("(?P<first>[0-9]{1,5})-(?P<last>[0-9]{1,5})")


def ports(text: str) -> range:
    """The ports of `FIRST-LAST`."""
    match = _PORTS.fullmatch(text)
    found = range(0) if match is None else range(int(match["first"]), int(match["last"]) + 1)
    if not found or not found[0] or found[-1] > MAX_PORT:
        raise refused("must be FIRST-LAST, such as 7000-7099")
    return found


def boolean(text: str) -> bool:
    """A boolean as Go parses it."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise refused("must be true or false")


_NEWEST: Final = releases.named(releases.NEWEST)


def count(text: str) -> int:
    if not text.isdecimal():
        raise refused("must be a number that is not negative")
    return int(text)


def nodes(text: str) -> int:
    """A number of simulated nodes."""
    number = count(text)
    if number > MAX_NODES:
        raise refused(f"must be at most {MAX_NODES}")
    return number


def items(texts: list[str]) -> tuple[str, ...]:
    """The items of comma-separated lists."""
    return tuple(item.strip() for text in texts for item in text.split(",") if item.strip())


def address(text: str) -> str:
    """An IP address; "" for none, and for the one that means all."""
    if not text:
        return ""
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        raise refused("must be an IP address") from None
    return "" if parsed.is_unspecified else str(parsed)


def jobs(text: str) -> int:
    """A number of processes; 0 is that of the processors."""
    return count(text) or os.cpu_count() or 1


def kinds(text: str) -> list[str]:
    """Kinds, each alone or with its version: `Pod,apps/v1/Deployment`."""
    names = text.split(",")
    if not all(re.fullmatch(r"(?:[^/\s]+/){0,2}[A-Za-z0-9]+", kind) for kind in names):
        raise refused("must be KIND, VERSION/KIND or GROUP/VERSION/KIND, such as apps/v1/Deployment")
    return names


def kubernetes_version(text: str) -> str:
    if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", text):
        raise refused("must be MAJOR.MINOR.PATCH, such as 1.37.0")
    return text


def history(text: str) -> float:
    """How long history is kept, in seconds: a duration, `all` (infinite) or `off` (0)."""
    try:
        return history_of(text)
    except ValueError as error:
        raise refused(str(error)) from None


def seconds(text: str) -> float:
    """A duration in Go's syntax, in seconds."""
    try:
        number = parse_duration(text) / SECOND
    except ValueError:
        number = -1.0
    if number < 0:
        raise refused("must be a duration that is not negative, such as 1h30m, 90s or 0")
    return number


_SERVICE: Final = expression(r"(?P<namespace>[^/=:]+)/(?P<name>[^/=:]+)(:(?P<port>[0-9]+))?=(?P<address>[^=]+:[0-9]+)")


def service(text: str) -> tuple[ServiceName, str]:
    match = _SERVICE.fullmatch(text)
    if match is None:
        raise refused("must be NAMESPACE/NAME[:PORT]=HOST:PORT, such as default/my-webhook:443=127.0.0.1:9443")
    number = port(match["port"]) if match["port"] else HTTPS_PORT
    return ServiceName(match["namespace"], match["name"], number), match["address"]


# -- options that several commands have --------------------------------------------------------------------------------


OUTPUTS: Final = ("text", "json")
CONTROL_OUTPUTS: Final = ("table", "json", "yaml")


def repeated(
    command: argparse._ActionsContainer,
    option: str,
    metavar: str,
    what: str,
    *,
    parse: Callable[[str], object] = str,
    dest: str | None = None,
) -> None:
    """Add an option that can be repeated. Its value is a list of what `parse` makes of each text."""
    command.add_argument(
        option, dest=dest, action="append", default=[], type=parse, metavar=metavar, help=f"{what}; can be repeated"
    )


def feature_gates(command: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add --feature-gates, which `set_features` reads."""
    command.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,...",
        help=f"enable or disable features: {', '.join(GATES)}",
    )


def kubernetes(
    command: argparse.ArgumentParser | argparse._ArgumentGroup, *, several: bool, default: str = _NEWEST
) -> None:
    """Add --kubernetes, whose value is a list of releases; with `several`, it may have more than one."""
    known = f"{releases.named(releases.OLDEST)} to {_NEWEST} (default: {default})"
    command.add_argument(
        "--kubernetes",
        type=_releases if several else _release,
        default=(),
        metavar="VERSION,..." if several else "VERSION",
        help=f"judge as these versions of Kubernetes: {known}"
        if several
        else f"answer as this version of Kubernetes: {known}",
    )


def _releases(text: str) -> tuple[int, ...]:
    try:
        return releases.parse_list([text])
    except ValueError as error:
        raise refused(str(error)) from None


def _release(text: str) -> tuple[int, ...]:
    try:
        return (releases.parse(text),)
    except ValueError as error:
        raise refused(str(error)) from None


def set_releases(options: argparse.Namespace) -> None:
    """Set `options.kubernetes` to the newest release if none is given."""
    options.kubernetes = options.kubernetes or (releases.NEWEST,)


def set_features(options: argparse.Namespace) -> None:
    """Set `options.features` to those of each release, by release; `options.kubernetes` is set as well. Raises ValueError."""
    set_releases(options)
    try:
        options.features = {release: parse_gates(options.feature_gates, release) for release in options.kubernetes}
    except ValueError as error:
        raise ValueError(f"argument --feature-gates: {error}") from None


def output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--output", choices=OUTPUTS, default="text", help="the output format (default: %(default)s)")


def control(command: argparse.ArgumentParser, *outputs: str, by_default: str = "", metavar: str | None = None) -> None:
    """Add the options of a command that asks a running server: which one, and the output format, by default the first one.

    `by_default` describes a default that depends on other arguments: then it is None here. `metavar` stands for the formats
    where they are too many for a line.
    """
    group = command.add_argument_group("server", "By default that of your kubeconfig, as for kubectl.")
    server(group)
    choices = (*outputs, *(each for each in CONTROL_OUTPUTS if each not in outputs))
    listed = f": {', '.join(choices)}" if metavar else ""
    command.add_argument(
        "-o",
        "--output",
        choices=choices,
        metavar=metavar,
        default=None if by_default else choices[0],
        help=f"the output format{listed} (default: {by_default or choices[0]})",
    )


def check_control(options: argparse.Namespace) -> None:
    """Raises ValueError for options about a kubeconfig that is not read."""
    if options.context and options.server:
        raise ValueError("--context is one of a kubeconfig, which --server does not read")


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
