"""Admission of subresources whose body is of another kind: the resource is that of the URL, the kind that of the body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from conformance.client import Client
from noxu.testing.handle import Noxu
from tests.http.conftest import Reply, Things
from tests.http.pods import PODS, Pods

BINDING: Final = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
EVICTION: Final = {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 5}}
BODIES: list[tuple[str, Any, str, str]] = [
    ("binding", BINDING, "v1", "Binding"),
    ("eviction", EVICTION, "policy/v1", "Eviction"),
]
Ask = Callable[[str, Any], Reply]


@pytest.fixture
def pods(noxu: Noxu) -> Any:
    with Client(noxu.url) as client:
        yield Pods(Things(client))


def post(pods: Pods, subresource: str, body: Any) -> Reply:
    return pods.api.ask("POST", f"{PODS}/p/{subresource}", body)


@pytest.mark.parametrize(("subresource", "body", "version", "kind"), BODIES)
def test_a_webhook_sees_the_body_and_the_pods_resource(
    noxu: Noxu, pods: Pods, subresource: str, body: Any, version: str, kind: str
) -> None:
    seen: list[Any] = []
    noxu.validating(f"pods/{subresource}")(seen.append)
    noxu.validating("pods", operations=["*"])(lambda request: seen.append("pods"))
    pods.create()
    seen.clear()
    assert post(pods, subresource, body).code == 201
    [request] = seen  # what the server does itself is not subject to admission
    group, _, number = version.rpartition("/")
    assert request["kind"] == {"group": group, "version": number, "kind": kind}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "pods"}
    assert (request["subResource"], request["operation"], request["name"]) == (subresource, "CREATE", "p")
    assert request["namespace"] == "default"
    assert (request["object"]["kind"], request["object"]["apiVersion"]) == (kind, version)
    assert request["oldObject"] is None


@pytest.mark.parametrize(("subresource", "body", "version", "kind"), BODIES)
def test_a_webhook_refuses_the_body(
    noxu: Noxu, pods: Pods, subresource: str, body: Any, version: str, kind: str
) -> None:
    noxu.validating(f"pods/{subresource}", name="h")(lambda request: "no")
    before = pods.create()
    reply = post(pods, subresource, body)
    assert (reply.code, reply.message) == (400, 'admission webhook "h" denied the request: no')
    assert pods.get().body == before


def test_a_webhook_changes_a_binding(noxu: Noxu, pods: Pods) -> None:
    noxu.mutating("pods/binding")(lambda request: {**request["object"], "target": {"kind": "Node", "name": "other"}})
    pods.create()
    assert post(pods, "binding", BINDING).code == 201
    assert pods.get().body["spec"]["nodeName"] == "other"


def test_a_webhook_changes_an_eviction(noxu: Noxu, pods: Pods) -> None:
    noxu.mutating("pods/eviction")(lambda request: {**request["object"], "deleteOptions": {"gracePeriodSeconds": 9}})
    pods.run()
    assert post(pods, "eviction", EVICTION).code == 201
    assert pods.get().body["metadata"]["deletionGracePeriodSeconds"] == 9


def test_a_webhook_sees_the_legacy_binding(noxu: Noxu, pods: Pods) -> None:
    seen: list[Any] = []
    noxu.validating("bindings")(seen.append)
    pods.create()
    assert pods.api.ask("POST", "/api/v1/namespaces/default/bindings", BINDING).code == 201
    [request] = seen
    assert (request["resource"]["resource"], request["kind"]["kind"], request["name"]) == ("bindings", "Binding", "p")


CONNECTIONS: list[tuple[str, str, Any]] = [
    ("pods/exec", "?command=ls&command=-l&stdin=true&stdout=0&container=c",
     {"kind": "PodExecOptions", "apiVersion": "v1", "stdin": True, "container": "c", "command": ["ls", "-l"]}),
    ("pods/exec", "", {"kind": "PodExecOptions", "apiVersion": "v1", "command": None}),
    ("pods/attach", "?tty", {"kind": "PodAttachOptions", "apiVersion": "v1", "tty": True}),
    ("pods/portforward", "?ports=80,81&ports=82",
     {"kind": "PodPortForwardOptions", "apiVersion": "v1", "ports": [80, 81, 82]}),
    ("pods/proxy", "/a/b/?path=x", {"kind": "PodProxyOptions", "apiVersion": "v1", "path": "/a/b/"}),
    ("pods/proxy", "", {"kind": "PodProxyOptions", "apiVersion": "v1"}),
    ("services/proxy", "/x", {"kind": "ServiceProxyOptions", "apiVersion": "v1", "path": "/x"}),
]  # fmt: skip


@pytest.mark.parametrize(("resource", "rest", "options"), CONNECTIONS)
def test_a_webhook_sees_a_connection(noxu: Noxu, pods: Pods, resource: str, rest: str, options: Any) -> None:
    seen: list[Any] = []
    noxu.validating(resource, operations=["CONNECT"])(seen.append)
    plural, _, subresource = resource.partition("/")
    pods.api.ask("GET", f"/api/v1/namespaces/default/{plural}/p/{subresource}{rest}")
    [request] = seen
    assert request["object"] == options
    assert request["kind"] == {"group": "", "version": "v1", "kind": options["kind"]}
    assert (request["resource"]["resource"], request["subResource"]) == (plural, subresource)
    assert (request["operation"], request["name"], request["namespace"]) == ("CONNECT", "p", "default")
    assert (request["oldObject"], request["options"], request["dryRun"]) == (None, None, False)


def test_a_log_is_no_connection(noxu: Noxu, pods: Pods) -> None:
    seen: list[Any] = []
    pods.create()
    noxu.validating("pods/*", operations=["*"])(seen.append)
    assert pods.api.ask("GET", f"{PODS}/p/log").code == 200
    assert seen == []


def test_a_webhook_refuses_a_connection(noxu: Noxu, pods: Pods) -> None:
    noxu.validating("pods/exec", operations=["CONNECT"], name="h")(lambda request: "no")
    pods.create()
    reply = pods.api.ask("GET", f"{PODS}/p/exec?command=ls")
    assert (reply.code, reply.message) == (400, 'admission webhook "h" denied the request: no')


def test_a_webhook_changes_the_container(noxu: Noxu, pods: Pods) -> None:
    noxu.mutating("pods/exec", operations=["CONNECT"])(lambda request: {**request["object"], "container": "other"})
    pods.create()
    reply = pods.api.ask("GET", f"{PODS}/p/exec?command=ls&container=c")
    assert (reply.code, reply.message) == (400, "container other is not valid for pod p")


def test_a_port_that_is_no_number_is_refused(pods: Pods) -> None:
    reply = pods.api.ask("GET", f"{PODS}/p/portforward?ports=x")
    text = 'cannot convert to []int32: strconv.ParseUint: parsing "x": invalid syntax'
    assert (reply.code, reply.message) == (400, text)


@pytest.mark.parametrize(("command", "code"), [("ls", 400), ("rm", 422)])
def test_a_policy_checks_a_connection(noxu: Noxu, pods: Pods, command: str, code: int) -> None:
    rule = "object.kind == 'PodExecOptions' && !('rm' in object.command)"
    noxu.apply(*_policy(rule, "exec", "CONNECT"))
    pods.create()
    assert pods.api.ask("POST", f"{PODS}/p/exec?command={command}").code == code


def _policy(expression: str, subresource: str, operation: str = "CREATE") -> list[Any]:
    resources = [f"pods/{subresource}"]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": resources}
    about = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "p"}}
    validations = [{"expression": expression, "message": "no"}]
    return [
        {**about, "kind": "ValidatingAdmissionPolicy",
         "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": validations}},
        {**about, "kind": "ValidatingAdmissionPolicyBinding",
         "spec": {"policyName": "p", "validationActions": ["Deny"]}},
    ]  # fmt: skip


@pytest.mark.parametrize(("limit", "code"), [(5, 201), (4, 422)])
def test_a_policy_checks_an_eviction(noxu: Noxu, pods: Pods, limit: int, code: int) -> None:
    kind = "request.kind.kind == 'Eviction' && object.kind == 'Eviction' && request.resource.resource == 'pods'"
    noxu.apply(*_policy(f"{kind} && object.deleteOptions.gracePeriodSeconds <= {limit}", "eviction"))
    pods.run()
    assert post(pods, "eviction", EVICTION).code == code


def test_an_eviction_updates_the_budget_subject_to_admission(noxu: Noxu, pods: Pods) -> None:
    seen: list[Any] = []
    noxu.validating("poddisruptionbudgets.policy/status", operations=["UPDATE"])(seen.append)
    pods.run()
    pods.budget(disruptionsAllowed=1)
    seen.clear()
    assert post(pods, "eviction", EVICTION).code == 201
    [request] = seen
    assert request["userInfo"] == {"username": "system:apiserver", "groups": ["system:masters", "system:authenticated"]}


def test_a_pending_deletion_is_not_subject_to_admission(noxu: Noxu, pods: Pods) -> None:
    pods.run()
    pods.api.ask("DELETE", f"{PODS}/p")
    noxu.validating("pods", operations=["DELETE"], name="h")(lambda request: "no")
    assert pods.api.ask("DELETE", f"{PODS}/p").code == 200
    assert pods.api.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 3}).code == 400


def test_nothing_is_bound_or_evicted_in_a_namespace_that_is_being_deleted(pods: Pods) -> None:
    pods.api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "x"}})
    path = "/api/v1/namespaces/x/pods"
    body = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    assert pods.api.ask("POST", path, body).code == 201
    pods.api.ask("DELETE", "/api/v1/namespaces/x")
    for subresource, sent in (("binding", BINDING), ("eviction", EVICTION)):
        reply = pods.api.ask("POST", f"{path}/p/{subresource}", sent)
        why = "unable to create new content in namespace x because it is being terminated"
        assert (reply.code, reply.message) == (403, f'pods "p" is forbidden: {why}')
