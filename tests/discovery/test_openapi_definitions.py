"""Definitions of built-in kinds. The expected ones are those that upstream's openapi-gen generates from the Go types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from noxu.discovery import openapi_definitions as definitions
from noxu.discovery import openapi_kind_texts as kind_texts
from noxu.discovery import openapi_texts as texts
from noxu.discovery.openapi_definitions import META, definition, in_v2, in_v3, name_of, reached
from noxu.kinds import meta, scheme
from tests.rows import rows

Schema = dict[str, Any]

CORE = "io.k8s.api.core.v1."
ADMISSION = "io.k8s.api.admissionregistration.v1."
APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
V3 = "#/components/schemas/"

EVERY_KIND = sorted(
    name_of(struct)
    for kind in scheme.served()
    for struct in ([kind.struct, meta.list_of(kind.struct)] if kind.stored else [kind.struct])
)
CUSTOM_RESOURCES_NEED = [META + name for name in ("ObjectMeta", "ListMeta", "DeleteOptions", "Status", "Patch")]


def bare(value: Any) -> Any:
    """Without descriptions."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if k != "description" or not isinstance(v, str)}
    return [bare(item) for item in value] if isinstance(value, list) else value


def nodes(schema: Schema) -> Iterator[Schema]:
    yield schema
    for child in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(child, dict):
            yield from nodes(child)


def properties(name: str) -> Schema:
    found: Schema = definition(name)[0]["properties"]
    return found


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "prefix"),
    [
        ("", "io.k8s.api.core.v1."),
        ("coordination.k8s.io", "io.k8s.api.coordination.v1."),
        ("admissionregistration.k8s.io", ADMISSION),
        ("autoscaling", "io.k8s.api.autoscaling.v1."),
        ("rbac.authorization.k8s.io", "io.k8s.api.rbac.v1."),
        ("apiextensions.k8s.io", APIEXTENSIONS),
    ],
)
def test_a_name_begins_with_the_go_package(group: str, prefix: str) -> None:
    assert definitions.prefix_of(group, "v1") == prefix


def test_structs_belong_to_the_package_that_declares_them() -> None:
    every = set(reached(EVERY_KIND))
    assert {CORE + "Event", "io.k8s.api.events.v1.Event", "io.k8s.api.events.v1.EventSeries"} <= every
    assert CORE + "ObjectReference" in every
    assert "io.k8s.api.events.v1.ObjectReference" not in every, "events borrow it from the core group"
    assert META + "LabelSelector" in every
    assert ADMISSION + "LabelSelector" not in every


def test_each_served_kind_has_a_definition_with_its_group_version_kind() -> None:
    for kind in scheme.served():
        found = definition(name_of(kind.struct))[0]
        assert {"group": kind.group, "kind": kind.kind, "version": kind.version} in found[
            "x-kubernetes-group-version-kind"
        ]
    found = definition(APIEXTENSIONS + "CustomResourceDefinitionList")[0]
    assert [kind["kind"] for kind in found["x-kubernetes-group-version-kind"]] == ["CustomResourceDefinitionList"]


def test_delete_options_are_a_kind_of_every_group_version() -> None:
    kinds_of_options = definition(META + "DeleteOptions")[0]["x-kubernetes-group-version-kind"]
    assert len(kinds_of_options) == 54
    assert kinds_of_options == sorted(kinds_of_options, key=lambda kind: (kind["group"], kind["version"]))
    assert kinds_of_options[0] == {"group": "", "kind": "DeleteOptions", "version": "v1"}
    assert definition(META + "Status")[0]["x-kubernetes-group-version-kind"] == [
        {"group": "", "kind": "Status", "version": "v1"}
    ]


# -- schemas ----------------------------------------------------------------------------------------------------------


def test_a_whole_kind() -> None:
    found = bare(definition(CORE + "Namespace")[0])
    assert found == {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": definitions.REF + META + "ObjectMeta", "default": {}},
            "spec": {"$ref": definitions.REF + CORE + "NamespaceSpec", "default": {}},
            "status": {"$ref": definitions.REF + CORE + "NamespaceStatus", "default": {}},
        },
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "Namespace", "version": "v1"}],
    }
    assert list(found["properties"]) == sorted(found["properties"])


