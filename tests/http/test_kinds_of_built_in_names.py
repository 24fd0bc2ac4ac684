"""Definitions with the group and plural of a built-in kind, at another version: nothing built-in knows of their objects.

Each row has a definition of one built-in kind's names. All rows share a server with RBAC and all controllers. Built-in
kinds whose group has no dot cannot be named by a definition.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.api.names import subdomain_name
from noxu.crd import types
from noxu.kinds import scheme
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.resource import Resource
from noxu.testing.handle import Noxu
from noxu_storage.types import EVERYTHING, KeyValue
from tests.timing import eventually, hang_guard

VERSION = "v9"
APPROVAL = {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"}
RESOURCES: list[Resource] = [
    resource
    for versions in (definitions_resource(), *built_in_versions())
    for resource in versions.all
    if "." in resource.group
]
NAMESPACED = [resource for resource in RESOURCES if resource.namespaced]
"""Virtual ones, too: reviews are created and not stored."""


def definition(resource: Resource, *versions: str) -> dict[str, Any]:
    """A definition with the names and the scope of a built-in kind; the first version is stored."""
    return {
        "apiVersion": types.API_VERSION,
        "kind": types.KIND,
        "metadata": {"name": f"{resource.plural}.{resource.group}", "annotations": APPROVAL},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "plural": resource.plural,
                "singular": resource.singular,
                "kind": resource.kind,
                "listKind": resource.list_kind,
                "shortNames": list(resource.short_names),
            },
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": n == 0,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
                for n, name in enumerate(versions or (VERSION,))
            ],
        },
    }


def path_of(resource: Resource, version: str = VERSION) -> str:
    namespace = "namespaces/default/" if resource.namespaced else ""
    return f"/apis/{resource.group}/{version}/{namespace}{resource.plural}"


class Cluster:
    """A server, asked by path."""

    def __init__(self, noxu: Noxu) -> None:
        self.noxu = noxu

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return self.noxu._call(self._ask(method, path, body))

    async def _ask(self, method: str, path: str, body: Any) -> Any:
        return (await self.noxu._session.client.send(method, path, {}, body)).value

    def text(self, path: str) -> str:
        """An answer that is no object."""
        return self.noxu._call(self._text(path))

    async def _text(self, path: str) -> str:
        return await (await self.noxu._session.client.stream(path, {})).text()

    def watched(self, path: str, number: int) -> list[str]:
        """The names of the first objects that a watch shows."""
        return self.noxu._call(self._watched(path, number))

    async def _watched(self, path: str, number: int) -> list[str]:
        answer = await self.noxu._session.client.stream(path, {})
        async with answer, hang_guard():
            lines = [await answer.content.readline() for _ in range(number)]
        return [json.loads(line)["object"]["metadata"]["name"] for line in lines]

    def names(self, path: str) -> list[str]:
        return [item["metadata"]["name"] for item in self.ask("GET", path)["items"]]

    def stored(self) -> dict[tuple[str, ...], bytes]:
        """What the store has, but for what follows from the definition itself."""
        items: list[KeyValue] = self.noxu._call(self.noxu._server.plane.store.list(EVERYTHING)).items
        return {
            tuple(key): value
            for key, value, _ in items
            if key.collection not in ("/events", "coordination.k8s.io/leases")
            and not key.name.startswith(f"{VERSION}.")
        }

    def establish(self, resource: Resource, *versions: str) -> str:
        """Create the definition: its path."""
        path = f"{DEFINITIONS}/{self.ask('POST', DEFINITIONS, definition(resource, *versions))['metadata']['name']}"
        conditions = self.ask("GET", path)["status"]["conditions"]
        assert ("Established", "True") in {(each["type"], each["status"]) for each in conditions}
        return path

    def remove(self, path: str) -> None:
        self.ask("DELETE", path)
        eventually(lambda: path.rpartition("/")[2] not in self.names(DEFINITIONS))


DEFINITIONS = f"/apis/{types.API_VERSION}/{types.RESOURCE}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Noxu(tmp_path_factory.mktemp("server"), profile="cluster", authorization_modes=["RBAC"]) as noxu:
        yield Cluster(noxu)


def an_object(resource: Resource, name: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": f"{resource.group}/{VERSION}", "kind": resource.kind, "metadata": {"name": name}, **rest}


@pytest.mark.slow(every=8)
@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: str(resource.group_resource))
def test_nothing_built_in_changes(cluster: Cluster, resource: Resource) -> None:
    listed = path_of(resource, resource.version)
    before = cluster.stored()
    at, own = cluster.establish(resource), path_of(resource)
    existing = cluster.names(listed) if resource.is_stored else []
    same = next((name for name in existing if name != "a" and not subdomain_name(name)), "b")
    for name in ("a", same):
        cluster.ask("POST", own, an_object(resource, name, roleRef={"kind": "ClusterRole", "name": "cluster-admin"}))
    assert sorted(cluster.names(own)) == sorted(["a", same])
    if resource.is_stored:
        assert cluster.names(listed) == existing
    assert cluster.ask("GET", f"{own}/a")["apiVersion"] == f"{resource.group}/{VERSION}"
    cluster.ask("DELETE", f"{own}/{same}")
    during = cluster.stored()
    assert {key: value for key, value in during.items() if key in before} == before
    cluster.remove(at)
    assert cluster.stored() == before


def test_a_definition_of_the_version_of_the_built_in_kind_changes_nothing(cluster: Cluster) -> None:
    """It is established, and its objects cannot be reached: the built-in kind is served."""
    before = cluster.stored()
    for resource in RESOURCES:
        cluster.ask("POST", DEFINITIONS, definition(resource, resource.version))
    during = cluster.stored()
    assert {key: value for key, value in during.items() if key in before} == before
    for resource in RESOURCES:
        cluster.ask("DELETE", f"{DEFINITIONS}/{resource.plural}.{resource.group}")
    eventually(lambda: cluster.names(DEFINITIONS) == [])
    assert cluster.stored() == before


def test_the_table_has_every_built_in_kind_that_can_be_named() -> None:
    named = {(resource.group, resource.plural) for resource in RESOURCES}
    assert named == {(kind.group, kind.plural) for kind in scheme.served() if "." in kind.group} | {
        (types.GROUP, types.RESOURCE)
    }
    assert len(named) > 40


# -- what asks for objects by other names than their path --------------------------------------------------------------


def of(plural: str) -> Resource:
    return next(resource for resource in RESOURCES if resource.plural == plural)


@pytest.fixture
def established(cluster: Cluster) -> Iterator[Callable[..., str]]:
    """`established("leases")` creates a definition of these names for the test: the path of its objects."""
    paths: list[str] = []

    def create(plural: str, *versions: str) -> str:
        paths.append(cluster.establish(of(plural), *versions))
        return path_of(of(plural))

    yield create
    for path in paths:
        cluster.remove(path)


def test_discovery_has_both_and_prefers_the_version_of_the_definition(
    cluster: Cluster, established: Callable[..., str]
) -> None:
    """Its APIService has the versionPriority 100, those of built-in versions have 15 (kube-aggregator)."""
    established("clusterrolebindings")
    group = cluster.ask("GET", "/apis/rbac.authorization.k8s.io")
    assert [version["version"] for version in group["versions"]] == [VERSION, "v1"]
    assert group["preferredVersion"]["version"] == VERSION
    for version, names in (
        ("v1", {"clusterroles", "clusterrolebindings", "roles", "rolebindings"}),
        (VERSION, {"clusterrolebindings"}),
    ):
        found = cluster.ask("GET", f"/apis/rbac.authorization.k8s.io/{version}")["resources"]
        assert {each["name"] for each in found} == names
    service = cluster.ask("GET", f"/apis/apiregistration.k8s.io/v1/apiservices/{VERSION}.rbac.authorization.k8s.io")
    assert service["spec"]["versionPriority"] == 100


def test_open_api_describes_both(cluster: Cluster, established: Callable[..., str]) -> None:
    before = cluster.ask("GET", "/openapi/v2")["definitions"]
    established("clusterrolebindings")
    after = cluster.ask("GET", "/openapi/v2")["definitions"]
    assert {name: after[name] for name in before} == before
    assert {name for name in after if name not in before} == {
        f"io.k8s.authorization.rbac.{VERSION}.ClusterRoleBinding",
        f"io.k8s.authorization.rbac.{VERSION}.ClusterRoleBindingList",
    }
    assert f"apis/rbac.authorization.k8s.io/{VERSION}" in cluster.ask("GET", "/openapi/v3")["paths"]


def test_a_binding_that_is_a_custom_resource_grants_nothing(cluster: Cluster, established: Callable[..., str]) -> None:
    own = established("clusterrolebindings")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}
    cluster.ask("POST", own, an_object(of("clusterrolebindings"), "mallory", roleRef=role, subjects=[user]))
    asked = {"user": "mallory", "resourceAttributes": {"verb": "get", "resource": "secrets"}}
    review = cluster.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": asked})
    assert review["status"]["allowed"] is False


def test_a_webhook_configuration_that_is_a_custom_resource_is_not_called(
    cluster: Cluster, established: Callable[..., str]
) -> None:
    own = established("validatingwebhookconfigurations")
    webhook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    cluster.ask("POST", own, an_object(of("validatingwebhookconfigurations"), "a", webhooks=[webhook]))
    cluster.ask("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", {"metadata": {"name": "a"}})


def test_a_policy_for_the_built_in_version_does_not_match(cluster: Cluster, established: Callable[..., str]) -> None:
    """matchPolicy Equivalent is about versions of one resource: these are two (upstream's EquivalentResourceMapper)."""
    own, policies = established("leases"), "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    rule = {"operations": ["*"], "apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "resources": ["leases"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]}
    cluster.ask("POST", f"{policies}ies", {"metadata": {"name": "none"}, "spec": spec})
    binding = {"policyName": "none", "validationActions": ["Deny"]}
    cluster.ask("POST", f"{policies}ybindings", {"metadata": {"name": "none"}, "spec": binding})
    try:
        with pytest.raises(ApiError, match="ValidatingAdmissionPolicy 'none'"):
            cluster.ask("POST", path_of(of("leases"), "v1"), {"metadata": {"name": "built-in"}})
        cluster.ask("POST", own, an_object(of("leases"), "custom"))
    finally:
        cluster.ask("DELETE", f"{policies}ybindings/none")
        cluster.ask("DELETE", f"{policies}ies/none")


