"""The handler of each request, and the routes of built-in groups: a request without one is refused before any lookup."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.client import Client
from noxu.api.errors import ApiError
from noxu.http import handlers, subresources
from noxu.http.app import find_resource, handler_of, methods_of
from noxu.http.handlers import Handler
from noxu.http.request import resource_info
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.custom import versions_of
from noxu.registry.served_resources import ServedResources
from noxu.testing.handle import Noxu
from tests.http.conftest import DEFINITION, GROUP, widgets
from tests.rows import rows
from tests.timing import eventually

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MAPS = "/api/v1/namespaces/default/configmaps"
DOCUMENT, ALL_OF_ONE = {"GET"}, {"GET", "PUT", "PATCH", "DELETE"}

PATHS: list[tuple[str, set[str] | None]] = [
    ("/version", DOCUMENT),
    ("/version/x", set()),
    ("/healthz", None),
    ("//version", None),
    ("/apis//v1/configmaps", None),
    ("/apis", None),
    ("/api", DOCUMENT),
    ("/api/v1/", DOCUMENT),
    ("/api/v2", set()),
    ("/apis/apiextensions.k8s.io", DOCUMENT),
    ("/apis/apiextensions.k8s.io/v1", DOCUMENT),
    ("/apis/apiextensions.k8s.io/v2/customresourcedefinitions", set()),
    ("/apis/apiextensions.k8s.io/v1/nothing", set()),
    ("/apis/widgets.example.com/v1/nothing", None),
    (CRDS, {"GET", "POST", "DELETE"}),
    (CRDS + "/x", ALL_OF_ONE),
    (CRDS + "/x/", ALL_OF_ONE),
    (CRDS + "/x/status", {"GET", "PUT", "PATCH"}),
    (CRDS + "/x/scale", set()),
    (CRDS + "/x/status/y", set()),
    ("/apis/apiextensions.k8s.io/v1/namespaces/default/customresourcedefinitions", set()),
    ("/apis/apiextensions.k8s.io/v1/watch/customresourcedefinitions", DOCUMENT),
    ("/apis/apiextensions.k8s.io/v1/watch/customresourcedefinitions/x", DOCUMENT),
    ("/apis/apiextensions.k8s.io/v1/watch/customresourcedefinitions/x/status", set()),
    (MAPS, {"GET", "POST", "DELETE"}),
    (MAPS + "/x", ALL_OF_ONE),
    (MAPS + "/x/status", set()),
    ("/api/v1/configmaps", DOCUMENT),
    ("/api/v1/configmaps/x", set()),
    ("/api/v1/watch/namespaces/default/configmaps/x", DOCUMENT),
    ("/api/v1/namespaces", {"GET", "POST"}),
    ("/api/v1/namespaces/x", ALL_OF_ONE),
    ("/api/v1/namespaces/x/status", {"GET", "PUT", "PATCH"}),
    ("/api/v1/namespaces/x/finalize", {"PUT"}),
    ("/api/v1/namespaces/x/nothing", set()),
    ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"POST"}),
    ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x", set()),
]


@pytest.mark.slow(every=10)
@pytest.mark.parametrize(("path", "methods"), PATHS, ids=[path for path, _ in PATHS])
def test_a_path_has_these_methods(path: str, methods: set[str] | None) -> None:
    served_resources = ServedResources([definitions_resource(), *built_in_versions()])
    assert methods_of(served_resources, path, resource_info("GET", path)) == methods


CUSTOM = f"/apis/{GROUP}/v1"
IN_DEFAULT = f"{CUSTOM}/namespaces/default/things"
SERVED = ServedResources(
    [definitions_resource(), *built_in_versions()],
    {
        definition["spec"]["names"]["plural"]: versions_of(
            definition | {"status": {"acceptedNames": definition["spec"]["names"]}}, 0
        )
        for definition in (DEFINITION, widgets(GROUP, {}))
    },
)
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
# name, method, path, and the handler or the code of the refusal
HANDLED: list[tuple[str, str, str, Handler | int]] = [
    ("a list", "GET", IN_DEFAULT, handlers.list_),
    ("a list of all namespaces", "GET", f"{CUSTOM}/things", handlers.list_),
    ("a get", "GET", f"{IN_DEFAULT}/a", handlers.get),
    ("a create", "POST", IN_DEFAULT, handlers.create),
    ("an update", "PUT", f"{IN_DEFAULT}/a", handlers.update),
    ("an update without a name", "PUT", IN_DEFAULT, handlers.update),
    ("a patch", "PATCH", f"{IN_DEFAULT}/a", handlers.patch),
    ("a delete", "DELETE", f"{IN_DEFAULT}/a", handlers.delete),
    ("a delete of all", "DELETE", IN_DEFAULT, handlers.delete_collection),
    ("a status", "GET", f"{IN_DEFAULT}/a/status", handlers.get),
    ("a patch of a status", "PATCH", f"{IN_DEFAULT}/a/status", handlers.patch),
    ("a scale", "GET", f"{IN_DEFAULT}/a/scale", subresources.get_scale),
    ("an update of a scale", "PUT", f"{IN_DEFAULT}/a/scale", subresources.update_scale),
    ("a patch of a scale", "PATCH", f"{IN_DEFAULT}/a/scale", subresources.patch_scale),
    ("a token", "POST", "/api/v1/namespaces/default/serviceaccounts/a/token", subresources.issue_token),
    ("a review", "POST", REVIEWS, handlers.review),
    ("what a namespace finalizes", "PUT", "/api/v1/namespaces/a/finalize", handlers.update),
    ("a delete of a status", "DELETE", f"{IN_DEFAULT}/a/status", 405),
    ("a create of a status", "POST", f"{IN_DEFAULT}/a/status", 405),
    ("a method without a verb", "OPTIONS", IN_DEFAULT, 405),
    ("a subresource that the version has not", "GET", f"/apis/{GROUP}/v2/namespaces/default/things/a/status", 404),
    ("an unknown subresource", "GET", f"{IN_DEFAULT}/a/log", 404),
    ("an unknown resource", "GET", f"{CUSTOM}/nothings", 404),
    ("an unknown version", "GET", f"/apis/{GROUP}/v3/things", 404),
    ("an unknown group", "GET", "/apis/nothing.example.com/v1/things", 404),
    ("an object without its namespace", "GET", f"{CUSTOM}/things/a", 404),
    ("a create without a namespace", "POST", f"{CUSTOM}/things", 404),
    ("a cluster-scoped custom resource", "GET", f"{CUSTOM}/widgets/a", handlers.get),
    ("a cluster-scoped custom resource in a namespace", "GET", f"{CUSTOM}/namespaces/default/widgets/a", 404),
    ("a cluster-scoped built-in resource in a namespace", "GET", "/api/v1/namespaces/default/namespaces", 404),
    ("an unknown resource of a built-in group", "GET", "/api/v1/nothings", 404),
    ("a method that a built-in resource has not", "DELETE", "/api/v1/namespaces", 405),
    ("a list of reviews", "GET", REVIEWS, 405),
]


@rows(("method", "path", "expected"), [row[1:] for row in HANDLED], ids=[row[0] for row in HANDLED])
def test_the_handler_of(method: str, path: str, expected: Handler | int) -> None:
    info = resource_info(method, path)
    if not isinstance(expected, int):
        assert handler_of(find_resource(SERVED, method, path, info), info) is expected
        return
    with pytest.raises(ApiError) as caught:
        handler_of(find_resource(SERVED, method, path, info), info)
    assert caught.value.code == expected


@pytest.fixture(scope="module")
def client(noxu_session: Noxu) -> Iterator[Client]:
    with Client(noxu_session.url) as client:
        yield client


REFUSED: list[tuple[str, str, int, str, str]] = [
    ("PUT", CRDS, 405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
    ("POST", CRDS + "/x", 405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
    ("POST", "/version", 405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
    ("GET", CRDS + "/x/scale", 404, "NotFound", "the server could not find the requested resource"),
    ("DELETE", "/api/v1/nothing", 404, "NotFound", "the server could not find the requested resource"),
]


@pytest.mark.parametrize(("method", "path", "code", "reason", "message"), REFUSED)
def test_what_has_no_route_is_refused(
    client: Client, method: str, path: str, code: int, reason: str, message: str
) -> None:
    assert client.send(method, path).body == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "details": {}, "code": code,
    }  # fmt: skip


@pytest.mark.slow
def test_head_is_no_get(client: Client) -> None:
    assert client.send("HEAD", CRDS).code == 405
    assert client.send("GET", CRDS + "?watch=1&timeoutSeconds=1").code == 200


def test_the_status_of_a_definition_is_no_table(client: Client) -> None:
    client.send("POST", CRDS, NEW[CRDS])
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    assert client.exchange("GET", f"{CRDS}/kepts.example.com", None, accept)[0] == 200
    assert client.exchange("GET", f"{CRDS}/kepts.example.com/status", None, accept)[0] == 406
    metadata = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
    assert client.exchange("GET", f"{CRDS}/kepts.example.com/status", None, metadata)[0] == 200
    assert client.send("DELETE", f"{CRDS}/kepts.example.com").code == 200
    eventually(lambda: client.send("GET", f"{CRDS}/kepts.example.com").code == 404)


def test_items_of_a_built_in_list_do_not_say_what_they_are(client: Client) -> None:
    """As Go's typed lists; custom resources in a list do."""
    client.send("POST", MAPS, {"metadata": {"name": "listed"}, "data": {"kind": "x"}})
    found: Any = client.send("GET", MAPS + "?fieldSelector=metadata.name=listed").body
    assert found["kind"] == "ConfigMapList"
    [item] = found["items"]
    assert sorted(item) == ["data", "metadata"]
    assert client.send("GET", MAPS + "/listed").body["kind"] == "ConfigMap"


