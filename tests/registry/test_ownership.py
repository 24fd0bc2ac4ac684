"""Ownership of the resources that are served: subresources, versions, schemas that change, built-in kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apiserver.testing.handle import Noxu
from conformance.client import Client

GROUP = "owned.example.com"
URL = f"/apis/{GROUP}/v1/widgets/w"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
INTEGER = {"type": "integer"}
STATUS = {"type": "object", "properties": {"ready": INTEGER}}


def definition(**spec: Any) -> dict[str, Any]:
    """Widgets whose spec has these properties."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}, "status": STATUS}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version | {"subresources": {"status": {}}}],
        },
    }


@pytest.fixture
def client(noxu: Noxu) -> Iterator[Client]:
    noxu.apply(definition(a=INTEGER, b=INTEGER))
    with Client(noxu.url) as client:
        yield client


def apply(client: Client, manager: str, config: dict[str, Any], url: str = URL) -> Any:
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"}} | config
    answer = client.send("PATCH", f"{url}?fieldManager={manager}", body, APPLY)
    assert answer.code in (200, 201), answer.body
    return answer.body


def patch(client: Client, manager: str, change: dict[str, Any], url: str = URL) -> Any:
    answer = client.send("PATCH", f"{url}?fieldManager={manager}", change, MERGE)
    assert answer.code == 200, answer.body
    return answer.body


def owners(value: Any) -> dict[str, Any]:
    entries = value["metadata"].get("managedFields", [])
    return {f"{entry['operation']} {entry['manager']}".lower(): entry["fieldsV1"] for entry in entries}


# -- /status


def test_a_status_that_goes_takes_its_owners_along(client: Client) -> None:
    apply(client, "spec", {"spec": {}})
    patch(client, "all", {"metadata": {"managedFields": [{}]}})
    assert owners(apply(client, "one", {"status": {"ready": 1}}, f"{URL}/status"))
    left = patch(client, "two", {"status": None}, f"{URL}/status")
    assert "status" not in left
    assert "managedFields" not in left["metadata"]