def test_the_end_of_a_namespace_is_the_end_of_both(cluster: Cluster, established: Callable[..., str]) -> None:
    established("leases")
    cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ends"}})
    for version in ("v1", VERSION):
        path = f"/apis/coordination.k8s.io/{version}/namespaces/ends/leases"
        value = {"apiVersion": f"coordination.k8s.io/{version}", "kind": "Lease", "metadata": {"name": "a"}}
        cluster.ask("POST", path, value)
    cluster.ask("DELETE", "/api/v1/namespaces/ends")
    eventually(lambda: "ends" not in cluster.names("/api/v1/namespaces"))
    assert [key for key in cluster.stored() if key[1] == "ends/"] == []


def test_a_quota_counts_both(cluster: Cluster, established: Callable[..., str]) -> None:
    """It names a resource without its version; upstream charges both, and counts one of them."""
    established("leases")
    cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "counted"}})
    quotas = "/api/v1/namespaces/counted/resourcequotas"
    cluster.ask(
        "POST", quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"count/leases.coordination.k8s.io": "2"}}}
    )

    def used() -> Any:
        return cluster.ask("GET", f"{quotas}/q").get("status", {}).get("used")

    eventually(lambda: used() == {"count/leases.coordination.k8s.io": "0"})
    for version in ("v1", VERSION):
        path = f"/apis/coordination.k8s.io/{version}/namespaces/counted/leases"
        value = {"apiVersion": f"coordination.k8s.io/{version}", "kind": "Lease", "metadata": {"name": "a"}}
        cluster.ask("POST", path, value)
    assert used() == {"count/leases.coordination.k8s.io": "2"}
    with pytest.raises(ApiError, match="exceeded quota: q"):
        cluster.ask("POST", path, {**value, "metadata": {"name": "b"}})
    cluster.ask("DELETE", f"{path}/a")
    eventually(lambda: used() == {"count/leases.coordination.k8s.io": "1"})  # counted again
    cluster.ask("DELETE", "/api/v1/namespaces/counted")


