"""Group versions of other API servers: refused with a message, but not those that are served here."""

from __future__ import annotations

from typing import Any, Final

import pytest

from conformance.client import Client
from tests.http.conftest import widgets
from tests.timing import eventually

SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def remote(client: Client, group: str, version: str) -> None:
    value: dict[str, Any] = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"namespace": "kube-system", "name": "metrics-server"},
        },
    }
    assert client.send("POST", SERVICES, value).code == 201


@pytest.mark.parametrize("path", ["", "/nodes", "/namespaces/default/pods/a", "/pods?watch=1"])
def test_requests_to_another_server_are_refused(client: Client, path: str) -> None:
    path = f"/apis/metrics.k8s.io/v1beta1{path}"
    assert client.send("GET", path).code == 404
    remote(client, "metrics.k8s.io", "v1beta1")
    answer = client.send("GET", path)
    assert answer.code == 503
    assert answer.body["reason"] == "ServiceUnavailable"
    assert answer.body["message"] == "the server is currently unable to handle the request"
    [cause] = answer.body["details"]["causes"]
    assert "v1beta1.metrics.k8s.io" in cause["message"]
    assert "noxu serve --kinds" in cause["message"]
    client.send("DELETE", f"{SERVICES}/v1beta1.metrics.k8s.io")
    assert client.send("GET", path).code == 404


def test_kinds_that_are_served_here_are_not_refused(client: Client) -> None:
    assert client.send("POST", DEFINITIONS, widgets("example.com", {})).code == 201
    eventually(lambda: client.send("GET", f"{SERVICES}/v1.example.com").code == 200)
    client.send("DELETE", f"{SERVICES}/v1.example.com")
    assert client.send("GET", "/apis/example.com/v1/widgets").code == 200


def test_a_namespace_goes_although_another_server_cannot_be_asked(client: Client) -> None:
    remote(client, "metrics.k8s.io", "v1beta1")
    client.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    client.send("DELETE", "/api/v1/namespaces/n")
    eventually(lambda: client.send("GET", "/api/v1/namespaces/n").code == 404)


def test_groups_are_discovered_in_the_order_of_their_priorities(client: Client) -> None:
    client.send("POST", DEFINITIONS, widgets("b.example.com", {}))
    client.send("POST", DEFINITIONS, widgets("a.example.com", {}))
    groups = [group["name"] for group in client.send("GET", "/apis").body["groups"]]
    assert groups == [
        "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling",
        "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
        "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io",
        "discovery.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io", "storagemigration.k8s.io", "a.example.com",
        "b.example.com",
    ]  # fmt: skip
