"""What a DaemonSet does on each node: which pods are created and deleted (daemon_controller.go, update.go).

`on_node` keeps one pod on each node that fits; `rolling_update` replaces those of an old template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from noxu.values import Object
from noxu.workloads.daemon_sets.backoff import FailureBackoff
from noxu.workloads.daemon_sets.daemon_pods import Fit, is_updated
from noxu.workloads.pods import FINISHED, is_available, is_ready, is_terminating, number_of, phase
from noxu.workloads.revisions import REVISION
from noxu.workloads.writes import NORMAL, WARNING, NewEvent


class DaemonChanges(NamedTuple):
    """The nodes that need a pod, the pods to delete, and Events about them. `again`: the seconds until failed pods are deleted."""

    create: Sequence[str] = ()
    delete: Sequence[Object] = ()
    events: Sequence[NewEvent] = ()
    again: float | None = None


class DaemonRollout(NamedTuple):
    """A DaemonSet at a moment. `digest`: the label of pods of its template; `fits`: how each node fits, by its name."""

    daemon_set: Object
    digest: str
    now: datetime
    fits: Mapping[str, Fit]

    @property
    def min_ready_seconds(self) -> int:
        return int(self.daemon_set["spec"].get("minReadySeconds", 0))

    def is_available(self, pod: Object) -> bool:
        return is_available(pod, self.min_ready_seconds, self.now)

    def is_updated(self, pod: Object) -> bool:
        return is_updated(self.daemon_set, pod, self.digest)


# -- one pod on each node ---------------------------------------------------------------------------------------------


def on_node(rollout: DaemonRollout, name: str, pods: Sequence[Object] | None, backoff: FailureBackoff) -> DaemonChanges:
    """`pods`: those of the node of this name, the oldest first; None: it has none (podsShouldBeOnNode)."""
    fits = rollout.fits[name]
    if fits.should_run and pods is None:
        return DaemonChanges(create=[name])
    living = [pod for pod in pods or () if not is_terminating(pod)]
    if not fits.may_stay:
        return DaemonChanges(delete=living)
    running, ended = [], DaemonChanges()
    for pod in living:
        if phase(pod) in FINISHED:
            ended = _ended(rollout, name, pod, ended, backoff)
        else:
            running.append(pod)
    create, excess = _excess(rollout, name, running, fits)
    return ended._replace(create=create, delete=[*ended.delete, *excess])


def _ended(
    rollout: DaemonRollout, node: str, pod: Object, before: DaemonChanges, backoff: FailureBackoff
) -> DaemonChanges:
    """Delete a pod that has ended: one that has failed not before its time."""
    daemon_set, metadata = rollout.daemon_set, pod["metadata"]
    what = f"daemon pod {metadata['namespace']}/{metadata['name']} on node {node}"
    if phase(pod) == "Succeeded":
        event = NewEvent(daemon_set, NORMAL, "SucceededDaemonPod", f"Found succeeded {what}, will try to delete it")
    else:
        key = (daemon_set["metadata"]["uid"], (daemon_set.get("status") or {}).get("observedGeneration", 0), node)
        if left := backoff.remaining(key, rollout.now):
            return before._replace(again=min(left, before.again or left))
        backoff.failed(key, rollout.now)
        event = NewEvent(daemon_set, WARNING, "FailedDaemonPod", f"Found failed {what}, will try to kill it")
    return before._replace(delete=[*before.delete, pod], events=[*before.events, event])


def _excess(
    rollout: DaemonRollout, node: str, running: Sequence[Object], fits: Fit
) -> tuple[list[str], Sequence[Object]]:
    """The nodes that need a pod, and the pods that are too many on a node."""
    if not limit(rollout.daemon_set, "maxSurge", 1):
        return [], running[1:]
    if not running:
        return [node] if fits.should_run else [], []
    new = [pod for pod in running if (pod["metadata"].get("labels") or {}).get(REVISION) == rollout.digest]
    old = [pod for pod in running if pod not in new]
    if len(running) > 1 and new and old and (not is_ready(old[0]) or rollout.is_available(new[0])):
        return [], [*new[1:], *old]
    return [], [*new[1:], *old[1:]]


# -- updates ----------------------------------------------------------------------------------------------------------


def limit(daemon_set: Object, name: str, desired: int) -> int:
    """maxSurge or maxUnavailable of a rolling update. A percentage of the desired pods is rounded up."""
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    if strategy.get("type") != "RollingUpdate":
        return 0
    value = (strategy.get("rollingUpdate") or {}).get(name, 0)
    return number_of(value, desired, rounds_up=True)


def rolling_update(rollout: DaemonRollout, pods: Mapping[str, Sequence[Object]]) -> DaemonChanges:
    """`pods`: those of each node."""
    wanted = [name for name, fits in rollout.fits.items() if fits.should_run]
    surge, unavailable = (limit(rollout.daemon_set, name, len(wanted)) for name in ("maxSurge", "maxUnavailable"))
    all_pods = {name: pods.get(name, ()) for name in [*wanted, *pods]}
    if surge:
        return _surging(rollout, all_pods, surge, len(wanted))
    return _in_place(rollout, all_pods, max(unavailable, 1))


class _Pair(NamedTuple):
    """The pods of a node that are not being deleted: at most one of the newest template, and one of an old one."""

    new: Object | None
    old: Object | None


def _pair(rollout: DaemonRollout, pods: Sequence[Object]) -> _Pair | None:
    """None: there are several, which `on_node` deletes."""
    living = [pod for pod in pods if not is_terminating(pod)]
    new = [pod for pod in living if rollout.is_updated(pod)]
    old = [pod for pod in living if pod not in new]
    if len(new) > 1 or len(old) > 1:
        return None
    return _Pair(new[0] if new else None, old[0] if old else None)


def _in_place(rollout: DaemonRollout, pods: Mapping[str, Sequence[Object]], allowed: int) -> DaemonChanges:
    """Delete old pods: those that are not available, and so many others that no more than `allowed` are unavailable."""
    unavailable, broken, candidates = 0, [], []
    for found in pods.values():
        pair = _pair(rollout, found)
        if pair is None or (pair.new is None) == (pair.old is None):
            unavailable += 1
        elif pair.new is not None:
            unavailable += not rollout.is_available(pair.new)
        elif pair.old is not None and rollout.is_available(pair.old):
            candidates.append(pair.old)
        elif pair.old is not None:
            broken.append(pair.old)
            unavailable += 1
    return DaemonChanges(delete=[*broken, *candidates[: max(allowed - unavailable, 0)]])


def _surging(rollout: DaemonRollout, pods: Mapping[str, Sequence[Object]], allowed: int, desired: int) -> DaemonChanges:
    """Create new pods beside old ones, at most `allowed` at a time, and delete an old pod when the new one is available."""
    surging, available = 0, 0
    delete: list[Object] = []
    misplaced: list[Object] = []
    needed: list[str] = []
    candidates: list[str] = []
    for name, found in pods.items():
        pair = _pair(rollout, found)
        if pair is None:
            surging += 1
            continue
        first = pair.old or pair.new
        available += first is not None and rollout.is_available(first)
        if pair.old is None:
            continue
        if pair.new is not None:
            if rollout.is_available(pair.new):
                delete.append(pair.old)
            else:
                surging += 1
        elif name not in rollout.fits:
            continue  # the node is gone
        elif not rollout.is_available(pair.old):
            if rollout.fits[name].should_run:
                needed.append(name)
            else:
                delete.append(pair.old)
        elif not rollout.fits[name].should_run:
            misplaced.append(pair.old)
        else:
            candidates.append(name)
    delete += misplaced[: max(available - desired, 0)]
    return DaemonChanges(create=[*needed, *candidates[: max(allowed - surging, 0)]], delete=delete)