def test_owners_are_told_apart_by_their_version(cluster: Cluster, established: Callable[..., str]) -> None:
    own, built_in, maps = (
        established("priorityclasses"),
        path_of(of("priorityclasses"), "v1"),
        "/api/v1/namespaces/default/configmaps",
    )
    custom = cluster.ask("POST", own, an_object(of("priorityclasses"), "owner"))
    native = cluster.ask("POST", built_in, {"metadata": {"name": "owner"}, "value": 1})
    for owner in (custom, native):
        version = owner["apiVersion"].rpartition("/")[2]
        reference = {name: owner[name] for name in ("apiVersion", "kind")} | {
            name: owner["metadata"][name] for name in ("name", "uid")
        }
        cluster.ask("POST", maps, {"metadata": {"name": f"of-{version}", "ownerReferences": [reference]}})
    cluster.ask("DELETE", f"{own}/owner")
    eventually(lambda: f"of-{VERSION}" not in cluster.names(maps))
    assert "of-v1" in cluster.names(maps)
    cluster.ask("DELETE", f"{built_in}/owner")
    eventually(lambda: "of-v1" not in cluster.names(maps))


def test_metrics_count_both_under_their_common_name(cluster: Cluster, established: Callable[..., str]) -> None:
    own = established("clusterrolebindings")
    cluster.ask("POST", own, an_object(of("clusterrolebindings"), "counted"))
    number = len(cluster.names(path_of(of("clusterrolebindings"), "v1")))
    labels = '{group="rbac.authorization.k8s.io",resource="clusterrolebindings"}'
    lines = cluster.text("/metrics").splitlines()
    assert [line for line in lines if line.startswith(f"apiserver_resource_objects{labels}")] == [
        f"apiserver_resource_objects{labels} {number + 1}.0"
    ]
    assert ".custom" not in "".join(lines)


