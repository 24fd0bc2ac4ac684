"""horizontal-pod-autoscaler-controller (pkg/controller/podautoscaler/horizontal.go).

Every 15 seconds of object time, more rarely while nothing changes, and at once when a person changes an autoscaler or what the
annotations of pods say: the most that a metric asks for becomes the scale of the target, stabilized and limited. The status is
written if it differs.

    AbleToScale      SucceededGetScale, ReadyForNewScale, ScaleUpStabilized, ScaleDownStabilized, SucceededRescale; or a failure
    ScalingActive    ValidMetricFound; False: ScalingDisabled at zero replicas, InvalidSelector, or the metric that failed
    ScalingLimited   DesiredWithinRange; True: TooFewReplicas, TooManyReplicas, ScaleUpLimit, ScaleDownLimit
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from noxu.api.errors import ApiError
from noxu.api.selectors import parse_labels
from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads import usage
from noxu.workloads.autoscaler import normalization, sources
from noxu.workloads.autoscaler.normalization import PERIOD, At, AutoscalerPast, Bounds
from noxu.workloads.autoscaler.sources import AskedReplicas, MetricFailure, ScaledPods
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.objects import (
    AUTOSCALERS,
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Objects,
    name_of,
)
from noxu.workloads.pods import is_ready, phase, with_condition
from noxu.workloads.writes import (
    NORMAL,
    WARNING,
    Kind,
    NamespacedName,
    NewEvent,
    ReadScale,
    Replace,
    Steps,
    Write,
    WriteScale,
    done,
    with_status,
)

SCALED: Final = (DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS, REPLICATION_CONTROLLERS)
"""Targets whose changes are seen. Other ones, custom resources, are seen with the next look."""
_UNABLE: Final = "the HPA controller was unable to get the target's current scale: "


class Autoscaler(WorkloadController):
    """Keys are the names of autoscalers."""

    name = "horizontal-pod-autoscaler-controller"
    kind = AUTOSCALERS
    looks_at = (PODS, *SCALED)
    account = "horizontal-pod-autoscaler"

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self._past: dict[NamespacedName, AutoscalerPast] = {}
        self._urgent: set[NamespacedName] = set()  # those that look at once

    def changed(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        keys = list(self.affected(self.objects, kind, old, new))
        if keys and is_urgent(kind, old, new):
            self._urgent.update(keys)
        for key in keys:
            self.queue.add(key)

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        if kind == AUTOSCALERS:
            if old is None or new is None or old["spec"] != new["spec"]:
                yield name_of(new or old or {})
            return
        scalers = objects.within(AUTOSCALERS, (new or old or {})["metadata"]["namespace"])  # most often none
        if scalers and (old is None or new is None or _counts(kind, old) != _counts(kind, new)):
            yield from map(name_of, scalers)

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        found, is_urgent_now = objects.get(AUTOSCALERS, key), key in self._urgent
        self._urgent.discard(key)  # what changes from here on is urgent again
        if found is None:
            self._past.pop(key, None)
            return None
        past = self._past.setdefault(key, AutoscalerPast())
        if not is_urgent_now and (left := past.left(now)) > 0:
            return left
        past.begin(now)
        try:
            yield from autoscale(objects, found, self._past, now)
        except ApiError:
            self._urgent.add(key)
            raise
        newest = objects.get(AUTOSCALERS, key) or {}
        return past.end(now, is_same=newest.get("status") == found.get("status"))


def is_urgent(kind: Kind, old: Object | None, new: Object | None) -> bool:
    """Whether a change is a person's, who waits for what follows: of an autoscaler, or of what the annotations of a pod say."""
    if kind == AUTOSCALERS:
        return True
    return kind == PODS and old is not None and new is not None and _says(old) != _says(new)


def _counts(kind: Kind, value: Object) -> object:
    """What autoscalers see of a pod, or of a target."""
    if kind != PODS:
        return value["spec"].get("replicas"), value["spec"].get("selector")
    status = value.get("status") or {}
    running = ["running" in (each.get("state") or {}) for each in status.get("containerStatuses") or ()]
    metadata = value["metadata"]
    is_ending = "deletionTimestamp" in metadata
    return _says(value), metadata.get("labels"), phase(value), is_ready(value), running, is_ending


def _says(pod: Object) -> list[tuple[str, str]]:
    """What the annotations of a pod say of its usage."""
    annotations = pod["metadata"].get("annotations") or {}
    return [(name, text) for name, text in annotations.items() if name.startswith(_ANNOTATIONS)]


