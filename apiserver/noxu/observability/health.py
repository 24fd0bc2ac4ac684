"""The health endpoints /healthz, /livez and /readyz, and /version (apiserver's pkg/server/healthz and version).

A report names the checks that failed, but not why: the reasons are in the log, and at the path of each check.

`/livez` and `/healthz` say whether the process works, so they do not fail because a controller does: restarting does not
help. `/readyz` has all checks. Probes, dashboards and `exclude=` use the names of kube-apiserver, so its checks are here by
name, each as far as this server has what it checks:

    etcd                 the storage, which has the name `storage`, too
    poststarthook/NAME   the controller that does what the hook starts follows its objects. Once passed it always passes
    informer-sync        all controllers follow their objects
    shutdown             fails when the server stops
"""

from __future__ import annotations

import logging
import platform
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from noxu.controllers.controller import Reconciler
from noxu.go.text import quote
from noxu.instruments import Family
from noxu.releases import NEWEST
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


class HealthReport(NamedTuple):
    """The result of an endpoint. `text` is the body of the answer."""

    healthy: bool
    text: str


class HealthResults:
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
    endpoint: str,
    checks: Mapping[str, Check],
    *,
    verbose: bool,
    excluded: list[str],
    results: HealthResults | None = None,
    notes: Sequence[str] = (),
) -> HealthReport:
    """Run the checks of an endpoint, except the excluded ones, and log the reasons of those that fail.

    `notes` are further lines of a verbose report.
    """
    results = results or HealthResults()
    reasons: dict[Check, str] = {}  # a check may have several names
    lines, healthy = [], True
    for name, check in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
            continue
        if check not in reasons:
            reasons[check] = await check()
        reason = reasons[check]
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
    lines += [f"warn: {note}" for note in notes]
    if healthy and not verbose:
        return HealthReport(True, "ok")
    lines.append(f"{endpoint} check {'passed' if healthy else 'failed'}\n")
    return HealthReport(healthy, "\n".join(lines))


# The Kubernetes version whose behaviour this server has; kubectl requires a semantic version.
MAJOR: Final = "1"
_WITH_EMULATION: Final = 33  # from here on /version says what a server emulates, and with what it is compatible


def version(own_version: str, release: int = NEWEST) -> Object:
    """`/version`. The git fields name the Kubernetes version that this server behaves like."""
    minor = str(release)
    emulated = {
        "emulationMajor": MAJOR,
        "emulationMinor": minor,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": str(release - 1),
    }
    return {
        "major": MAJOR,
        "minor": minor,
        **(emulated if release >= _WITH_EMULATION else {}),
        "gitVersion": f"v{MAJOR}.{minor}.0+noxu.{own_version}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"{sys.platform}/{platform.machine()}",
    }


# -- the checks of a server --------------------------------------------------------------------------------------------


_DEFINITIONS: Final = "crd-establishing-controller"
_OWN_OBJECTS: Final = "bootstrap-controller"
_SERVICES: Final = "kube-apiserver-autoregistration"

POST_START_HOOKS: Final = (
    ("start-apiextensions-informers", _DEFINITIONS),
    ("start-apiextensions-controllers", _DEFINITIONS),
    ("crd-informer-synced", _DEFINITIONS),
    ("start-system-namespaces-controller", _OWN_OBJECTS),
    ("start-kube-apiserver-identity-lease-controller", _OWN_OBJECTS),
    ("start-legacy-token-tracking-controller", _OWN_OBJECTS),
    ("start-kubernetes-service-cidr-controller", _OWN_OBJECTS),
    ("start-service-ip-repair-controllers", "start-service-ip-repair-controllers"),
    ("rbac/bootstrap-roles", "rbac-bootstrap-roles"),
    ("scheduling/bootstrap-system-priority-classes", _OWN_OBJECTS),
    ("priority-and-fairness-config-producer", _OWN_OBJECTS),
    ("bootstrap-controller", _OWN_OBJECTS),
    ("apiservice-registration-controller", _SERVICES),
    ("apiservice-status-local-available-controller", _SERVICES),
    ("kube-apiserver-autoregistration", _SERVICES),
)
"""Upstream's hooks, in its order, and the controller that does their work here. Servers without it do not have the hook."""


def checks_of(
    storage: Check, log: Check, controllers: Sequence[Reconciler[Any]], is_stopping: Callable[[], bool]
) -> Checks:
    """The checks of a server. `storage` and `log` check the store and the watch cache that follows its log."""
    by_name = {controller.name: controller for controller in controllers}
    live: dict[str, Check] = {"ping": alive, "log": alive, "etcd": storage, "storage": storage}
    for hook, name in POST_START_HOOKS:
        if name in by_name:
            live[f"poststarthook/{hook}"] = _hook(by_name[name])
    if _SERVICES in by_name:
        live["autoregister-completion"] = _hook(by_name[_SERVICES])
    ready: dict[str, Check] = {"etcd-readiness": storage, "informer-sync": _informers(controllers), "watch-cache": log}
    ready |= {name: _healthy(controller) for name, controller in by_name.items()}
    ready["shutdown"] = _running(is_stopping)
    return Checks(live, ready)


def _healthy(controller: Reconciler[Any]) -> Check:
    async def check() -> str:
        return controller.health()

    return check


def _hook(controller: Reconciler[Any]) -> Check:
    is_finished = False

    async def check() -> str:
        nonlocal is_finished
        is_finished = is_finished or controller.is_synchronised
        return "not finished" if controller.sync_fault() and not is_finished else ""

    return check


def _informers(controllers: Sequence[Reconciler[Any]]) -> Check:
    async def check() -> str:
        names = [controller.name for controller in controllers if controller.sync_fault()]
        return f"{len(names)} informers not started yet: [{' '.join(names)}]" if names else ""

    return check


def _running(is_stopping: Callable[[], bool]) -> Check:
    async def check() -> str:
        return "process is shutting down" if is_stopping() else ""

    return check