def test_a_version_that_the_built_in_kind_has_remains_built_in(
    cluster: Cluster, established: Callable[..., str]
) -> None:
    """The definition may even store its objects in that version."""
    own, built_in = established("clusterroles", "v1", VERSION), path_of(of("clusterroles"), "v1")
    cluster.ask("POST", own, an_object(of("clusterroles"), "custom"))
    assert "custom" not in cluster.names(built_in)
    assert cluster.ask("GET", f"{built_in}/view")["rules"]
    assert cluster.names(own) == ["custom"]
    with pytest.raises(ApiError, match=r'clusterroles\.rbac\.authorization\.k8s\.io "custom" not found'):
        cluster.ask("GET", f"{built_in}/custom")


def test_a_watch_shows_one_of_them(cluster: Cluster, established: Callable[..., str]) -> None:
    own, built_in = established("leases"), path_of(of("leases"), "v1")
    version = cluster.ask("GET", built_in)["metadata"]["resourceVersion"]
    for name in ("a", "b"):
        cluster.ask("POST", own, an_object(of("leases"), f"custom-{name}"))
        cluster.ask("POST", built_in, {"metadata": {"name": f"built-in-{name}"}})
    for path, names in ((own, ["custom-a", "custom-b"]), (built_in, ["built-in-a", "built-in-b"])):
        assert cluster.watched(f"{path}?watch=1&resourceVersion={version}", len(names)) == names
    for name in ("a", "b"):
        cluster.ask("DELETE", f"{built_in}/built-in-{name}")
