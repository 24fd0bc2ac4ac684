"""The controller: which Deployments a change concerns, and what a look at one does (deployment_controller.go).

Adopt and release ReplicaSets, note what is paused and which revision there is, and then resize, recreate or roll.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from noxu.api.errors import ApiError
from noxu.values import Object
from noxu.workloads.deployment.rollout import Rollout
from noxu.workloads.deployment.sizes import rolls
from noxu.workloads.engine import WorkloadController
from noxu.workloads.objects import DEPLOYMENTS, PODS, REPLICA_SETS, Objects, controller_of, name_of
from noxu.workloads.ownership import candidates, claimed, selects
from noxu.workloads.pods import is_terminating
from noxu.workloads.writes import WARNING, Kind, NamespacedName, NewEvent, Replace, Steps, Write, done, with_status


class Deployments(WorkloadController):
    name = "deployment-controller"
    kind = DEPLOYMENTS
    looks_at = (REPLICA_SETS, PODS)
    workers = 5  # --concurrent-deployment-syncs

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        changed = new or old or {}
        if kind == DEPLOYMENTS:
            yield name_of(changed)
        elif kind == PODS:
            if new is None:  # a Recreate waits for the last old pod
                yield from _recreated(objects, changed)
        else:
            namespace = changed["metadata"].get("namespace", "")
            yield from {owner: None for value in (old, new) if value and (owner := _owner(namespace, value))}
            if new and controller_of(new) is None:
                for deployment in objects.within(DEPLOYMENTS, namespace):
                    if selects(deployment["spec"].get("selector"), new):
                        yield name_of(deployment)

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        deployment = objects.get(DEPLOYMENTS, key)
        if deployment is None:
            return None
        selector = deployment["spec"].get("selector")
        if selector == {}:
            done((yield _refusal(deployment)))
            return None
        found = candidates(objects, REPLICA_SETS, deployment)
        owned = yield from claimed(REPLICA_SETS, found, deployment, lambda one: selects(selector, one))

        rollout = Rollout(objects, deployment, owned, now)
        try:
            return (yield from _look(rollout))
        except ApiError:
            if rollout.events:
                yield rollout.events
            raise


def _look(rollout: Rollout) -> Steps:
    yield from rollout.observe()
    if is_terminating(rollout.stored):
        return (yield from rollout.finish(progresses=False))
    rollout.pause()
    if rollout.stored["spec"].get("paused") or rollout.is_scaled():
        yield from rollout.resize()
        return (yield from rollout.finish(progresses=False))
    yield from rollout.roll() if rolls(rollout.stored) else rollout.recreate()
    return (yield from rollout.finish(progresses=True))


def _refusal(deployment: Object) -> list[Write]:
    """What to write about a selector that selects everything."""
    message = "This deployment is selecting all pods. A non-empty selector is required."
    writes: list[Write] = [NewEvent(deployment, WARNING, "SelectingAll", message)]
    status, generation = deployment.get("status") or {}, deployment["metadata"].get("generation", 0)
    if status.get("observedGeneration", 0) < generation:
        observed = with_status(deployment, {**status, "observedGeneration": generation})
        writes.append(Replace(DEPLOYMENTS, observed, "status"))
    return writes


def _owner(namespace: str, value: Object) -> NamespacedName | None:
    owner = controller_of(value)
    return NamespacedName(namespace, owner["name"]) if owner and owner["kind"] == "Deployment" else None


def _recreated(objects: Objects, pod: Object) -> Iterable[NamespacedName]:
    """The Deployment of a pod, if its strategy is Recreate."""
    namespace, owner = pod["metadata"].get("namespace", ""), controller_of(pod)
    replica_set = objects.get(REPLICA_SETS, NamespacedName(namespace, owner["name"])) if owner else None
    name = _owner(namespace, replica_set) if replica_set else None
    deployment = objects.get(DEPLOYMENTS, name) if name else None
    if name and deployment and not rolls(deployment):
        yield name
