"""The inputs of expressions about a request: objects, the AdmissionRequest, the namespace."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.admission.inputs import document, for_conditions, inputs_of, namespace_of
from noxu.api.errors import ApiError
from noxu.registry.draft import WriteEnvironment
from tests.admission.requests import GROUP, request_of, resource, versions, widget

KIND = {"group": GROUP, "version": "v1", "kind": "Widget"}
RESOURCE = {"group": GROUP, "version": "v1", "resource": "widgets"}


def test_the_document_of_a_create() -> None:
    request = request_of(None)
    found = document(request, request.resource)
    options = found.pop("options")
    user = found.pop("userInfo")
    assert found == {
        "kind": KIND,
        "resource": RESOURCE,
        "requestKind": KIND,
        "requestResource": RESOURCE,
        "name": "a",
        "namespace": "default",
        "operation": "CREATE",
        "dryRun": False,
    }
    assert (options["kind"], options["apiVersion"]) == ("CreateOptions", "meta.k8s.io/v1")
    assert all(user.values()), "empty fields are absent"


DOCUMENTS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("a status", "UPDATE", {"subresource": "status"}, {"kind": KIND, "subResource": "status", "requestSubResource": "status"}),
    ("a scale", "UPDATE", {"subresource": "scale"}, {"kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}, "resource": RESOURCE}),
    ("a deletion", "DELETE", {"old": widget()}, {"operation": "DELETE", "name": "a"}),
    ("a generated name", "CREATE", {"name": ""}, {"name": None}),
    ("a cluster-scoped object", "CREATE", {"of": resource("v1", namespaced=False)}, {"namespace": None}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "about", "fields"), [row[1:] for row in DOCUMENTS], ids=[row[0] for row in DOCUMENTS]
)
def test_the_document_of(operation: str, about: dict[str, Any], fields: dict[str, Any]) -> None:
    if about.get("subresource"):
        about = {**about, "old": widget(), "new": {**widget(), "spec": {"replicas": 1}}}
    request = request_of(None, operation, **about)
    found = document(request, request.resource)
    assert {name: found.get(name) for name in fields} == fields


async def test_a_rule_for_another_version_sees_the_object_at_that_version() -> None:
    v2, v1 = versions("v2", "v1")
    request = request_of(None, of=v2)
    inputs = await inputs_of(request, v1, None)
    assert inputs.object is not None
    assert inputs.object["apiVersion"] == f"{GROUP}/v1"
    assert inputs.old_object is None
    assert inputs.request["resource"] == RESOURCE
    assert inputs.request["requestResource"] == {**RESOURCE, "version": "v2"}
    assert inputs.about == (GROUP, "widgets", "", "default", "a")


async def test_match_conditions_see_the_resource_of_the_request_and_no_namespace() -> None:
    v2, v1 = versions("v2", "v1")
    inputs = await inputs_of(request_of(None, of=v2), v1, {"metadata": {}})
    assert inputs.namespace is not None
    found = for_conditions(inputs)
    assert found.namespace is None
    assert found.request["resource"] == {**RESOURCE, "version": "v2"}
    assert inputs.request["resource"] == RESOURCE, "the inputs of the policy stay"


async def test_the_namespace_of_a_request(registry: WriteEnvironment) -> None:
    found = await namespace_of(request_of(registry))
    assert found is not None
    assert (found["metadata"]["name"], found["metadata"]["labels"]["team"]) == ("default", "red")
    assert found.keys() == {"metadata", "spec", "status"}


async def test_a_cluster_scoped_object_has_no_namespace(registry: WriteEnvironment) -> None:
    assert await namespace_of(request_of(registry, of=resource("v1", namespaced=False))) is None


async def test_a_missing_namespace_is_an_error(registry: WriteEnvironment) -> None:
    with pytest.raises(ApiError, match='namespaces "other" not found'):
        await namespace_of(request_of(registry, namespace="other"))
