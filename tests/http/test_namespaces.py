"""Namespaces as clients see them: creation, deletion, finalization; with a namespace controller and without."""

from __future__ import annotations

from typing import Any, Final

import pytest

from conformance.client import Answer, Client
from noxu.testing.handle import Noxu
from tests.timing import eventually

NAMESPACES: Final = "/api/v1/namespaces"
HELD: Final = ["example.com/wait"]
without_controllers = pytest.mark.noxu(profile="envtest")


def create(client: Client, name: str = "n", **spec: Any) -> dict[str, Any]:
    value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, **spec}
    answer = client.send("POST", NAMESPACES, value)
    assert answer.code == 201
    return answer.body


def config_map(client: Client, **metadata: Any) -> Answer:
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return client.send("POST", f"{NAMESPACES}/n/configmaps", value)


def delete(client: Client, body: Any = None, name: str = "n") -> Answer:
    return client.send("DELETE", f"{NAMESPACES}/{name}", body)


def get(client: Client, name: str = "n") -> Any:
    return client.send("GET", f"{NAMESPACES}/{name}").body


def until_deleted(client: Client, name: str = "n") -> None:
    eventually(lambda: client.send("GET", f"{NAMESPACES}/{name}").code == 404)


def finalize(client: Client, finalizers: list[str]) -> Answer:
    value = {**get(client), "spec": {"finalizers": finalizers}}
    return client.send("PUT", f"{NAMESPACES}/n/finalize", value)


