"""HorizontalPodAutoscalers: validation, and the conversion between v1 and v2."""

from __future__ import annotations

import json

import pytest

from noxu.kinds.autoscalers import to_v1, to_v2
from noxu.kinds.kind import written
from noxu.values import Object
from tests.kinds.typed_objects import errors, filled, kind_of, typed
from tests.rows import rows

V1, V2 = (kind_of(f"autoscaling/{version}", "HorizontalPodAutoscaler") for version in ("v1", "v2"))
PREFIX = "autoscaling.alpha.kubernetes.io"
TARGET = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}


def hpa(**spec: object) -> Object:
    return {"spec": {"maxReplicas": 3, "scaleTargetRef": TARGET, **spec}}


def cpu(**target: object) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


CPU = cpu(type="Utilization", averageUtilization=70)
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}
QUEUE = {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "5"}}}
METRIC = "spec.metrics[0]"

CASES: list[tuple[str, Object, list[str]]] = [
    ("the least", hpa(), []),
    (
        "nothing",
        {"spec": {}},
        [
            "spec.maxReplicas: Required value: must be set and greater than 0",
            "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
            "spec.scaleTargetRef.kind: Required value",
            "spec.scaleTargetRef.name: Required value",
        ],
    ),
    (
        "a minimum above the maximum",
        hpa(minReplicas=4),
        ["spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"],
    ),
    (
        "scaling to zero",
        hpa(minReplicas=0, metrics=[QUEUE]),
        ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"],
    ),
    ("metrics", hpa(metrics=[CPU, MEMORY, QUEUE]), []),
    (
        "a metric without source",
        hpa(metrics=[{"type": "Pods"}]),
        [f"{METRIC}.pods: Required value: must populate information for the given metric source"],
    ),
    (
        "a metric with another source",
        hpa(metrics=[{**CPU, "type": "Pods"}]),
        [f"{METRIC}.pods: Required value: must populate information for the given metric source"],
    ),
    (
        "a metric with two sources",
        hpa(metrics=[{**QUEUE, **CPU}]),
        [f"{METRIC}.external: Forbidden: must populate the given metric source only"],
    ),
    (
        "a target without value",
        hpa(metrics=[cpu(type="Utilization")]),
        [
            f"{METRIC}.resource.target.averageUtilization: Required value: "
            "must set either a target raw value or a target utilization"
        ],
    ),
    (
        "a target of nothing",
        hpa(metrics=[cpu(type="X", averageUtilization=0)]),
        [
            f'{METRIC}.resource.target.type: Invalid value: "X": must be either Utilization, Value, or AverageValue',
            f"{METRIC}.resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
        ],
    ),
    (
        "hasty behaviour",
        hpa(behavior={"scaleUp": {"stabilizationWindowSeconds": 3601, "policies": [{"type": "X"}]}}),
        [
            "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
            'spec.behavior.scaleUp.policies[0].type: Unsupported value: "X": supported values: "Percent", "Pods"',
            "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
            "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 0: must be greater than zero",
        ],
    ),
]


@rows(("new", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_autoscalers_are_validated(new: Object, expected: list[str]) -> None:
    assert errors(V2, new) == expected


def test_v1_is_validated_as_v2() -> None:
    assert errors(V1, hpa(targetCPUUtilizationPercentage=0)) == [
        f"{METRIC}.resource.target.averageUtilization: Invalid value: 0: must be greater than 0"
    ]


def test_zero_replicas_may_remain() -> None:
    old = hpa(minReplicas=0, metrics=[QUEUE])
    assert errors(V2, old, old) == []


def test_the_status_has_no_negative_replicas() -> None:
    assert errors(V2, {"status": {"desiredReplicas": -1}}, {}, "status") == [
        "status.desiredReplicas: Invalid value: -1: must be greater than or equal to 0"
    ]


def test_an_autoscaler_without_metrics_has_one_of_cpu() -> None:
    assert filled(V2, hpa())["spec"]["metrics"] == [cpu(type="Utilization", averageUtilization=80)]
    assert filled(V1, hpa())["spec"]["targetCPUUtilizationPercentage"] == 80
    memory = json.dumps([{"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}}])
    annotated = {"metadata": {"name": "x", "annotations": {f"{PREFIX}/metrics": memory}}, **hpa()}
    assert "targetCPUUtilizationPercentage" not in filled(V1, annotated)["spec"]


OBJECT = {
    "type": "Object",
    "object": {
        "describedObject": {"kind": "Ingress", "name": "i"},
        "metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}},
        "target": {"type": "Value", "value": "1"},
    },
}
PODS = {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "2"}}}
CONTAINER = {
    "type": "ContainerResource",
    "containerResource": {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 5}},
}
BEHAVIOR = {"scaleDown": {"selectPolicy": "Min", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 10}]}}
CURRENT = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "1", "averageUtilization": 3}}}
CONDITION = {"type": "ScalingActive", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"}
WHOLE = {
    "metadata": {"name": "x", "annotations": {"a": "b"}},
    **hpa(metrics=[MEMORY, QUEUE, OBJECT, PODS, CONTAINER, CPU], behavior=BEHAVIOR),
    "status": {"desiredReplicas": 2, "currentMetrics": [CURRENT], "conditions": [CONDITION]},
}


def test_what_v1_lacks_is_in_annotations() -> None:
    shown = to_v1(typed(V2, WHOLE))
    annotations = shown["metadata"]["annotations"]
    assert list(annotations) == [
        "a",
        *(f"{PREFIX}/{name}" for name in ("behavior", "conditions", "current-metrics", "metrics")),
    ]
    assert shown["spec"] == {**hpa()["spec"], "minReplicas": 1, "targetCPUUtilizationPercentage": 70}
    assert shown["status"] == {"currentReplicas": 0, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 3}
    assert annotations[f"{PREFIX}/metrics"].startswith(
        '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}},'
        '{"type":"External","external":{"metricName":"q","targetValue":"5"}},'
    )
    assert '"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Min"' in annotations[f"{PREFIX}/behavior"]


def test_conversion_to_v1_and_back_loses_nothing() -> None:
    value = typed(V2, WHOLE)
    assert written(V2, to_v2(to_v1(value))) == written(V2, value)


BROKEN = ["{", "7", '[{"type": "Resource", "resource": {"name": 5}}]', '[{"type": "Pods", "pods": 3}]', "null"]


@pytest.mark.parametrize("text", BROKEN)
@pytest.mark.parametrize("name", ["metrics", "current-metrics", "behavior", "conditions"])
def test_annotations_that_cannot_be_read_are_ignored(name: str, text: str) -> None:
    value = typed(V1, {"metadata": {"name": "x", "annotations": {f"{PREFIX}/{name}": text}}, **hpa()})
    converted = to_v2(value)
    assert converted["spec"]["maxReplicas"] == 3
    assert "annotations" not in converted["metadata"]
