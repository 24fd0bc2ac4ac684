"""Autoscalers on plain objects: scales, conditions, events and statuses of upstream's horizontal_test.go."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

from noxu.api.errors import ApiError, internal_error
from noxu.api.selectors import parse_labels
from noxu.values import Object
from noxu.workloads.autoscaler.autoscaling import Autoscaler, autoscale, is_urgent
from noxu.workloads.autoscaler.normalization import PERIOD, AutoscalerPast
from noxu.workloads.objects import AUTOSCALERS, DEPLOYMENTS, PODS, Objects
from noxu.workloads.writes import Kind, NamespacedName, Steps, Write, WriteScale
from tests.rows import rows
from tests.workloads.autoscaler.measured_pods import measured_pod
from tests.workloads.plays import Play

CPU: Final = "cpu resource utilization (percentage of request)"
HEALTHY: Final = {
    "AbleToScale": "True SucceededRescale",
    "ScalingActive": "True ValidMetricFound",
    "ScalingLimited": "False DesiredWithinRange",
}


def autoscaler(least: int | None = 2, most: int = 6, target: int = 30, **spec: Any) -> Object:
    cpu = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}},
    }
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    given = {"scaleTargetRef": reference, "maxReplicas": most, "metrics": [cpu], **spec}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": given if least is None else {"minReplicas": least, **given},
    }


def deployment(replicas: int, **spec: Any) -> Object:
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": selector, **spec},
    }


class Scene(Play):
    """An autoscaler, its Deployment, and pods that use so many thousandths of a CPU of 1 CPU."""

    def __init__(
        self, scaler: Object, used: str, replicas: int, refuse: Callable[[Write], ApiError | None] | None = None
    ) -> None:
        super().__init__((AUTOSCALERS, scaler), (DEPLOYMENTS, deployment(replicas)), refuse=refuse)
        self.pasts = {NamespacedName("default", "web"): AutoscalerPast()}
        self.use(used)

    def use(self, used: str) -> None:
        for n, text in enumerate(used.split()):
            self.add(PODS, measured_pod(f"p{n}", int(text)))

    def look(self) -> list[str]:
        """What is done when the autoscaler looks."""
        assert self.run(partial(self._steps), "default/web") == PERIOD
        return self.done()

    def _steps(self, objects: Objects, key: NamespacedName, now: Any) -> Steps:
        found = objects.get(AUTOSCALERS, key)
        assert found is not None
        return autoscale(objects, found, self.pasts, now)

    @property
    def status(self) -> Object:
        found: Object = self.get(AUTOSCALERS, "default/web")["status"]
        return found

    @property
    def conditions(self) -> dict[str, str]:
        return {each["type"]: f"{each['status']} {each['reason']}" for each in self.status["conditions"]}


def resized(to: int, reason: str) -> list[str]:
    return [
        f"scale Deployment web to {to}",
        f"event Normal SuccessfulRescale: New size: {to}; reason: {reason}",
        "update horizontalpodautoscalers/status web",
    ]


SCALED: list[tuple[str, Object, int, str, list[str], dict[str, str]]] = [
    # name, autoscaler, replicas, usage, what is done, conditions
    ("up", autoscaler(), 3, "300 500 700", resized(5, f"{CPU} above target"), HEALTHY),
    ("up, no more than the most", autoscaler(most=4), 3, "300 500 700", resized(4, f"{CPU} above target"),
     HEALTHY | {"ScalingLimited": "True TooManyReplicas"}),
    ("up, no more than the double", autoscaler(most=20, target=10), 3, "900 900 900", resized(6, f"{CPU} above target"),
     HEALTHY | {"ScalingLimited": "True ScaleUpLimit"}),
    ("down is stabilized by the replicas at the start", autoscaler(target=50), 5, "100 300 500 250 250",
     ["update horizontalpodautoscalers/status web"], HEALTHY | {"AbleToScale": "True ScaleDownStabilized"}),
    ("down without a window", autoscaler(target=50, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}}), 5,
     "100 300 500 250 250", resized(3, "All metrics below target"), HEALTHY),
    ("nothing", autoscaler(target=60), 2, "600 600", ["update horizontalpodautoscalers/status web"],
     HEALTHY | {"AbleToScale": "True ReadyForNewScale"}),
    ("more than the most", autoscaler(), 8, "", resized(6, "Current number of replicas above Spec.MaxReplicas"),
     {"AbleToScale": "True SucceededRescale"}),
    ("fewer than the least", autoscaler(), 1, "", resized(2, "Current number of replicas below Spec.MinReplicas"),
     {"AbleToScale": "True SucceededRescale"}),
    ("the least is 1", autoscaler(None, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}}), 2, "1 1",
     resized(1, "All metrics below target"), HEALTHY | {"ScalingLimited": "True TooFewReplicas"}),
    ("disabled at zero", autoscaler(), 0, "", ["update horizontalpodautoscalers/status web"],
     {"AbleToScale": "True SucceededGetScale", "ScalingActive": "False ScalingDisabled"}),
]  # fmt: skip


@rows("scaler, replicas, used, done, conditions", [row[1:] for row in SCALED], ids=[row[0] for row in SCALED])
def test_a_scale(scaler: Object, replicas: int, used: str, done: list[str], conditions: dict[str, str]) -> None:
    scene = Scene(scaler, used, replicas)
    assert scene.look() == done
    assert scene.conditions == conditions
    assert scene.status["currentReplicas"] == replicas
    assert ("lastScaleTime" in scene.status) == (len(done) == 3)


def test_nothing_is_written_if_nothing_changes() -> None:
    scene = Scene(autoscaler(target=60), "600 600", 2)
    scene.look()
    assert scene.status["currentMetrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 60, "averageValue": "600m"}}}
    ]
    assert scene.status["desiredReplicas"] == 2
    for _ in range(3):
        scene.pass_time(PERIOD)
        assert scene.look() == []


def test_down_after_five_minutes() -> None:
    scene = Scene(autoscaler(target=50), "100 300 500 250 250", 5)
    scene.look()
    scene.pass_time(299)
    assert not any(text.startswith("scale") for text in scene.look())
    scene.pass_time(2)
    assert scene.look() == resized(3, "All metrics below target")


def failed(reason: str, cause: str, first: str) -> list[str]:
    return [
        f"event Warning {reason}: {cause}",
        "update horizontalpodautoscalers/status web",
        f"event Warning FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: {first}",
    ]


NO_CUSTOM: Final = (
    "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
)
INGRESS: Final = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}
QUEUE: Final = (
    "unable to get external metric default/queue/&LabelSelector{MatchLabels:map[string]string{a: b,},"
    "MatchExpressions:[]LabelSelectorRequirement{},}: unable to fetch metrics from external metrics API: "
    "the server could not find the requested resource (get queue.external.metrics.k8s.io)"
)
MISSING: Final = "failed to get cpu utilization: missing request for cpu in container c of Pod p"
FAILED: list[tuple[str, Object, str, str, str]] = [
    ("pods", {"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "1"}}},
     "FailedGetPodsMetric", f"unable to get metric qps: {NO_CUSTOM}",
     f"failed to get pods metric value: unable to get metric qps: {NO_CUSTOM}"),
    ("object", {"type": "Object", "object": {"metric": {"name": "qps"}, "describedObject": INGRESS,
                                            "target": {"type": "Value", "value": "1"}}},
     "FailedGetObjectMetric", f"unable to get metric qps: Ingress on default main/{NO_CUSTOM}",
     f"failed to get object metric value: unable to get metric qps: Ingress on default main/{NO_CUSTOM}"),
    ("external", {"type": "External", "external": {"metric": {"name": "queue", "selector": {"matchLabels": {"a": "b"}}},
                                                  "target": {"type": "Value", "value": "1"}}},
     "FailedGetExternalMetric", QUEUE,
     f"failed to get queue external metric value: failed to get external metric queue: {QUEUE}"),
    ("no request", {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 30}}},
     "FailedGetResourceMetric", MISSING, f"failed to get cpu resource metric value: {MISSING}"),
    ("no container", {"type": "ContainerResource",
                      "containerResource": {"name": "cpu", "container": "x", "target": {"averageValue": "1"}}},
     "FailedGetContainerResourceMetric",
     "failed to get cpu usage: unable to get metrics for resource cpu: container x not present in metrics for pod default/p",
     "failed to get x container metric value: failed to get cpu usage: unable to get metrics for resource cpu: "
     "container x not present in metrics for pod default/p"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "reason", "cause", "first"), [row[1:] for row in FAILED], ids=[row[0] for row in FAILED]
)
def test_a_metric_that_fails(metric: Object, reason: str, cause: str, first: str) -> None:
    scene = Scene(autoscaler(metrics=[metric]), "", 3)
    scene.add(PODS, measured_pod("p", 100, ""))
    assert scene.look() == failed(reason, cause, first)
    active = next(each for each in scene.status["conditions"] if each["type"] == "ScalingActive")
    assert (active["reason"], active["message"]) == (
        reason,
        f"the HPA was unable to compute the replica count: {cause}",
    )
    assert scene.status["currentMetrics"] == [{"type": ""}]


def test_a_metric_that_fails_does_not_hinder_others_unless_they_are_lower() -> None:
    metrics = [autoscaler()["spec"]["metrics"][0], FAILED[0][1]]
    scene = Scene(autoscaler(metrics=metrics), "300 500 700", 3)
    assert "scale Deployment web to 5" in scene.look()
    scene = Scene(autoscaler(metrics=metrics), "100 100 100", 3)
    assert "invalid metrics (1 invalid out of 2)" in scene.look()[-1]


def test_the_highest_metric_counts() -> None:
    average = {
        "type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": "c", "target": {"averageValue": "100m"}},
    }
    scene = Scene(autoscaler(most=20, metrics=[autoscaler()["spec"]["metrics"][0], average]), "300 500 700", 3)
    assert scene.look() == resized(6, "cpu container resource above target")


def test_a_target_that_no_int64_holds_is_a_valid_one() -> None:
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageValue": "1e40"}}}
    scene = Scene(autoscaler(metrics=[metric]), "300 500 700", 3)
    scene.look()
    assert scene.conditions["ScalingActive"] == "True ValidMetricFound"


def test_two_autoscalers_of_the_same_pods() -> None:
    scene = Scene(autoscaler(), "300 500 700", 3)
    other = scene.pasts[NamespacedName("default", "other")] = AutoscalerPast(selector=parse_labels("app in (web,db)"))
    scene.pasts[NamespacedName("elsewhere", "x")] = AutoscalerPast(selector=parse_labels("app=web"))
    said = "pods by selector app=web are controlled by multiple HPAs: [default/other default/web]"
    assert scene.look() == [
        f"event Warning AmbiguousSelector: {said}",
        "update horizontalpodautoscalers/status web",
        f"event Warning FailedComputeMetricsReplicas: {said}",
    ]
    assert scene.conditions["ScalingActive"] == "False AmbiguousSelector"
    other.selector = parse_labels("app=db")
    assert scene.look() == resized(5, f"{CPU} above target")


def test_what_is_scaled_is_absent() -> None:
    scene = Scene(autoscaler(scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}), "", 3)
    text = 'deployments.apps "x" not found'
    assert scene.look() == [f"event Warning FailedGetScale: {text}", "update horizontalpodautoscalers/status web"]
    assert scene.conditions == {"AbleToScale": "False FailedGetScale"}


def test_a_scale_that_is_refused() -> None:
    scene = Scene(
        autoscaler(), "300 500 700", 3, lambda write: internal_error("no") if isinstance(write, WriteScale) else None
    )
    said = f"New size: 5; reason: {CPU} above target; error: Internal error occurred: no"
    assert scene.look()[1:] == [f"event Warning FailedRescale: {said}", "update horizontalpodautoscalers/status web"]
    assert scene.conditions["AbleToScale"] == "False FailedUpdateScale"


def test_a_scale_without_a_selector() -> None:
    scene = Scene(autoscaler(), "", 3)
    scene.add(DEPLOYMENTS, deployment(3, selector=None))
    assert scene.look() == [
        "event Warning SelectorRequired: selector is required",
        "update horizontalpodautoscalers/status web",
        "event Warning FailedComputeMetricsReplicas: selector is required",
    ]
    assert scene.conditions["ScalingActive"] == "False InvalidSelector"


def made() -> Autoscaler:
    """A controller without a server."""
    controller = Autoscaler.__new__(Autoscaler)
    controller._past, controller._urgent = {}, set()
    return controller


WEB: Final = [NamespacedName("default", "web")]
READY, UNREADY, BUSY = measured_pod("p", 1), measured_pod("p", 1, ready=False), measured_pod("p", 2)


@rows(
    "kind, before, after, expected, urgent",
    [
        (AUTOSCALERS, None, autoscaler(), WEB, True),
        (AUTOSCALERS, autoscaler(3), autoscaler(), WEB, True),
        (AUTOSCALERS, autoscaler(), {**autoscaler(), "status": {}}, [], True),
        (AUTOSCALERS, autoscaler(), None, WEB, True),
        (PODS, READY, BUSY, WEB, True),
        (PODS, READY, {**READY, "status": {**READY["status"], "podIP": "10.0.0.1"}}, [], False),
        (PODS, UNREADY, READY, WEB, False),
        (PODS, None, BUSY, WEB, False),
        (DEPLOYMENTS, deployment(1), deployment(2), WEB, False),
        (DEPLOYMENTS, deployment(1), deployment(1, paused=True), [], False),
    ],
)
def test_what_an_autoscaler_looks_at(
    kind: Kind, before: Object | None, after: Object | None, expected: list[NamespacedName], urgent: bool
) -> None:
    objects = Objects([(AUTOSCALERS, autoscaler())])
    assert list(made().affected(objects, kind, before, after)) == expected
    assert is_urgent(kind, before, after) == urgent


def test_an_autoscaler_looks_more_rarely_while_nothing_changes() -> None:
    scene, controller = Scene(autoscaler(target=60), "600 600", 2), made()

    def look() -> float:
        again = scene.run(controller.steps, "default/web")
        assert again is not None
        return again

    assert [look() for _ in range(2)] == [PERIOD, PERIOD]  # the second time it does not look
    scene.done()
    total, looks = 0.0, 0
    while total < 24 * 3600:
        scene.pass_time(again := look())
        total, looks = total + again, looks + 1
    assert (looks < 60, scene.done()) == (True, [])
    scene.use("100 100")
    scene.pass_time(60)
    assert (look(), scene.done()) == (PERIOD, ["update horizontalpodautoscalers/status web"])
    assert scene.conditions["AbleToScale"] == "True ScaleDownStabilized"  # by what was recommended until now
    scene.pass_time(301)
    look()
    assert scene.conditions["AbleToScale"] == "True ReadyForNewScale"


def test_who_changes_what_pods_use_does_not_wait() -> None:
    scene, controller = Scene(autoscaler(), "300 300 300", 3), made()
    scene.run(controller.steps, "default/web")
    scene.use("300 500 700")
    scene.done()
    assert scene.run(controller.steps, "default/web") == PERIOD
    assert scene.done() == []
    controller._urgent.add(NamespacedName("default", "web"))
    scene.run(controller.steps, "default/web")
    assert scene.done() == resized(5, f"{CPU} above target")