PRECONDITIONS = [
    ("/api/v1/namespaces", "namespaces", "", "Precondition failed"),
    (CRDS, "customresourcedefinitions.apiextensions.k8s.io", "apiextensions.k8s.io", "precondition failed"),
]
NEW: dict[str, Any] = {
    "/api/v1/namespaces": {"metadata": {"name": "kept.example.com".replace(".", "-")}},
    CRDS: {
        "metadata": {"name": "kepts.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "kepts", "kind": "Kept"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    },
}


@pytest.mark.parametrize(("path", "what", "group", "failed"), PRECONDITIONS)
def test_preconditions_of_what_is_deleted_in_steps(
    client: Client, path: str, what: str, group: str, failed: str
) -> None:
    made = client.send("POST", path, NEW[path]).body
    name, uid = made["metadata"]["name"], made["metadata"]["uid"]
    refused = client.send("DELETE", f"{path}/{name}", {"preconditions": {"uid": "other"}})
    why = f"{failed}: UID in precondition: other, UID in object meta: {uid}"
    assert refused.code == 409
    assert refused.body["message"] == f'Operation cannot be fulfilled on {what} "{name}": {why}'
    refused = client.send("DELETE", f"{path}/{name}", {"preconditions": {"resourceVersion": "1"}})
    assert f"{failed}: ResourceVersion in precondition: 1, ResourceVersion in object meta: " in refused.body["message"]
    assert client.send("DELETE", f"{path}/{name}", {"preconditions": {"uid": uid}}).code == 200
