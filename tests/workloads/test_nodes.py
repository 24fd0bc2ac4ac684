"""Simulated nodes register, those of the server and those of persons."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from noxu.config import KUBERNETES_VERSION
from noxu.testing.handle import Noxu
from noxu.values import Object
from noxu.workloads.nodes import healthy_conditions, node, node_status, pod_network
from noxu.workloads.pods import SIMULATE
from tests.rows import rows
from tests.workloads.plays import NOW


@pytest.fixture(scope="module")
def noxu() -> Iterator[Noxu]:
    with Noxu(nodes=1) as started:
        yield started


def of_a_person(name: str, *, simulate: bool = True, **fields: Object) -> Object:
    annotations = {SIMULATE: "ready"} if simulate else {}
    metadata = {"name": name, "annotations": annotations, "labels": {"zone": "a", "kubernetes.io/arch": "arm64"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, **fields}


@rows("number, network", [(1, "10.244.0.0/24"), (256, "10.244.255.0/24"), (257, "10.245.0.0/24")])
def test_each_node_has_a_network_for_its_pods(number: int, network: str) -> None:
    assert str(pod_network(number)) == network
    assert node(f"node-{number}", number)["spec"]["podCIDR"] == network


def test_a_healthy_node_keeps_the_conditions_of_others_and_the_times_of_its_own() -> None:
    before = node_status("node-1", 1, NOW)["conditions"]
    other = {"type": "GpuHealthy", "status": "True"}
    assert healthy_conditions(NOW.replace(hour=1), [*before, other])[-1] == other
    assert {each["lastTransitionTime"] for each in healthy_conditions(NOW.replace(hour=1), before)} == {
        "2026-01-01T00:00:00Z"
    }


def test_a_kubelet_is_of_the_release_of_its_server() -> None:
    versions = [node_status("node-1", 1, NOW, release)["nodeInfo"]["kubeletVersion"] for release in (29, 37)]
    assert versions == ["v1.29.0", "v1.37.0"]


def test_a_node_of_a_person_gets_a_kubelet_and_runs_pods(noxu: Noxu) -> None:
    capacity = {"cpu": "4", "memory": "8Gi", "example.com/gpu": "2"}
    noxu.create(of_a_person("gpu", status={"capacity": capacity}))
    noxu.create(of_a_person("plain"))
    noxu.idle()
    gpu, plain = (noxu.get("nodes", name) for name in ("gpu", "plain"))
    assert gpu["status"]["capacity"] == gpu["status"]["allocatable"]
    assert gpu["status"]["capacity"] == {"ephemeral-storage": "256Gi", "pods": "110", **capacity}
    assert gpu["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"
    assert gpu["metadata"]["labels"]["kubernetes.io/hostname"] == "gpu"
    assert (gpu["spec"]["podCIDR"], plain["spec"]["podCIDR"]) == ("10.244.1.0/24", "10.244.2.0/24")
    assert plain["status"]["capacity"]["cpu"] == "32"
    for each in (gpu, noxu.get("nodes", "node-1")):  # the server writes empty texts into a new one, which say nothing
        assert each["status"]["nodeInfo"]["kubeletVersion"] == f"v{KUBERNETES_VERSION}"
        assert each["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    spec: Object = {"nodeSelector": {"kubernetes.io/hostname": "gpu"}, "containers": [{"name": "c", "image": "x"}]}
    noxu.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec})
    noxu.wait("pods", "a", "Ready")
    assert noxu.get("pods", "a")["status"]["podIP"] == "10.244.1.2"


def test_a_node_without_the_annotation_is_left_alone(noxu: Noxu) -> None:
    noxu.create(of_a_person("alone", simulate=False))
    noxu.idle()
    assert not noxu.get("nodes", "alone").get("status", {}).get("conditions")


def test_a_node_that_a_person_deletes_stays_away(noxu: Noxu) -> None:
    noxu.delete("nodes", "node-1")
    noxu.idle()
    assert "node-1" not in [each["metadata"]["name"] for each in noxu.list("nodes")]