_ANNOTATIONS: Final = tuple(map(usage.annotation, usage.RESOURCES))


def autoscale(
    objects: Objects, autoscaler: Object, pasts: Mapping[NamespacedName, AutoscalerPast], now: datetime
) -> Steps:
    """reconcileAutoscaler. `pasts`: those of all autoscalers."""
    spec, state, past = autoscaler["spec"], _State(autoscaler, now), pasts[name_of(autoscaler)]
    target, namespace = spec["scaleTargetRef"], autoscaler["metadata"]["namespace"]
    [scale] = yield [ReadScale(target, namespace)]
    if isinstance(scale, ApiError):
        state.condition("AbleToScale", "False", "FailedGetScale", f"{_UNABLE}{scale.message}")
        done((yield [NewEvent(autoscaler, WARNING, "FailedGetScale", scale.message), *state.update()]))
        return PERIOD
    assert scale is not None
    state.condition(
        "AbleToScale", "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale"
    )
    current, behavior = scale["spec"].get("replicas", 0), spec.get("behavior")
    past.recommendations = past.recommendations or [At(current, now)]
    bounds = Bounds(_or(spec.get("minReplicas"), 1), spec["maxReplicas"], current)
    metrics: Sequence[Object] | None = None
    failure = ""
    if current == 0 and bounds.least != 0:
        text = "scaling is disabled since the replica count of the target is zero"
        state.condition("ScalingActive", "False", "ScalingDisabled", text)
        desired, reason = current, ""
    elif current > bounds.most:
        desired, reason = bounds.most, "Current number of replicas above Spec.MaxReplicas"
    elif current < bounds.least:
        desired, reason = bounds.least, "Current number of replicas below Spec.MinReplicas"
    else:
        measured = _measured(objects, autoscaler, scale, state, pasts)
        yield measured.events
        metrics, failure = measured.statuses, measured.failure
        if measured.replicas is None:
            done((yield state.update(current, metrics=metrics)))
            yield [NewEvent(autoscaler, WARNING, "FailedComputeMetricsReplicas", failure)]
            return PERIOD
        desired = _normalized(measured.replicas, bounds, behavior, past, state)
        reason = f"{measured.name} above target" if measured.replicas > current else "All metrics below target"
    if desired == current:
        done((yield state.update(current, current, metrics)))
        return PERIOD
    [result] = yield [WriteScale(target, {**scale, "spec": {"replicas": desired}})]
    if isinstance(result, ApiError):
        text = f"the HPA controller was unable to update the target scale: {result.message}"
        state.condition("AbleToScale", "False", "FailedUpdateScale", text)
        said = f"New size: {desired}; reason: {reason}; error: {result.message}"
        yield [NewEvent(autoscaler, WARNING, "FailedRescale", said)]
        done((yield state.update(current)))
        return PERIOD
    text = f"the HPA controller was able to update the target scale to {desired}"
    state.condition("AbleToScale", "True", "SucceededRescale", text)
    past.changed(current, desired, behavior, now)
    yield [NewEvent(autoscaler, NORMAL, "SuccessfulRescale", f"New size: {desired}; reason: {reason}")]
    done((yield state.update(current, desired, metrics, is_rescaled=True)))
    return PERIOD


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _normalized(proposed: int, bounds: Bounds, behavior: Object | None, past: AutoscalerPast, state: _State) -> int:
    stable = normalization.stabilized(past, proposed, bounds.current, behavior, state.now)
    state.condition("AbleToScale", "True", stable.reason, stable.message)
    limited = normalization.limited(past, stable.replicas, bounds, behavior, state.now)
    is_limited = "False" if limited.replicas == stable.replicas else "True"
    state.condition("ScalingLimited", is_limited, limited.reason, limited.message)
    return limited.replicas


# -- metrics ----------------------------------------------------------------------------------------------------------


class _Measured(NamedTuple):
    """What all metrics together ask for; None: nothing that may be done, for the reason in `failure`."""

    replicas: int | None
    name: str = ""
    statuses: Sequence[Object] | None = None
    events: Sequence[Write] = ()
    failure: str = ""


