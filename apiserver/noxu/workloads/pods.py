"""What controllers of workloads ask about pods, and how they make one from a template (pkg/api/v1/pod, controller_utils.go)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from noxu.go.time import format_time, unix_nanos
from noxu.values import Object, copy
from noxu.workloads.ownership import owner_reference

FINISHED: Final = ("Succeeded", "Failed")
SIMULATE: Final = "noxu.dev/simulate"
"""The annotation that says what a simulated pod or node does, see kubelet/behaviours.py."""


def phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_terminating(value: Object) -> bool:
    return bool(value["metadata"].get("deletionTimestamp"))


def is_active(pod: Object) -> bool:
    """Neither finished nor being deleted (controller.IsPodActive)."""
    return phase(pod) not in FINISHED and not is_terminating(pod)


def condition(value: Object, kind: str) -> Object | None:
    """A condition in the status of any object."""
    for found in (value.get("status") or {}).get("conditions") or ():
        if found.get("type") == kind:
            result: Object = found
            return result
    return None


def is_true(value: Object, kind: str) -> bool:
    return (condition(value, kind) or {}).get("status") == "True"


def is_ready(pod: Object) -> bool:
    return is_true(pod, "Ready")


def moment(text: str) -> datetime:
    """A time of an object."""
    return _EPOCH + timedelta(microseconds=unix_nanos(text) // 1000)


_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def available_after(pod: Object, min_ready_seconds: int, now: datetime) -> float | None:
    """The seconds until a ready pod is available: 0 or less if it is (podutil.IsPodAvailable). None: it is not ready."""
    ready = condition(pod, "Ready")
    if ready is None or ready.get("status") != "True":
        return None
    if not min_ready_seconds:
        return 0.0
    since = ready.get("lastTransitionTime")
    if not since:
        return None
    return min_ready_seconds - (now - moment(since)).total_seconds()


def is_available(pod: Object, min_ready_seconds: int, now: datetime) -> bool:
    left = available_after(pod, min_ready_seconds, now)
    return left is not None and left <= 0


def next_available(pods: Iterable[Object], min_ready_seconds: int, now: datetime) -> float | None:
    """The seconds until the next of some pods is available; None: until then a pod has to change."""
    waiting = (available_after(pod, min_ready_seconds, now) for pod in pods)
    return min((after for after in waiting if after is not None and after > 0), default=None)


def with_condition(conditions: Iterable[Object] | None, new: Object, now: datetime) -> list[Object]:
    """Conditions with one that is added or replaced. Its lastTransitionTime changes only with its status."""
    result, found = [], False
    stamped = {"lastTransitionTime": format_time(now), **new}
    for old in conditions or ():
        if old.get("type") != new["type"]:
            result.append(old)
            continue
        found = True
        same = old.get("status") == new["status"] and "lastTransitionTime" in old
        result.append({**stamped, "lastTransitionTime": old["lastTransitionTime"]} if same else stamped)
    return result if found else [*result, stamped]


def without_condition(conditions: Iterable[Object] | None, kind: str) -> list[Object]:
    return [found for found in conditions or () if found.get("type") != kind]


def looked_at(pod: Object) -> tuple[object, ...]:
    """What of a pod changes anything for what controls it: other changes concern no controller."""
    metadata = pod["metadata"]
    ready = condition(pod, "Ready") or {}
    return (
        metadata["uid"],
        metadata.get("labels"),
        metadata.get("ownerReferences"),
        is_terminating(pod),
        phase(pod),
        ready.get("status"),
        ready.get("lastTransitionTime"),
    )


def number_of(value: int | str, total: int, *, rounds_up: bool) -> int:
    """A number of pods, or a percentage of a total (intstr.GetScaledValueFromIntOrPercent). Raises ValueError."""
    if isinstance(value, int):
        return value
    percentage = value.removesuffix("%")
    if percentage == value or not percentage.isdecimal():
        raise ValueError(f'invalid value for IntOrString: invalid type: string is not a percentage: "{value}"')
    hundredths = int(percentage) * total
    return -(-hundredths // 100) if rounds_up else hundredths // 100


def pod_from_template(template: Object, owner: Object, *, name: str = "") -> Object:
    """A pod of a controller: named `name`, or `OWNER-` and a suffix that the server chooses (GetPodFromTemplate)."""
    metadata, above = copy(template.get("metadata") or {}), owner["metadata"]
    for given in ("creationTimestamp", "name", "generateName", "namespace", "uid", "resourceVersion"):
        metadata.pop(given, None)
    metadata |= {"name": name} if name else {"generateName": f"{above['name']}-"}
    metadata |= {"namespace": above["namespace"], "ownerReferences": [owner_reference(owner)]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copy(template["spec"])}
