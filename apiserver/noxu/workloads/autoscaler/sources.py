"""What each metric of an autoscaler asks for, and the status that shows it (podautoscaler/horizontal.go, metrics/client.go).

Resource and ContainerResource are what simulated pods use. There is no custom and no external metrics API, so Pods, Object and
External metrics fail as in a cluster without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from noxu.go.quantity import Quantity, parse, scaled_value
from noxu.values import Object
from noxu.workloads.autoscaler.replicas import Proposal, Sample, Tolerances, by_utilization, by_value

_MILLI: Final = 3  # places: what pods use is counted in thousandths
DEFAULT: Final[Sequence[Object]] = (
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
)
NO_CUSTOM: Final = (
    "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
)


class AskedReplicas(NamedTuple):
    """What a metric asks for; `name` is in events, `status` is its entry in `currentMetrics`."""

    replicas: int
    name: str
    status: Object


class MetricFailure(Exception):
    """`cause` is in the condition and the event of this reason; the text is that of the failure as a whole."""

    def __init__(self, reason: str, cause: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.cause = cause


class ScaledPods(NamedTuple):
    """The pods that the selector of the scale selects, the replicas, the namespace."""

    pods: Sequence[Object]
    replicas: int
    namespace: str
    tolerances: Tolerances
    now: datetime


def asked(metric: Object, at: ScaledPods) -> AskedReplicas:
    """Raises MetricFailure."""
    kind = metric.get("type", "")
    if kind not in _SOURCES:
        text = f'unknown metric source type "{kind}"'
        raise MetricFailure("InvalidMetricSourceType", text, text)
    return _SOURCES[kind](metric, at)


# -- what pods use ----------------------------------------------------------------------------------------------------


def _resource(metric: Object, at: ScaledPods) -> AskedReplicas:
    source = metric["resource"]
    name = source["name"]
    failed = "FailedGetResourceMetric", f"failed to get {name} resource metric value"
    proposal, shown = _of_resource(source, at, "", "resource", failed)
    return AskedReplicas(
        proposal.replicas, shown, {"type": "Resource", "resource": {"name": name, "current": _current(proposal)}}
    )


def _container(metric: Object, at: ScaledPods) -> AskedReplicas:
    source = metric["containerResource"]
    container = source["container"]
    failed = "FailedGetContainerResourceMetric", f"failed to get {container} container metric value"
    proposal, shown = _of_resource(source, at, container, "container resource", failed)
    current = {"name": source["name"], "container": container, "current": _current(proposal)}
    return AskedReplicas(proposal.replicas, shown, {"type": "ContainerResource", "containerResource": current})


def _of_resource(
    source: Object, at: ScaledPods, container: str, what: str, failed: tuple[str, str]
) -> tuple[Proposal, str]:
    """What it asks for, and its name. `failed`: the reason of a failure, and how its text begins. Raises MetricFailure."""
    name, target = source["name"], source["target"]
    sample = Sample(name, at.pods, at.now, container)
    average, percent = target.get("averageValue"), target.get("averageUtilization")
    reason, beginning = failed
    try:
        if average is not None:
            wanted = scaled_value(parse(average), _MILLI)
            return _tried(f"{name} usage", by_value, at, wanted, sample), f"{name} {what}"
        if percent is not None:
            shown = f"{name} {what} utilization (percentage of request)"
            return _tried(f"{name} utilization", by_utilization, at, percent, sample), shown
    except ValueError as error:
        raise MetricFailure(reason, str(error), f"{beginning}: {error}") from None
    raise MetricFailure(reason, _NO_TARGET, f"{beginning}: {_NO_TARGET}")


_NO_TARGET: Final = (
    "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set"
)


def _tried(
    what: str,
    calculate: Callable[[int, int, Sample, Tolerances], Proposal],
    at: ScaledPods,
    target: int,
    sample: Sample,
) -> Proposal:
    try:
        return calculate(at.replicas, target, sample, at.tolerances)
    except ValueError as error:
        raise ValueError(f"failed to get {what}: {error}") from None


def _current(proposal: Proposal) -> Object:
    value: Object = {"averageValue": str(Quantity(proposal.average, -_MILLI))}
    return value if proposal.utilization is None else {"averageUtilization": proposal.utilization, **value}


# -- metrics that no API has ------------------------------------------------------------------------------------------


def _pods(metric: Object, at: ScaledPods) -> AskedReplicas:  # noqa: ARG001 - as the others
    cause = f"unable to get metric {metric['pods']['metric']['name']}: {NO_CUSTOM}"
    raise MetricFailure("FailedGetPodsMetric", cause, f"failed to get pods metric value: {cause}")


def _object(metric: Object, at: ScaledPods) -> AskedReplicas:
    source = metric["object"]
    described, name = source["describedObject"], source["metric"]["name"]
    cause = f"unable to get metric {name}: {described['kind']} on {at.namespace} {described['name']}/{NO_CUSTOM}"
    is_average = source["target"].get("type") == "AverageValue"
    text = f"failed to get {name} object metric: {cause}" if is_average else cause
    raise MetricFailure("FailedGetObjectMetric", cause, f"failed to get object metric value: {text}")


def _external(metric: Object, at: ScaledPods) -> AskedReplicas:
    source = metric["external"]
    name = source["metric"]["name"]
    cause = (
        f"unable to get external metric {at.namespace}/{name}/{_go_selector(source['metric'].get('selector'))}: "
        "unable to fetch metrics from external metrics API: the server could not find the requested resource "
        f"(get {name}.external.metrics.k8s.io)"
    )
    is_average = source["target"].get("averageValue") is not None
    text = f"failed to get {name} external metric" if is_average else f"failed to get external metric {name}"
    raise MetricFailure(
        "FailedGetExternalMetric", cause, f"failed to get {name} external metric value: {text}: {cause}"
    )


def _go_selector(selector: Object | None) -> str:
    """A LabelSelector as Go prints it (its generated String method)."""
    if selector is None:
        return "nil"
    labels = "".join(f"{name}: {value}," for name, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each['key']},Operator:{each['operator']},Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


_SOURCES: Final[Mapping[str, Callable[[Object, ScaledPods], AskedReplicas]]] = {
    "Resource": _resource,
    "ContainerResource": _container,
    "Pods": _pods,
    "Object": _object,
    "External": _external,
}
