"""A deterministic server gives the same objects twice, byte for byte."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from noxu import Noxu
from noxu.values import Object
from tests.definitions import version, widgets

CRD = widgets(version({"type": "object", "x-kubernetes-preserve-unknown-fields": True}))


def widget(**metadata: str) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"namespace": "shop", **metadata}}


def run(seed: int) -> list[Any]:
    with Noxu(deterministic=seed) as server:
        server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        server.create(CRD)
        for _ in range(3):
            server.create(widget(generateName="w-"))
        service = {"type": "NodePort", "selector": {"a": "b"}, "ports": [{"port": 80}]}
        metadata = {"name": "web", "namespace": "shop"}
        server.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service})
        named = server.create(widget(name="named"))
        server.delete(named)
        kinds = ("namespaces", "widgets", "services", "serviceaccounts", "configmaps", "customresourcedefinitions", "endpointslices",
                 "priorityclasses", "flowschemas", "apiservices", "clusterroles", "events", "leases")  # fmt: skip
        listed = [server.list(kind) for kind in kinds]
        port = urlsplit(server.url).port  # which is in the Service of the API itself
        return json.loads(json.dumps(listed).replace(f": {port}", ": 0"))


def times(objects: list[Object]) -> list[str]:
    return sorted(value["metadata"]["creationTimestamp"] for value in objects)


def test_two_runs_with_one_seed_are_equal() -> None:
    assert json.dumps(run(7)) == json.dumps(run(7))


def test_another_seed_gives_other_identifiers() -> None:
    one, other = run(7)[1], run(8)[1]
    assert {value["metadata"]["uid"] for value in one}.isdisjoint(value["metadata"]["uid"] for value in other)
    assert times(one) == times(other)


def test_later_objects_are_younger() -> None:
    widgets = sorted(run(7)[1], key=lambda value: int(value["metadata"]["resourceVersion"]))
    created = [value["metadata"]["creationTimestamp"] for value in widgets]
    assert created == sorted(set(created))
    assert created[0].startswith("2024-01-01T00:")


def test_data_that_exists_has_a_time_of_its_own(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="deterministic"):
        Noxu(deterministic=7, data=tmp_path)
