"""Ownership of the resources that are served: subresources, versions, schemas that change, built-in kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.client import Client
from noxu.testing.handle import Noxu
from tests import definitions

GROUP = "owned.example.com"
URL = f"/apis/{GROUP}/v1/widgets/w"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
INTEGER = {"type": "integer"}
STATUS = {"type": "object", "properties": {"ready": INTEGER}}


def definition(**spec: Any) -> dict[str, Any]:
    """Widgets whose spec has these properties."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}, "status": STATUS}}
    version = definitions.version(schema) | {"subresources": {"status": {}}}
    return definitions.widgets(version, group=GROUP, scope="Cluster")


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


def test_a_status_is_removed_with_its_owners(client: Client) -> None:
    apply(client, "spec", {"spec": {}})
    patch(client, "all", {"metadata": {"managedFields": [{}]}})
    assert owners(apply(client, "one", {"status": {"ready": 1}}, f"{URL}/status"))
    left = patch(client, "two", {"status": None}, f"{URL}/status")
    assert "status" not in left
    assert "managedFields" not in left["metadata"]


# -- metadata that is applied

METADATA: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("null as a label is an empty one", {"labels": {"a": None}}, {"labels": {"a": ""}}),
    ("null as an annotation is an empty one", {"annotations": {"a": None}}, {"annotations": {"a": ""}}),
    ("null as the uid is none", {"uid": None}, {}),
    ("a selfLink is not kept", {"selfLink": "x"}, {}),
]


@pytest.mark.parametrize(("metadata", "expected"), [row[1:] for row in METADATA], ids=[row[0] for row in METADATA])
def test_metadata_is_typed_when_it_is_applied(client: Client, metadata: Any, expected: Any) -> None:
    for _ in range(2):  # a new object, and one that is there
        found = apply(client, "m", {"metadata": {"name": "w"} | metadata})["metadata"]
        assert {name: found[name] for name in metadata if name != "uid" and name in found} == expected


def test_labels_are_validated_besides_null(client: Client) -> None:
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w", "labels": {"a": None, "b": "!"}}}
    answer = client.send("PATCH", f"{URL}?fieldManager=m", body, APPLY)
    assert answer.code == 422
    assert "metadata.labels" in answer.body["message"]


def test_a_uid_can_only_be_that_of_an_existing_object(client: Client) -> None:
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "x"}}
    answer = client.send("PATCH", f"{URL}?fieldManager=m", body, APPLY)
    assert (answer.code, answer.body["message"]) == (
        409,
        f'Operation cannot be fulfilled on widgets.{GROUP} "w": uid mismatch: the provided object specified uid x, '
        "and no existing object was found",
    )


# -- schemas that change


def reshape(noxu: Noxu, client: Client, **spec: Any) -> None:
    """Give the properties these schemas, and wait until they are served."""
    noxu.apply(definition(**spec))
    url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets." + GROUP
    schema = client.send("GET", url).body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["properties"]["spec"]["properties"] == spec


XY = {"type": "object", "properties": {"x": INTEGER, "y": INTEGER}}
STRINGS = {"type": "array", "items": {"type": "string"}}
ITEMS = {"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": INTEGER, "v": INTEGER}}}
MAP = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
SET = {"x-kubernetes-list-type": "set"}
ATOMIC = {"x-kubernetes-map-type": "atomic"}
WHOLE: dict[str, Any] = {}

RESHAPED: list[tuple[str, Any, Any, Any, Any, Any]] = [
    # case, the schema of spec.a before and after, the applied value, its owned fields before and after
    ("a map becomes atomic", XY, XY | ATOMIC, {"x": 1}, {"f:x": {}}, WHOLE),
    ("an atomic map becomes granular", XY | ATOMIC, XY, {"x": 1, "y": 2}, WHOLE, WHOLE),
    ("a set becomes atomic", STRINGS | SET, STRINGS, ["x"], {'v:"x"': {}}, WHOLE),
    ("a list of items becomes atomic", ITEMS | MAP, ITEMS, [{"k": 1}], {'k:{"k":1}': {".": {}, "f:k": {}}}, WHOLE),
]


