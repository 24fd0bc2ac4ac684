"""The status that a kubelet gives a pod, from the state before, its behaviour and the time.

Init containers run one after the other; one that restarts always is a sidecar, which only has to be started. Then the containers
start together. Sidecars end when all containers have ended. The phase, the conditions and their texts are those of
pkg/kubelet/kubelet_pods.go and status/generate.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, cast

from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.kubelet import containers
from noxu.workloads.kubelet.behaviours import ContainerBehaviour, PodBehaviour
from noxu.workloads.kubelet.containers import Circumstances, ContainerSaying, ContainerStep, Restarts
from noxu.workloads.pods import FINISHED, condition
from noxu.workloads.writes import WARNING

JOB_SECONDS: Final = 1.0
"""How long the containers of a Job's pod run, unless their behaviour says otherwise."""
STATUSES: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
TERMINATED: Final = 143  # SIGTERM
EVICTED: Final = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 0Mi. "


class Situation(NamedTuple):
    """Where a pod is, and when. `hosts`: the addresses of its node; `address`: its own."""

    hosts: tuple[str, ...]
    address: str
    now: datetime


class PodSaying(NamedTuple):
    """An Event about a pod, or about the container at `field`."""

    field: str
    said: ContainerSaying


class PodStep(NamedTuple):
    """What a pod has become. `again`: the seconds until it changes by itself."""

    status: Object
    said: list[PodSaying]
    again: float | None


class _Group(NamedTuple):
    """The containers of one field of the spec: their statuses in its order."""

    specs: Sequence[Object]
    statuses: list[Object]


def accepted(pod: Object, at: Situation) -> Object:
    """That of a pod whose containers are being created: the first one that its kubelet writes."""
    before, spec = pod.get("status") or {}, pod["spec"]
    has_inits = bool(spec.get("initContainers"))
    reason = "PodInitializing" if has_inits else "ContainerCreating"
    groups = {
        field: _Group(spec.get(name) or (), [containers.waiting(each, reason) for each in spec.get(name) or ()])
        for field, name in (("initContainerStatuses", "initContainers"), ("containerStatuses", "containers"))
    }
    shown = {
        **before,
        "phase": "Pending",
        **{field: group.statuses for field, group in groups.items() if group.statuses},
        "startTime": before.get("startTime") or format_time(at.now),
        "hostIP": at.hosts[0],
        "hostIPs": [{"ip": address} for address in at.hosts],
    }
    return _with_conditions(
        pod, shown, groups["initContainerStatuses"], groups["containerStatuses"], at.now, has_network=False
    )


def advance(pod: Object, behaviour: PodBehaviour, at: Situation) -> PodStep:
    """The newest status of a pod that was accepted, and has not finished."""
    before = pod["status"]
    if behaviour.is_evicted:
        return _evicted(pod, at.now)
    said: list[PodSaying] = []
    waits: list[float] = []
    init = _init_containers(pod, behaviour, at.now, said, waits)
    waits_for = "" if _is_initialized(init) else "PodInitializing"
    main = _containers(pod, "containers", "containerStatuses", behaviour, at.now, said, waits, waits_for)
    extra = _containers(pod, "ephemeralContainers", "ephemeralContainerStatuses", behaviour, at.now, said, waits, "")
    phase = _phase(pod, init, main)
    has_finished = phase in FINISHED
    if has_finished:
        init, waits = _Group(init.specs, [_stopped(each, 0, at.now) for each in init.statuses]), []
    shown = {
        **before,
        "phase": phase,
        "containerStatuses": main.statuses,
        "podIP": at.address,
        "podIPs": [{"ip": at.address}],
        "hostIP": at.hosts[0],
        "hostIPs": [{"ip": address} for address in at.hosts],
    }
    if init.statuses:
        shown["initContainerStatuses"] = init.statuses
    if extra.statuses:
        shown["ephemeralContainerStatuses"] = extra.statuses
    status = _with_conditions(pod, shown, init, main, at.now, has_network=not has_finished)
    return PodStep(status, said, min(waits, default=None))


# -- containers -------------------------------------------------------------------------------------------------------


def _init_containers(
    pod: Object, behaviour: PodBehaviour, now: datetime, said: list[PodSaying], waits: list[float]
) -> _Group:
    specs = pod["spec"].get("initContainers") or ()
    before = _by_name(pod, "initContainerStatuses")
    policy = pod["spec"].get("restartPolicy") or "Always"
    statuses, waits_for = [], ""
    for spec in specs:
        is_sidecar = spec.get("restartPolicy") == "Always"
        own = behaviour.of(spec["name"]) if is_sidecar or spec["name"] in behaviour.containers else _INITIAL
        restarts = "Always" if is_sidecar else "Never" if policy == "Never" else "OnFailure"
        around = Circumstances(pod, own, cast("Restarts", restarts), waits_for, _since(pod), now)
        step = containers.advance(before.get(spec["name"]), spec, around)
        status = step.status if is_sidecar else {**step.status, "ready": _has_succeeded(step.status)}
        _note(step, f"spec.initContainers{{{spec['name']}}}", said, waits)
        statuses.append(status)
        if not _lets_go_on(spec, status):
            waits_for = "PodInitializing"
    return _Group(specs, statuses)


