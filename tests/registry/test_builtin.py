"""The strategies of built-in kinds and definitions, and who finalizes their deletion."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from noxu.api import field
from noxu.kinds.kind import Rules, Unevaluable
from noxu.registry import builtin, definitions
from noxu.registry.builtin import BuiltInCodec, built_in_versions, definitions_resource, resource_of
from noxu.registry.draft import Options
from noxu.registry.resource import Resource, ResourceType, Versions
from noxu.registry.strategies import STRATEGIES, finalization_of
from noxu.values import Object, copy
from tests.drafts import NOW, draft_of
from tests.registry.world import widgets

RESOURCES: Final = {versions.collection: versions.storage for versions in built_in_versions()}
CONFIG_MAPS, NAMESPACES = RESOURCES["/configmaps"], RESOURCES["/namespaces"]
STORED: Final[Object] = {
    "name": "a",
    "namespace": "default",
    "uid": "u",
    "resourceVersion": "7",
    "creationTimestamp": NOW,
}


def config_map(metadata: Object | None = None, **fields: Any) -> Object:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {**STORED, **(metadata or {})}, **fields}


ERRORS: Final[dict[str, tuple[Object, Object | None, list[str]]]] = {
    "valid": (config_map(data={"a": "b"}), None, []),
    "metadata before the kind's own rules": (
        config_map({"name": "A"}, data={"/": "b"}),
        None,
        ["metadata.name", "data[/]"],
    ),
    "an update": (config_map(data={"a": "c"}), config_map(data={"a": "b"}), []),
    "a changed uid": (config_map({"uid": "v"}), config_map(), ["metadata.uid"]),
    "an immutable ConfigMap": (
        config_map(immutable=True, data={"a": "c"}),
        config_map(immutable=True, data={"a": "b"}),
        ["data"],
    ),
}


@pytest.mark.parametrize(("new", "old", "expected"), ERRORS.values(), ids=ERRORS)
def test_errors_of_a_built_in_object(new: Object, old: Object | None, expected: list[str]) -> None:
    draft = draft_of(CONFIG_MAPS, copy(new), old)
    builtin.validate(draft)
    assert [error.field for error in draft.outcome.errors] == expected


def test_a_review_needs_no_metadata() -> None:
    """It is not stored."""
    [resource] = [
        found.storage for found in built_in_versions() if found.collection == "authentication.k8s.io/selfsubjectreviews"
    ]
    draft = draft_of(resource, {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}})
    builtin.validate(draft)
    assert draft.outcome.errors == []


@pytest.mark.parametrize(
    ("mode", "errors", "warnings"),
    [("Strict", ["data"], []), ("Warn", [], ["data: Invalid value: 1: not yet"])],
)
def test_what_the_server_cannot_evaluate_is_an_error_only_for_a_strict_client(
    mode: Any, errors: list[str], warnings: list[str]
) -> None:
    assert CONFIG_MAPS.table is not None
    unevaluable = Unevaluable(*field.invalid("data", 1, "not\n  yet"))
    kind = replace(CONFIG_MAPS.table, load_rules=lambda: Rules(validate=lambda *_: [unevaluable]))
    resource = resource_of(kind, BuiltInCodec(kind))
    Versions([resource], resource)
    draft = draft_of(resource, config_map(), options=Options(field_validation=mode))
    builtin.validate(draft)
    assert [error.field for error in draft.outcome.errors] == errors
    assert draft.outcome.warnings == warnings


def namespace(finalizers: list[str]) -> Object:
    return {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {"finalizers": finalizers}}


@pytest.mark.parametrize(("finalizers", "held"), [(["kubernetes"], True), ([], False)])
def test_the_first_deletion_of_a_namespace_only_marks_it(finalizers: list[str], held: bool) -> None:
    value = namespace(finalizers)
    finalization = finalization_of(NAMESPACES)
    assert finalization is not None
    assert finalization.held(value) is held
    assert finalization.begin_delete(value, NOW, ["foregroundDeletion"])
    assert value["metadata"] == {"name": "a", "deletionTimestamp": NOW, "finalizers": ["foregroundDeletion"]}
    assert value["status"] == {"phase": "Terminating"}


@pytest.mark.parametrize(("finalizers", "held"), [(["kubernetes"], True), ([], False)])
def test_a_second_deletion_changes_nothing_while_the_namespace_has_finalizers(
    finalizers: list[str], held: bool
) -> None:
    value = namespace(finalizers)
    value["metadata"]["deletionTimestamp"] = "earlier"
    before = copy(value)
    assert builtin.begin_delete_namespace(value, NOW, ["foregroundDeletion"]) is held
    assert value == before


FINALIZED: Final[dict[str, tuple[Resource, bool]]] = {
    "namespaces": (NAMESPACES, True),
    "definitions": (definitions_resource().storage, True),
    "ConfigMaps": (CONFIG_MAPS, False),
    "custom resources": (widgets().storage, False),
}


@pytest.mark.parametrize(("resource", "finalized"), FINALIZED.values(), ids=FINALIZED)
def test_who_finalizes_a_deletion(resource: Resource, finalized: bool) -> None:
    assert (finalization_of(resource) is not None) is finalized


def test_every_type_of_resource_has_a_strategy() -> None:
    assert set(STRATEGIES) == set(ResourceType)


def crd(**status: Any) -> Object:
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "gadgets.example.com", "uid": "u", "resourceVersion": "7", "generation": 2},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": names,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            "conversion": {"strategy": "None"},
        },
        "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"], **status},
    }


@pytest.mark.parametrize(
    ("subresource", "changed", "generation", "stored_versions"),
    [("", "spec", 3, ["v1"]), ("status", "spec", 2, ["v1", "v0"]), ("", "status", 2, ["v1"])],
)
def test_an_update_of_a_definition_changes_the_part_of_its_endpoint(
    subresource: str, changed: str, generation: int, stored_versions: list[str]
) -> None:
    new = crd(storedVersions=["v1", "v0"])
    if changed == "spec":
        new["spec"]["names"]["shortNames"] = ["g"]
    draft = draft_of(definitions_resource().storage, new, crd(), subresource=subresource)
    definitions.prepare(draft)
    assert draft.new["metadata"]["generation"] == generation
    assert draft.new["status"]["storedVersions"] == stored_versions
    assert ("shortNames" in draft.new["spec"]["names"]) is (changed == "spec" and not subresource)


def test_a_valid_definition_has_no_errors() -> None:
    draft = draft_of(definitions_resource().storage, crd(), options=Options())
    definitions.prepare(draft)
    definitions.validate(draft)
    assert draft.outcome.errors == []


def test_errors_of_a_definition() -> None:
    value = crd()
    value["metadata"]["name"] = "other.example.com"
    draft = draft_of(definitions_resource().storage, value)
    definitions.validate(draft)
    assert [error.field for error in draft.outcome.errors] == ["metadata.name"]