def test_a_new_namespace_has_the_finalizer_the_phase_and_the_label(client: Client) -> None:
    created = create(client, spec={"finalizers": ["example.com/mine"]})
    assert created["spec"] == {"finalizers": ["example.com/mine", "kubernetes"]}
    assert created["status"] == {"phase": "Active"}
    assert created["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}


@without_controllers
def test_the_first_deletion_marks_it_and_the_second_changes_nothing(client: Client) -> None:
    create(client)
    first = delete(client)
    assert (first.code, first.body["status"]) == (200, {"phase": "Terminating"})
    assert "deletionTimestamp" in first.body["metadata"]
    assert "deletionGracePeriodSeconds" not in first.body["metadata"]
    second = delete(client, {"propagationPolicy": "Foreground"})
    assert (second.code, second.body) == (200, first.body)


@without_controllers
@pytest.mark.parametrize(
    ("policy", "finalizers"), [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("Background", None)]
)
def test_the_propagation_policy_of_the_first_deletion_counts(
    client: Client, policy: str, finalizers: list[str] | None
) -> None:
    create(client)
    assert delete(client, {"propagationPolicy": policy}).body["metadata"].get("finalizers") == finalizers


PRECONDITIONS = [
    ("the uid", {"uid": "other"}, "UID in precondition: other, UID in object meta: {uid}"),
    ("the version", {"resourceVersion": "1"}, "ResourceVersion in precondition: 1, ResourceVersion in object meta: {resourceVersion}"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "why"), [row[1:] for row in PRECONDITIONS], ids=[row[0] for row in PRECONDITIONS])
def test_preconditions_that_are_not_met(client: Client, given: Any, why: str) -> None:
    metadata = create(client)["metadata"]
    answer = delete(client, {"preconditions": given})
    expected = f'Operation cannot be fulfilled on namespaces "n": Precondition failed: {why.format(**metadata)}'
    assert (answer.code, answer.body["reason"], answer.body["message"]) == (409, "Conflict", expected)
    assert "deletionTimestamp" not in get(client)["metadata"]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_immortal_namespaces(client: Client, name: str) -> None:
    answer = delete(client, name=name)
    assert (answer.code, answer.body["message"]) == (
        403,
        f'namespaces "{name}" is forbidden: this namespace may not be deleted',
    )
    assert answer.body["details"] == {"name": name, "kind": "namespaces"}


def test_a_collection_of_namespaces_cannot_be_deleted(client: Client) -> None:
    assert client.send("DELETE", NAMESPACES).code == 405


# -- without a namespace controller, as envtest


@without_controllers
def test_without_a_controller_it_stays_terminating_until_it_is_finalized(client: Client) -> None:
    create(client)
    assert config_map(client).code == 201
    delete(client)
    revision = get(client)["metadata"]["resourceVersion"]
    answer = finalize(client, [])
    assert (answer.code, answer.body["kind"], answer.body["spec"]) == (200, "Namespace", {})
    assert answer.body["metadata"]["resourceVersion"] == revision
    assert client.send("GET", f"{NAMESPACES}/n").code == 404
    assert client.send("GET", f"{NAMESPACES}/n/configmaps/a").code == 200, "its content stays"


@without_controllers
def test_finalizers_of_both_kinds_hold_it(client: Client) -> None:
    create(client, metadata={"name": "n", "finalizers": HELD}, spec={"finalizers": ["example.com/mine"]})
    delete(client)
    assert finalize(client, ["example.com/mine"]).body["spec"] == {"finalizers": ["example.com/mine"]}
    assert finalize(client, []).code == 200
    assert get(client)["metadata"]["finalizers"] == HELD
    patch = {"metadata": {"finalizers": None}}
    assert client.send("PATCH", f"{NAMESPACES}/n", patch, "application/merge-patch+json").code == 200
    assert client.send("GET", f"{NAMESPACES}/n").code == 404


@without_controllers
def test_a_namespace_that_was_finalized_before_goes_with_the_second_deletion(client: Client) -> None:
    create(client)
    finalize(client, [])
    assert delete(client).body["status"] == {"phase": "Terminating"}
    assert get(client)["spec"] == {}
    assert delete(client).code == 200
    assert client.send("GET", f"{NAMESPACES}/n").code == 404


@without_controllers
def test_without_controllers_a_namespace_is_empty(client: Client) -> None:
    create(client)
    for plural in ("serviceaccounts", "configmaps"):
        assert client.send("GET", f"{NAMESPACES}/n/{plural}").body["items"] == []


@without_controllers
def test_the_api_server_describes_itself_without_controllers_too(noxu: Noxu, client: Client) -> None:
    names = [item["metadata"]["name"] for item in client.send("GET", NAMESPACES).body["items"]]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    [port] = client.send("GET", f"{NAMESPACES}/default/services/kubernetes").body["spec"]["ports"]
    assert port["targetPort"] == int(noxu.url.rpartition(":")[2])
    leases = client.send("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases").body["items"]
    assert [item["metadata"]["name"].split("-")[0] for item in leases] == ["apiserver"]


# -- creation in a terminating namespace


MESSAGE = "unable to create new content in namespace n because it is being terminated"
CAUSE = {"reason": "NamespaceTerminating", "message": "namespace n is being terminated", "field": "metadata.namespace"}
CREATED: list[tuple[str, str, Any, dict[str, str]]] = [
    ("a built-in kind", "/api/v1/namespaces/n/configmaps", {"metadata": {"name": "a"}}, {"name": "a", "kind": "configmaps"}),
    ("a generated name", "/api/v1/namespaces/n/secrets", {"metadata": {"generateName": "a-"}}, {"name": "a-", "kind": "secrets"}),
    (
        "a custom resource",
        "/apis/example.com/v1/namespaces/n/widgets",
        {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}},
        {"name": "w", "group": "example.com", "kind": "widgets"},
    ),
]  # fmt: skip
WIDGETS = """
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: widgets.example.com}
    spec:
      group: example.com
      scope: Namespaced
      names: {plural: widgets, kind: Widget}
      versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""


@pytest.mark.noxu(WIDGETS, profile="envtest")
@pytest.mark.parametrize(("path", "value", "details"), [row[1:] for row in CREATED], ids=[row[0] for row in CREATED])
def test_nothing_is_created_in_a_terminating_namespace(client: Client, path: str, value: Any, details: Any) -> None:
    create(client)
    delete(client)
    answer = client.send("POST", path, value)
    what = f"{details['kind']}.{details['group']}" if "group" in details else details["kind"]
    assert (answer.code, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["message"] == f'{what} "{details["name"]}" is forbidden: {MESSAGE}'
    assert answer.body["details"] == {**details, "causes": [CAUSE]}


@without_controllers
def test_an_update_that_would_create_is_refused_likewise(client: Client) -> None:
    create(client)
    delete(client)
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
    answer = client.send("PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", lease)
    assert (answer.code, answer.body["message"]) == (403, f'leases.coordination.k8s.io "l" is forbidden: {MESSAGE}')


@without_controllers
def test_no_token_is_issued_in_a_terminating_namespace(client: Client) -> None:
    create(client)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}}
    client.send("POST", f"{NAMESPACES}/n/serviceaccounts", account)
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["a"]}}
    path = f"{NAMESPACES}/n/serviceaccounts/sa/token"
    assert client.send("POST", path, token).code == 201
    delete(client)
    answer = client.send("POST", path, token)
    assert (answer.code, answer.body["message"]) == (403, f'serviceaccounts "sa" is forbidden: {MESSAGE}')
    assert answer.body["details"] == {"name": "sa", "kind": "serviceaccounts", "causes": [CAUSE]}


REVIEW = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "LocalSubjectAccessReview",
    "spec": {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}},
}


@pytest.mark.parametrize("namespace", ["n", "missing"])
def test_access_reviews_are_answered_in_every_namespace(noxu: Noxu, client: Client, namespace: str) -> None:
    create(client)
    config_map(client, finalizers=HELD)
    delete(client)
    review = {**REVIEW, "metadata": {"namespace": namespace}}
    review["spec"] = {
        **REVIEW["spec"],
        "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": namespace},
    }  # type: ignore[dict-item]
    path = f"/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews"
    assert client.send("POST", path, review).code == 201


# -- with the controllers


def test_content_with_finalizers_is_counted_and_holds_the_namespace(client: Client) -> None:
    create(client)
    config_map(client, finalizers=HELD)
    assert delete(client).code == 200
    found = eventually(lambda: get(client)["status"].get("conditions"))
    assert [(condition["type"], condition["status"], condition["reason"]) for condition in found] == [
        ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered"),
        ("NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions"),
        ("NamespaceDeletionContentFailure", "False", "ContentDeleted"),
        ("NamespaceContentRemaining", "True", "SomeResourcesRemain"),
        ("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain"),
    ]
    assert [condition["message"] for condition in found[3:]] == [
        "Some resources are remaining: configmaps. has 1 resource instances",
        "Some content in the namespace has finalizers remaining: example.com/wait in 1 resource instances",
    ]
    assert config_map(client).body["details"]["causes"] == [CAUSE]
    patch = {"metadata": {"finalizers": None}}
    client.send("PATCH", f"{NAMESPACES}/n/configmaps/a", patch, "application/merge-patch+json")
    until_deleted(client)


def test_a_function_that_refuses_deletions_is_reported(noxu: Noxu, client: Client) -> None:
    refusing = True

    @noxu.validating("configmaps.", operations=["DELETE"], name="guard")
    def refuse(request: Any) -> str | None:
        expected = "system:serviceaccount:kube-system:namespace-controller"
        return "keep it" if refusing and request["userInfo"]["username"] == expected else None

    create(client)
    config_map(client)
    delete(client)
    found = eventually(lambda: get(client)["status"].get("conditions"))
    assert (found[2]["status"], found[2]["reason"]) == ("True", "ContentDeletionFailed")
    assert found[2]["message"] == (
        'Failed to delete all resource types, 1 remaining: admission webhook "guard" denied the request: keep it'
    )
    refusing = False
    until_deleted(client)


def test_a_new_namespace_gets_its_account_and_the_ca(client: Client) -> None:
    create(client)
    account = f"{NAMESPACES}/n/serviceaccounts/default"
    uid = eventually(lambda: client.send("GET", account).body["metadata"].get("uid"))
    eventually(lambda: client.send("GET", f"{NAMESPACES}/n/configmaps/kube-root-ca.crt").code == 200)
    assert client.send("DELETE", account).code == 200
    eventually(lambda: client.send("GET", account).body["metadata"].get("uid") not in (None, uid))


def test_every_controller_is_a_health_check(client: Client) -> None:
    report = client.send("GET", "/readyz?verbose").body
    for name in ("bootstrap", "namespace", "serviceaccount", "root-ca-certificate-publisher", "crd-finalizer"):
        assert f"[+]{name}-controller ok\n" in report
