"""The life of one container, as its status tells it: what it becomes now, from what it was and the time.

    waiting      ContainerCreating or PodInitializing; an image that cannot be pulled: ErrImagePull, ImagePullBackOff
    running      from its start until it ends, if its behaviour says that it ends
    terminated   for good, or until it starts again: at once the first time, then CrashLoopBackOff for 10 s · 2ⁿ, at most 5 min

`pkg/kubelet/kuberuntime` and `pkg/kubelet/images` are the source of reasons, messages and Events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from noxu.go.time import SECOND, format_duration, format_time
from noxu.values import Object
from noxu.workloads.kubelet.behaviours import ContainerBehaviour
from noxu.workloads.pods import moment
from noxu.workloads.writes import NORMAL, WARNING

Restarts = Literal["Always", "OnFailure", "Never"]
FIRST_BACK_OFF: Final = 10.0  # seconds
LONGEST_BACK_OFF: Final = 300.0
PULL_ERROR_SHOWN: Final = 1.0  # seconds for which ErrImagePull stands there, until the kubelet backs off
KILLED: Final = 137


class ContainerSaying(NamedTuple):
    """An Event of a container."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class Circumstances(NamedTuple):
    """What a container depends on. `waits_for`: the reason why it must not start yet, "" if it may.

    `since`: when its pod was accepted, as objects have it.
    """

    pod: Object
    behaviour: ContainerBehaviour
    restarts: Restarts
    waits_for: str
    since: str
    now: datetime


class ContainerStep(NamedTuple):
    """What a container has become. `again`: the seconds until it changes by itself."""

    status: Object
    said: list[ContainerSaying]
    again: float | None


def advance(before: Object | None, spec: Object, around: Circumstances) -> ContainerStep:
    """The newest state of a container."""
    new, said = waiting(spec, around.waits_for or "ContainerCreating"), list[ContainerSaying]()
    status = (
        new if before is None else before if "lastState" in before else {**new, **before}
    )  # a stage may have written it
    while True:
        state = status["state"]
        if "running" in state:
            if (left := _seconds_to_exit(state["running"], around)) is None or left > 0:
                return _running(status, spec, around, said, left)
            status = _ended(status, around)
        elif "terminated" in state:
            if not _starts_again(state["terminated"], around):
                return ContainerStep(status, said, None)
            status = _waiting(status, {"reason": "ContainerCreating"}, last=state)
        elif around.waits_for:
            return ContainerStep(_waiting(status, {"reason": around.waits_for}), said, None)
        elif not around.behaviour.has_image:
            return _pulled_in_vain(status, spec, around, said)
        elif (left := _back_off_left(status, around)) > 0:
            return _backing_off(status, spec, around, said, left)
        else:
            status = _started(status, spec, around)
            said += _sayings_of_start(spec)


# -- waiting ----------------------------------------------------------------------------------------------------------


def waiting(spec: Object, reason: str) -> Object:
    """The first status of a container."""
    return {
        "name": spec["name"],
        "state": {"waiting": {"reason": reason}},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": spec.get("image", ""),
        "imageID": "",
        "started": False,
    }


def _waiting(status: Object, waiting: Object, last: Object | None = None) -> Object:
    after = {} if last is None else {"lastState": last}
    return {**status, "state": {"waiting": waiting}, "ready": False, "started": False, **after}


def _pulled_in_vain(status: Object, spec: Object, around: Circumstances, said: list[ContainerSaying]) -> ContainerStep:
    image = spec.get("image", "")
    ended = (status["lastState"].get("terminated") or {}).get("finishedAt")
    passed = (around.now - moment(ended or around.since)).total_seconds()
    attempted, following = _attempts(passed)
    error = _pull_error(image)
    reason, was = "ErrImagePull", status["state"].get("waiting", {}).get("reason")
    message, again = error, attempted + PULL_ERROR_SHOWN - passed
    if again <= 0:
        reason, message, again = (
            "ImagePullBackOff",
            f'Back-off pulling image "{image}": ErrImagePull: {error}',
            following - passed,
        )
    if reason != was:
        said += _sayings_of_pull(image, error) if reason == "ErrImagePull" else _sayings_of_pull_back_off(image)
    return ContainerStep(_waiting(status, {"reason": reason, "message": message}), said, again)


def _attempts(passed: float) -> tuple[float, float]:
    """When the last attempt was and when the next one will be, in seconds after the first one."""
    last, pause = 0.0, FIRST_BACK_OFF
    while last + pause <= passed:
        last, pause = last + pause, min(pause * 2, LONGEST_BACK_OFF)
    return last, last + pause


def _back_off_left(status: Object, around: Circumstances) -> float:
    ended = status["lastState"].get("terminated")
    if ended is None or not around.behaviour.backs_off:
        return 0.0
    return _back_off(status) - (around.now - moment(ended["finishedAt"])).total_seconds()


def _back_off(status: Object) -> float:
    restarts = int(status["restartCount"])
    return min(FIRST_BACK_OFF * 2.0 ** min(restarts - 1, 10), LONGEST_BACK_OFF) if restarts else 0.0


