"""OwnerReferencesPermissionEnforcement: who may change owner references."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from noxu.registry.access import AccessAttributes, Decision
from noxu.values import Object
from tests.admission.cluster import Cluster

PLUGIN = "OwnerReferencesPermissionEnforcement"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def owner(uid: str = "1", *, blocks: bool = False, kind: str = "ReplicaSet", version: str = "apps/v1") -> Object:
    reference: Object = {"apiVersion": version, "kind": kind, "name": "o", "uid": uid}
    return reference | ({"blockOwnerDeletion": True} if blocks else {})


def owned(*references: Object, **labels: str) -> Object:
    metadata: Object = {"name": "a", "namespace": "default", "labels": labels, "ownerReferences": list(references)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


DELETE = "delete configmaps default a"
FINALIZERS = "update replicasets/finalizers default o"
CANNOT_DELETE = "cannot set an ownerRef on a resource you can't delete: because, <nil>"
CANNOT_BLOCK = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: because, <nil>"
WRITES: list[tuple[str, Object | None, Object, Sequence[str], str]] = [
    ("a new object with an owner", None, owned(owner()), [], ""),
    ("a change of something else", owned(owner()), owned(owner(), a="b"), [], ""),
    ("a new owner, with the right to delete", owned(), owned(owner()), [DELETE], ""),
    ("a new owner, without it", owned(), owned(owner()), [FINALIZERS], CANNOT_DELETE),
    ("an owner less, without it", owned(owner()), owned(), [], CANNOT_DELETE),
    ("a new object that blocks its owner, with the right", None, owned(owner(blocks=True)), [FINALIZERS], ""),
    ("a new object that blocks its owner, without it", None, owned(owner(blocks=True)), [DELETE], CANNOT_BLOCK),
    ("an owner that is blocked from now on", owned(owner()), owned(owner(blocks=True)), [DELETE], CANNOT_BLOCK),
    ("an owner that was blocked before", owned(owner(blocks=True)), owned(owner(blocks=True), owner("2")), [DELETE], ""),
    ("a blocked owner in the cluster", None, owned(owner(blocks=True, kind="Node", version="v1")),
     ["update nodes/finalizers  o"], ""),
    ("a blocked owner of an unknown kind", None, owned(owner(blocks=True, kind="X", version="g/v1")), [],
     "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion g/v1 Kind X: no matches for "
     'kind "X" in version "g/v1"'),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "rights", "why"), [row[1:] for row in WRITES], ids=[row[0] for row in WRITES])
async def test_a_write_of(cluster: Cluster, old: Object | None, new: Object, rights: Sequence[str], why: str) -> None:
    def authorize(asked: AccessAttributes) -> Decision:
        resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
        allowed = f"{asked.verb} {resource} {asked.namespace} {asked.name}" in rights
        return Decision(allowed, "" if allowed else "because")

    assert await cluster.refusal(PLUGIN, new=new, old=old, authorize=authorize) == why
    assert await cluster.refusal(new=new, old=old, authorize=authorize) == ""
