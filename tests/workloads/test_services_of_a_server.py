"""Services, budgets and nodes of a server: what a user sees of their controllers. One server for all of it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from noxu.testing.client import ApiWarning
from noxu.testing.handle import Noxu
from noxu.values import Object

SETS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "sets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "sets", "kind": "Set"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
                },
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def noxu() -> Iterator[Noxu]:
    with Noxu(nodes=3, manifests=[SETS]) as started:
        started.clock.freeze()
        yield started


def pod(name: str, app: str, node: str, owner: Object | None = None) -> Object:
    metadata: Object = {"name": name, "labels": {"app": app}}
    if owner is not None:
        reference = {key: owner["metadata"][key] for key in ("name", "uid")}
        kinds = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
        metadata["ownerReferences"] = [{**kinds, **reference, "controller": True}]
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "nginx"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def evict(noxu: Noxu, name: str) -> int:
    """The code of the answer."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    url = f"{noxu.url}/api/v1/namespaces/default/pods/{name}/eviction"
    request = urllib.request.Request(url, json.dumps(eviction).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_service_has_the_addresses_of_its_pods(noxu: Noxu) -> None:
    spec = {"selector": {"app": "a"}, "ports": [{"port": 80, "targetPort": 8080}]}
    noxu.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec})
    pods = [noxu.create(pod(f"a-{n}", "a", f"node-{n}")) for n in (1, 2)]
    noxu.wait(pods, "Ready")
    noxu.idle()
    addresses = sorted(each["status"]["podIP"] for each in noxu.list("pods", labels={"app": "a"}))
    [found] = noxu.list("endpointslices", labels={"kubernetes.io/service-name": "a"})
    assert sorted(address for each in found["endpoints"] for address in each["addresses"]) == addresses
    with pytest.warns(ApiWarning, match="deprecated"):
        [subset] = noxu.get("endpoints", "a")["subsets"]
    assert [each["ip"] for each in subset["addresses"]] == addresses
    noxu.delete("services", "a")
    noxu.idle()
    assert noxu.list("endpointslices", labels={"kubernetes.io/service-name": "a"}) == []


def test_a_budget_refuses_the_second_eviction(noxu: Noxu) -> None:
    owner = noxu.create(
        {"apiVersion": "example.com/v1", "kind": "Set", "metadata": {"name": "b"}, "spec": {"replicas": 3}}
    )
    pods = [noxu.create(pod(f"b-{n}", "b", f"node-{n}", owner)) for n in (1, 2, 3)]
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    noxu.create({**budget, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "b"}}}})
    noxu.wait(pods, "Ready")
    noxu.wait("poddisruptionbudgets", "b", "self.status.disruptionsAllowed == 1")
    assert noxu.get("poddisruptionbudgets", "b")["status"]["expectedPods"] == 3, "the scale of the custom resource"
    assert [evict(noxu, "b-1"), evict(noxu, "b-2")] == [201, 429]


def test_pods_of_a_lost_node_are_evicted(noxu: Noxu) -> None:
    noxu.wait(noxu.create(pod("c-3", "c", "node-3")), "Ready")
    noxu.nodes.lose("node-3")
    noxu.idle()
    noxu.clock.advance("51s")
    assert noxu.wait("nodes", "node-3", "Ready=Unknown")
    assert noxu.wait("pods", "c-3", "Ready=False")
    noxu.clock.advance("5m")
    assert noxu.wait("pods", "c-3", "DisruptionTarget")["metadata"]["deletionTimestamp"]
    noxu.nodes.restore("node-3")
    noxu.wait("pods", "c-3", "delete")
    noxu.wait("nodes", "node-3", "Ready")


def test_pods_of_a_node_that_is_gone_are_deleted(noxu: Noxu) -> None:
    noxu.wait(noxu.create(pod("d-2", "d", "node-2")), "Ready")
    noxu.delete("nodes", "node-2")
    noxu.idle()
    noxu.clock.advance("41s")
    noxu.wait("pods", "d-2", "delete")
