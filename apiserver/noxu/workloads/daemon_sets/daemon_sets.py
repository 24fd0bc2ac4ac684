"""The steps of a DaemonSet (pkg/controller/daemon/daemon_controller.go).

    pods       adopt and release them by selector
    revisions  that of the template is the current one
    nodes      create a pod for each node that fits and has none, delete those on nodes that do not fit, those that are too many,
               and those that have ended; failed ones with growing delays
    update     replace pods of an old template, as many at a time as may be unavailable, or as may surge
    history, status

A set that is being deleted is left alone: its pods go with it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime

from noxu.api.errors import ApiError
from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.values import Object
from noxu.workloads.daemon_sets.backoff import FailureBackoff
from noxu.workloads.daemon_sets.changes import DaemonChanges, DaemonRollout, on_node, rolling_update
from noxu.workloads.daemon_sets.daemon_pods import NOWHERE, by_node, fit, new_pod, without_node
from noxu.workloads.daemon_sets.history import TemplateHistory, construct, surplus
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.objects import DAEMON_SETS, NODES, PODS, REVISIONS, Objects, controller_of, name_of
from noxu.workloads.ownership import candidates, claimed, selects
from noxu.workloads.pod_control import create_pods, delete_pods
from noxu.workloads.pods import is_ready, is_terminating, looked_at, next_available
from noxu.workloads.writes import (
    WARNING,
    Kind,
    NamespacedName,
    NewEvent,
    Replace,
    Result,
    Steps,
    Write,
    done,
    stored,
    with_status,
)

BURST = 250
"""The pods that are created or deleted before the next look at what there is."""


class DaemonSets(WorkloadController):
    name = "daemonset-controller"
    kind = DAEMON_SETS
    looks_at = (PODS, NODES, REVISIONS)
    workers = 2  # --concurrent-daemonset-syncs

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self._backoff = FailureBackoff()

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        return reconcile(objects, key, now, self._backoff)

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        if kind == DAEMON_SETS:
            yield name_of(new or old or {})
        elif kind == NODES:
            yield from _sets_of_node(objects, old, new)
        elif kind == REVISIONS or (old and looked_at(old)) != (new and looked_at(new)):
            yield from _sets_of_pod(objects, old, new, adopts=kind == PODS)


def _sets_of_node(objects: Objects, old: Object | None, new: Object | None) -> Iterable[NamespacedName]:
    """Those for which a node fits, and did not before, or the other way round. Heartbeats concern none."""
    if old is not None and new is not None and _seen(old) == _seen(new):
        return
    for daemon_set in objects.all(DAEMON_SETS):
        before, after = (NOWHERE if node is None else fit(daemon_set, node) for node in (old, new))
        if before != after:
            yield name_of(daemon_set)


def _seen(node: Object) -> tuple[object, object]:
    return node["metadata"].get("labels"), (node.get("spec") or {}).get("taints")


def _sets_of_pod(objects: Objects, old: Object | None, new: Object | None, *, adopts: bool) -> Iterable[NamespacedName]:
    """Those that control a pod or a revision, and those that may adopt it."""
    owners = [(value, controller_of(value)) for value in (old, new) if value is not None]
    yield from {
        NamespacedName(value["metadata"]["namespace"], owner["name"]): True
        for value, owner in owners
        if owner is not None and owner["kind"] == "DaemonSet"
    }
    if adopts and new is not None and controller_of(new) is None:
        for daemon_set in objects.within(DAEMON_SETS, new["metadata"]["namespace"]):
            if selects(daemon_set["spec"].get("selector"), new):
                yield name_of(daemon_set)


def reconcile(objects: Objects, key: NamespacedName, now: datetime, backoff: FailureBackoff) -> Steps:
    """`backoff` remembers the pods that have failed."""
    daemon_set = objects.get(DAEMON_SETS, key)
    if daemon_set is None or is_terminating(daemon_set):
        return None
    selector = daemon_set["spec"].get("selector")
    if selector == {}:
        message = "This daemon set is selecting all pods. A non-empty selector is required."
        yield [NewEvent(daemon_set, WARNING, "SelectingAll", message)]
        return None
    yield from claimed(PODS, candidates(objects, PODS, daemon_set), daemon_set, lambda pod: selects(selector, pod))
    history = yield from construct(objects, daemon_set)

    fits = {node["metadata"]["name"]: fit(daemon_set, node) for node in objects.all(NODES)}
    rollout = DaemonRollout(daemon_set, history.digest, now, fits)
    managed = _managed(rollout, by_node(objects, daemon_set), backoff)
    failure = yield from _carry_out(rollout, managed)
    if failure is None and (daemon_set["spec"].get("updateStrategy") or {}).get("type") == "RollingUpdate":
        failure = yield from _carry_out(rollout, rolling_update(rollout, by_node(objects, daemon_set)))
    if failure is None:
        pods = objects.controlled_by(PODS, daemon_set["metadata"]["uid"])
        if deletes := surplus(daemon_set, history.old, pods):
            done((yield deletes))

    found = by_node(objects, daemon_set)
    newest, status = objects.get(DAEMON_SETS, key), status_of(rollout, found, history)
    if newest is not None and status != newest.get("status"):
        stored(*(yield [Replace(DAEMON_SETS, with_status(newest, status), "status")]))
    if failure is not None:
        raise failure  # it is tried again, with growing delays
    available = next_available((pod for pods in found.values() for pod in pods), rollout.min_ready_seconds, now)
    return min((after for after in (managed.again, available) if after is not None), default=None)


def _managed(rollout: DaemonRollout, pods: Mapping[str, Sequence[Object]], backoff: FailureBackoff) -> DaemonChanges:
    """What all nodes need (manage)."""
    all_changes = [on_node(rollout, name, pods.get(name), backoff) for name in rollout.fits]
    lost = without_node(rollout.fits, pods)
    return DaemonChanges(
        create=[name for changes in all_changes for name in changes.create],
        delete=[*(pod for changes in all_changes for pod in changes.delete), *lost],
        events=[event for changes in all_changes for event in changes.events],
        again=min((changes.again for changes in all_changes if changes.again is not None), default=None),
    )


def _carry_out(
    rollout: DaemonRollout, changes: DaemonChanges
) -> Generator[Sequence[Write], Sequence[Result], ApiError | None]:
    """Create and delete (syncNodes): why something failed."""
    if changes.events:
        yield changes.events
    daemon_set = rollout.daemon_set
    pods = [new_pod(daemon_set, node, rollout.digest) for node in changes.create[:BURST]]
    failure = yield from create_pods(daemon_set, pods)
    other = yield from delete_pods(daemon_set, changes.delete[:BURST])
    return failure or other


# -- status -----------------------------------------------------------------------------------------------------------


def status_of(rollout: DaemonRollout, pods: Mapping[str, Sequence[Object]], history: TemplateHistory) -> Object:
    """The status: the oldest pod of a node counts (updateDaemonSetStatus)."""
    daemon_set = rollout.daemon_set
    wanted = {name for name, fits in rollout.fits.items() if fits.should_run}
    oldest = [pods[name][0] for name in wanted if name in pods]
    available = sum(map(rollout.is_available, oldest))
    counts = {
        "updatedNumberScheduled": sum(map(rollout.is_updated, oldest)),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
        "observedGeneration": daemon_set["metadata"].get("generation", 0),
    }
    conditions = (daemon_set.get("status") or {}).get("conditions")
    return {
        "currentNumberScheduled": len(oldest),
        "numberMisscheduled": sum(name in rollout.fits and name not in wanted for name in pods),
        "desiredNumberScheduled": len(wanted),
        "numberReady": sum(map(is_ready, oldest)),
        **{name: count for name, count in counts.items() if count},
        **({} if history.collisions is None else {"collisionCount": history.collisions}),
        **({"conditions": conditions} if conditions else {}),
    }
