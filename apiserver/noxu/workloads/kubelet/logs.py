"""The log of a container in a simulated pod: what the annotation `noxu.dev/logs` of the pod says, else one line that nothing runs.

`noxu.dev/logs.NAME` is the log of the container NAME. A log ends with a line end.
"""

from __future__ import annotations

from typing import Final

from noxu.values import Object

ANNOTATION: Final = "noxu.dev/logs"
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


def text_of(pod: Object, container: str) -> str:
    """The whole log. `container` "": that of the first one."""
    annotations = pod["metadata"].get("annotations") or {}
    said = annotations.get(f"{ANNOTATION}.{container}", annotations.get(ANNOTATION))
    if said is not None:
        return said if not said or said.endswith("\n") else f"{said}\n"
    name = container or pod["spec"]["containers"][0]["name"]
    image = next(
        (spec.get("image", "") for part in _CONTAINERS for spec in pod["spec"].get(part) or () if spec["name"] == name),
        "",
    )
    return f"nothing runs in simulated pods: {image} was not started; the annotation {ANNOTATION} says what a log contains\n"


def missing(pod: Object, container: str, *, previous: bool) -> str:
    """Why there is no log (kubelet's validateContainerLogStatus); "": there is one."""
    name, pod_name = container or pod["spec"]["containers"][0]["name"], pod["metadata"]["name"]
    status = status_of(pod, name)
    if status is None:
        return f'container "{name}" in pod "{pod_name}" is not available'
    state, last = status.get("state") or {}, status.get("lastState") or {}
    if previous:
        return "" if "terminated" in last else f'previous terminated container "{name}" in pod "{pod_name}" not found'
    if "running" in state or "terminated" in state or "terminated" in last:
        return ""
    reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
    return f'container "{name}" in pod "{pod_name}" is waiting to start: {_PULLING.get(reason, reason)}'


_PULLING: Final = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


def status_of(pod: Object, container: str) -> Object | None:
    """The status of a container of any sort."""
    status = pod.get("status") or {}
    found = (each for part in _CONTAINERS for each in status.get(f"{part[:-1]}Statuses") or ())
    return next((each for each in found if each.get("name") == container), None)


def shown(text: str, tail_lines: int | None, limit_bytes: int | None) -> bytes:
    """The last lines, and of them the first bytes."""
    lines = text.encode().splitlines(keepends=True)
    kept = lines if tail_lines is None else lines[max(len(lines) - tail_lines, 0) :]
    return b"".join(kept)[:limit_bytes]
