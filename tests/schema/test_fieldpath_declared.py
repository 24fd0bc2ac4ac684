"""Messages name the schema node of a place, and the declared field that an unknown one was meant to be."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.schema import fieldpath
from noxu.schema.structural import parse
from tests.rows import rows

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "image": {"type": "string"},
                "imagePullPolicy": {"type": "string"},
                "ports": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"containerPort": {"type": "integer"}}},
                },
                "byName": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "properties": {"weight": {"type": "integer"}}},
                },
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "strategy": {"type": "object", "properties": {"maxSurge": {"type": "integer"}}},
            },
        }
    },
}
ROOT = parse(SCHEMA)

WHERE = [
    ("", ""),
    ("spec.replicas", "properties.spec.properties.replicas"),
    ("spec.ports.0.containerPort", "properties.spec.properties.ports.items.properties.containerPort"),
    ("spec.byName.x.weight", "properties.spec.properties.byName.additionalProperties.properties.weight"),
    ("spec.nothing", None),
    ("spec.ports.x", None),
    ("spec.replicas.deeper", None),
]


@pytest.mark.parametrize(("place", "expected"), WHERE)
def test_where_a_place_is_declared(place: str, expected: str | None) -> None:
    found = fieldpath.declaration_at(ROOT, place.split(".") if place else [])
    assert (found and found.where) == expected


MEANT = [
    ("a letter missing", "spec.replcas", "replicas"),
    ("letters swapped", "spec.iamge", "image"),
    ("another case", "spec.imagepullpolicy", "imagePullPolicy"),
    ("in an item", "spec.ports.3.conatinerPort", "containerPort"),
    ("in a map", "spec.byName.x.weigth", "weight"),
    ("of the resource itself", "metdata", "metadata"),
    ("of metadata", "metadata.lables", "labels"),
    ("of an embedded resource", "spec.template.metdata", "metadata"),
    ("nothing like it", "spec.zzz", ""),
    ("where nothing is declared", "spec.replicas.x", ""),
    ("at a place that nothing describes", "spec.nothing.x", ""),
]


@rows(("place", "expected"), [row[1:] for row in MEANT], ids=[row[0] for row in MEANT])
def test_the_field_that_was_meant(place: str, expected: str) -> None:
    assert fieldpath.nearest_declared(ROOT, place.split(".")) == expected


ELSEWHERE = [
    ("one level too deep", "spec.strategy.replicas", "spec.replicas"),
    ("one level too high", "spec.maxSurge", "spec.strategy.maxSurge"),
    ("outside the spec", "replicas", "spec.replicas"),
    ("nowhere near", "containerPort", ""),
    ("nowhere", "spec.zzz", ""),
]


@pytest.mark.parametrize(("place", "expected"), [row[1:] for row in ELSEWHERE], ids=[row[0] for row in ELSEWHERE])
def test_the_place_that_was_meant(place: str, expected: str) -> None:
    assert fieldpath.declared_elsewhere(ROOT, place.split(".")) == expected