@rows(
    ("field", "expected"),
    [
        ("ConfigMap.data", {"type": "object", "additionalProperties": {"type": "string"}}),
        ("ConfigMap.binaryData", {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}),
        ("ConfigMap.immutable", {"type": "boolean"}),
        ("Event.count", {"type": "integer", "format": "int32"}),
        ("Event.eventTime", {"$ref": definitions.REF + META + "MicroTime"}),
        ("Event.lastTimestamp", {"$ref": definitions.REF + META + "Time"}),
        ("Event.reportingComponent", {"type": "string", "default": ""}),
        ("NamespaceCondition.lastTransitionTime", {"$ref": definitions.REF + META + "Time"}),
        (
            "NamespaceSpec.finalizers",
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
        ),
        ("LocalObjectReference.name", {"type": "string", "default": ""}),
        (
            "ServiceAccount.secrets",
            {
                "type": "array",
                "items": {"$ref": definitions.REF + CORE + "ObjectReference"},
                "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-list-type": "map",
                "x-kubernetes-patch-merge-key": "name",
                "x-kubernetes-patch-strategy": "merge",
            },
        ),
    ],
)
def test_a_field_of_the_core_group(field: str, expected: Schema) -> None:
    kind, _, name = field.partition(".")
    assert bare(properties(CORE + kind)[name]) == expected


