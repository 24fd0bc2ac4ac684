"""ServiceAccount."""

from __future__ import annotations

import re
from typing import Any

import pytest

from noxu.admission.builtin import rules, service_accounts
from tests.admission.cluster import Cluster, container, of_kind, pod

PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


def account(name: str = "default", **fields: Any) -> Any:
    return of_kind("ServiceAccount", name=name, **fields)


async def test_a_pod_runs_as_the_default_account_and_gets_its_token(cluster: Cluster) -> None:
    await cluster.put(account(imagePullSecrets=[{"name": "registry"}]))
    spec = (await cluster.write("ServiceAccount", new=pod(initContainers=[container("init")]))).new["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    name = spec["volumes"][0]["name"]
    assert re.fullmatch("kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}", name)
    assert spec["volumes"] == [
        {
            "name": name,
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {
                        "downwardAPI": {
                            "items": [
                                {
                                    "path": "namespace",
                                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                                }
                            ]
                        }
                    },
                ],
                "defaultMode": 420,
            },
        }
    ]
    mount = {"name": name, "readOnly": True, "mountPath": PATH}
    assert [each["volumeMounts"] for each in (*spec["initContainers"], *spec["containers"])] == [[mount], [mount]]


MOUNTED: list[tuple[str, Any, dict[str, Any], bool]] = [
    ("by default", {}, {}, True),
    ("the account does not want it", {"automountServiceAccountToken": False}, {}, False),
    ("the pod does not want it", {}, {"automountServiceAccountToken": False}, False),
    ("the pod decides", {"automountServiceAccountToken": False}, {"automountServiceAccountToken": True}, True),
    ("the container mounts something there", {},
     {"containers": [container(volumeMounts=[{"name": "v", "mountPath": PATH}])]}, False),
]  # fmt: skip


@pytest.mark.parametrize(("of", "spec", "mounts"), [row[1:] for row in MOUNTED], ids=[row[0] for row in MOUNTED])
async def test_the_token_is_mounted(cluster: Cluster, of: Any, spec: dict[str, Any], mounts: bool) -> None:
    await cluster.put(account(**of))
    assert ("volumes" in (await cluster.write("ServiceAccount", new=pod(**spec))).new["spec"]) is mounts


async def test_a_volume_for_the_token_is_used_again(cluster: Cluster) -> None:
    await cluster.put(account())
    volume = {"name": "kube-api-access-own", "emptyDir": {}}
    spec = (await cluster.write("ServiceAccount", new=pod(volumes=[volume]))).new["spec"]
    assert (spec["volumes"], spec["containers"][0]["volumeMounts"][0]["name"]) == ([volume], "kube-api-access-own")


async def test_a_pod_has_its_own_secrets_for_images(cluster: Cluster) -> None:
    await cluster.put(account(imagePullSecrets=[{"name": "registry"}]))
    draft = await cluster.write("ServiceAccount", new=pod(imagePullSecrets=[{"name": "own"}]))
    assert draft.new["spec"]["imagePullSecrets"] == [{"name": "own"}]


async def test_the_account_has_to_exist(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_accounts, "INTERVAL", 0)
    why = 'error looking up service account default/{0}: serviceaccount "{0}" not found'
    assert await cluster.refusal("ServiceAccount", new=pod(serviceAccountName="x")) == why.format("x")
    assert await cluster.refusal("ServiceAccount", new=pod()) == why.format("default")


async def test_the_default_account_may_come_a_moment_later(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_accounts, "INTERVAL", 0)
    looks = 0

    async def find(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == 3:
            await cluster.put(account())
            await cluster.environment.reader.cache.reached(cluster.store.revision)
        return await rules.find(*args)

    monkeypatch.setattr(service_accounts, "find", find)
    assert (await cluster.write("ServiceAccount", new=pod())).new["spec"]["serviceAccountName"] == "default"


async def test_updates_are_not_changed(cluster: Cluster) -> None:
    assert (await cluster.write("ServiceAccount", new=pod(), old=pod())).new == cluster.typed(pod())


MIRROR = {"annotations": {"kubernetes.io/config.mirror": "x"}}
MIRRORS: list[tuple[str, dict[str, Any], str]] = [
    ("nothing", {}, ""),
    ("an account", {"serviceAccountName": "a"}, "a mirror pod may not reference service accounts"),
    ("a secret", {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "a mirror pod may not reference secrets"),
    ("a secret in the environment",
     {"containers": [container(env=[{"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}])]},
     "a mirror pod may not reference secrets"),
    ("a token", {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
     "a mirror pod may not use ServiceAccountToken volume projections"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "why"), [row[1:] for row in MIRRORS], ids=[row[0] for row in MIRRORS])
async def test_a_mirror_pod_refers_to(cluster: Cluster, spec: dict[str, Any], why: str) -> None:
    assert await cluster.refusal("ServiceAccount", new=pod(MIRROR, **spec)) == why


def with_secret(name: str) -> Any:
    return container(env=[{"name": "E", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}])


BY = "is not allowed because service account strict does not reference that"
SECRETS: list[tuple[str, dict[str, Any], str]] = [
    ("a volume of its account's", {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, ""),
    ("a volume of another", {"volumes": [{"name": "v", "secret": {"secretName": "t"}}]},
     f'volume with secret.secretName="t" {BY} secret'),
    ("a variable of another", {"containers": [with_secret("t")]},
     f'container c with envVar E referencing secret.secretName="t" {BY} secret'),
    ("a variable of another, in an init container", {"initContainers": [with_secret("t")], "containers": [container("d")]},
     f'init container c with envVar E referencing secret.secretName="t" {BY} secret'),
    ("images of another", {"imagePullSecrets": [{"name": "s"}]}, f'imagePullSecrets[0].name="s" {BY} imagePullSecret'),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "why"), [row[1:] for row in SECRETS], ids=[row[0] for row in SECRETS])
async def test_an_account_that_lists_its_secrets_refuses(cluster: Cluster, spec: dict[str, Any], why: str) -> None:
    metadata = {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}
    await cluster.put(account("strict", metadata=metadata, secrets=[{"name": "s"}]))
    assert await cluster.refusal("ServiceAccount", new=pod(serviceAccountName="strict", **spec)) == why
