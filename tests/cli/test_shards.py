"""Shards: objects that may affect each other are together, others apart."""

from __future__ import annotations

from noxu.commands.results import Shard, batches, merged, split
from noxu.manifests.documents import Document
from noxu.manifests.positions import Text
from tests.rows import rows


def crd(group: str) -> Document:
    return Document({"kind": "CustomResourceDefinition", "spec": {"group": group}}, f"crd of {group}")


def of(api_version: str, kind: str = "A") -> Document:
    return Document({"apiVersion": api_version, "kind": kind}, f"{kind} of {api_version}")


POD, SERVICE = of("v1", "Pod"), of("v1", "Service")
A, B = of("a.example/v1"), of("b.example/v1")

SHARDS: list[tuple[str, list[Document], list[list[Document]]]] = [
    ("nothing", [], []),
    ("objects of two groups", [A, B, A], [[A, A], [B]]),
    ("a CRD and its objects", [crd("a.example"), B, A], [[crd("a.example"), A], [B]]),
    ("another version", [A, of("a.example/v2")], [[A, of("a.example/v2")]]),
    ("built-in kinds", [POD, A, of("apps/v1"), SERVICE], [[POD, of("apps/v1"), SERVICE], [A]]),
    ("groups of Kubernetes", [POD, crd("gateway.networking.k8s.io"), of("storage.k8s.io/v1")], [[POD, crd("gateway.networking.k8s.io"), of("storage.k8s.io/v1")]]),
    ("a policy affects everything", [A, B, of("admissionregistration.k8s.io/v1")], [[A, B, of("admissionregistration.k8s.io/v1")]]),
    ("a quota, too", [A, B, of("v1", "ResourceQuota")], [[A, B, of("v1", "ResourceQuota")]]),
    ("a CRD without a spec", [Document({"kind": "CustomResourceDefinition"}, "f"), A], [[Document({"kind": "CustomResourceDefinition"}, "f")], [A]]),
    ("an object without a version", [Document({"kind": "A"}, "f"), POD], [[Document({"kind": "A"}, "f"), POD]]),
]  # fmt: skip


@rows(("documents", "parts"), [row[1:] for row in SHARDS], ids=[row[0] for row in SHARDS])
def test_the_shards_of_documents(documents: list[Document], parts: list[list[Document]]) -> None:
    assert [shard.documents for shard in split(documents, [], [])] == parts


def test_a_shard_has_the_shared_and_former_documents_of_its_group() -> None:
    assert split([A], [crd("a.example"), crd("b.example")], [B, A]) == [Shard([A], [crd("a.example")], [A])]


def test_a_former_policy_affects_everything() -> None:
    policy = of("admissionregistration.k8s.io/v1")
    assert split([A, B], [], [policy]) == [Shard([A, B], [], [policy])]


def test_shards_are_merged_into_one() -> None:
    assert merged([Shard([A], [B]), Shard([B], [], [POD])]) == Shard([A, B], [B], [POD])


def test_batches_have_similar_sizes() -> None:
    sized = [Shard([Document({}, str(size), text=Text(b"x" * size))]) for size in (1, 5, 2, 4)]
    assert [[shard.size for shard in batch] for batch in batches(sized, 2)] == [[5, 1], [4, 2]]
    assert len(batches(sized[:1], 4)) == 1
