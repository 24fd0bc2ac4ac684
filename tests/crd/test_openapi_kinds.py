"""Definitions from OpenAPI documents of other servers: names, scope, versions and schemas."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.crd import openapi_kinds
from noxu.crd.openapi_kinds import definitions
from noxu.values import Object

GROUP = "metrics.k8s.io"
ROOT = f"/apis/{GROUP}/v1beta1"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"


def listing(kind: str, version: str = "v1beta1") -> Object:
    gvk = {"group": GROUP, "version": version, "kind": kind}
    return {"get": {"x-kubernetes-action": "list", "x-kubernetes-group-version-kind": gvk}}


def schema(kind: str, properties: Object, version: str = "v1beta1") -> Object:
    gvk = {"group": GROUP, "version": version, "kind": kind}
    return {"type": "object", "x-kubernetes-group-version-kind": [gvk], "properties": properties}


def refer(name: str) -> Object:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}], "default": {}}


SCHEMAS: Object = {
    "NodeMetrics": schema(
        "NodeMetrics",
        {
            "apiVersion": {"type": "string"},
            "metadata": refer(META + "ObjectMeta"),
            "window": refer(META + "Duration"),
            "usage": {"type": "object", "additionalProperties": refer(QUANTITY)},
        },
    ),
    "PodMetrics": schema("PodMetrics", {"containers": {"type": "array", "items": refer("Container")}}),
    "Container": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "default": ""}}},
    META + "Duration": {"type": "string"},
    QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
}
PATHS: Object = {
    f"{ROOT}/nodes": listing("NodeMetrics"),
    f"{ROOT}/nodes/{{name}}": {"get": {"x-kubernetes-action": "get"}},
    f"{ROOT}/pods": listing("PodMetrics"),
    f"{ROOT}/namespaces/{{namespace}}/pods": listing("PodMetrics"),
    f"{ROOT}/namespaces/{{namespace}}/pods/{{name}}/status": {"get": {"x-kubernetes-action": "get"}},
}
V3: Object = {"openapi": "3.0.0", "paths": PATHS, "components": {"schemas": SCHEMAS}}
NODE_SCHEMA = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "window": {"type": "string"},
        "usage": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}},
    },
}


def test_names_scope_and_schemas() -> None:
    nodes, pods = definitions([V3])
    assert nodes["metadata"]["name"] == f"nodes.{GROUP}"
    assert nodes["status"]["acceptedNames"] == {
        "plural": "nodes", "singular": "nodemetrics", "kind": "NodeMetrics", "listKind": "NodeMetricsList",
    }  # fmt: skip
    assert (nodes["spec"]["scope"], pods["spec"]["scope"]) == ("Cluster", "Namespaced")
    (version,) = nodes["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"] == NODE_SCHEMA
    assert (version["subresources"], pods["spec"]["versions"][0]["subresources"]) == ({}, {"status": {}})


def test_openapi_v2_has_the_same_kinds() -> None:
    def in_v2(node: Any) -> Any:
        if isinstance(node, list):
            return [in_v2(item) for item in node]
        if not isinstance(node, dict):
            return node
        return (
            {"$ref": node["allOf"][0]["$ref"]}
            if "allOf" in node
            else {key: in_v2(value) for key, value in node.items()}
        )

    assert definitions([{"swagger": "2.0", "paths": PATHS, "definitions": in_v2(SCHEMAS)}]) == definitions([V3])


def test_versions_of_one_resource_are_one_definition() -> None:
    newer = f"/apis/{GROUP}/v1"
    other = {
        "paths": {f"{newer}/nodes": listing("NodeMetrics", "v1")},
        "definitions": {"NodeMetrics": schema("NodeMetrics", {}, "v1")},
    }
    (nodes, _) = definitions([V3, other])
    assert [(version["name"], version["storage"]) for version in nodes["spec"]["versions"]] == [
        ("v1beta1", True),
        ("v1", False),
    ]


ANY = {"x-kubernetes-preserve-unknown-fields": True}
SHAPES: list[tuple[str, Object, Object, Object]] = [
    ("nothing is known", {}, {}, ANY),
    ("an object without fields", {"type": "object"}, {}, {"type": "object", **ANY}),
    ("a reference that leads nowhere", refer("Missing"), {}, ANY),
    ("a type that contains itself", refer("Tree"),
     {"Tree": {"type": "object", "properties": {"left": refer("Tree"), "size": {"type": "integer"}}}},
     {"type": "object", "properties": {"left": ANY, "size": {"type": "integer"}}}),
    ("constraints", {"type": "integer", "minimum": 1, "description": "Size.", "x-kubernetes-unions": []}, {},
     {"type": "integer", "minimum": 1, "description": "Size."}),
    ("a property that is named like a keyword", {"type": "object", "properties": {"items": {"type": "string"}}}, {},
     {"type": "object", "properties": {"items": {"type": "string"}}}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "more", "expected"), [row[1:] for row in SHAPES], ids=[row[0] for row in SHAPES])
def test_schemas(given: Object, more: Object, expected: Object) -> None:
    schemas = {"NodeMetrics": schema("NodeMetrics", {"spec": given}), **more}
    (found,) = definitions([{"paths": {f"{ROOT}/nodes": listing("NodeMetrics")}, "definitions": schemas}])
    (version,) = found["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"]["properties"]["spec"] == expected


def test_references_that_multiply_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openapi_kinds, "MAX_NODES", 1000)
    schemas = {"NodeMetrics": schema("NodeMetrics", {"a": refer("T0"), "b": refer("T0")}), "T20": {"type": "string"}}
    schemas |= {
        f"T{n}": {"type": "object", "properties": {"a": refer(f"T{n + 1}"), "b": refer(f"T{n + 1}")}} for n in range(20)
    }
    with pytest.raises(ValueError, match="more than 1000 nodes"):
        definitions([{"paths": {f"{ROOT}/nodes": listing("NodeMetrics")}, "definitions": schemas}])


REFUSED = [
    ("something else", {"kind": "List"}, "not an OpenAPI document"),
    ("a text", "kinds", "not an OpenAPI document"),
    ("a list", [], "not an OpenAPI document"),
    ("components that are a list", {"paths": {}, "components": [1]}, "not an OpenAPI document"),
    ("no lists", {"paths": {"/version": {}}, "definitions": {"A": {}}}, "no path of this document lists"),
    ("no schema", {"paths": {f"{ROOT}/nodes": listing("NodeMetrics")}, "definitions": {"A": {}}}, "has no schema"),
]


@pytest.mark.parametrize(("document", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(document: Object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        definitions([document])
