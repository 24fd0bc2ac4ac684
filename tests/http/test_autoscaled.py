"""Autoscalers in a server: what is scaled by built-in kinds and custom resources, and how little is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from noxu.testing.handle import Noxu
from noxu.values import Object

MANIFESTS: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: farms.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: farms, singular: farm, kind: Farm}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .status.selector}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.com/v1
kind: Farm
metadata: {name: big}
spec: {size: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: cow, labels: {farm: big}, annotations: {noxu.dev/memory: 300Mi}}
spec: {nodeName: node-1, containers: [{name: c, image: cow, resources: {requests: {memory: 100Mi}}}]}
"""


def autoscaler(kind: str, api_version: str, name: str) -> Object:
    target = {"type": "Utilization", "averageUtilization": 100}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": name},
            "maxReplicas": 9,
            "metrics": [{"type": "Resource", "resource": {"name": "memory", "target": target}}],
        },
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    with Noxu(tmp_path_factory.mktemp("server"), [MANIFESTS], nodes=1) as server:
        server.clock.freeze()
        server.wait("pods", "cow", "Ready")
        server.status("farms", "big", {"size": 1, "selector": "farm=big"})
        yield server


def test_a_custom_resource_is_scaled_and_then_nothing_is_written(server: Noxu) -> None:
    server.apply(autoscaler("Farm", "example.com/v1", "big"))
    server.wait("farms", "big", "self.spec.size == 3")
    server.wait("horizontalpodautoscalers", "big", "self.status.desiredReplicas == 3")
    server.clock.advance("15s")
    server.idle()
    before = server.get("horizontalpodautoscalers", "big")
    server.clock.advance("45s")
    server.idle()
    assert server.get("horizontalpodautoscalers", "big") == before
    events = [each for each in server.list("events") if each["source"]["component"] == "horizontal-pod-autoscaler"]
    said = "New size: 3; reason: memory resource utilization (percentage of request) above target"
    assert [(each["reason"], each["message"], each["count"]) for each in events] == [("SuccessfulRescale", said, 1)]


@pytest.mark.parametrize(
    ("kind", "api_version", "message"),
    [
        ("Deployment", "apps/v1", 'deployments.apps "none" not found'),
        ("Barn", "example.com/v1", 'no matches for kind "Barn" in group "example.com"'),
        ("ConfigMap", "v1", "the server could not find the requested resource"),
        ("Farm", "a/b/c", "unexpected GroupVersion string: a/b/c"),
    ],
)
def test_what_cannot_be_scaled(server: Noxu, kind: str, api_version: str, message: str) -> None:
    value = autoscaler(kind, api_version, "none")
    value["metadata"]["name"] = kind.lower()
    server.apply(value)
    found = server.wait("horizontalpodautoscalers", kind.lower(), "AbleToScale=False")
    [condition] = found["status"]["conditions"]
    expected = f"the HPA controller was unable to get the target's current scale: {message}"
    assert (condition["reason"], condition["message"]) == ("FailedGetScale", expected)
