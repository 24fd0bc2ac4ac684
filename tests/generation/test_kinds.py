"""Objects of the kinds that CRDs define, as the stages of a create accept or refuse them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from noxu.commands.findings import WriteRules
from noxu.commands.in_memory import validate
from noxu.commands.results import Shard
from noxu.generation.broken import broken_object
from noxu.generation.kinds import UnknownDefinition, errors_of, resource_of, valid_object
from noxu.generation.valid import CannotGenerate
from noxu.manifests.documents import Document
from noxu.values import Object
from tests.rows import rows

SPEC: Object = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "colour": {"type": "string", "enum": ["red", "green"]},
        "image": {"type": "string", "pattern": "^[a-z]+:v[0-9]$"},
        "names": {"type": "array", "maxItems": 3, "items": {"type": "string", "minLength": 2, "maxLength": 5}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "x-kubernetes-validations": [{"rule": "self.size < 5 || has(self.colour)", "message": "large ones need a colour"}],
}


def crd(spec: Object = SPEC, **root: Any) -> Document:
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}, **root}
    return Document(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}},
                    {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}},
                ],
            },
        },
        "crd.yaml",
    )  # fmt: skip


async def test_the_server_accepts_what_is_valid_and_names_what_is_broken() -> None:
    resource = resource_of([crd()], "widgets.example.com")
    broken = [broken_object(resource, Random(seed).randrange) for seed in range(30)]
    values = [valid_object(resource, Random(seed).randrange) for seed in range(20)]
    documents = [
        Document(value, "objects.yaml", n) for n, value in enumerate([*values, *(each.value for each in broken)])
    ]
    for n, document in enumerate(documents):
        document.value["metadata"] |= {"name": f"widget-{n}", "namespace": "default"}
    outcomes = await validate(Shard([crd(), *documents]), WriteRules(strict=True))
    errors = {document.number: outcome.error for document, outcome in outcomes if document.kind == "Widget"}
    assert [errors[n] for n in range(20)] == [None] * 20
    for n, each in enumerate(broken, 20):
        causes: list[Any] = errors[n].status["details"]["causes"]
        assert each.field in [cause["field"] for cause in causes]
    assert len({each.field for each in broken}) > 4


@rows(
    "name, document, reference, kept",
    [
        ("status is a subresource", crd(), "widgets.example.com", {"spec"}),
        ("status is no subresource", crd(required=["status"]), "widgets.example.com/v2", {"spec", "status"}),
        ("a rule about the name", crd(SPEC, **{"x-kubernetes-validations": [{"rule": "self.metadata.name == 'only-me'"}]}),
         "widgets.example.com", {"spec"}),
    ],
)  # fmt: skip
def test_the_fields_of_an_object(name: str, document: Document, reference: str, kept: set[str]) -> None:
    resource = resource_of([document], reference)
    value = valid_object(resource, Random(1).randrange)
    assert value.keys() == {"apiVersion", "kind", "metadata", *kept}
    assert errors_of(value, resource) == []


@rows(
    "reference, why",
    [
        ("gears.example.com", "no CRD is named gears.example.com; there are: widgets.example.com"),
        ("widgets.example.com/v3", "widgets.example.com has no version v3; there are: v1, v2"),
    ],
)
def test_an_unknown_kind_is_said(reference: str, why: str) -> None:
    with pytest.raises(UnknownDefinition, match=why):
        resource_of([crd()], reference)


def test_a_version_without_a_schema_is_said() -> None:
    document = crd()
    del document.value["spec"]["versions"][0]["schema"]
    with pytest.raises(CannotGenerate, match="version v1 has no schema"):
        resource_of([document], "widgets.example.com")


def test_hopeless_rules_are_said() -> None:
    resource = resource_of([crd(SPEC, **{"x-kubernetes-validations": [{"rule": "false"}]})], "widgets.example.com")
    with pytest.raises(CannotGenerate, match="no object is found that is accepted; the last one"):
        valid_object(resource, Random(0).randrange)


def test_a_kind_without_anything_to_break_gets_a_wrong_name() -> None:
    resource = resource_of([crd({"x-kubernetes-preserve-unknown-fields": True})], "widgets.example.com")
    assert broken_object(resource, Random(0).randrange).field == "metadata.name"