def _backing_off(
    status: Object, spec: Object, around: Circumstances, said: list[ContainerSaying], left: float
) -> ContainerStep:
    metadata = around.pod["metadata"]
    pod = f"{metadata['name']}_{metadata.get('namespace', '')}({metadata['uid']})"
    if status["state"].get("waiting", {}).get("reason") != "CrashLoopBackOff":
        said.append(
            ContainerSaying(WARNING, "BackOff", f"Back-off restarting failed container {spec['name']} in pod {pod}")
        )
    pause = format_duration(int(_back_off(status) * SECOND))
    message = f"back-off {pause} restarting failed container={spec['name']} pod={pod}"
    return ContainerStep(_waiting(status, {"reason": "CrashLoopBackOff", "message": message}), said, left)


# -- running ----------------------------------------------------------------------------------------------------------


def _started(status: Object, spec: Object, around: Circumstances) -> Object:
    restarts = status["restartCount"] + (1 if status["lastState"] else 0)
    return {
        **status,
        "state": {"running": {"startedAt": format_time(around.now)}},
        "restartCount": restarts,
        "imageID": image_id(spec.get("image", "")),
        "containerID": container_id(around.pod, spec["name"], restarts),
    }


def _running(
    status: Object, spec: Object, around: Circumstances, said: list[ContainerSaying], left: float | None
) -> ContainerStep:
    passed = (around.now - moment(status["state"]["running"]["startedAt"])).total_seconds()
    to_started = _initial_delay(spec, "startupProbe")
    slow = around.behaviour.ready_after
    to_ready = slow if slow is not None else max(to_started, _initial_delay(spec, "readinessProbe"))
    is_ready = around.behaviour.is_ever_ready and passed >= to_ready
    if not around.behaviour.is_ever_ready and (status["ready"] or said) and spec.get("readinessProbe"):
        said.append(
            ContainerSaying(WARNING, "Unhealthy", f"Readiness probe failed: {_failed_probe(spec['readinessProbe'])}")
        )
    waits = [left] if left is not None else []
    due = (to_started, to_ready) if around.behaviour.is_ever_ready else (to_started,)
    waits += [after - passed for after in due if after > passed]
    shown = {**status, "ready": is_ready, "started": passed >= to_started}
    return ContainerStep(shown, said, min(waits, default=None))


def _initial_delay(spec: Object, probe: str) -> float:
    return float((spec.get(probe) or {}).get("initialDelaySeconds") or 0)


def _failed_probe(probe: Object) -> str:
    if "httpGet" in probe:
        return "HTTP probe failed with statuscode: 503"
    return 'service unhealthy (responded with "NOT_SERVING")' if "grpc" in probe else ""


def _seconds_to_exit(running: Object, around: Circumstances) -> float | None:
    behaviour = around.behaviour
    if not behaviour.has_image:
        return 0.0  # it has to be pulled again
    if behaviour.exit_code is None:
        return None
    return behaviour.exit_after - (around.now - moment(running["startedAt"])).total_seconds()


# -- terminated -------------------------------------------------------------------------------------------------------


def _ended(status: Object, around: Circumstances) -> Object:
    code = around.behaviour.exit_code if around.behaviour.has_image else KILLED
    return terminated(status, code or 0, around.behaviour.exit_reason, around.now)


def terminated(status: Object, code: int, reason: str, now: datetime) -> Object:
    """That of a running container which ends now."""
    end = {
        "exitCode": code,
        "reason": reason or ("Error" if code else "Completed"),
        "startedAt": status["state"]["running"]["startedAt"],
        "finishedAt": format_time(now),
        "containerID": status.get("containerID", ""),
    }
    return {**status, "state": {"terminated": end}, "ready": False, "started": False}


def _starts_again(end: Object, around: Circumstances) -> bool:
    return around.restarts == "Always" or (around.restarts == "OnFailure" and end["exitCode"] != 0)


# -- names and sentences ----------------------------------------------------------------------------------------------


def container_id(pod: Object, name: str, restarts: int) -> str:
    seed = f"{pod['metadata']['uid']}/{name}/{restarts}"
    return f"containerd://{hashlib.sha256(seed.encode()).hexdigest()}"


@lru_cache(maxsize=256)
def image_id(image: str) -> str:
    repository = full_image(image).partition("@")[0].rpartition(":")[0]
    return f"{repository}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def full_image(image: str) -> str:
    """Its reference with registry and tag, as container runtimes name it."""
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif "." not in first and ":" not in first and first != "localhost":
        image = f"docker.io/{image}"
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


def _pull_error(image: str) -> str:
    full = full_image(image)
    return (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{full}": failed to resolve reference '
        f'"{full}": {full}: not found'
    )


def _sayings_of_start(spec: Object) -> Iterator[ContainerSaying]:
    image = spec.get("image", "")
    yield ContainerSaying(
        NORMAL, "Pulled", f'Container image "{image}" already present on machine and can be accessed by the pod'
    )
    yield ContainerSaying(NORMAL, "Created", "Container created")
    yield ContainerSaying(NORMAL, "Started", "Container started")


def _sayings_of_pull(image: str, error: str) -> Iterator[ContainerSaying]:
    yield ContainerSaying(NORMAL, "Pulling", f'Pulling image "{image}"')
    yield ContainerSaying(WARNING, "Failed", f'Failed to pull image "{image}": {error}')
    yield ContainerSaying(WARNING, "Failed", "Error: ErrImagePull")


def _sayings_of_pull_back_off(image: str) -> Iterator[ContainerSaying]:
    yield ContainerSaying(NORMAL, "BackOff", f'Back-off pulling image "{image}"')
    yield ContainerSaying(WARNING, "Failed", "Error: ImagePullBackOff")
