"""/healthz, /livez, /readyz and /version, as clients and probes know them."""

from __future__ import annotations

import platform
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from apiserver.api.types import Object

ENDPOINTS: Final = ("healthz", "livez", "readyz")

Check = Callable[[], Awaitable[bool]]
"""Whether something is as it should be."""


class Report(NamedTuple):
    """`healthy`, and what to say of it."""

    healthy: bool
    text: str


async def alive() -> bool:
    """Whoever can ask has been answered."""
    return True


async def report(endpoint: str, checks: Mapping[str, Check], *, verbose: bool, excluded: list[str]) -> Report:
    """The answer of one health endpoint. Why a check fails is in the log, not here."""
    lines, healthy = [], True
    for name, check in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
        elif await check():
            lines.append(f"[+]{name} ok")
        else:
            healthy = False
            lines.append(f"[-]{name} failed: reason withheld")
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
