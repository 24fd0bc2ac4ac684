"""Shards of documents: objects in different shards cannot affect each other.

A CRD affects the objects of its group, and names conflict only within a group. Built-in kinds affect each other, for
example through admission plug-ins, so they are in one shard with all groups of Kubernetes. Admission policies and quotas
may affect everything: with one of them there is one shard.

    CRD of a.example, objects of a.example | CRD of b.example | Pods, ConfigMaps, objects of storage.k8s.io

So shards can be processed in different processes, and the result of a shard depends on nothing outside of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from noxu.manifests.documents import Document, is_crd

_BUILT_IN: Final = ""
_KUBERNETES: Final = ".k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_QUOTA: Final = "ResourceQuota"


class Shard(NamedTuple):
    """`documents` are reported. Before them `old`, the former objects, are stored, and `shared` are written.

    `shared` are further CRDs and policies that apply to the documents.
    """

    documents: Sequence[Document]
    shared: Sequence[Document] = ()
    old: Sequence[Document] = ()

    @property
    def size(self) -> int:
        """In bytes, roughly."""
        return sum(len(document.text.body) if document.text else 0 for part in self for document in part)


def split(documents: Sequence[Document], shared: Sequence[Document], old: Sequence[Document]) -> list[Shard]:
    """The shards of documents, in the order of their first documents."""
    if any(map(_affects_everything, (*documents, *shared, *old))):
        return [Shard(documents, shared, old)]
    parts = [_by_group(part) for part in (documents, shared, old)]
    return [Shard(*(part.get(group, []) for part in parts)) for group in parts[0]]


def by_file(documents: Iterable[Document], old: Iterable[Document]) -> list[Shard]:
    """A shard of each file, for documents that do not affect each other, with the former CRDs of their names."""
    former = {document.name: document for document in old if is_crd(document.value)}
    found = [list(of_file) for _, of_file in groupby(documents, key=lambda document: document.file)]
    return [Shard(part, old=[former[each.name] for each in part if each.name in former]) for part in found]


def merged(shards: Iterable[Shard]) -> Shard:
    """One shard of all documents."""
    parts: tuple[list[Document], list[Document], list[Document]] = ([], [], [])
    for shard in shards:
        for part, documents in zip(parts, shard, strict=True):
            part += documents
    return Shard(*parts)


def batches(shards: Iterable[Shard], count: int) -> list[list[Shard]]:
    """The shards in at most `count` batches of similar size."""
    found: list[list[Shard]] = [[] for _ in range(count)]
    sizes = [0] * count
    for shard in sorted(shards, key=lambda shard: shard.size, reverse=True):
        smallest = sizes.index(min(sizes))
        found[smallest].append(shard)
        sizes[smallest] += shard.size
    return [batch for batch in found if batch]


def _affects_everything(document: Document) -> bool:
    return document.kind == _QUOTA or _group(document) == _ADMISSION


def _by_group(documents: Iterable[Document]) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for document in documents:
        group = _group(document)
        if "." not in group or group.endswith(_KUBERNETES):
            group = _BUILT_IN
        found.setdefault(group, []).append(document)
    return found


def _group(document: Document) -> str:
    """The group of an object, or the one that a CRD defines."""
    if is_crd(document.value):
        spec = document.value.get("spec")
        return str(spec.get("group")) if isinstance(spec, dict) else _BUILT_IN
    return str(document.value.get("apiVersion") or "").rpartition("/")[0]