@pytest.mark.parametrize(
    ("before", "after", "value", "owned", "reconciled"), [row[1:] for row in RESHAPED], ids=[row[0] for row in RESHAPED]
)
def test_the_next_write_adapts_owners_to_the_schema(
    noxu: Noxu, client: Client, before: Any, after: Any, value: Any, owned: Any, reconciled: Any
) -> None:
    reshape(noxu, client, a=before, b=INTEGER)
    assert owners(apply(client, "one", {"spec": {"a": value}}))["apply one"] == {"f:spec": {"f:a": owned}}
    reshape(noxu, client, a=after, b=INTEGER)
    assert owners(patch(client, "two", {"spec": {"b": 1}}))["apply one"] == {"f:spec": {"f:a": reconciled}}


# -- built-in kinds

RULES = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]
HOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://example.com"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": RULES,
}
HOOK_FIELDS = {
    ".": {},
    "f:admissionReviewVersions": {},
    "f:clientConfig": {"f:url": {}},
    "f:name": {},
    "f:rules": {},
    "f:sideEffects": {},
}
POLICY = {
    "matchConstraints": {"resourceRules": RULES},
    "variables": [{"name": "v", "expression": "1"}],
    "validations": [{"expression": "true"}],
}
REGISTRATION = "admissionregistration.k8s.io/v1"