_INITIAL: Final = ContainerBehaviour(exit_code=0)
"""What an init container does unless a behaviour names it."""


def _containers(
    pod: Object,
    name: str,
    field: str,
    behaviour: PodBehaviour,
    now: datetime,
    said: list[PodSaying],
    waits: list[float],
    waits_for: str,
) -> _Group:
    specs = pod["spec"].get(name) or ()
    if not specs:
        return _Group((), [])
    before = _by_name(pod, field)
    policy = "Never" if name == "ephemeralContainers" else pod["spec"].get("restartPolicy") or "Always"
    statuses = []
    for spec in specs:
        own = _of_job(behaviour.of(spec["name"]), pod) if name == "containers" else _of_debugger(behaviour, spec)
        around = Circumstances(
            pod, own, cast("Restarts", spec.get("restartPolicy") or policy), waits_for, _since(pod), now
        )
        step = containers.advance(before.get(spec["name"]), spec, around)
        _note(step, f"spec.{name}{{{spec['name']}}}", said, waits)
        statuses.append(step.status)
    return _Group(specs, statuses)


def _note(step: ContainerStep, field: str, said: list[PodSaying], waits: list[float]) -> None:
    said.extend(PodSaying(field, each) for each in step.said)
    if step.again is not None:
        waits.append(step.again)


def _by_name(pod: Object, field: str) -> dict[str, Object]:
    return {status["name"]: status for status in (pod.get("status") or {}).get(field) or ()}


def _since(pod: Object) -> str:
    return str(pod["status"].get("startTime") or pod["metadata"]["creationTimestamp"])


def _of_job(behaviour: ContainerBehaviour, pod: Object) -> ContainerBehaviour:
    """The containers of a Job's pod end well by themselves."""
    if behaviour.exit_code is not None or pod["spec"].get("restartPolicy", "Always") == "Always":
        return behaviour
    if all(owner.get("kind") != "Job" for owner in pod["metadata"].get("ownerReferences") or ()):
        return behaviour
    return behaviour._replace(exit_code=0, exit_after=JOB_SECONDS)


def _of_debugger(behaviour: PodBehaviour, spec: Object) -> ContainerBehaviour:
    """An ephemeral container runs on beside those that fail."""
    return behaviour.containers.get(spec["name"], ContainerBehaviour())


def _has_succeeded(status: Object) -> bool:
    end = status["state"].get("terminated")
    return end is not None and end["exitCode"] == 0


def _lets_go_on(spec: Object, status: Object) -> bool:
    """Whether the containers after an init container may start."""
    return bool(status["started"]) if spec.get("restartPolicy") == "Always" else _has_succeeded(status)


def _is_initialized(init: _Group) -> bool:
    return all(_lets_go_on(spec, status) for spec, status in zip(init.specs, init.statuses, strict=True))


def _stopped(status: Object, code: int, now: datetime, reason: str = "") -> Object:
    return containers.terminated(status, code, reason, now) if "running" in status["state"] else status


# -- the end ----------------------------------------------------------------------------------------------------------


def ended(pod: Object, now: datetime, reason: str = "") -> Object:
    """The status of a pod whose containers are stopped: it has failed, unless it had finished before."""
    before = pod.get("status") or {}
    stopped = {
        field: [_stopped(status, TERMINATED, now, reason) for status in before[field]]
        for field in STATUSES
        if before.get(field)
    }
    shown = {**before, **stopped, "phase": "Failed"}
    init = _Group(pod["spec"].get("initContainers") or (), shown.get("initContainerStatuses") or [])
    main = _Group(pod["spec"]["containers"], shown.get("containerStatuses") or [])
    return _with_conditions(pod, shown, init, main, now, has_network=False)


def _evicted(pod: Object, now: datetime) -> PodStep:
    """A pod none of whose containers has run has none in its status, as one that a kubelet does not admit: it is seen as Evicted."""
    status = ended(pod, now)
    if not any(_has_run(each) for field in STATUSES for each in status.get(field) or ()):
        status = {field: value for field, value in status.items() if field not in STATUSES}
    disrupted = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": format_time(now),
        "reason": "TerminationByKubelet",
        "message": EVICTED,
    }
    conditions = [each for each in status["conditions"] if each["type"] != "DisruptionTarget"]
    shown = {**status, "reason": "Evicted", "message": EVICTED, "conditions": [disrupted, *conditions]}
    return PodStep(shown, [PodSaying("", ContainerSaying(WARNING, "Evicted", EVICTED))], None)


