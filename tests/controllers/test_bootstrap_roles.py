"""The roles and bindings that every cluster has: what they allow, and what a start restores in them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from noxu.control_plane import ControlPlane, resource_of, running
from noxu.controllers import bootstrap_policy
from noxu.controllers.bootstrap_roles import BootstrapRoleController, reconciled
from noxu.registry.access import ANONYMOUS, AccessAttributes, User
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.stored_object import object_at
from noxu.values import Object, copy
from noxu_storage.memory import MemoryStore
from tests.control_planes import assemble
from tests.rows import rows


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    async with running(assemble(MemoryStore(), authorization_modes=("RBAC",), controllers=["*"])) as found:
        yield found


async def get(plane: ControlPlane, plural: str, name: str, namespace: str = "") -> Object:
    resource = resource_of(plane.served_resources, bootstrap_policy.GROUP, plural)
    return object_at(await plane.reader.find(resource, namespace, name), resource)


AUTHENTICATED = "system:authenticated"
DEV = User("dev", groups=(AUTHENTICATED,))
ACCOUNT = User("system:serviceaccount:ns:a", groups=("system:serviceaccounts", AUTHENTICATED))
COLLECTOR = User("system:serviceaccount:kube-system:generic-garbage-collector", groups=(AUTHENTICATED,))
ALLOWED: list[tuple[str, User, AccessAttributes, bool]] = [
    ("everyone reads the version", ANONYMOUS, AccessAttributes(ANONYMOUS, "get", path="/version"), True),
    ("users discover the API", DEV, AccessAttributes(DEV, "get", path="/apis/apps/v1"), True),
    ("others do not", ANONYMOUS, AccessAttributes(ANONYMOUS, "get", path="/apis/apps/v1"), False),
    ("users ask about themselves", DEV,
     AccessAttributes(DEV, "create", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"), True),
    ("users read nothing else", DEV, AccessAttributes(DEV, "get", "", "v1", "configmaps", "", "ns", "a"), False),
    ("accounts read the issuer", ACCOUNT, AccessAttributes(ACCOUNT, "get", path="/openid/v1/jwks/"), True),
    ("other users do not", DEV, AccessAttributes(DEV, "get", path="/openid/v1/jwks"), False),
    ("controllers do their work", COLLECTOR, AccessAttributes(COLLECTOR, "delete", "apps", "v1", "deployments", "", "ns", "a"), True),
    ("and nothing else", COLLECTOR, AccessAttributes(COLLECTOR, "create", "apps", "v1", "deployments", "", "ns"), False),
]  # fmt: skip


@pytest.mark.parametrize(("user", "asked", "expected"), [row[1:] for row in ALLOWED], ids=[row[0] for row in ALLOWED])
async def test_what_they_allow(plane: ControlPlane, user: User, asked: AccessAttributes, expected: bool) -> None:
    assert plane.authorize(asked).allowed is expected


async def test_their_labels_and_annotations(plane: ControlPlane) -> None:
    for plural, manifest in bootstrap_policy.manifests():
        metadata = manifest["metadata"]
        stored = (await get(plane, plural, metadata["name"], metadata.get("namespace", "")))["metadata"]
        assert stored["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
        assert stored["annotations"] == {bootstrap_policy.AUTOUPDATE: "true"}


async def test_every_controller_has_a_role_and_a_binding(plane: ControlPlane) -> None:
    name = "system:controller:namespace-controller"
    assert (await get(plane, "clusterroles", name))["rules"][0]["verbs"] == ["delete", "get", "list", "watch"]
    binding = await get(plane, "clusterrolebindings", name)
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "namespace-controller", "namespace": "kube-system"}
    ]


async def test_roles_are_aggregated_if_the_controller_runs(plane: ControlPlane) -> None:
    rules = {name: (await get(plane, "clusterroles", name))["rules"] for name in ("view", "edit", "admin")}
    assert 0 < len(rules["view"]) < len(rules["edit"]) < len(rules["admin"])
    assert not [rule for rule in rules["view"] if "secrets" in rule["resources"]]
    async with running(assemble(MemoryStore(), authorization_modes=("RBAC",))) as without:
        assert (await get(without, "clusterroles", "view"))["rules"] is None


async def test_no_roles_are_created_in_other_modes() -> None:
    async with running(assemble(MemoryStore())) as found:
        resource = resource_of(found.served_resources, bootstrap_policy.GROUP, "clusterroles")
        assert not (await found.reader.collection(resource)).entries


async def test_they_are_what_create_requests_make(plane: ControlPlane) -> None:
    """As a client creates them under another name."""
    for plural, manifest in bootstrap_policy.manifests():
        name, namespace = manifest["metadata"]["name"], manifest["metadata"].get("namespace", "")
        if name in bootstrap_policy.AGGREGATED:
            continue  # the controller fills them in
        resource = resource_of(plane.served_resources, bootstrap_policy.GROUP, plural)
        other = copy(manifest)
        other["metadata"]["name"] = f"{name}x"
        options = Options(field_manager="kube-apiserver")
        request = WriteRequest(Action.CREATE, resource, namespace, body=Body(other), options=options)
        created = (await plane.writer.write(request)).entry
        assert created is not None
        stored = await plane.reader.find(resource, namespace, name)
        found, expected = (
            re.sub(rb'"(uid|creationTimestamp|time)":"[^"]*"', b"", entry.stored) for entry in (stored, created)
        )
        assert found == expected.replace(f"{name}x".encode(), name.encode())


ROLE: Object = {
    "metadata": {"name": "r", "labels": {"a": "1"}, "annotations": {bootstrap_policy.AUTOUPDATE: "true"}},
    "rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}],
}
BINDING: Object = {
    "metadata": ROLE["metadata"],
    "subjects": [{"kind": "User", "name": "a"}],
    "roleRef": {"kind": "Role", "name": "r"},
}


def changed(base: Object, **changes: Any) -> Object:
    metadata = {**base["metadata"], **changes.pop("metadata", {})}
    return {**base, "metadata": metadata, **changes}


MORE = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}
PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
LIST = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
ANNOTATED = {bootstrap_policy.AUTOUPDATE: "true"}
RECONCILED: list[tuple[str, Object, Object, Object | None]] = [
    ("a complete role", ROLE, ROLE, None),
    ("rules besides are kept", changed(ROLE, rules=[MORE, *ROLE["rules"]]), ROLE, None),
    ("a missing permission is added", changed(ROLE, rules=[PODS]), ROLE, changed(ROLE, rules=[PODS, LIST])),
    ("a wider rule has it", changed(ROLE, rules=[{**PODS, "verbs": ["*"]}]), ROLE, None),
    ("a role without rules", changed(ROLE, rules=None), ROLE,
     changed(ROLE, rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]} for verb in ("get", "list")])),
    ("a protected role", changed(ROLE, rules=None, metadata={"annotations": {bootstrap_policy.AUTOUPDATE: "false"}}), ROLE, None),
    ("a missing label is added, another value stays",
     changed(ROLE, metadata={"labels": {"b": "2"}}), changed(ROLE, metadata={"labels": {"a": "1", "b": "1"}}),
     changed(ROLE, metadata={"labels": {"a": "1", "b": "2"}})),
    ("a missing annotation is added", changed(ROLE, metadata={"annotations": {}}), ROLE, ROLE),
    ("a missing subject is added", changed(BINDING, subjects=[{"kind": "User", "name": "b"}]), BINDING,
     changed(BINDING, subjects=[{"kind": "User", "name": "b"}, {"kind": "User", "name": "a"}])),
    ("subjects besides are kept", changed(BINDING, subjects=[*BINDING["subjects"], {"kind": "User", "name": "b"}]), BINDING, None),
    ("another role", changed(BINDING, roleRef={"kind": "Role", "name": "s"}), BINDING, BINDING),
]  # fmt: skip


@rows(("old", "wanted", "expected"), [row[1:] for row in RECONCILED], ids=[row[0] for row in RECONCILED])
def test_what_an_existing_object_lacks_is_added(old: Object, wanted: Object, expected: Object | None) -> None:
    found = reconciled(old, wanted)
    if expected is None:
        assert found is old
    else:
        assert found == expected


async def test_a_start_restores_what_is_missing(plane: ControlPlane) -> None:
    bindings = resource_of(plane.served_resources, bootstrap_policy.GROUP, "clusterrolebindings")
    roles = resource_of(plane.served_resources, bootstrap_policy.GROUP, "clusterroles")

    async def write(action: Action, resource: Any, name: str, value: Object | None = None) -> None:
        await plane.writer.write(WriteRequest(action, resource, name=name, body=Body(value or {})))

    discovery = await get(plane, "clusterroles", "system:discovery")
    await write(Action.REPLACE, roles, "system:discovery", changed(discovery, rules=[]))
    await write(Action.DELETE, roles, "system:basic-user")
    moved = await get(plane, "clusterrolebindings", "system:basic-user")
    await write(Action.DELETE, bindings, "system:basic-user")
    fresh: Object = changed(moved, roleRef={**moved["roleRef"], "name": "view"})
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        del fresh["metadata"][name]
    await write(Action.CREATE, bindings, "", fresh)
    [controller] = [one for one in plane.controllers if isinstance(one, BootstrapRoleController)]
    await controller.reconcile("")
    restored = await get(plane, "clusterroles", "system:discovery")
    assert (
        sorted(path for rule in restored["rules"] for path in rule["nonResourceURLs"])
        == (discovery["rules"][0]["nonResourceURLs"])
    )
    assert (await get(plane, "clusterroles", "system:basic-user"))["rules"]
    assert (await get(plane, "clusterrolebindings", "system:basic-user"))["roleRef"] == moved["roleRef"]
