"""The status that a kubelet gives a pod, from the state before and the time (pkg/kubelet/status/generate.go, kubelet_pods.go)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.pods import condition, is_true, moment, with_condition


class Situation(NamedTuple):
    """Where a pod is, and when. `address`: its own."""

    host: tuple[str, ...]
    address: str
    now: datetime


JOB_SECONDS = 1.0
READY_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def waiting(pod: Object, at: Situation) -> Object:
    """That of a pod whose containers are created."""
    before = pod.get("status") or {}
    statuses = [_container(spec, {"waiting": {"reason": "ContainerCreating"}}) for spec in pod["spec"]["containers"]]
    names = ", ".join(spec["name"] for spec in pod["spec"]["containers"])
    unready = {
        "status": "False",
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{names}]",
    }
    conditions = with_conditions(
        before.get("conditions"),
        {
            "PodReadyToStartContainers": {"status": "False"},
            "Initialized": {"status": "True"},
            "Ready": unready,
            "ContainersReady": unready,
        },
        at.now,
    )
    return {
        **before,
        "phase": "Pending",
        "conditions": conditions,
        "containerStatuses": statuses,
        "startTime": before.get("startTime") or format_time(at.now),
        **_host(at),
    }


def running(pod: Object, at: Situation) -> tuple[Object, float | None]:
    """That of a pod whose containers run, and the seconds until it changes."""
    before = pod.get("status") or {}
    started = {each["name"]: (each.get("state") or {}).get("running") for each in before.get("containerStatuses") or ()}
    statuses, unready, waits = [], [], []
    for spec in pod["spec"]["containers"]:
        state = started.get(spec["name"]) or {"startedAt": format_time(at.now)}
        left = _seconds_to_ready(spec) - (at.now - moment(state["startedAt"])).total_seconds()
        if left > 0:
            unready.append(spec["name"])
            waits.append(left)
        shown = _container(spec, {"running": state})
        statuses.append(
            {**shown, "ready": left <= 0, "started": True, "containerID": container_id(pod, spec["name"], 0)}
        )
    not_ready = {
        "status": "False",
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{', '.join(unready)}]",
    }
    ready = not_ready if unready else {"status": "True"}
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    closed = [gate for gate in gates if not is_true(pod, gate)]
    of_pod = ready
    if closed and not unready:
        missing = [
            f'corresponding condition of pod readiness gate "{gate}" does not exist.'
            if condition(pod, gate) is None
            else f'the status of pod readiness gate "{gate}" is not "True", but {(condition(pod, gate) or {}).get("status")}'
            for gate in closed
        ]
        of_pod = {"status": "False", "reason": "ReadinessGatesNotReady", "message": ", ".join(missing)}
    conditions = with_conditions(
        before.get("conditions"),
        {
            "PodReadyToStartContainers": {"status": "True"},
            "Initialized": {"status": "True"},
            "Ready": of_pod,
            "ContainersReady": ready,
        },
        at.now,
    )
    addresses = {"podIP": at.address, "podIPs": [{"ip": at.address}]}
    status = {
        **before,
        "phase": "Running",
        "conditions": conditions,
        "containerStatuses": statuses,
        "startTime": before.get("startTime") or format_time(at.now),
        **_host(at),
        **addresses,
    }
    return status, min(waits, default=None)


def succeeded(pod: Object, now: datetime) -> Object:
    """That of a pod whose containers have ended well."""
    before = pod["status"]
    completed = {"status": "False", "reason": "PodCompleted"}
    statuses = []
    for each in before["containerStatuses"]:
        started = each["state"]["running"]["startedAt"]
        end = {"exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": format_time(now)}
        ended = {**end, "containerID": each["containerID"]}
        statuses.append({**each, "ready": False, "started": False, "state": {"terminated": ended}})
    conditions = with_conditions(
        before.get("conditions"),
        {
            "PodReadyToStartContainers": {"status": "False"},
            "Initialized": {"status": "True", "reason": "PodCompleted"},
            "Ready": completed,
            "ContainersReady": completed,
        },
        now,
    )
    return {**before, "phase": "Succeeded", "conditions": conditions, "containerStatuses": statuses}


def ends_after(pod: Object, now: datetime) -> float | None:
    """The seconds until the containers of a Job's pod end; None: they do not."""
    owners = pod["metadata"].get("ownerReferences") or ()
    if pod["spec"].get("restartPolicy") == "Always" or not any(owner.get("kind") == "Job" for owner in owners):
        return None
    states = [
        each["state"]["running"]["startedAt"] for each in (pod.get("status") or {}).get("containerStatuses") or ()
    ]
    ends = max(map(moment, states)) + timedelta(seconds=JOB_SECONDS)
    return (ends - now).total_seconds()


def with_conditions(old: Iterable[Object] | None, new: dict[str, Object], now: datetime) -> list[Object]:
    result = list(old or ())
    for kind, value in new.items():
        result = with_condition(result, {"type": kind, "lastProbeTime": None, **value}, now)
    return result


def container_id(pod: Object, name: str, restarts: int) -> str:
    seed = f"{pod['metadata']['uid']}/{name}/{restarts}"
    return f"containerd://{hashlib.sha256(seed.encode()).hexdigest()}"


def image_id(image: str) -> str:
    return f"{image.partition('@')[0]}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _container(spec: Object, state: Object) -> Object:
    image = spec.get("image", "")
    runs = "waiting" not in state
    return {
        "name": spec["name"],
        "image": image,
        "imageID": image_id(image) if runs else "",
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "started": False,
        "state": state,
    }


def _seconds_to_ready(spec: Object) -> float:
    return float(
        sum((spec.get(probe) or {}).get("initialDelaySeconds") or 0 for probe in ("startupProbe", "readinessProbe"))
    )


def _host(at: Situation) -> Object:
    if not at.host:
        return {}
    return {"hostIP": at.host[0], "hostIPs": [{"ip": address} for address in at.host]}
