"""Users grant only what they may do themselves: roles, bindings, and the texts of refusals."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from noxu.kinds.policy_rules import MAX_DESCRIBED, MAX_PERMISSIONS
from noxu.values import Object
from tests.http.exchanges import Reply, ServedApp, serving_app
from tests.http.test_authorization import RBAC, grant, rule, send

HERE: Final = f"{RBAC}/namespaces/default"
DEV: Final = 'user "dev" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:'


@pytest.fixture
async def app() -> AsyncIterator[ServedApp]:
    async with serving_app(authorization_modes=("RBAC",)) as served:
        yield served


def may_write(*resources: str) -> Object:
    """A rule that lets a user write roles and bindings, but not more than that."""
    verbs = "get list create update patch delete"
    return rule(verbs, " ".join(resources), "rbac.authorization.k8s.io")


def role(*rules: Object, kind: str = "Role", name: str = "r", **more: Any) -> Object:
    metadata = {"name": name}
    return {
        "kind": kind,
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": metadata,
        "rules": list(rules),
        **more,
    }


def binding(name: str, kind: str = "Role", bound: str = "RoleBinding") -> Object:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    subjects = [{"kind": "User", "name": "x", "apiGroup": "rbac.authorization.k8s.io"}]
    made = {"kind": bound, "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"}}
    return made | {"subjects": subjects, "roleRef": reference}


def outcome(reply: Reply) -> tuple[int, str]:
    """The code, and the message of an error."""
    return reply.code, json.loads(reply.text).get("message", "") if reply.code >= 400 else ""


def refused(lines: str, what: str = 'roles.rbac.authorization.k8s.io "r"') -> tuple[int, str]:
    return 403, f"{what} is forbidden: {DEV}\n{lines}"


URLS: Final = {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/healthz/x"]}
ROLES: list[tuple[str, tuple[Object, ...], tuple[Object, ...], str]] = [
    ("what they hold", (rule("get list", "secrets"),), (rule("get", "secrets"),), ""),
    ("nothing", (), (), ""),
    ("what they do not hold", (), (rule("get", "secrets"),),
     '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'),
    ("more verbs than they hold", (rule("get", "secrets"),), (rule("get list watch", "secrets"),),
     '{APIGroups:[""], Resources:["secrets"], Verbs:["list" "watch"]}'),
    ("resources in the order of texts", (), (rule("get", "secrets configmaps", "core apps"),),
     '{APIGroups:[""], Resources:["configmaps"], Verbs:["get"]}\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}\n'
     '{APIGroups:["apps"], Resources:["configmaps"], Verbs:["get"]}\n{APIGroups:["apps"], Resources:["secrets"], Verbs:["get"]}'),
    ("one name of all that they hold", (rule("get", "secrets"),), (rule("get", "secrets", names="a"),), ""),
    ("all names, of which they hold one", (rule("get", "secrets", names="a"),), (rule("get", "secrets"),),
     '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'),
    ("another name", (rule("get", "secrets", names="a"),), (rule("get list", "secrets", names="a b"),),
     '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["list"]}\n'
     '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}\n'
     '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["list"]}'),
    ("a subresource of every resource that they hold", (rule("get", "*/scale", "*"),), (rule("get", "deployments/scale", "apps"),), ""),
    ("a resource whose subresources they hold", (rule("get", "*/scale", "*"),), (rule("get", "deployments", "apps"),),
     '{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}'),
    ("everything", (rule("get", "*", "*"),), (rule("*", "*", "*"),),
     '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'),
    ("every verb, of which they hold all that exist", (rule("get list", "secrets"),), (rule("*", "secrets"),),
     '{APIGroups:[""], Resources:["secrets"], Verbs:["*"]}'),
    ("what two of their rules hold together", (rule("get", "secrets"), rule("list", "secrets configmaps")),
     (rule("get list", "secrets"),), ""),
]  # fmt: skip


@pytest.mark.parametrize(("held", "granted", "lines"), [row[1:] for row in ROLES], ids=[row[0] for row in ROLES])
async def test_a_role_grants(app: ServedApp, held: tuple[Object, ...], granted: tuple[Object, ...], lines: str) -> None:
    await grant(app, may_write("roles"), *held, namespace="default")
    expected = refused(lines) if lines else (201, "")
    assert outcome(await send(app, "dev", "POST", f"{HERE}/roles", role(*granted))) == expected


async def test_rights_in_another_namespace_do_not_count(app: ServedApp) -> None:
    await grant(app, may_write("roles", "clusterroles"))
    await grant(app, rule("get", "secrets"), namespace="kube-public")
    line = '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    made = role(rule("get", "secrets"))
    assert outcome(await send(app, "dev", "POST", f"{HERE}/roles", made)) == refused(line)
    elsewhere = f"{RBAC}/namespaces/kube-public/roles"
    assert (await send(app, "dev", "POST", elsewhere, made)).code == 201
    assert (await send(app, "dev", "POST", f"{RBAC}/clusterroles", made | {"kind": "ClusterRole"})).code == 403


async def test_a_cluster_role_grants_paths(app: ServedApp) -> None:
    await grant(app, may_write("clusterroles"), {"verbs": ["get"], "nonResourceURLs": ["/healthz/*"]})
    line = '{NonResourceURLs:["/metrics"], Verbs:["get"]}'
    expected = refused(line, 'clusterroles.rbac.authorization.k8s.io "r"')
    assert outcome(await send(app, "dev", "POST", f"{RBAC}/clusterroles", role(URLS, kind="ClusterRole"))) == expected


async def test_every_write_of_a_role_is_checked(app: ServedApp) -> None:
    await grant(app, may_write("roles"), namespace="default")
    made = role(rule("get", "secrets"))
    expected = refused('{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}')
    path = f"{HERE}/roles/r"
    apply = {"Content_Type": "application/apply-patch+yaml"}
    merge = {"Content_Type": "application/merge-patch+json"}
    assert outcome(await send(app, "dev", "POST", f"{HERE}/roles?dryRun=All", made)) == expected
    assert outcome(await send(app, "dev", "PUT", path, made)) == expected
    assert outcome(await send(app, "dev", "PATCH", f"{path}?fieldManager=m", made, **apply)) == expected
    assert (await send(app, "root", "POST", f"{HERE}/roles", made)).code == 201
    labels = {"metadata": {"labels": {"a": "b"}}}
    assert outcome(await send(app, "dev", "PATCH", path, labels, **merge)) == expected  # the whole role is checked
    owned = {"metadata": {"finalizers": ["example.com/a"]}}
    assert (await send(app, "dev", "PATCH", path, owned, **merge)).code == 200  # as the garbage collector does
    assert (await send(app, "root", "PATCH", path, labels, **merge)).code == 200
    assert (await send(app, "dev", "PATCH", path, {"rules": []}, **merge)).code == 200


async def test_who_may_escalate_grants_everything(app: ServedApp) -> None:
    await grant(
        app, may_write("roles"), rule("escalate", "roles", "rbac.authorization.k8s.io", "r"), namespace="default"
    )
    made = role(rule("*", "*", "*"))
    assert (await send(app, "dev", "POST", f"{HERE}/roles", made)).code == 403  # a collection has no name
    assert (await send(app, "dev", "PUT", f"{HERE}/roles/r", made)).code == 201
    assert (await send(app, "dev", "PUT", f"{HERE}/roles/s", role(rule("*", "*", "*"), name="s"))).code == 403


async def test_wildcards_of_an_admin_by_binding_suffice(app: ServedApp) -> None:
    await grant(app, rule("*", "*", "*"), {"verbs": ["*"], "nonResourceURLs": ["*"]})
    names = [f"n{n}" for n in range(300)]
    wide = {"verbs": names, "resources": names, "apiGroups": names}
    assert (await send(app, "dev", "POST", f"{RBAC}/clusterroles", role(wide, URLS, kind="ClusterRole"))).code == 201


async def test_rules_that_are_too_wide_to_compare_are_refused(app: ServedApp) -> None:
    await grant(app, may_write("clusterroles"))
    names = [f"n{n}" for n in range(int(MAX_PERMISSIONS**0.5) + 1)]
    wide = {"verbs": names, "resources": names, "apiGroups": [""]}
    code, message = outcome(await send(app, "dev", "POST", f"{RBAC}/clusterroles", role(wide, kind="ClusterRole")))
    assert (code, message.splitlines()[1]) == (403, "the rules have too many permissions to compare them one by one")


async def test_a_message_does_not_repeat_a_long_verb_thousands_of_times(app: ServedApp) -> None:
    await grant(app, may_write("clusterroles"))
    wide = {"verbs": ["v" * 10_000], "resources": [f"n{n}" for n in range(MAX_DESCRIBED // 10_000)], "apiGroups": [""]}
    code, message = outcome(await send(app, "dev", "POST", f"{RBAC}/clusterroles", role(wide, kind="ClusterRole")))
    assert (code, message.splitlines()[1]) == (403, "the rules have too many permissions to list them")


async def test_the_message_has_the_errors_on_the_way(app: ServedApp) -> None:
    await grant(app, may_write("roles"), namespace="default")
    missing = binding("gone", "ClusterRole", "ClusterRoleBinding") | {"subjects": [{"kind": "User", "name": "dev"}]}
    assert (await send(app, "root", "POST", f"{RBAC}/clusterrolebindings", missing)).code == 201
    line = (
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}; resolution errors: '
        '[clusterroles.rbac.authorization.k8s.io "gone" not found]'
    )
    assert outcome(await send(app, "dev", "POST", f"{HERE}/roles", role(rule("get", "secrets")))) == refused(line)


AGGREGATION: Final[dict[str, Any]] = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}


async def test_aggregation_is_for_cluster_admins(app: ServedApp) -> None:
    await grant(app, may_write("clusterroles"))
    path = f"{RBAC}/clusterroles"
    made = role(kind="ClusterRole", **AGGREGATION)
    why = "must have cluster-admin privileges to use the aggregationRule"
    expected = (403, f'clusterroles.rbac.authorization.k8s.io "r" is forbidden: {why}')
    assert outcome(await send(app, "dev", "POST", path, made)) == expected
    assert (await send(app, "root", "POST", path, made)).code == 201
    assert outcome(await send(app, "dev", "PUT", f"{path}/r", role(kind="ClusterRole"))) == expected
    admin = binding("cluster-admin", "ClusterRole", "ClusterRoleBinding") | {
        "subjects": [{"kind": "User", "name": "dev"}]
    }
    assert (await send(app, "root", "POST", f"{RBAC}/clusterrolebindings", admin)).code == 201
    assert (await send(app, "dev", "PUT", f"{path}/r", role(kind="ClusterRole"))).code == 200


async def test_a_binding_grants_the_rules_of_its_role(app: ServedApp) -> None:
    await grant(app, may_write("rolebindings"), namespace="default")
    assert (await send(app, "root", "POST", f"{HERE}/roles", role(rule("get", "secrets")))).code == 201
    path, made = f"{HERE}/rolebindings", binding("r")
    line = '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    expected = refused(line, 'rolebindings.rbac.authorization.k8s.io "b"')
    assert outcome(await send(app, "dev", "POST", path, made)) == expected
    await grant(app, rule("bind", "roles", "rbac.authorization.k8s.io", "r"), to="bind")
    bind = binding("bind", "ClusterRole") | {
        "subjects": [{"kind": "User", "name": "dev"}],
        "metadata": {"name": "bind"},
    }
    assert (await send(app, "root", "POST", path, bind)).code == 201
    assert (await send(app, "dev", "POST", path, made)).code == 201
    assert (await send(app, "dev", "PUT", f"{path}/c", made | {"metadata": {"name": "c"}})).code == 201


async def test_who_holds_the_rules_of_a_role_may_bind_it(app: ServedApp) -> None:
    await grant(app, may_write("rolebindings"), rule("get", "secrets"), namespace="default")
    assert (await send(app, "root", "POST", f"{HERE}/roles", role(rule("get", "secrets")))).code == 201
    assert (await send(app, "dev", "POST", f"{HERE}/rolebindings", binding("r"))).code == 201


async def test_a_missing_role_is_bound_by_masters_only(app: ServedApp) -> None:
    await grant(app, may_write("rolebindings", "clusterrolebindings"))
    path = f"{HERE}/rolebindings"
    expected = (404, 'roles.rbac.authorization.k8s.io "nope" not found')
    assert outcome(await send(app, "dev", "POST", path, binding("nope"))) == expected
    expected = (404, 'clusterroles.rbac.authorization.k8s.io "nope" not found')
    assert outcome(await send(app, "dev", "POST", path, binding("nope", "ClusterRole"))) == expected
    assert (await send(app, "root", "POST", path, binding("nope"))).code == 201


async def test_the_role_of_a_binding_is_immutable(app: ServedApp) -> None:
    path = f"{HERE}/rolebindings"
    assert (await send(app, "root", "POST", path, binding("r"))).code == 201
    code, message = outcome(await send(app, "root", "PUT", f"{path}/b", binding("s")))
    assert code == 422
    assert message.endswith("field is immutable")
