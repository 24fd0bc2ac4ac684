"""Plug-ins that are disabled do not run, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.client import Answer, Client
from noxu.features import PLUGINS
from noxu.testing.handle import Noxu
from tests.timing import eventually

NAMESPACES = "/api/v1/namespaces"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
MATCH = {"matchConstraints": {"resourceRules": [RULE]}}
WEBHOOK = {
    "name": "w.example.com",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "clientConfig": {"url": "http://127.0.0.1:1/"},  # refuses connections
    "rules": [RULE],
}
FAILS = {"expression": "string(1/0) == ''", "message": "the policy says no"}
MUTATION = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{data: {'x': string(1/0)}}"}}


def policy(kind: str, spec: dict[str, Any], **binding: Any) -> list[tuple[str, dict[str, Any]]]:
    plural = kind.lower()
    return [
        (plural.replace("policy", "policies"), {"kind": kind, "spec": {**MATCH, **spec}}),
        (f"{plural}bindings", {"kind": f"{kind}Binding", "spec": {"policyName": "refuse", **binding}}),
    ]


REFUSING: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "MutatingAdmissionPolicy": policy(
        "MutatingAdmissionPolicy", {"mutations": [MUTATION], "reinvocationPolicy": "Never"}
    ),
    "MutatingAdmissionWebhook": [
        ("mutatingwebhookconfigurations", {"kind": "MutatingWebhookConfiguration", "webhooks": [WEBHOOK]})
    ],
    "ValidatingAdmissionPolicy": policy(
        "ValidatingAdmissionPolicy", {"validations": [FAILS]}, validationActions=["Deny"]
    ),
    "ValidatingAdmissionWebhook": [
        ("validatingwebhookconfigurations", {"kind": "ValidatingWebhookConfiguration", "webhooks": [WEBHOOK]})
    ],
}
"""Configurations by which each plug-in refuses new ConfigMaps."""
CODES = {
    "MutatingAdmissionPolicy": 403,
    "MutatingAdmissionWebhook": 500,
    "ValidatingAdmissionPolicy": 422,
    "ValidatingAdmissionWebhook": 500,
}

Start = Callable[..., Client]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start("NamespaceLifecycle")` starts a server without these plug-ins."""
    stops: list[Callable[[], object]] = []

    def started(*disabled: str) -> Client:
        noxu = Noxu(tmp_path, disable_admission_plugins=disabled).start()
        stops.append(noxu.stop)
        client = Client(noxu.url)
        stops.append(client.close)
        return client

    yield started
    for stop in reversed(stops):
        stop()


def create(client: Client, namespace: str = "default", name: str = "c") -> Answer:
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return client.send("POST", f"{NAMESPACES}/{namespace}/configmaps", value)


def configure(client: Client, plugin: str) -> None:
    for plural, value in REFUSING[plugin]:
        whole = {"apiVersion": ADMISSION.removeprefix("/apis/"), "metadata": {"name": "refuse"}, **value}
        answer = client.send("POST", f"{ADMISSION}/{plural}", whole)
        assert answer.code == 201, answer.body


@pytest.mark.parametrize("plugin", REFUSING)
def test_a_plugin_that_is_disabled_does_not_run(start: Start, plugin: str) -> None:
    client = start(plugin)
    configure(client, plugin)
    assert create(client).code == 201


@pytest.mark.parametrize("plugin", REFUSING)
def test_it_runs_if_all_others_are_disabled(start: Start, plugin: str) -> None:
    client = start(*(name for name in PLUGINS if name != plugin))
    configure(client, plugin)
    assert create(client).code == CODES[plugin]


def test_without_any_plugin_everything_is_admitted(start: Start) -> None:
    client = start(*PLUGINS)
    for plugin in REFUSING:
        configure(client, plugin)
    assert create(client, "missing").code == 201


def test_functions_in_place_of_webhooks_are_refused_if_they_would_not_be_called(tmp_path: Path) -> None:
    with Noxu(tmp_path, disable_admission_plugins=["MutatingAdmissionWebhook"]) as noxu:
        noxu.validating("configmaps")(lambda _: None)
        with pytest.raises(
            ValueError, match=r"not be called: the admission plug-in MutatingAdmissionWebhook is disabl"
        ):
            noxu.mutating("configmaps")
    with Noxu(tmp_path, disable_admission_plugins=["ValidatingAdmissionWebhook"]) as noxu:
        noxu.mutating("configmaps")(lambda _: None)
        with pytest.raises(ValueError, match=r"called: the admission plug-in ValidatingAdmissionWebhook is disabled"):
            noxu.validating("configmaps")


# -- NamespaceLifecycle -----------------------------------------------------------------------------------------------


def test_objects_in_missing_namespaces(start: Start) -> None:
    client = start("NamespaceLifecycle")
    assert create(client, "missing").code == 201
    assert client.send("GET", f"{NAMESPACES}/missing/configmaps/c").body["metadata"]["namespace"] == "missing"
    assert client.send("GET", f"{NAMESPACES}/missing").code == 404
    assert client.send("DELETE", f"{NAMESPACES}/missing/configmaps/c").code == 200


def test_objects_in_terminating_namespaces(start: Start) -> None:
    """They are deleted with the others."""
    client = start("NamespaceLifecycle")
    value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "finalizers": ["example.com/held"]}}
    assert client.send("POST", NAMESPACES, value).code == 201
    assert client.send("DELETE", f"{NAMESPACES}/n").code == 200
    assert create(client, "n").code == 201


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
def test_namespaces_of_every_cluster_can_be_deleted_and_are_created_again(start: Start, name: str) -> None:
    client = start("NamespaceLifecycle")
    before = client.send("GET", f"{NAMESPACES}/{name}").body["metadata"]["uid"]
    assert client.send("DELETE", f"{NAMESPACES}/{name}").code == 200

    def created_again() -> bool:
        answer = client.send("GET", f"{NAMESPACES}/{name}")
        return answer.code == 200 and answer.body["metadata"]["uid"] != before

    eventually(created_again)


def test_the_namespace_of_an_object_must_still_be_that_of_the_path(start: Start) -> None:
    client = start("NamespaceLifecycle")
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "other"}}
    assert client.send("POST", f"{NAMESPACES}/missing/configmaps", value).code == 400


# -- reviews ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("disabled", [(), ("NamespaceLifecycle",)])
def test_reviews_of_access_do_not_disclose_which_namespaces_exist(start: Start, disabled: tuple[str, ...]) -> None:
    client = start(*disabled)
    spec = {"user": "u", "resourceAttributes": {"namespace": "missing", "verb": "get", "resource": "pods"}}
    value = {"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview", "spec": spec}
    path = "/apis/authorization.k8s.io/v1/namespaces/missing/localsubjectaccessreviews"
    assert client.send("POST", path, value).code == 201