@rows(
    ("field", "expected"),
    [
        (META + "ObjectMeta.generation", {"type": "integer", "format": "int64"}),
        (META + "ObjectMeta.creationTimestamp", {"$ref": definitions.REF + META + "Time"}),
        (
            META + "ObjectMeta.finalizers",
            {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "set",
                "x-kubernetes-patch-strategy": "merge",
            },
        ),
        (META + "ManagedFieldsEntry.fieldsV1", {"$ref": definitions.REF + META + "FieldsV1"}),
        (
            "io.k8s.api.authorization.v1.SubjectAccessReviewSpec.extra",
            {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        ),
        (APIEXTENSIONS + "JSONSchemaProps.default", {"$ref": definitions.REF + APIEXTENSIONS + "JSON"}),
        (APIEXTENSIONS + "JSONSchemaProps.not", {"$ref": definitions.REF + APIEXTENSIONS + "JSONSchemaProps"}),
        (APIEXTENSIONS + "JSONSchemaProps.items", {"$ref": definitions.REF + APIEXTENSIONS + "JSONSchemaPropsOrArray"}),
        (APIEXTENSIONS + "JSONSchemaProps.maximum", {"type": "number", "format": "double"}),
        (APIEXTENSIONS + "CustomResourceDefinitionVersion.served", {"type": "boolean", "default": False}),
        ("io.k8s.api.autoscaling.v1.ScaleSpec.replicas", {"type": "integer", "format": "int32", "default": 0}),
    ],
)
def test_a_field(field: str, expected: Schema) -> None:
    kind, _, name = field.rpartition(".")
    assert bare(properties(kind)[name]) == expected


@rows(
    ("name", "required"),
    [
        (META + "OwnerReference", ["apiVersion", "kind", "name", "uid"]),
        (META + "ObjectMeta", None),
        (META + "Condition", ["type", "status", "lastTransitionTime", "reason", "message"]),
        (CORE + "NamespaceList", ["items"]),
        (CORE + "NamespaceCondition", ["type", "status"]),
        (CORE + "Event", ["metadata", "involvedObject"]),
        ("io.k8s.api.events.v1.Event", ["eventTime"]),
        ("io.k8s.api.authorization.v1.SubjectAccessReview", ["spec"]),
        (ADMISSION + "ValidatingWebhook", ["name", "clientConfig", "sideEffects", "admissionReviewVersions"]),
        (APIEXTENSIONS + "CustomResourceDefinition", ["spec"]),
        (APIEXTENSIONS + "CustomResourceDefinitionSpec", ["group", "names", "scope", "versions"]),
        (APIEXTENSIONS + "CustomResourceDefinitionVersion", ["name", "served", "storage"]),
        (APIEXTENSIONS + "CustomResourceDefinitionStatus", None),
    ],
)
def test_required_fields(name: str, required: list[str] | None) -> None:
    assert definition(name)[0].get("required") == required


def test_some_structs_have_one_owner_as_a_whole() -> None:
    for name in (META + "OwnerReference", META + "LabelSelector", CORE + "ObjectReference", ADMISSION + "ParamKind"):
        assert definition(name)[0]["x-kubernetes-map-type"] == "atomic"
    assert "x-kubernetes-map-type" not in definition(META + "ObjectMeta")[0]


# -- references -------------------------------------------------------------------------------------------------------


def test_definitions_of_meta_that_custom_resources_need() -> None:
    assert [name.removeprefix(META) for name in reached(CUSTOM_RESOURCES_NEED)] == [
        "DeleteOptions", "FieldsV1", "ListMeta", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference", "Patch",
        "Preconditions", "ShardInfo", "Status", "StatusCause", "StatusDetails", "Time",
    ]  # fmt: skip


def test_every_reference_leads_somewhere_and_is_reached() -> None:
    every = set(reached([*EVERY_KIND, *CUSTOM_RESOURCES_NEED, APIEXTENSIONS + "CustomResourceDefinitionList"]))
    for name in every:
        for node in nodes(in_v2(name)):
            target = node.get("$ref", "").removeprefix(definitions.REF)
            assert not target or target in every


def test_v2_has_no_defaults_and_references_of_v3_have_no_siblings() -> None:
    for name in reached([*EVERY_KIND, APIEXTENSIONS + "CustomResourceDefinition"]):
        assert not any("default" in node for node in nodes(in_v2(name)))
        for node in nodes(in_v3(name, V3)):
            assert "$ref" not in node or node == {"$ref": node["$ref"]}
            for reference in node.get("allOf", ()):
                assert reference["$ref"].startswith(V3)


def test_v3_wraps_a_described_reference_and_keeps_the_default_outside() -> None:
    found = in_v3(CORE + "Namespace", V3)["properties"]["spec"]
    assert bare(found) == {"default": {}, "allOf": [{"$ref": V3 + CORE + "NamespaceSpec"}]}
    assert in_v3(CORE + "NamespaceList", V3)["properties"]["items"]["items"] == {"$ref": V3 + CORE + "Namespace"}


def test_a_number_or_a_text_is_reported_in_the_words_of_each_version() -> None:
    name = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
    assert bare(in_v2(name)) == {"type": "string", "format": "int-or-string"}
    assert bare(in_v3(name, V3)) == {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}


ENUMS = [
    ("a field", CORE + "PodSpec", "restartPolicy", {"type": "string", "enum": ["Always", "Never", "OnFailure"]}),
    (
        "a field with a default",
        CORE + "ContainerPort",
        "protocol",
        {"type": "string", "enum": ["SCTP", "TCP", "UDP"], "default": "TCP"},
    ),
    (
        "a list, one of whose values is empty",
        CORE + "ServiceSpec",
        "ipFamilies",
        {
            "type": "array",
            "items": {"type": "string", "enum": ["", "IPv4", "IPv6"]},
            "x-kubernetes-list-type": "atomic",
        },
    ),
    (
        "a field of a type from another package",
        "io.k8s.api.networking.v1.NetworkPolicyPort",
        "protocol",
        {"type": "string", "enum": ["SCTP", "TCP", "UDP"]},
    ),
    (
        "a definition's rule",
        APIEXTENSIONS + "ValidationRule",
        "reason",
        {
            "type": "string",
            "enum": ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"],
        },
    ),
    (
        "no field with known values that may have others",
        CORE + "PodCondition",
        "type",
        {"type": "string", "default": ""},
    ),
    ("no field of metadata", META + "ManagedFieldsEntry", "operation", {"type": "string"}),
]


@pytest.mark.parametrize(("name", "field", "expected"), [row[1:] for row in ENUMS], ids=[row[0] for row in ENUMS])
def test_the_values_of_an_enum_are_those_of(name: str, field: str, expected: Schema) -> None:
    assert bare(properties(name)[field]) == expected


UNIONS = [
    (
        CORE + "SeccompProfile",
        {"discriminator": "type", "fields-to-discriminateBy": {"localhostProfile": "LocalhostProfile"}},
    ),
    (
        "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec",
        {"discriminator": "type", "fields-to-discriminateBy": {"exempt": "Exempt", "limited": "Limited"}},
    ),
    (CORE + "PodSchedulingGroup", {"fields-to-discriminateBy": {"podGroupName": "PodGroupName"}}),
]


@pytest.mark.parametrize(("name", "union"), UNIONS, ids=[row[0].rpartition(".")[2] for row in UNIONS])
def test_a_union_says_what_its_fields_depend_on(name: str, union: Schema) -> None:
    assert definition(name)[0]["x-kubernetes-unions"] == [union]
    assert in_v2(name)["x-kubernetes-unions"] == in_v3(name, V3)["x-kubernetes-unions"] == [union]


def test_most_types_are_no_unions() -> None:
    assert "x-kubernetes-unions" not in definition(CORE + "EnvVarSource")[0]


# -- texts ------------------------------------------------------------------------------------------------------------


def test_everything_that_comes_with_a_custom_resource_is_described() -> None:
    for name in reached([*CUSTOM_RESOURCES_NEED, "io.k8s.api.autoscaling.v1.Scale"]):
        found = definition(name)[0]
        assert found["description"], name
        for field, schema in found.get("properties", {}).items():
            assert schema.get("description"), f"{name}.{field}"


def test_every_served_kind_is_described() -> None:
    for name in EVERY_KIND:
        assert definition(name)[0]["description"], name


def test_every_description_belongs_to_an_existing_field() -> None:
    other = ["autoscaling.v1.Scale", "authentication.v1.TokenRequest"]
    leaves = ["util.intstr.IntOrString", "runtime.RawExtension", "apis.meta.v1.WatchEvent"]
    roots = [*EVERY_KIND, *CUSTOM_RESOURCES_NEED, APIEXTENSIONS + "CustomResourceDefinition"]
    roots += [f"io.k8s.api.{name}" for name in other] + [f"io.k8s.apimachinery.pkg.{name}" for name in leaves]
    known: dict[str, set[str]] = {"Info": set()}
    for name in reached(roots):
        known.setdefault(name.rpartition(".")[2], set()).update(definition(name)[0].get("properties", {}))
    assert texts.KINDS.keys() | kind_texts.TYPES.keys() <= known.keys()
    for kind, fields in (*texts.FIELDS.items(), *kind_texts.FIELDS.items()):
        assert fields.keys() <= known[kind], kind
    assert not texts.KINDS.keys() & kind_texts.TYPES.keys()
    assert not texts.FIELDS.keys() & kind_texts.FIELDS.keys()


DESCRIBED = [
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Job",
    "CronJob",
    "Ingress",
    "NetworkPolicy",
    "Node",
]
DESCRIBED += ["Service", "PersistentVolumeClaim", "PodDisruptionBudget", "ResourceQuota", "HorizontalPodAutoscaler"]


@rows("kind", DESCRIBED)
def test_the_spec_and_status_of_common_kinds_are_described(kind: str) -> None:
    names = {name for name in EVERY_KIND if name.endswith(f".{kind}")}
    assert names
    parts = [
        properties(name)[part]["$ref"].removeprefix(definitions.REF)
        for name in names
        for part in ("spec", "status")
        if part in properties(name)
    ]
    undescribed = {field for part in parts for field, schema in properties(part).items() if "description" not in schema}
    assert undescribed <= RARE, kind


RARE = {
    "config",
    "configSource",
    "daemonEndpoints",
    "declaredFeatures",
    "externalID",
    "features",
    "loadBalancer",
    "phase",
}
RARE |= {"podPreemptionPolicy", "runtimeHandlers", "scheduling", "conditions", "allocatedResourceStatuses"}
RARE |= {"allocatedResources", "currentVolumeAttributesClassName", "modifyVolumeStatus", "healthStatus"}


def test_the_fields_that_conditions_have_in_common_are_described() -> None:
    described = properties("io.k8s.api.apps.v1.DeploymentCondition")
    assert all(schema.get("description") for schema in described.values())
    assert (
        definition(META + "Condition")[0]["properties"]["reason"]["description"] == described["reason"]["description"]
    )
    assert "description" not in properties(ADMISSION + "MatchCondition")["name"], "which is no condition of this sort"
