"""The values of options."""

from __future__ import annotations

import os
import re
from typing import Final

from noxu.config import HTTPS_PORT, ServiceName
from noxu.expressions import expression


def refused(message: str) -> Exception:
    """What the type of an argument raises for an invalid value."""
    from argparse import ArgumentTypeError  # see noxu.arguments.plain

    return ArgumentTypeError(message)


def port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise refused("must be a number from 0 to 65535")
    return int(text)


def boolean(text: str) -> bool:
    """A boolean as Go parses it."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise refused("must be true or false")


def count(text: str) -> int:
    if not text.isdecimal():
        raise refused("must be a number that is not negative")
    return int(text)


def items(texts: list[str]) -> tuple[str, ...]:
    """The items of comma-separated lists."""
    return tuple(item.strip() for text in texts for item in text.split(",") if item.strip())


def address(text: str) -> str:
    """An IP address; "" for none, and for the one that means all."""
    if not text:
        return ""
    import ipaddress  # rarely given

    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        raise refused("must be an IP address") from None
    return "" if found.is_unspecified else str(found)


def jobs(text: str) -> int:
    """A number of processes; 0 is that of the processors."""
    return count(text) or os.cpu_count() or 1


def kinds(text: str) -> list[str]:
    """Kinds, each alone or with its version: `Pod,apps/v1/Deployment`."""
    found = text.split(",")
    if not all(re.fullmatch(r"(?:[^/\s]+/){0,2}[A-Za-z0-9]+", kind) for kind in found):
        raise refused("must be KIND, VERSION/KIND or GROUP/VERSION/KIND, such as apps/v1/Deployment")
    return found


def place(text: str) -> str:
    from noxu.process.listeners import parse  # rarely given

    try:
        return str(parse(text))
    except ValueError as error:
        raise refused(str(error)) from None


def named_certificate(text: str) -> str:
    from noxu.security.tls import parse_named  # rarely given

    try:
        parse_named(text)
    except ValueError as error:
        raise refused(str(error)) from None
    return text


def kubernetes_version(text: str) -> str:
    if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", text):
        raise refused("must be MAJOR.MINOR.PATCH, such as 1.37.0")
    return text


def seconds(text: str) -> float:
    """A duration in Go's syntax, in seconds."""
    from noxu.go.time import SECOND, parse_duration  # not needed for the default

    try:
        found = parse_duration(text) / SECOND
    except ValueError:
        found = -1.0
    if found < 0:
        raise refused("must be a duration that is not negative, such as 1h30m, 90s or 0")
    return found


_SERVICE: Final = expression(r"(?P<namespace>[^/=:]+)/(?P<name>[^/=:]+)(:(?P<port>[0-9]+))?=(?P<address>[^=]+:[0-9]+)")


def service(text: str) -> tuple[ServiceName, str]:
    found = _SERVICE.fullmatch(text)
    if found is None:
        raise refused("must be NAMESPACE/NAME[:PORT]=HOST:PORT, such as default/my-webhook:443=127.0.0.1:9443")
    number = port(found["port"]) if found["port"] else HTTPS_PORT
    return ServiceName(found["namespace"], found["name"], number), found["address"]