BUILT_IN: list[tuple[str, str, str, dict[str, Any], dict[str, Any]]] = [
    # path, apiVersion, kind, the applied fields, the owned fields
    (
        "/api/v1/namespaces/default/configmaps", "v1", "ConfigMap",
        {"data": {"a": "1"}, "binaryData": {"b": "eA=="}, "immutable": False},
        {"f:data": {"f:a": {}}, "f:binaryData": {"f:b": {}}, "f:immutable": {}},
    ),
    (
        "/api/v1/namespaces/default/secrets", "v1", "Secret",
        {"data": {"a": "eA=="}, "type": "Opaque"}, {"f:data": {"f:a": {}}, "f:type": {}},
    ),
    (
        "/api/v1/namespaces/default/serviceaccounts", "v1", "ServiceAccount",
        {"secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "i"}]},
        {"f:secrets": {'k:{"name":"s"}': {}}, "f:imagePullSecrets": {}},
    ),
    ("/api/v1/namespaces", "v1", "Namespace", {"metadata": {"name": "w", "labels": {"a": "b"}}}, {"f:metadata": {"f:labels": {"f:a": {}}}}),
    (
        "/api/v1/namespaces/default/events", "v1", "Event",
        {"involvedObject": {"kind": "X", "namespace": "default"}, "source": {"component": "c"}, "count": 1},
        {"f:involvedObject": {}, "f:source": {"f:component": {}}, "f:count": {}},
    ),
    (
        "/apis/coordination.k8s.io/v1/namespaces/default/leases", "coordination.k8s.io/v1", "Lease",
        {"spec": {"holderIdentity": "me"}}, {"f:spec": {"f:holderIdentity": {}}},
    ),
    (
        f"/apis/{REGISTRATION}/validatingwebhookconfigurations", REGISTRATION, "ValidatingWebhookConfiguration",
        {"webhooks": [HOOK]}, {"f:webhooks": {'k:{"name":"a.example.com"}': HOOK_FIELDS}},
    ),
    (
        f"/apis/{REGISTRATION}/mutatingwebhookconfigurations", REGISTRATION, "MutatingWebhookConfiguration",
        {"webhooks": [HOOK]}, {"f:webhooks": {'k:{"name":"a.example.com"}': HOOK_FIELDS}},
    ),
    (
        f"/apis/{REGISTRATION}/validatingadmissionpolicies", REGISTRATION, "ValidatingAdmissionPolicy",
        {"spec": POLICY},
        {"f:spec": {"f:matchConstraints": {}, "f:validations": {}, "f:variables": {'k:{"name":"v"}': {}}}},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("path", "version", "kind", "config", "owned"), BUILT_IN, ids=[row[2] for row in BUILT_IN])
def test_built_in_kinds_are_owned_by_their_types(
    client: Client, path: str, version: str, kind: str, config: dict[str, Any], owned: dict[str, Any]
) -> None:
    config = {"apiVersion": version, "kind": kind} | config
    first, second = (apply(client, "one", config, f"{path}/w") for _ in range(2))
    assert owners(first)["apply one"] == owned
    assert owners(second)["apply one"] == owned
    assert second["metadata"].get("generation") == first["metadata"].get("generation")


def test_definitions_are_owned_by_the_fields_of_their_versions(client: Client) -> None:
    """Their versions are one atomic list."""
    wanted = definition(a=INTEGER, b=INTEGER)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{wanted['metadata']['name']}"
    fields = owners(apply(client, "one", wanted, path))["apply one"]["f:spec"]
    assert fields["f:versions"] == {}
    assert fields["f:names"] == {"f:kind": {}, "f:plural": {}}


def test_fields_of_definitions_that_are_omitted_when_empty_have_no_owner(client: Client) -> None:
    wanted = definition(a=INTEGER)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{wanted['metadata']['name']}"
    before = owners(client.send("GET", path).body)
    version = {**client.send("GET", path).body["spec"]["versions"][0], "additionalPrinterColumns": []}
    empty = {"spec": {"names": {"shortNames": [], "categories": []}, "versions": [version]}}
    assert owners(patch(client, "two", empty, path)) == before


def test_items_of_built_in_kinds_have_several_owners(client: Client) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts/w"
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    apply(client, "one", account | {"secrets": [{"name": "a"}]}, path)
    both = apply(client, "two", account | {"secrets": [{"name": "b"}]}, path)
    assert [one["name"] for one in both["secrets"]] == ["a", "b"]
    left = apply(client, "one", account, path)
    assert left["secrets"] == [{"name": "b"}]


# -- objects without owners


def test_objects_without_owners_get_them_with_the_first_apply(client: Client) -> None:
    """Upstream's rule: the existing fields get the owner before-first-apply then."""
    patch_none = {"metadata": {"managedFields": [{}]}}
    apply(client, "gone", {"spec": {"a": 1}})
    patch(client, "gone", patch_none)
    assert owners(patch(client, "updater", {"spec": {"b": 1}})) == {}
    assert owners(apply(client, "one", {"spec": {"a": 1}})) == {
        "apply one": {"f:spec": {"f:a": {}}},
        "update before-first-apply": {"f:spec": {".": {}, "f:a": {}, "f:b": {}}},
    }


# -- a subresource of one version -------------------------------------------------------------------------------------


@pytest.fixture
def status_of_v2(noxu: Noxu) -> Iterator[Client]:
    """Version v1 has no /status, v2 has one."""
    crd = definition(a=INTEGER, b=INTEGER)
    [v1] = crd["spec"]["versions"]
    crd["spec"]["versions"] = [v1 | {"subresources": {}}, v1 | {"name": "v2", "storage": False}]
    noxu.apply(crd)
    with Client(noxu.url) as client:
        yield client


V2_STATUS = f"/apis/{GROUP}/v2/widgets/w/status"


def test_a_write_to_status_may_take_what_is_owned_at_a_version_without_status(status_of_v2: Client) -> None:
    """Only versions with the subresource have its reset fields. What it takes remains unchanged, without an owner."""
    patch_body = [{"op": "add", "path": "/spec", "value": {"a": 2}}]
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": 1, "b": 1}}
    created = status_of_v2.send("POST", f"/apis/{GROUP}/v1/widgets", body).body
    assert owners(created) == {"update unknown": {"f:spec": {".": {}, "f:a": {}, "f:b": {}}}}
    answer = status_of_v2.send("PATCH", V2_STATUS, patch_body, "application/json-patch+json")
    assert (answer.code, answer.body["spec"]) == (200, {"a": 1, "b": 1})
    assert owners(answer.body) == {"update unknown": {"f:spec": {}}}


def test_an_apply_to_status_conflicts_with_owners_at_a_version_without_status(status_of_v2: Client) -> None:
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": 1, "b": 1}}
    status_of_v2.send("POST", f"/apis/{GROUP}/v1/widgets", body)
    config = {"apiVersion": f"{GROUP}/v2", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": 3}}
    answer = status_of_v2.send("PATCH", f"{V2_STATUS}?fieldManager=m", config, APPLY)
    assert (answer.code, answer.body["message"]) == (
        409,
        f'Apply failed with 1 conflict: conflict with "unknown" using {GROUP}/v1: .spec.a',
    )


def test_a_write_to_status_takes_nothing_at_a_version_with_status(status_of_v2: Client) -> None:
    body = {"apiVersion": f"{GROUP}/v2", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": 1}}
    created = status_of_v2.send("POST", f"/apis/{GROUP}/v2/widgets", body).body
    config = body | {"spec": {"a": 3}}
    answer = status_of_v2.send("PATCH", f"{V2_STATUS}?fieldManager=m", config, APPLY)
    assert (answer.code, answer.body["spec"], owners(answer.body)) == (200, {"a": 1}, owners(created))
