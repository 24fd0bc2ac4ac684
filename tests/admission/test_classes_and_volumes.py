"""DefaultStorageClass, DefaultIngressClass, StorageObjectInUseProtection, PersistentVolumeClaimResize, RuntimeClass."""

from __future__ import annotations

from typing import Any

import pytest

from tests.admission.cluster import Cluster, claim, of_kind, pod

IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def storage_class(name: str, *, default: str = "", created: str = "2026-01-01T00:00:00Z", **fields: Any) -> Any:
    metadata = {"creationTimestamp": created, **({"annotations": {IS_DEFAULT: default}} if default else {})}
    return of_kind("StorageClass", "storage.k8s.io/v1", name, metadata=metadata, provisioner="p", **fields)


SLOW, FAST = storage_class("slow"), storage_class("fast", default="true")
NEW = storage_class("new", default="true", created="2026-02-01T00:00:00Z")
ALSO_NEW = storage_class("also-new", default="true", created="2026-02-01T00:00:00Z")
OLD_CLASS = {"annotations": {"volume.beta.kubernetes.io/storage-class": "gold"}}
CLAIMS: list[tuple[str, list[Any], Any, str | None]] = [
    ("there is no class", [], claim(), None),
    ("no class is the default", [SLOW, storage_class("b", default="false")], claim(), None),
    ("one is the default", [SLOW, FAST], claim(), "fast"),
    ("of several the newest", [FAST, NEW], claim(), "new"),
    ("of several of the same age the first by name", [NEW, ALSO_NEW], claim(), "also-new"),
    ("the claim has a class", [FAST], claim(storageClassName="slow"), "slow"),
    ("the claim wants none", [FAST], claim(storageClassName=""), ""),
    ("the claim has the annotation of old", [FAST], claim(metadata=OLD_CLASS), None),
]


@pytest.mark.parametrize(("classes", "new", "expected"), [row[1:] for row in CLAIMS], ids=[row[0] for row in CLAIMS])
async def test_the_storage_class_of_a_claim_if(
    cluster: Cluster, classes: list[Any], new: Any, expected: str | None
) -> None:
    await cluster.put(*classes)
    assert (await cluster.write("DefaultStorageClass", new=new)).new["spec"].get("storageClassName") == expected


async def test_the_class_of_an_updated_claim_stays_empty(cluster: Cluster) -> None:
    await cluster.put(FAST)
    assert "storageClassName" not in (await cluster.write("DefaultStorageClass", new=claim(), old=claim())).new["spec"]


INGRESSES: list[tuple[str, Any, str | None]] = [
    ("neither class nor annotation", {}, "web"),
    ("a class", {"spec": {"ingressClassName": "own"}}, "own"),
    ("the annotation of old", {"metadata": {"annotations": {"kubernetes.io/ingress.class": "own"}}}, None),
]


@pytest.mark.parametrize(("fields", "expected"), [row[1:] for row in INGRESSES], ids=[row[0] for row in INGRESSES])
async def test_the_class_of_an_ingress_with(cluster: Cluster, fields: dict[str, Any], expected: str | None) -> None:
    api = "networking.k8s.io/v1"
    metadata = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
    await cluster.put(of_kind("IngressClass", api, "web", metadata=metadata), of_kind("IngressClass", api, "other"))
    draft = await cluster.write("DefaultIngressClass", new=of_kind("Ingress", api, **fields))
    assert draft.new["spec"].get("ingressClassName") == expected


PROTECTED: list[tuple[str, Any, str]] = [
    ("a claim", claim(), "kubernetes.io/pvc-protection"),
    ("a volume", of_kind("PersistentVolume"), "kubernetes.io/pv-protection"),
    ("a class of attributes", of_kind("VolumeAttributesClass", "storage.k8s.io/v1"), "kubernetes.io/vac-protection"),
]


@pytest.mark.parametrize(("new", "finalizer"), [row[1:] for row in PROTECTED], ids=[row[0] for row in PROTECTED])
async def test_a_finalizer_protects(cluster: Cluster, new: Any, finalizer: str) -> None:
    plugin = "StorageObjectInUseProtection"
    assert (await cluster.write(plugin, new=new)).new["metadata"]["finalizers"] == [finalizer]
    held = {**new, "metadata": {**new["metadata"], "finalizers": [finalizer, "example.com/f"]}}
    assert (await cluster.write(plugin, new=held)).new["metadata"]["finalizers"] == [finalizer, "example.com/f"]
    assert "finalizers" not in (await cluster.write(plugin, new=new, old=new)).new["metadata"]


NOT_RESIZABLE = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)
GROWING = storage_class("growing", allowVolumeExpansion=True)
BOUND: dict[str, Any] = {"phase": "Bound"}
GROWTH: list[tuple[str, Any, Any, str]] = [
    ("its class allows that", claim(storageClassName="growing", **BOUND), claim("2Gi", storageClassName="growing"), ""),
    ("its class does not", claim(storageClassName="slow", **BOUND), claim("2Gi", storageClassName="slow"), NOT_RESIZABLE),
    ("its class does not exist", claim(storageClassName="x", **BOUND), claim("2Gi", storageClassName="x"), NOT_RESIZABLE),
    ("it has no class", claim(**BOUND), claim("2Gi"), NOT_RESIZABLE),
    ("it is not bound", claim(storageClassName="growing"), claim("2Gi", storageClassName="growing"),
     "Only bound persistent volume claims can be expanded"),
    ("it stays as it is", claim("1Gi"), claim("1024Mi"), ""),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "why"), [row[1:] for row in GROWTH], ids=[row[0] for row in GROWTH])
async def test_a_claim_grows_if(cluster: Cluster, old: Any, new: Any, why: str) -> None:
    await cluster.put(GROWING, SLOW)
    assert await cluster.refusal("PersistentVolumeClaimResize", new=new, old=old) == why


RUNTIME = of_kind(
    "RuntimeClass",
    "node.k8s.io/v1",
    "vm",
    handler="vm",
    overhead={"podFixed": {"cpu": "250m"}},
    scheduling={"nodeSelector": {"kind": "vm"}, "tolerations": [{"key": "vm", "operator": "Exists"}]},
)


async def test_a_pod_is_completed_by_its_runtime_class(cluster: Cluster) -> None:
    await cluster.put(RUNTIME)
    spec = (await cluster.write("RuntimeClass", new=pod(runtimeClassName="vm", nodeSelector={"a": "b"}))).new["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"a": "b", "kind": "vm"}
    assert spec["tolerations"] == [{"key": "vm", "operator": "Exists"}]


RUNTIMES: list[tuple[str, dict[str, Any], str]] = [
    ("a class that does not exist", {"runtimeClassName": "x"}, 'pod rejected: RuntimeClass "x" not found'),
    ("an overhead without a class", {"overhead": {"cpu": "1"}},
     "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"),
    ("another overhead", {"runtimeClassName": "vm", "overhead": {"cpu": "1"}},
     "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
    ("the same overhead", {"runtimeClassName": "vm", "overhead": {"cpu": "0.25"}}, ""),
    ("another node", {"runtimeClassName": "vm", "nodeSelector": {"kind": "x"}},
     "conflict: runtimeClass.scheduling.nodeSelector[kind] = vm; pod.spec.nodeSelector[kind] = x"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "why"), [row[1:] for row in RUNTIMES], ids=[row[0] for row in RUNTIMES])
async def test_a_runtime_class_refuses_a_pod_with(cluster: Cluster, spec: dict[str, Any], why: str) -> None:
    await cluster.put(RUNTIME)
    assert await cluster.refusal("RuntimeClass", new=pod(**spec)) == why