# -- phase and conditions ---------------------------------------------------------------------------------------------


def _phase(pod: Object, init: _Group, main: _Group) -> str:
    """Kubelet.getPhase."""
    policy = pod["spec"].get("restartPolicy") or "Always"
    if policy == "Never" and any(_has_failed(each) for each in _ordinary(init)):
        return "Failed"
    states = [each["state"] for each in main.statuses]
    if not all(map(_has_run, main.statuses)):
        return "Pending"
    if any("running" in state for state in states) or policy == "Always":
        return "Running"
    if all("terminated" in state for state in states):
        if all(state["terminated"]["exitCode"] == 0 for state in states):
            return "Succeeded"
        return "Failed" if policy == "Never" else "Running"
    return "Running"


def _has_run(status: Object) -> bool:
    return bool(status["lastState"]) or "waiting" not in status["state"]


def _ordinary(init: _Group) -> list[Object]:
    """The statuses of init containers that are no sidecars."""
    pairs = zip(init.specs, init.statuses, strict=True)
    return [status for spec, status in pairs if spec.get("restartPolicy") != "Always"]


def _has_failed(status: Object) -> bool:
    end = status["state"].get("terminated")
    return end is not None and end["exitCode"] != 0


def _with_conditions(
    pod: Object, status: Object, init: _Group, main: _Group, now: datetime, *, has_network: bool
) -> Object:
    phase = status["phase"]
    finished = {"status": "False", "reason": "PodCompleted"} if phase == "Succeeded" else None
    failed = {"status": "False", "reason": "PodFailed"} if phase == "Failed" else None
    containers_ready = finished or failed or _containers_ready(init, main)
    new: dict[str, Object] = {
        "PodReadyToStartContainers": {"status": "True" if has_network else "False"},
        "Initialized": _initialized(init, main, phase),
        "Ready": finished or failed or _ready(pod, containers_ready),
        "ContainersReady": containers_ready,
    }
    return {**status, **_observed(pod), "conditions": _merged(status.get("conditions") or (), new, _observed(pod), now)}


def _observed(pod: Object) -> Object:
    generation = pod["metadata"].get("generation")
    return {"observedGeneration": generation} if generation else {}


def _merged(old: Sequence[Object], new: Mapping[str, Object], observed: Object, now: datetime) -> list[Object]:
    """The kubelet's conditions, and those of others; a transition is one of the status."""
    earlier = {each["type"]: each for each in old}
    result = []
    for kind, value in new.items():
        before = earlier.pop(kind, None)
        same = before is not None and before["status"] == value["status"]
        since = before["lastTransitionTime"] if before is not None and same else format_time(now)
        result.append({"type": kind, **observed, "lastProbeTime": None, "lastTransitionTime": since, **value})
    return [*result, *earlier.values()]


def _initialized(init: _Group, main: _Group, phase: str) -> Object:
    if phase == "Succeeded":
        return {"status": "True", "reason": "PodCompleted"}
    pairs = zip(init.specs, init.statuses, strict=False)
    incomplete = [spec["name"] for spec, status in pairs if not _lets_go_on(spec, status)]
    if not incomplete or any(map(_has_run, main.statuses)):
        return {"status": "True"}
    message = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return {"status": "False", "reason": "ContainersNotInitialized", "message": message}


def _containers_ready(init: _Group, main: _Group) -> Object:
    sidecars = [
        status for spec, status in zip(init.specs, init.statuses, strict=True) if spec.get("restartPolicy") == "Always"
    ]
    unready = [status["name"] for status in (*sidecars, *main.statuses) if not status["ready"]]
    if not unready:
        return {"status": "True"}
    message = f"containers with unready status: [{' '.join(unready)}]"
    return {"status": "False", "reason": "ContainersNotReady", "message": message}


def _ready(pod: Object, containers_ready: Object) -> Object:
    if containers_ready["status"] != "True":
        return containers_ready
    missing = []
    for gate in pod["spec"].get("readinessGates") or ():
        kind = gate["conditionType"]
        found = condition(pod, kind)
        if found is None:
            missing.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif found["status"] != "True":
            missing.append(f'the status of pod readiness gate "{kind}" is not "True", but {found["status"]}')
    if missing:
        return {"status": "False", "reason": "ReadinessGatesNotReady", "message": ", ".join(missing)}
    return {"status": "True"}
