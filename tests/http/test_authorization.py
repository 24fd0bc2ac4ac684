"""Authorization over HTTP: what the filter asks, that a refusal comes before routing, and that changes act at once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from noxu.config import Authentication
from noxu.testing.handle import Noxu
from noxu.values import Object
from tests.hostile.raw_http import Target
from tests.hostile.raw_http import status_of as code_of
from tests.http.exchanges import Reply, ServedApp, serving_app

RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
MAPS: Final = "/api/v1/namespaces/default/configmaps"
MASTER: Final = {"X_User": "root", "X_Groups": "system:masters"}


@pytest.fixture
async def app() -> AsyncIterator[ServedApp]:
    async with serving_app(authorization_modes=("RBAC",)) as served:
        yield served


async def send(app: ServedApp, user: str, method: str, path: str, body: Any = None, **headers: str) -> Reply:
    """A request by a user; "" is anonymous, and `root` is in system:masters."""
    given = {"X-User": user} if user else {}
    if user == "root":
        given["X-Groups"] = "system:masters"
    return await app.send(method, path, body, **given | {k.replace("_", "-"): v for k, v in headers.items()})


async def grant(app: ServedApp, *rules: Object, namespace: str = "", to: str = "dev") -> None:
    """Let a user do what the rules allow."""
    kind, plural = ("Role", "roles") if namespace else ("ClusterRole", "clusterroles")
    base = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    made = {"kind": kind, "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": to}, "rules": list(rules)}
    assert (await send(app, "root", "POST", f"{base}/{plural}", made)).code == 201
    subjects = [{"kind": "User", "name": to, "apiGroup": "rbac.authorization.k8s.io"}]
    bound = {"metadata": {"name": to}, "subjects": subjects, "roleRef": {"kind": kind, "name": to}}
    bindings = "rolebindings" if namespace else "clusterrolebindings"
    assert (await send(app, "root", "POST", f"{base}/{bindings}", bound | _typed(f"{kind}Binding"))).code == 201


def _typed(kind: str) -> Object:
    return {"kind": kind, "apiVersion": "rbac.authorization.k8s.io/v1"}


def rule(verbs: str, resources: str, groups: str = "core", names: str = "") -> Object:
    return {
        "verbs": verbs.split(),
        "resources": resources.split(),
        "apiGroups": [group.replace("core", "") for group in groups.split()],
        "resourceNames": names.split(),
    }


def config_map(name: str) -> Object:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}}


async def test_the_answer_to_a_user_without_rights(app: ServedApp) -> None:
    reply = await send(app, "dev", "GET", MAPS)
    assert json.loads(reply.text) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps is forbidden: User "dev" cannot list resource "configmaps" in API group "" in the '
        'namespace "default"',
        "reason": "Forbidden",
        "details": {"kind": "configmaps"},
        "code": 403,
    }
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Cache-Control"] == "no-cache, private"
    assert app.exchanges[-1].decision is not None
    assert not app.exchanges[-1].decision.allowed


HIDDEN: list[tuple[str, str, str, int]] = [
    ("a group that does not exist", "GET", "/apis/none.example.com/v1/widgets", 404),
    ("a version that does not exist", "GET", "/api/v9/pods", 404),
    ("a resource that does not exist", "GET", "/api/v1/nothing", 404),
    ("a document that does not exist", "GET", "/nothing", 404),
    ("an object that does not exist", "GET", f"{MAPS}/nothing", 404),
    ("a method that it does not have", "PATCH", MAPS, 405),
    ("a subresource that it does not have", "GET", f"{MAPS}/a/scale", 404),
    ("a body of another type", "POST", MAPS, 415),
    ("traces of writes", "GET", "/_noxu/traces/1", 404),
    ("the root", "GET", "/", 200),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "code"), [row[1:] for row in HIDDEN], ids=[row[0] for row in HIDDEN])
async def test_a_refusal_hides_what_exists(app: ServedApp, method: str, path: str, code: int) -> None:
    kind = {"Content_Type": "text/x"} if method == "POST" else {}
    for user in ("dev", ""):
        reply = await send(app, user, method, path, **kind)
        assert reply.code == 403
        assert f'User "{user or "system:anonymous"}"' in json.loads(reply.text)["message"]
    assert (await send(app, "root", method, path, **kind)).code in (code, 404, 405)


DOCUMENTS: list[tuple[str, int, int]] = [
    ("/version", 200, 200),
    ("/healthz", 200, 200),
    ("/readyz", 200, 200),
    ("/livez?verbose", 200, 200),
    ("/readyz/ping", 403, 403),
    ("/api", 200, 403),
    ("/api/v1", 200, 403),
    ("/apis", 200, 403),
    ("/apis/apps/v1", 200, 403),
    ("/openapi/v2", 200, 403),
    ("/openapi/v3/api/v1", 200, 403),
    ("/metrics", 403, 403),
    ("/", 403, 403),
    ("/swagger.json", 403, 403),
]


@pytest.mark.parametrize(("path", "authenticated", "anonymous"), DOCUMENTS)
async def test_the_documents_that_everyone_may_read(
    app: ServedApp, path: str, authenticated: int, anonymous: int
) -> None:
    assert [(await send(app, user, "GET", path)).code for user in ("dev", "")] == [authenticated, anonymous]
    assert (await send(app, "dev", "POST", path)).code == 403


ASKED: list[tuple[str, str, str, str]] = [
    ("a namespace", "GET", "/api/v1/namespaces/x", 'namespaces "x" is forbidden: User "dev" cannot get resource "namespaces" '
     'in API group "" in the namespace "x"'),
    ("its status", "PUT", "/api/v1/namespaces/x/status", 'namespaces "x" is forbidden: User "dev" cannot update resource '
     '"namespaces/status" in API group "" in the namespace "x"'),
    ("all namespaces", "GET", "/api/v1/namespaces", 'namespaces is forbidden: User "dev" cannot list resource "namespaces" in '
     'API group "" at the cluster scope'),
    ("pods of all namespaces", "GET", "/api/v1/pods", 'pods is forbidden: User "dev" cannot list resource "pods" in API group '
     '"" at the cluster scope'),
    ("a watch", "GET", f"{MAPS}?watch=1", 'configmaps is forbidden: User "dev" cannot watch resource "configmaps" in API '
     'group "" in the namespace "default"'),
    ("a watch in the path", "GET", "/api/v1/watch/namespaces/default/configmaps",
     'configmaps is forbidden: User "dev" cannot watch resource "configmaps" in API group "" in the namespace "default"'),
    ("one object by a field selector", "GET", f"{MAPS}?fieldSelector=metadata.name%3Da",
     'configmaps "a" is forbidden: User "dev" cannot list resource "configmaps" in API group "" in the namespace "default"'),
    ("a watch of one object", "GET", f"{MAPS}?watch=1&fieldSelector=metadata.name%3Da",
     'configmaps "a" is forbidden: User "dev" cannot watch resource "configmaps" in API group "" in the namespace "default"'),
    ("a collection to delete by a field selector", "DELETE", f"{MAPS}?fieldSelector=metadata.name%3Da",
     'configmaps is forbidden: User "dev" cannot deletecollection resource "configmaps" in API group "" in the namespace '
     '"default"'),
    ("a selector of no valid name", "GET", f"{MAPS}?fieldSelector=metadata.name%3Da%2Fb",
     'configmaps is forbidden: User "dev" cannot list resource "configmaps" in API group "" in the namespace "default"'),
    ("a subresource of a method without a verb", "OPTIONS", f"{MAPS}/a/status", 'configmaps "a" is forbidden: User "dev" '
     'cannot  resource "configmaps/status" in API group "" in the namespace "default"'),
    ("exec", "POST", "/api/v1/namespaces/default/pods/p/exec", 'pods "p" is forbidden: User "dev" cannot create resource '
     '"pods/exec" in API group "" in the namespace "default"'),
    ("a path", "POST", "/healthz", 'forbidden: User "dev" cannot post path "/healthz"'),
    ("a query is no part of a path", "GET", "/metrics?x=1", 'forbidden: User "dev" cannot get path "/metrics"'),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "message"), [row[1:] for row in ASKED], ids=[row[0] for row in ASKED])
async def test_what_is_asked(app: ServedApp, method: str, path: str, message: str) -> None:
    reply = await send(app, "dev", method, path)
    assert (reply.code, json.loads(reply.text)["message"]) == (403, message)


async def test_head_is_get_or_list(app: ServedApp) -> None:
    await grant(app, rule("list", "configmaps"))
    assert (await send(app, "dev", "HEAD", MAPS)).code != 403
    assert (await send(app, "dev", "HEAD", f"{MAPS}/a")).code == 403


async def test_a_write_of_a_binding_acts_before_it_is_answered(app: ServedApp) -> None:
    assert (await send(app, "dev", "GET", MAPS)).code == 403
    await grant(app, rule("list", "configmaps"), namespace="default")
    assert (await send(app, "dev", "GET", MAPS)).code == 200
    assert (await send(app, "dev", "GET", "/api/v1/configmaps")).code == 403
    assert (await send(app, "root", "DELETE", f"{RBAC}/namespaces/default/rolebindings/dev")).code == 200
    assert (await send(app, "dev", "GET", MAPS)).code == 403


async def test_a_subresource_of_every_resource(app: ServedApp) -> None:
    await grant(app, rule("get", "*/status", "*"), rule("get", "pods/*"))
    pods = "/api/v1/namespaces/default/pods/p"
    assert [(await send(app, "dev", "GET", f"{pods}{part}")).code for part in ("/status", "", "/log")] == [
        404,
        403,
        403,
    ]


async def test_rules_for_one_name(app: ServedApp) -> None:
    assert (await send(app, "root", "POST", MAPS, config_map("a"))).code == 201
    await grant(app, rule("get list watch create", "configmaps", names="a"))
    answers = {
        f"{MAPS}/a": 200,
        f"{MAPS}/b": 403,
        MAPS: 403,
        f"{MAPS}?fieldSelector=metadata.name%3Da": 200,
        f"{MAPS}?fieldSelector=metadata.name%3Db": 403,
        f"{MAPS}?fieldSelector=metadata.name%21%3Da": 403,
        f"{MAPS}?fieldSelector=metadata.name%3Da&watch=1&timeoutSeconds=1": 200,
    }
    assert {path: (await send(app, "dev", "GET", path)).code for path in answers} == answers
    assert (await send(app, "dev", "POST", MAPS, config_map("a"))).code == 403


async def test_a_missing_role_is_named(app: ServedApp) -> None:
    subjects = [{"kind": "User", "name": "dev"}]
    bound = {"metadata": {"name": "b"}, "subjects": subjects, "roleRef": {"kind": "ClusterRole", "name": "nope"}}
    path = f"{RBAC}/clusterrolebindings"
    assert (await send(app, "root", "POST", path, bound | _typed("ClusterRoleBinding"))).code == 201
    message = json.loads((await send(app, "dev", "GET", "/metrics")).text)["message"]
    expected = 'RBAC: clusterrole.rbac.authorization.k8s.io "nope" not found'
    assert message == f'forbidden: User "dev" cannot get path "/metrics": {expected}'


CREATED: list[tuple[str, str, str, str, dict[str, str]]] = [
    ("a replacement", "PUT", "update", "", {}),
    ("an apply", "PATCH", "patch", "?fieldManager=m", {"Content_Type": "application/apply-patch+yaml"}),
    ("a dry run", "PUT", "update", "?dryRun=All", {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "verb", "query", "headers"), [row[1:] for row in CREATED], ids=[row[0] for row in CREATED]
)
async def test_a_write_that_creates_needs_the_verb_create(
    app: ServedApp, method: str, verb: str, query: str, headers: dict[str, str]
) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "a", "namespace": "default"}}
    await grant(app, rule(verb, "leases", "coordination.k8s.io"))
    path = f"{leases}/a{query}"
    reply = await send(app, "dev", method, path, lease, **headers)
    assert (reply.code, json.loads(reply.text)["message"]) == (403, 'leases.coordination.k8s.io "a" is forbidden: ')
    await grant(app, rule("create", "leases", "coordination.k8s.io", names="a"), to="all")
    subjects = {"subjects": [{"kind": "User", "name": "dev"}], "roleRef": {"kind": "ClusterRole", "name": "all"}}
    bound = {"metadata": {"name": "more"}, **subjects, **_typed("ClusterRoleBinding")}
    assert (await send(app, "root", "POST", f"{RBAC}/clusterrolebindings", bound)).code == 201
    assert (await send(app, "dev", method, path, lease, **headers)).code == 201
    assert (await send(app, "dev", "POST", leases, lease)).code == 403


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
async def test_a_connection_by_get_needs_create_too(app: ServedApp, subresource: str) -> None:
    path = f"/api/v1/namespaces/default/pods/p/{subresource}"
    await grant(app, rule("get", f"pods/{subresource}"))
    refused = (
        f'pods "p" is forbidden: User "dev" cannot create resource "pods/{subresource}" in API group "" in the namespace '
        '"default"'
    )
    reply = await send(app, "dev", "GET", path)
    assert (reply.code, json.loads(reply.text)["message"]) == (403, refused)
    await grant(app, rule("create", f"pods/{subresource}"), to="more")
    subjects = {"subjects": [{"kind": "User", "name": "dev"}], "roleRef": {"kind": "ClusterRole", "name": "more"}}
    also = {"metadata": {"name": "also"}, **subjects, **_typed("ClusterRoleBinding")}
    assert (await send(app, "root", "POST", f"{RBAC}/clusterrolebindings", also)).code == 201
    assert (await send(app, "dev", "GET", path)).code == 404  # there is no such pod


# -- reviews, and expressions ----------------------------------------------------------------------------------------------

REVIEWS: Final = "/apis/authorization.k8s.io/v1"


def review(kind: str, **spec: Any) -> Object:
    return {"kind": kind, "apiVersion": "authorization.k8s.io/v1", "spec": spec}


async def status_of(app: ServedApp, by: str, kind: str, plural: str, **spec: Any) -> Object:
    reply = await send(app, by, "POST", f"{REVIEWS}/{plural}", review(kind, **spec))
    assert reply.code == 201, reply.text
    status: Object = json.loads(reply.text)["status"]
    return status


async def test_reviews_have_the_answers_of_requests(app: ServedApp) -> None:
    await grant(app, rule("get", "configmaps"), namespace="default")
    asked = {"verb": "get", "resource": "configmaps", "namespace": "default", "name": "a"}
    own = ("SelfSubjectAccessReview", "selfsubjectaccessreviews")
    reason = 'RBAC: allowed by RoleBinding "dev/default" of Role "dev" to User "dev"'
    assert await status_of(app, "dev", *own, resourceAttributes=asked) == {"allowed": True, "reason": reason}
    elsewhere = {**asked, "namespace": "other"}
    assert await status_of(app, "dev", *own, resourceAttributes=elsewhere) == {"allowed": False}
    path = {"verb": "get", "path": "/metrics"}
    assert await status_of(app, "dev", *own, nonResourceAttributes=path) == {"allowed": False}
    assert await status_of(app, "root", *own, nonResourceAttributes=path) == {"allowed": True}
    about = ("SubjectAccessReview", "subjectaccessreviews")
    assert (await status_of(app, "root", *about, user="dev", resourceAttributes=asked))["reason"] == reason
    denied = await send(app, "dev", "POST", f"{REVIEWS}/subjectaccessreviews", review("SubjectAccessReview", user="x"))
    assert denied.code == 403
    local = ("LocalSubjectAccessReview", "namespaces/default/localsubjectaccessreviews")
    assert (await status_of(app, "root", *local, user="dev", resourceAttributes=asked))["reason"] == reason


async def test_the_rules_of_the_own_user(app: ServedApp) -> None:
    await grant(app, rule("get", "configmaps"), namespace="default")
    rules = ("SelfSubjectRulesReview", "selfsubjectrulesreviews")
    status = await status_of(app, "dev", *rules, namespace="default")
    assert status["resourceRules"][-1] == {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}
    assert {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"]} in (
        status["nonResourceRules"]
    )
    assert status["incomplete"] is False


ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
EXPRESSIONS: list[tuple[str, str]] = [
    ("the user of the request", "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()"),
    ("the resource of the request", "authorizer.requestResource.check('approve').allowed()"),
    ("a path", "authorizer.path('/metrics').check('get').allowed()"),
    ("a service account", "authorizer.serviceAccount('default', 'robot').group('').resource('pods').check('get').allowed()"),
    ("the reason", "authorizer.path('/metrics').check('get').reason().contains('ClusterRoleBinding')"),
]  # fmt: skip


@pytest.mark.parametrize("expression", [row[1] for row in EXPRESSIONS], ids=[row[0] for row in EXPRESSIONS])
async def test_expressions_ask_about(app: ServedApp, expression: str) -> None:
    rules = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {"matchConstraints": {"resourceRules": [rules]}, "validations": [{"expression": expression}]}
    typed = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "p"}}
    policy = typed | {"kind": "ValidatingAdmissionPolicy", "spec": spec}
    bound = {"policyName": "p", "validationActions": ["Deny"]}
    binding = typed | {"kind": "ValidatingAdmissionPolicyBinding", "spec": bound}
    assert (await send(app, "root", "POST", f"{ADMISSION}/validatingadmissionpolicies", policy)).code == 201
    assert (await send(app, "root", "POST", f"{ADMISSION}/validatingadmissionpolicybindings", binding)).code == 201
    await grant(app, rule("create", "configmaps"))
    assert (await send(app, "dev", "POST", MAPS, config_map("a"))).code == 422
    impersonated = {"Impersonate_User": "dev", "Impersonate_Group": "system:authenticated"}
    assert (await send(app, "root", "POST", MAPS, config_map("a"), **impersonated)).code == 422
    more = [rule("get", "secrets"), rule("approve", "configmaps"), {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]
    await grant(app, *more, to="more")
    await grant(app, rule("get", "pods"), to="system:serviceaccount:default:robot")
    subjects = {"subjects": [{"kind": "User", "name": "dev"}], "roleRef": {"kind": "ClusterRole", "name": "more"}}
    also = {"metadata": {"name": "also"}, **subjects, **_typed("ClusterRoleBinding")}
    assert (await send(app, "root", "POST", f"{RBAC}/clusterrolebindings", also)).code == 201
    assert (await send(app, "dev", "POST", MAPS, config_map("a"))).code == 201
    assert (await send(app, "root", "POST", MAPS, config_map("b"), **impersonated)).code == 201


def test_options_of_the_server_as_a_whole_are_answered_to_anyone(tmp_path: Path) -> None:
    """net/http does so before kube-apiserver sees the request."""
    with Noxu(
        tmp_path, authorization_modes=["AlwaysDeny"], authentication=Authentication(anonymous_auth=False)
    ) as noxu:
        target = Target(noxu.url)
        received = target.send_raw(b"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert code_of(received) == 200
        assert b"\r\nContent-Length: 0\r\n" in received
        assert b"Content-Type" not in received
        assert code_of(target.send_raw(b"OPTIONS / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")) == 401
