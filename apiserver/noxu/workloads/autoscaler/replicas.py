"""How many replicas a metric of pods asks for (pkg/controller/podautoscaler/replica_calculator.go, metrics/utilization.go).

    ratio     what the pods use, divided by the target
    ready     pods whose metric counts: the replicas become ratio × ready, rounded up
    unready   pending ones; of CPU, also those that have just started: they use 0 when the ratio is above 1, else they do not count
    missing   without a metric: they use 0 when the ratio is above 1, and all that is targeted when it is below
    ignored   failed, or being deleted

Numbers are thousandths, as in upstream: of CPUs, of bytes. A change within the tolerance is none, nor is one that these guesses
turn around.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from noxu.values import Object
from noxu.workloads import usage
from noxu.workloads.pods import condition, is_terminating, moment, phase

WINDOW: Final = 15.0  # seconds over which a metric is an average
CPU_INITIALIZATION: Final = 300.0  # seconds; --horizontal-pod-autoscaler-cpu-initialization-period
INITIAL_READINESS_DELAY: Final = 30.0  # seconds; --horizontal-pod-autoscaler-initial-readiness-delay
TOLERANCE: Final = 0.1

Metrics = dict[str, int]
"""By the names of pods."""


class Tolerances(NamedTuple):
    down: float = TOLERANCE
    up: float = TOLERANCE

    def allow(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Proposal(NamedTuple):
    """`average`: what a pod uses. `utilization`: in percent of what pods request, None where nothing is said about that."""

    replicas: int
    average: int
    utilization: int | None = None


class PodGroups(NamedTuple):
    """The names of pods by how their metrics count."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


class Sample(NamedTuple):
    """What the metrics API says of the pods that a selector selects, at a time. `container` "": of whole pods."""

    resource: str
    pods: Sequence[Object]
    now: datetime
    container: str = ""

    def metrics(self) -> Metrics:
        """Raises ValueError."""
        found: Metrics = {}
        for pod in self.pods:
            used, metadata = usage.of_pod(pod), pod["metadata"]
            if not used:
                continue
            if self.container and self.container not in used:
                name = f"{metadata['namespace']}/{metadata['name']}"
                raise ValueError(f"container {self.container} not present in metrics for pod {name}")
            parts = [used[self.container]] if self.container else used.values()
            if self.resource in usage.RESOURCES:
                found[metadata["name"]] = sum(each[self.resource] for each in parts) * _thousandths(self.resource)
        if not found:
            raise ValueError("no metrics returned from resource metrics API")
        return found

    def requests(self) -> Metrics:
        """What the pods request. Raises ValueError if a container requests nothing."""
        return {pod["metadata"]["name"]: self._requested(pod) for pod in self.pods}

    def _requested(self, pod: Object) -> int:
        total = 0
        for container in pod["spec"]["containers"]:
            if self.container and container["name"] != self.container:
                continue
            asked = usage.requested(container, self.resource)
            if asked is None:
                where = f"container {container['name']} of Pod {pod['metadata']['name']}"
                raise ValueError(f"missing request for {self.resource} in {where}")
            total += asked * _thousandths(self.resource)
        return total


def _thousandths(resource: str) -> int:
    return 1 if resource == "cpu" else 1000


