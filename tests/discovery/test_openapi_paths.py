"""Published paths and operations of resources. The expected ones are those of the reference server."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from noxu.discovery import openapi_paths as paths
from noxu.discovery.openapi_paths import camel_case
from noxu.kinds import scheme
from noxu.registry import builtin
from noxu.registry.builtin import definitions_resource
from noxu.registry.custom import CODEC
from noxu.registry.resource import CUSTOM, Resource

JsonObject = dict[str, Any]

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
V3 = "#/components/schemas/"
V2 = "#/definitions/"
ROOT = "/apis/example.com/v1"
WIDGETS = f"{ROOT}/namespaces/{{namespace}}/widgets"
LISTING = [
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "shardSelector", "timeoutSeconds", "watch",
]  # fmt: skip
WRITING = ["dryRun", "fieldManager", "fieldValidation"]
DELETING = [
    "dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents",
    "propagationPolicy",
]  # fmt: skip


def custom(**more: Any) -> Resource:
    given: dict[str, Any] = {
        "group": "example.com",
        "version": "v1",
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
    }
    given |= {"type": CUSTOM, "list_kind": "WidgetList", "namespaced": True, "codec": CODEC}
    return Resource(**(given | more))


def built_in(api_version: str, kind: str) -> Resource:
    found = scheme.by_group_kind()[api_version, kind]
    return builtin.resource_of(found, builtin.BuiltInCodec(found))


def operations(items: dict[str, JsonObject]) -> dict[tuple[str, str], JsonObject]:
    """By path and method."""
    return {
        (path, method): operation
        for path, item in items.items()
        for method, operation in item.items()
        if method != "parameters"
    }


def names(parameters: list[JsonObject]) -> list[str]:
    return [parameter["name"] for parameter in parameters]


# -- paths and names --------------------------------------------------------------------------------------------------


def test_the_paths_of_a_namespaced_resource() -> None:
    found = operations(paths.v3(custom(subresources=frozenset({"status", "scale"}))))
    assert {key: operation["operationId"] for key, operation in found.items()} == {
        (f"{ROOT}/widgets", "get"): "listExampleComV1WidgetForAllNamespaces",
        (WIDGETS, "get"): "listExampleComV1NamespacedWidget",
        (WIDGETS, "post"): "createExampleComV1NamespacedWidget",
        (WIDGETS, "delete"): "deleteExampleComV1CollectionNamespacedWidget",
        (f"{WIDGETS}/{{name}}", "get"): "readExampleComV1NamespacedWidget",
        (f"{WIDGETS}/{{name}}", "put"): "replaceExampleComV1NamespacedWidget",
        (f"{WIDGETS}/{{name}}", "delete"): "deleteExampleComV1NamespacedWidget",
        (f"{WIDGETS}/{{name}}", "patch"): "patchExampleComV1NamespacedWidget",
        (f"{WIDGETS}/{{name}}/status", "get"): "readExampleComV1NamespacedWidgetStatus",
        (f"{WIDGETS}/{{name}}/status", "put"): "replaceExampleComV1NamespacedWidgetStatus",
        (f"{WIDGETS}/{{name}}/status", "patch"): "patchExampleComV1NamespacedWidgetStatus",
        (f"{WIDGETS}/{{name}}/scale", "get"): "readExampleComV1NamespacedWidgetScale",
        (f"{WIDGETS}/{{name}}/scale", "put"): "replaceExampleComV1NamespacedWidgetScale",
        (f"{WIDGETS}/{{name}}/scale", "patch"): "patchExampleComV1NamespacedWidgetScale",
    }


def test_the_paths_of_a_cluster_scoped_resource() -> None:
    found = operations(paths.v3(custom(namespaced=False)))
    assert {key: operation["operationId"] for key, operation in found.items()} == {
        (f"{ROOT}/widgets", "get"): "listExampleComV1Widget",
        (f"{ROOT}/widgets", "post"): "createExampleComV1Widget",
        (f"{ROOT}/widgets", "delete"): "deleteExampleComV1CollectionWidget",
        (f"{ROOT}/widgets/{{name}}", "get"): "readExampleComV1Widget",
        (f"{ROOT}/widgets/{{name}}", "put"): "replaceExampleComV1Widget",
        (f"{ROOT}/widgets/{{name}}", "delete"): "deleteExampleComV1Widget",
        (f"{ROOT}/widgets/{{name}}", "patch"): "patchExampleComV1Widget",
    }


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("example.com", "exampleCom", "ExampleCom"),
        ("d2.example-x.com", "d2ExampleXCom", "D2ExampleXCom"),
        ("4you.io", "YouIo", "YouIo"),
        ("a.4you", "a4you", "A4you"),
        ("v1beta1", "v1beta1", "V1beta1"),
        ("snake_case", "snake_case", "Snake_case"),
        ("", "", ""),
    ],
)
def test_camel_case(text: str, lower: str, upper: str) -> None:
    assert camel_case(text, upper=False) == lower
    assert camel_case(text, upper=True) == upper


@pytest.mark.parametrize(
    ("resource", "tag", "operation_id"),
    [
        (custom(), "exampleCom_v1", "listExampleComV1WidgetForAllNamespaces"),
        (custom(group="x.k8s.io", version="v2"), "x_v2", "listXV2WidgetForAllNamespaces"),
        (custom(kind="My-Widget"), "exampleCom_v1", "listExampleComV1MyWidgetForAllNamespaces"),
        (built_in("v1", "ConfigMap"), "core_v1", "listCoreV1ConfigMapForAllNamespaces"),
        (built_in("coordination.k8s.io/v1", "Lease"), "coordination_v1", "listCoordinationV1LeaseForAllNamespaces"),
    ],
)
def test_tags_and_operation_ids(resource: Resource, tag: str, operation_id: str) -> None:
    first = next(iter(operations(paths.v3(resource)).values()))
    assert (first["tags"], first["operationId"]) == ([tag], operation_id)


def test_no_two_operations_have_the_same_id() -> None:
    resources = [resource for versions in builtin.built_in_versions() for resource in versions.all]
    resources += [*definitions_resource().all, custom(subresources=frozenset({"status", "scale"}))]
    ids = Counter(
        operation["operationId"] for resource in resources for operation in operations(paths.v3(resource)).values()
    )
    assert [found for found, times in ids.items() if times > 1] == []


# -- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "method", "own"),
    [
        (WIDGETS, "get", LISTING),
        (WIDGETS, "post", WRITING),
        (WIDGETS, "delete", LISTING),
        (f"{WIDGETS}/{{name}}", "get", ["resourceVersion"]),
        (f"{WIDGETS}/{{name}}", "put", WRITING),
        (f"{WIDGETS}/{{name}}", "delete", DELETING),
        (f"{WIDGETS}/{{name}}", "patch", [*WRITING, "force"]),
    ],
)
def test_an_operation_has_the_parameters_of_its_options(path: str, method: str, own: list[str]) -> None:
    assert names(operations(paths.v3(custom()))[path, method]["parameters"]) == own


def test_parameters_of_all_operations_are_declared_at_the_path() -> None:
    found = paths.v3(custom(subresources=frozenset({"status"})))
    assert {path: names(item["parameters"]) for path, item in found.items()} == {
        f"{ROOT}/widgets": sorted([*LISTING, "pretty"]),
        WIDGETS: ["namespace", "pretty"],
        f"{WIDGETS}/{{name}}": ["name", "namespace", "pretty"],
        f"{WIDGETS}/{{name}}/status": ["name", "namespace", "pretty"],
    }
    assert "parameters" not in found[f"{ROOT}/widgets"]["get"]


@pytest.mark.parametrize(
    ("name", "place", "kind"),
    [
        ("limit", "query", "integer"),
        ("watch", "query", "boolean"),
        ("timeoutSeconds", "query", "integer"),
        ("sendInitialEvents", "query", "boolean"),
        ("labelSelector", "query", "string"),
        ("resourceVersionMatch", "query", "string"),
        ("pretty", "query", "string"),
    ],
)
def test_a_parameter(name: str, place: str, kind: str) -> None:
    (v3,) = [
        parameter for parameter in paths.v3(custom())[f"{ROOT}/widgets"]["parameters"] if parameter["name"] == name
    ]
    text = v3.pop("description")
    assert text
    assert v3 == {"name": name, "in": place, "schema": {"type": kind, "uniqueItems": True}}
    (v2,) = [parameter for parameter in paths.shared_parameters().values() if parameter["name"] == name]
    assert v2 == {"name": name, "in": place, "type": kind, "uniqueItems": True, "description": text}


def test_path_parameters_are_required() -> None:
    for parameter in paths.v3(custom())[f"{WIDGETS}/{{name}}"]["parameters"][:2]:
        assert (parameter["in"], parameter["required"]) == ("path", True)


# -- bodies and answers -----------------------------------------------------------------------------------------------

TEXTS = ["application/json", "application/yaml"]
PATCHES = ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]
WIDGET = "com.example.v1.Widget"


@pytest.mark.parametrize(
    ("path", "method", "media_types", "body", "codes", "answer"),
    [
        (WIDGETS, "get", [], "", ["200"], WIDGET + "List"),
        (WIDGETS, "post", TEXTS, WIDGET, ["200", "201", "202"], WIDGET),
        (WIDGETS, "delete", [], "", ["200"], META + "Status"),
        (f"{WIDGETS}/{{name}}", "get", [], "", ["200"], WIDGET),
        (f"{WIDGETS}/{{name}}", "put", TEXTS, WIDGET, ["200", "201"], WIDGET),
        (f"{WIDGETS}/{{name}}", "delete", TEXTS, META + "DeleteOptions", ["200", "202"], META + "Status"),
        (f"{WIDGETS}/{{name}}", "patch", PATCHES, META + "Patch", ["200"], WIDGET),
        (f"{WIDGETS}/{{name}}/status", "put", TEXTS, WIDGET, ["200", "201"], WIDGET),
        (
            f"{WIDGETS}/{{name}}/scale",
            "put",
            TEXTS,
            "io.k8s.api.autoscaling.v1.Scale",
            ["200", "201"],
            "io.k8s.api.autoscaling.v1.Scale",
        ),
    ],
)
def test_an_operation_of_v3(
    path: str, method: str, media_types: list[str], body: str, codes: list[str], answer: str
) -> None:
    operation = operations(paths.v3(custom(subresources=frozenset({"status", "scale"}))))[path, method]
    content = {media_type: {"schema": {"$ref": V3 + body}} for media_type in media_types}
    required = {} if body.endswith("DeleteOptions") else {"required": True}
    assert operation.get("requestBody") == ({"content": content, **required} if body else None)
    assert list(operation["responses"]) == [*codes, "401"]
    for code in codes:
        answers = {media_type: {"schema": {"$ref": V3 + answer}} for media_type in TEXTS}
        assert operation["responses"][code]["content"] == answers
    assert "content" not in operation["responses"]["401"]


def test_every_operation_has_its_action_and_its_group_version_kind() -> None:
    found = operations(paths.v3(custom(subresources=frozenset({"scale"}))))
    actions = {
        key[0].removeprefix(ROOT) + " " + key[1]: operation["x-kubernetes-action"] for key, operation in found.items()
    }
    assert actions["/namespaces/{namespace}/widgets get"] == "list"
    assert actions["/namespaces/{namespace}/widgets delete"] == "deletecollection"
    assert actions["/namespaces/{namespace}/widgets/{name} put"] == "put"
    assert actions["/namespaces/{namespace}/widgets/{name}/scale patch"] == "patch"
    for operation in found.values():
        assert operation["x-kubernetes-group-version-kind"] == {
            "group": "example.com",
            "kind": "Widget",
            "version": "v1",
        }
        assert "Widget" in operation["description"]


def test_an_operation_of_v2() -> None:
    found = operations(paths.v2(custom()))[f"{WIDGETS}/{{name}}", "patch"]
    assert found["consumes"] == [PATCHES[1], PATCHES[2], PATCHES[0]]
    assert found["produces"] == TEXTS
    assert found["responses"]["200"] == {"description": "OK", "schema": {"$ref": V2 + WIDGET}}
    assert found["operationId"] == "patchExampleComV1NamespacedWidget"


def test_common_parameters_are_shared_in_v2() -> None:
    shared = paths.shared_parameters()
    for key, operation in operations(paths.v2(custom())).items():
        for parameter in operation.get("parameters", []):
            if "$ref" in parameter:
                assert parameter["$ref"].removeprefix("#/parameters/") in shared, key
            else:
                assert parameter["name"] in ("dryRun", "fieldValidation", "body"), key
    bodies = [parameter for parameter in shared.values() if parameter["in"] == "body"]
    assert sorted(parameter["schema"]["$ref"] for parameter in bodies) == [
        V2 + META + "DeleteOptions",
        V2 + META + "Patch",
    ]


def test_kubectl_finds_field_validation_in_the_patch_of_both_versions() -> None:
    """It leaves validation to a server that has this parameter; the v2 document is read by versions before 1.27."""
    for build in (paths.v2, paths.v3):
        assert "fieldValidation" in [
            parameter.get("name")
            for parameter in operations(build(custom()))[f"{WIDGETS}/{{name}}", "patch"]["parameters"]
        ]


# -- built-in kinds ---------------------------------------------------------------------------------------------------


def test_built_in_kinds_take_and_give_protobuf_and_strategic_merge_patches() -> None:
    found = operations(paths.v2(built_in("v1", "ConfigMap")))
    object_path = "/api/v1/namespaces/{namespace}/configmaps/{name}"
    assert found[object_path, "get"]["produces"] == [*TEXTS, "application/vnd.kubernetes.protobuf"]
    assert "application/strategic-merge-patch+json" in found[object_path, "patch"]["consumes"]
    assert found[object_path, "put"]["consumes"] == ["*/*"]
    assert "application/json;stream=watch" in found["/api/v1/configmaps", "get"]["produces"]
    assert list(found[object_path, "patch"]["responses"]) == ["200", "201", "401"], "an apply patch may create"
    assert "parameters" not in found[object_path, "get"]


WATCHES = [
    ("ConfigMap", "/api/v1/watch/configmaps", "watchlist", "watchCoreV1ConfigMapListForAllNamespaces"),
    ("ConfigMap", "/api/v1/watch/namespaces/{namespace}/configmaps", "watchlist", "watchCoreV1NamespacedConfigMapList"),
    ("ConfigMap", "/api/v1/watch/namespaces/{namespace}/configmaps/{name}", "watch", "watchCoreV1NamespacedConfigMap"),
    ("Node", "/api/v1/watch/nodes", "watchlist", "watchCoreV1NodeList"),
    ("Node", "/api/v1/watch/nodes/{name}", "watch", "watchCoreV1Node"),
]


@pytest.mark.parametrize(("kind", "path", "action", "operation_id"), WATCHES)
def test_built_in_kinds_have_paths_of_watches(kind: str, path: str, action: str, operation_id: str) -> None:
    item = paths.v3(built_in("v1", kind))[path]
    operation = item["get"]
    assert (operation["operationId"], operation["x-kubernetes-action"]) == (operation_id, action)
    assert operation["x-kubernetes-group-version-kind"]["kind"] == kind
    content = operation["responses"]["200"]["content"]
    assert "application/json;stream=watch" in content
    assert content["application/json"]["schema"] == {"$ref": f"{V3}{META}WatchEvent"}
    assert {*LISTING} <= {*names(item["parameters"])}
    assert [method for method in item if method != "parameters"] == ["get"]


def test_what_cannot_be_watched_and_custom_resources_have_no_paths_of_watches() -> None:
    for resource in (built_in("v1", "ComponentStatus"), built_in("v1", "Binding"), custom()):
        assert not [path for path in paths.v3(resource) if "/watch/" in path]


def test_deleting_a_collection_of_a_built_in_kind_takes_options_but_does_not_watch() -> None:
    found = operations(paths.v3(built_in("v1", "Secret")))["/api/v1/namespaces/{namespace}/secrets", "delete"]
    without = [name for name in LISTING if name not in ("watch", "allowWatchBookmarks")]
    assert names(found["parameters"]) == sorted([*without, *DELETING])
    assert found["requestBody"]["content"]["*/*"]["schema"]["$ref"] == V3 + META + "DeleteOptions"


def test_only_supported_operations_are_published() -> None:
    namespaces = operations(paths.v3(built_in("v1", "Namespace")))
    assert ("/api/v1/namespaces", "delete") not in namespaces, "namespaces are deleted one by one"
    assert [method for path, method in namespaces if path.endswith("/finalize")] == ["put"]
    reviews = operations(paths.v3(built_in("authorization.k8s.io/v1", "SelfSubjectAccessReview")))
    assert list(reviews) == [("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "post")]


def test_a_subresource_may_be_of_another_kind() -> None:
    found = operations(paths.v3(built_in("v1", "ServiceAccount")))
    token = found["/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", "post"]
    name = "io.k8s.api.authentication.v1.TokenRequest"
    assert token["requestBody"]["content"]["*/*"]["schema"]["$ref"] == V3 + name
    kind = {"group": "authentication.k8s.io", "kind": "TokenRequest", "version": "v1"}
    assert token["x-kubernetes-group-version-kind"] == kind


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (custom(), {WIDGET, WIDGET + "List", *(META + name for name in ("DeleteOptions", "Patch", "Status"))}),
        (
            built_in("authentication.k8s.io/v1", "TokenReview"),
            {"io.k8s.api.authentication.v1.TokenReview"},
        ),
    ],
)
def test_the_definitions_that_routes_refer_to(resource: Resource, expected: set[str]) -> None:
    assert paths.referred(resource) == expected


@pytest.mark.parametrize("of", [paths.v2, paths.v3])
def test_the_kind_of_an_operation_has_the_order_of_a_struct(of: Any) -> None:
    for item in of(custom(verbs=("get", "list"))).values():
        assert list(item["get"]["x-kubernetes-group-version-kind"]) == ["group", "version", "kind"]
