"""Kinds and objects to measure: one defined here, and some of other projects if `shared/crds` exists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from conformance import corpus
from noxu.api import codec
from noxu.values import Object

GROUP = "bench.example.com"
NAME: Object = {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
CONDITION: Object = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        "type": {"type": "string", "maxLength": 316},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "message": {"type": "string", "maxLength": 32768},
    },
}
PORT: Object = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": NAME,
        "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
        "target": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    },
}
TEMPLATE: Object = {
    "type": "object",
    "properties": {
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "image": {"type": "string", "minLength": 1},
        "args": {"type": "array", "items": {"type": "string"}},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": PORT,
        },
    },
}
SCHEMA: Object = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["template"],
            "properties": {
                "replicas": {"type": "integer", "format": "int32", "minimum": 0, "default": 1},
                "template": TEMPLATE,
                "strategy": {"type": "string", "enum": ["Recreate", "RollingUpdate"]},
                "ttl": {"type": "string", "format": "duration"},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": CONDITION,
                }
            },
        },
    },
}
DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"benches.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "benches", "kind": "Bench"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}},
            }
        ],
    },
}
LARGE = ("cephclusters.ceph.rook.io", "kafkas.kafka.strimzi.io", "workflowtemplates.argoproj.io")
"""Definitions with schemas of 0.3, 0.3 and 2.7 MB, and objects of a little more than 2 KB."""


def sample(name: str = "sample") -> Object:
    """A valid object of about 2 KB."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Bench",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {f"label-{n}": f"value-{n}" for n in range(5)},
        },
        "spec": {
            "replicas": 3,
            "strategy": "RollingUpdate",
            "ttl": "1h30m",
            "template": {
                "image": "registry.example.com/team/app:v1.2.3",
                "labels": {f"app.example.com/label-{n}": f"value-{n}" for n in range(8)},
                "args": [f"--flag-{n}=value" for n in range(10)],
                "ports": [{"name": f"port-{n}", "port": 8000 + n, "target": f"named-{n}"} for n in range(6)],
            },
        },
        "status": {
            "conditions": [
                {
                    "type": f"Condition{n}",
                    "status": "True",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "observedGeneration": 4,
                    "message": "everything is as it should be",
                }
                for n in range(5)
            ]
        },
    }


class Case(NamedTuple):
    """A schema and the JSON of a valid object."""

    name: str
    schema: Object
    body: bytes


def cases() -> Iterator[Case]:
    """The kind defined here, and those of LARGE with the largest of their samples if `shared/crds` exists."""
    yield Case("built-in", SCHEMA, codec.encode(sample(), sort_keys=False))
    if not corpus.FOLDER.exists():
        return
    for definition in corpus.definitions():
        if definition.name not in LARGE:
            continue
        candidates = [
            _case(definition, sample.value(namespaced=definition.namespaced)) for sample in definition.samples
        ]
        yield max(candidates, key=lambda case: len(case.body))


def _case(definition: corpus.Definition, value: Object) -> Case:
    version = value["apiVersion"].rpartition("/")[2]
    schema = next(
        entry["schema"]["openAPIV3Schema"] for entry in definition.spec["versions"] if entry["name"] == version
    )
    return Case(definition.name, schema, codec.encode(value, sort_keys=False))