def by_utilization(current: int, target: int, sample: Sample, tolerances: Tolerances) -> Proposal:
    """GetResourceReplicas: `target` in percent of what pods request. Raises ValueError."""
    metrics, groups = _counted(sample)
    requests = sample.requests()
    ratio, utilization, average = _utilization(metrics, requests, target)
    full = {name: requests[name] * max(100, target) // 100 for name in groups.missing}
    assumed = _with_assumptions(metrics, groups, ratio, full, is_up=ratio > 1.0)
    if assumed is None:
        replicas = current if tolerances.allow(ratio) else math.ceil(ratio * groups.ready)
    else:
        replicas = _rebalanced(current, ratio, _utilization(assumed, requests, target)[0], len(assumed), tolerances)
    return Proposal(replicas, average, utilization)


def by_value(current: int, target: int, sample: Sample, tolerances: Tolerances) -> Proposal:
    """GetRawResourceReplicas: `target` in thousandths. Raises ValueError."""
    metrics, groups = _counted(sample)
    ratio, average = _average_ratio(metrics, target)
    full = dict.fromkeys(groups.missing, target)
    assumed = _with_assumptions(metrics, groups, ratio, full, is_up=ratio >= 1.0)
    if assumed is None:
        replicas = current if tolerances.allow(ratio) else math.ceil(ratio * groups.ready)
    else:
        replicas = _rebalanced(current, ratio, _average_ratio(assumed, target)[0], len(assumed), tolerances)
    return Proposal(replicas, average)


def _counted(sample: Sample) -> tuple[Metrics, PodGroups]:
    """The metrics of the pods whose metrics count, and all pods by groups. Raises ValueError."""
    try:
        metrics = sample.metrics()
    except ValueError as error:
        raise ValueError(f"unable to get metrics for resource {sample.resource}: {error}") from None
    if not sample.pods:
        raise ValueError("no pods returned by selector while calculating replica count")
    groups = group_pods(sample, metrics)
    without = groups.ignored | groups.unready
    counted = {name: value for name, value in metrics.items() if name not in without}
    if not counted:
        raise ValueError("did not receive metrics for targeted pods (pods might be unready)")
    return counted, groups


def _with_assumptions(
    metrics: Metrics, groups: PodGroups, ratio: float, full: Mapping[str, int], *, is_up: bool
) -> Metrics | None:
    """The metrics with what is assumed of pods that have none; None: there is nothing to assume. `full`: all that is targeted.

    `is_up`: those without a metric use 0. Upstream includes a ratio of exactly 1 for values, and not for utilization.
    """
    counts_unready = bool(groups.unready) and ratio > 1.0
    if not counts_unready and not groups.missing:
        return None
    assumed = dict(metrics)
    if ratio < 1.0:
        assumed |= {name: full[name] for name in groups.missing}
    elif is_up:
        assumed |= dict.fromkeys(groups.missing, 0)
    if counts_unready:
        assumed |= dict.fromkeys(groups.unready, 0)
    return assumed


def _rebalanced(current: int, ratio: float, new_ratio: float, pods: int, tolerances: Tolerances) -> int:
    """The replicas that follow from assumptions, unless these turn the direction around."""
    turns = (ratio < 1.0 < new_ratio) or (ratio > 1.0 > new_ratio)
    if tolerances.allow(new_ratio) or turns:
        return current
    replicas = math.ceil(new_ratio * pods)
    if (new_ratio < 1.0 and replicas > current) or (new_ratio > 1.0 and replicas < current):
        return current
    return replicas


def _utilization(metrics: Metrics, requests: Metrics, target: int) -> tuple[float, int, int]:
    """(Ratio, percent of what is requested, average of a pod). Raises ValueError."""
    known = {name: value for name, value in metrics.items() if name in requests}
    requested = sum(requests[name] for name in known)
    if not requested:
        raise ValueError("no metrics returned matched known pods")
    used = sum(known.values())
    percent = used * 100 // requested
    return percent / target, percent, used // len(known)


def _average_ratio(metrics: Metrics, target: int) -> tuple[float, int]:
    average = sum(metrics.values()) // len(metrics)
    return average / target, average


def group_pods(sample: Sample, metrics: Metrics) -> PodGroups:
    """groupPods."""
    ready, unready, missing, ignored = 0, set(), set(), set()
    for pod in sample.pods:
        name = pod["metadata"]["name"]
        if is_terminating(pod) or phase(pod) == "Failed":
            ignored.add(name)
        elif phase(pod) == "Pending":
            unready.add(name)
        elif name not in metrics:
            missing.add(name)
        elif sample.resource == "cpu" and _has_just_started(pod, sample.now):
            unready.add(name)
        else:
            ready += 1
    return PodGroups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _has_just_started(pod: Object, now: datetime) -> bool:
    """Whether the CPU that a pod uses is that of its start, and does not count."""
    found, start = condition(pod, "Ready"), (pod.get("status") or {}).get("startTime")
    if found is None or not start or not found.get("lastTransitionTime"):
        return True
    is_ready, began = found.get("status") != "False", moment(start)
    changed = moment(found["lastTransitionTime"])
    if (now - began).total_seconds() < CPU_INITIALIZATION:
        return not is_ready or (now - changed).total_seconds() < WINDOW
    return not is_ready and (changed - began).total_seconds() < INITIAL_READINESS_DELAY
