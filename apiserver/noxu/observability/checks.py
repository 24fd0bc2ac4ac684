"""The health checks of a server: the storage, what follows its log, the controllers, and kube-apiserver's names for them.

`/livez` and `/healthz` say whether the process works, so they do not fail because a controller does: restarting does not
help. `/readyz` has all checks. Probes, dashboards and `exclude=` use the names of kube-apiserver, so its checks are here by
name, each as far as this server has what it checks:

    etcd                 the storage, which has the name `storage`, too
    poststarthook/NAME   the controller that does what the hook starts follows its objects. Once passed it always passes
    informer-sync        all controllers follow their objects
    shutdown             fails when the server stops
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from noxu.controllers.controller import Reconciler
from noxu.observability.health import Check, Checks, alive

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
