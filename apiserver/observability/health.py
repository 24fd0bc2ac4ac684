"""/healthz, /livez, /readyz and /version, as clients and probes know them."""

from __future__ import annotations

import logging
import platform
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from noxu.apiserver.values import Object

log = logging.getLogger("noxu")

ENDPOINTS: Final = ("healthz", "livez", "readyz")

Check = Callable[[], Awaitable[str]]
"""What is wrong with a part of the server; empty if nothing is."""


class Checks(NamedTuple):
    """The checks of a server. `live`: it works at all. `ready`: what clients can expect of it is in place."""

    live: Mapping[str, Check]
    ready: Mapping[str, Check]

    def of(self, endpoint: str) -> Mapping[str, Check]:
        """The checks of one endpoint, in order."""
        return {**self.live, **self.ready} if endpoint == "readyz" else self.live


class Report(NamedTuple):
    """Whether everything is healthy, and the text of the answer."""

    healthy: bool
    text: str


async def alive() -> str:
    """A client that can ask is answered."""
    return ""


async def report(endpoint: str, checks: Mapping[str, Check], *, verbose: bool, excluded: list[str]) -> Report:
    """The answer of one health endpoint. Why a check fails is in the log, and at the check's own path."""
    lines, healthy = [], True
    for name, check in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
        elif reason := await check():
            healthy = False
            log.warning("%s check failed: %s: %s", endpoint, name, reason)
            lines.append(f"[-]{name} failed: reason withheld")
        else:
            lines.append(f"[+]{name} ok")
    unknown = [f'"{name}"' for name in excluded if name not in checks]
    if unknown:
        lines.append(f"warn: some health checks cannot be excluded: no matches for {', '.join(unknown)}")
    if healthy and not verbose:
        return Report(True, "ok")
    lines.append(f"{endpoint} check {'passed' if healthy else 'failed'}\n")
    return Report(healthy, "\n".join(lines))


# The version of the reference whose behaviour this server has; kubectl insists on a semantic version.
MAJOR: Final = "1"
MINOR: Final = "37"


def version(own_version: str) -> Object:
    """`/version`. The git fields name the Kubernetes version that this server behaves like."""
    return {
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": str(int(MINOR) - 1),
        "gitVersion": f"v{MAJOR}.{MINOR}.0+noxu.{own_version}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"{sys.platform}/{platform.machine()}",
    }
