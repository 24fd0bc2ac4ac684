"""The admission chain, over HTTP: which plug-ins check a write, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.client import Answer, Client
from noxu.testing.functions import Denied
from noxu.testing.handle import Noxu

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
MATCH = {"matchConstraints": {"resourceRules": [RULE]}}


class Server:
    """A server, and the objects that its webhooks have seen."""

    def __init__(self, noxu: Noxu, client: Client) -> None:
        self.noxu = noxu
        self.client = client
        self.seen: list[tuple[str, Any]] = []

    def create(self, **data: str) -> Answer:
        value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}, "data": data}
        return self.client.send("POST", CONFIG_MAPS, value)

    def configure(self, kind: str, plural: str, name: str, spec: dict[str, Any]) -> None:
        value = {"apiVersion": ADMISSION.removeprefix("/apis/"), "kind": kind, "metadata": {"name": name}, "spec": spec}
        answer = self.client.send("POST", f"{ADMISSION}/{plural}", value)
        assert answer.code == 201, answer.body

    def mutating_policy(self, expression: str, reinvocation: str = "Never") -> None:
        mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
        spec = {**MATCH, "mutations": [mutation], "reinvocationPolicy": reinvocation}
        self.configure("MutatingAdmissionPolicy", "mutatingadmissionpolicies", "m", spec)
        self.configure("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", "m", {"policyName": "m"})

    def validating_policy(self, expression: str) -> None:
        spec = {**MATCH, "validations": [{"expression": expression, "message": "the policy says no"}]}
        self.configure("ValidatingAdmissionPolicy", "validatingadmissionpolicies", "v", spec)
        binding = {"policyName": "v", "validationActions": ["Deny"]}
        self.configure("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", "v", binding)

    def mutating_webhook(self, name: str, **data: str) -> None:
        @self.noxu.mutating("configmaps")
        def change(request: Any) -> None:
            self.seen.append((name, dict(request["object"]["data"])))
            request["object"]["data"].update(data)

    def validating_webhook(self, *, deny: bool = False) -> None:
        @self.noxu.validating("configmaps")
        def check(request: Any) -> None:
            self.seen.append(("validating", dict(request["object"]["data"])))
            if deny:
                raise Denied("the webhook says no")


@pytest.fixture
def server(noxu: Noxu) -> Iterator[Server]:
    with Client(noxu.url) as client:
        yield Server(noxu, client)


def test_without_configuration_everything_is_admitted(server: Server) -> None:
    assert server.create(a="1").code == 201


def test_policies_mutate_before_webhooks(server: Server) -> None:
    server.mutating_policy('Object{data: {"policy": "1"}}')
    server.mutating_webhook("hook", hook="2")
    assert server.create(a="0").body["data"] == {"a": "0", "policy": "1", "hook": "2"}
    assert server.seen == [("hook", {"a": "0", "policy": "1"})]


def test_validation_sees_the_mutated_object(server: Server) -> None:
    server.mutating_webhook("hook", hook="2")
    server.validating_webhook()
    server.validating_policy("'hook' in object.data")
    assert server.create(a="0").code == 201
    assert server.seen[-1] == ("validating", {"a": "0", "hook": "2"})


def test_policies_validate_before_webhooks(server: Server) -> None:
    server.validating_policy("false")
    server.validating_webhook(deny=True)
    answer = server.create(a="0")
    assert (answer.code, "the policy says no" in answer.body["message"]) == (422, True)
    assert server.seen == []


def test_a_policy_may_be_evaluated_again_after_a_change(server: Server) -> None:
    server.mutating_policy('has(object.data.hook) ? Object{data: {"again": "yes"}} : Object{}', "IfNeeded")
    server.mutating_webhook("hook", hook="2")
    assert server.create(a="0").body["data"] == {"a": "0", "hook": "2", "again": "yes"}


def test_a_policy_with_never_is_evaluated_once(server: Server) -> None:
    server.mutating_policy('has(object.data.hook) ? Object{data: {"again": "yes"}} : Object{}')
    server.mutating_webhook("hook", hook="2")
    assert server.create(a="0").body["data"] == {"a": "0", "hook": "2"}


def test_policies_are_not_subject_to_admission(server: Server) -> None:
    everything = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    spec = {"matchConstraints": {"resourceRules": [everything]}, "validations": [{"expression": "false"}]}
    server.configure("ValidatingAdmissionPolicy", "validatingadmissionpolicies", "all", spec)
    binding = {"policyName": "all", "validationActions": ["Deny"]}
    server.configure("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", "all", binding)
    assert server.create(a="0").code == 422
    assert server.client.send("DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/all").code == 200
    assert server.create(a="0").code == 201


def test_reviews_are_not_subject_to_admission(server: Server) -> None:
    everything = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    spec = {"matchConstraints": {"resourceRules": [everything]}, "validations": [{"expression": "false"}]}
    server.configure("ValidatingAdmissionPolicy", "validatingadmissionpolicies", "all", spec)
    binding = {"policyName": "all", "validationActions": ["Deny"]}
    server.configure("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", "all", binding)
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert server.client.send("POST", path, review).code == 201
