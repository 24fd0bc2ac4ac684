"""The cells of pods: how many containers are ready, why the pod is in its state, and how often containers were restarted.

A pod is initializing until all its init containers are finished; those with restartPolicy Always count as finished when
they are started, and then run beside the containers (upstream's printPod).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from noxu.go.time import unix_nanos
from noxu.tables.duration import Age
from noxu.tables.items import is_true
from noxu.values import Object, nested_field

_FINAL_PHASES = ("Succeeded", "Failed")


def ready(pod: Object) -> str:
    """`1/2`: the containers that are ready, and all that run."""
    found = _initialization(pod)
    count = found.ready + sum(map(_runs, _statuses(pod, "containerStatuses")) if found.is_over else ())
    return f"{count}/{len(nested_field(pod, 'spec.containers') or ()) + len(_restartable(pod))}"


def status(pod: Object) -> str:
    """The phase, or the reason why the pod or one of its containers is not running."""
    phase = nested_field(pod, "status.phase") or ""
    reason = nested_field(pod, "status.reason") or phase
    conditions = nested_field(pod, "status.conditions") or ()
    if any(item.get("type") == "PodScheduled" and item.get("reason") == "SchedulingGated" for item in conditions):
        reason = "SchedulingGated"
    found = _initialization(pod)
    reason = found.reason or reason
    if found.is_over:
        reason = _reason_of_containers(pod, reason)
    if pod["metadata"].get("deletionTimestamp"):
        if nested_field(pod, "status.reason") == "NodeLost":
            return "Unknown"
        if phase not in _FINAL_PHASES:
            return "Terminating"
    return str(reason)


def restarts(pod: Object) -> str | Age:
    """`2 (5m ago)`: how many restarts there were, and when the last one was."""
    found = _initialization(pod)
    counted = list(_up_to(_statuses(pod, "initContainerStatuses"), found.last))
    if found.is_over:
        restartable = _restartable(pod)
        counted = [item for item in counted if item.get("name") in restartable] + _statuses(pod, "containerStatuses")
    count = sum(item.get("restartCount", 0) for item in counted)
    ends = [nested_field(item, "lastState.terminated.finishedAt") for item in counted]
    last = max(filter(None, ends), key=unix_nanos, default="")
    return Age(last, f"{count} (", " ago)") if count and last else str(count)


def readiness_gates(pod: Object) -> str:
    """`1/2`: the gates whose condition is True, and all."""
    gates = nested_field(pod, "spec.readinessGates") or ()
    conditions = nested_field(pod, "status.conditions")
    passed = sum(is_true(conditions, gate.get("conditionType", "")) for gate in gates)
    return f"{passed}/{len(gates)}" if gates else "<none>"


# -- init containers --------------------------------------------------------------------------------------------------


class _Initialization(NamedTuple):
    """`reason` why it is not finished, "" if it is; `ready` sidecars; `last`: the status that it stopped at."""

    reason: str
    ready: int
    last: Object | None
    is_over: bool


def _initialization(pod: Object) -> _Initialization:
    ready, restartable = 0, _restartable(pod)
    for n, item in enumerate(_statuses(pod, "initContainerStatuses")):
        ended = nested_field(item, "state.terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if item.get("name") in restartable and item.get("started"):
            ready += bool(item.get("ready"))
            continue
        initialized = is_true(nested_field(pod, "status.conditions"), "Initialized")
        return _Initialization(_reason_of_init_container(pod, n, item), ready, item, initialized)
    return _Initialization("", ready, None, True)


def _reason_of_init_container(pod: Object, n: int, item: Object) -> str:
    ended, waits = nested_field(item, "state.terminated"), nested_field(item, "state.waiting.reason")
    if ended is not None:
        return f"Init:{_end(ended)}"
    if waits and waits != "PodInitializing":
        return f"Init:{waits}"
    return f"Init:{n}/{len(nested_field(pod, 'spec.initContainers') or ())}"


def _restartable(pod: Object) -> set[str]:
    """The names of init containers that run beside the containers."""
    containers = nested_field(pod, "spec.initContainers") or ()
    return {item.get("name", "") for item in containers if item.get("restartPolicy") == "Always"}


def _up_to(items: Iterable[Object], last: Object | None) -> Iterable[Object]:
    for item in items:
        yield item
        if item is last:
            return


# -- containers -------------------------------------------------------------------------------------------------------


def _reason_of_containers(pod: Object, reason: str) -> str:
    """The reason of the first container that has one; a finished one counts only if no other one runs or failed."""
    error, running = "", False
    for item in reversed(_statuses(pod, "containerStatuses")):
        ended = nested_field(item, "state.terminated")
        if nested_field(item, "state.waiting.reason"):
            reason = item["state"]["waiting"]["reason"]
        elif ended is not None:
            reason = _end(ended)
            error = reason if ended.get("exitCode") else error
        else:
            running = running or _runs(item)
    if reason != "Completed":
        return reason
    if running and is_true(nested_field(pod, "status.conditions"), "Ready"):
        return "Running"
    return error or ("NotReady" if running else reason)


def _runs(item: Object) -> bool:
    state = item.get("state") or {}
    waits = (state.get("waiting") or {}).get("reason")
    is_running = state.get("running") is not None and state.get("terminated") is None and not waits
    return bool(item.get("ready")) and is_running


def _end(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _statuses(pod: Object, name: str) -> list[Object]:
    return nested_field(pod, f"status.{name}") or []
