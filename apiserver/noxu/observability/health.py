"""The health endpoints /healthz, /livez and /readyz, and /version (apiserver's pkg/server/healthz and version).

A report names the checks that failed, but not why: the reasons are in the log, and at the path of each check.
"""

from __future__ import annotations

import logging
import platform
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from noxu.go.text import quote
from noxu.instruments import Family
from noxu.values import Object

log = logging.getLogger("noxu")

ENDPOINTS: Final = ("healthz", "livez", "readyz")

Check = Callable[[], Awaitable[str]]
"""Returns the fault of a part of the server, "" if it is healthy."""


class Checks(NamedTuple):
    """The checks of a server by name. `live`: the process works. `ready`: it can also serve clients."""

    live: Mapping[str, Check]
    ready: Mapping[str, Check]

    def of(self, endpoint: str) -> Mapping[str, Check]:
        """The checks of one endpoint, in order."""
        return {**self.live, **self.ready} if endpoint == "readyz" else self.live


class Report(NamedTuple):
    """The result of an endpoint. `text` is the body of the answer."""

    healthy: bool
    text: str


class Results:
    """The results of health checks, as component-base's metrics/prometheus/slis counts them."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], bool] = {}
        self._counts: dict[tuple[str, str, str], int] = {}

    def add(self, name: str, endpoint: str, *, passed: bool) -> None:
        self._last[name, endpoint] = passed
        counted = (name, endpoint, "success" if passed else "error")
        self._counts[counted] = self._counts.get(counted, 0) + 1

    def families(self) -> list[Family]:
        return [
            Family(
                "kubernetes_healthcheck",
                "gauge",
                "This metric records the result of a single healthcheck.",
                ("name", "type"),
                [(check, float(passed)) for check, passed in self._last.items()],
            ),
            Family(
                "kubernetes_healthchecks_total",
                "counter",
                "This metric records the results of all healthcheck.",
                ("name", "type", "status"),
                list(self._counts.items()),
            ),
        ]


async def alive() -> str:
    """The check `ping`, which always passes."""
    return ""


async def report(
    endpoint: str, checks: Mapping[str, Check], *, verbose: bool, excluded: list[str], results: Results | None = None
) -> Report:
    """Run the checks of an endpoint, except the excluded ones, and log the reasons of those that fail."""
    results = results or Results()
    made: dict[Check, str] = {}  # a check may have several names
    lines, healthy = [], True
    for name, check in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
            continue
        if check not in made:
            made[check] = await check()
        reason = made[check]
        results.add(name, endpoint, passed=not reason)
        if reason:
            healthy = False
            log.warning("%s check failed: %s: %s", endpoint, name, reason)
            lines.append(f"[-]{name} failed: reason withheld")
        else:
            lines.append(f"[+]{name} ok")
    unknown = [quote(name) for name in sorted(set(excluded)) if name not in checks]
    if unknown:
        lines.append(f"warn: some health checks cannot be excluded: no matches for {','.join(unknown)}")
    if healthy and not verbose:
        return Report(True, "ok")
    lines.append(f"{endpoint} check {'passed' if healthy else 'failed'}\n")
    return Report(healthy, "\n".join(lines))


# The Kubernetes version whose behaviour this server has; kubectl requires a semantic version.
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