def _measured(
    objects: Objects, autoscaler: Object, scale: Object, state: _State, pasts: Mapping[NamespacedName, AutoscalerPast]
) -> _Measured:
    """computeReplicasForMetrics."""
    text = (scale.get("status") or {}).get("selector") or ""
    if not text:
        state.condition("ScalingActive", "False", "InvalidSelector", "the HPA target's scale is missing a selector")
        said = "selector is required"
        return _Measured(None, events=[NewEvent(autoscaler, WARNING, "SelectorRequired", said)], failure=said)
    try:
        selector = parse_labels(text)
    except ValueError as error:
        said = f"couldn't convert selector into a corresponding internal selector object: {error}"
        state.condition("ScalingActive", "False", "InvalidSelector", said)
        return _Measured(None, events=[NewEvent(autoscaler, WARNING, "InvalidSelector", said)], failure=said)
    namespace, replicas = autoscaler["metadata"]["namespace"], scale["spec"].get("replicas", 0)
    pods = [pod for pod in objects.within(PODS, namespace) if selector.matches(pod["metadata"].get("labels") or {})]
    pasts[name_of(autoscaler)].selector = selector
    if len(scaling := _scaling(namespace, pods, pasts)) > 1:
        said = f"pods by selector {text} are controlled by multiple HPAs: [{' '.join(scaling)}]"
        state.condition("ScalingActive", "False", "AmbiguousSelector", said)
        return _Measured(None, events=[NewEvent(autoscaler, WARNING, "AmbiguousSelector", said)], failure=said)
    tolerances = normalization.tolerances_of(autoscaler["spec"].get("behavior"))
    at = ScaledPods(pods, replicas, namespace, tolerances, state.now)
    specs = autoscaler["spec"].get("metrics") or sources.DEFAULT
    best, failures, statuses = AskedReplicas(0, "", {}), list[MetricFailure](), list[Object]()
    for spec in specs:
        try:
            found = sources.asked(spec, at)
        except MetricFailure as failure:
            failures.append(failure)
            statuses.append({"type": ""})
            continue
        statuses.append(found.status)
        if best.replicas == 0 or found.replicas > best.replicas:
            best = found
    events = [NewEvent(autoscaler, WARNING, each.reason, each.cause) for each in failures]
    if not failures or (len(failures) < len(specs) and best.replicas >= replicas):
        said = f"the HPA was able to successfully calculate a replica count from {best.name}"
        state.condition("ScalingActive", "True", "ValidMetricFound", said)
        return _Measured(best.replicas, best.name, statuses, events)
    first = failures[0]
    said = f"the HPA was unable to compute the replica count: {first.cause}"
    state.condition("ScalingActive", "False", first.reason, said)
    failure_text = f"invalid metrics ({len(failures)} invalid out of {len(specs)}), first error is: {first}"
    return _Measured(None, "", statuses, events, failure_text)


def _scaling(namespace: str, pods: Sequence[Object], pasts: Mapping[NamespacedName, AutoscalerPast]) -> list[str]:
    """The autoscalers whose selectors select some of the pods (hpasControllingPodsUnderSelector)."""
    found = {name: past.selector for name, past in pasts.items() if name.namespace == namespace and past.selector}
    if len(found) == 1:
        return []
    labels = [pod["metadata"].get("labels") or {} for pod in pods]
    return sorted(f"{namespace}/{name.name}" for name, selector in found.items() if any(map(selector.matches, labels)))


# -- the status -------------------------------------------------------------------------------------------------------


class _State:
    """The status that an autoscaler gets."""

    def __init__(self, autoscaler: Object, now: datetime) -> None:
        self.now = now
        self._autoscaler = autoscaler
        self._before: Object = autoscaler.get("status") or {}
        self._conditions = self._before.get("conditions")

    def condition(self, kind: str, status: str, reason: str, message: str) -> None:
        new = {"type": kind, "status": status, "reason": reason, "message": message}
        self._conditions = with_condition(self._conditions, new, self.now)

    def update(
        self,
        current: int | None = None,
        desired: int | None = None,
        metrics: Sequence[Object] | None = None,
        *,
        is_rescaled: bool = False,
    ) -> Sequence[Replace]:
        """The write of the status, if it differs. `current` None: only conditions change; `desired` None: it stays."""
        status = {**self._before, "conditions": self._conditions}
        if current is not None:
            shown = self._before.get("desiredReplicas", 0) if desired is None else desired
            status |= {"currentReplicas": current, "desiredReplicas": shown, "currentMetrics": metrics}
        if is_rescaled:
            status["lastScaleTime"] = format_time(self.now)
        if _filled(status) == _filled(self._before):
            return ()
        return [Replace(AUTOSCALERS, with_status(self._autoscaler, status), "status")]


def _filled(status: Object) -> Object:
    return {name: value for name, value in status.items() if value}
