"""NamespaceLifecycle, over HTTP: creation needs a namespace that exists and is not terminating."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.client import Answer, Client
from noxu.testing.handle import Noxu

NAMESPACES = "/api/v1/namespaces"


@pytest.fixture
def client(noxu: Noxu) -> Iterator[Client]:
    with Client(noxu.url) as client:
        yield client


def config_map(name: str = "c", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def create(client: Client, namespace: str, value: dict[str, Any] | None = None) -> Answer:
    return client.send("POST", f"{NAMESPACES}/{namespace}/configmaps", value or config_map())


def test_an_existing_namespace(client: Client) -> None:
    assert create(client, "default").code == 201


def test_a_missing_namespace(client: Client) -> None:
    answer = create(client, "missing")
    assert (answer.code, answer.body["message"]) == (404, 'namespaces "missing" not found')
    assert answer.body["details"] == {"name": "missing", "kind": "namespaces"}


def terminating(client: Client, name: str) -> None:
    """A namespace that cannot go, because something in it has a finalizer."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert client.send("POST", NAMESPACES, namespace).code == 201
    assert create(client, name, config_map("held", finalizers=["example.com/a"])).code == 201
    assert client.send("DELETE", f"{NAMESPACES}/{name}").code == 200


def test_a_terminating_namespace(client: Client) -> None:
    terminating(client, "going")
    answer = create(client, "going")
    why = "unable to create new content in namespace going because it is being terminated"
    assert (answer.code, answer.body["message"]) == (403, f'configmaps "c" is forbidden: {why}')
    assert answer.body["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace going is being terminated",
            "field": "metadata.namespace",
        }
    ]


def test_objects_in_a_terminating_namespace_can_be_changed(client: Client) -> None:
    terminating(client, "going")
    held = f"{NAMESPACES}/going/configmaps/held"
    patch = {"metadata": {"labels": {"a": "b"}}}
    assert client.send("PATCH", held, patch, "application/merge-patch+json").code == 200


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_are_never_deleted(client: Client, name: str) -> None:
    answer = client.send("DELETE", f"{NAMESPACES}/{name}")
    assert answer.code == 403
    assert answer.body["message"] == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


def test_namespaces_and_cluster_scoped_objects_need_none(client: Client) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
    assert client.send("POST", NAMESPACES, namespace).code == 201
