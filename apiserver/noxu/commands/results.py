"""The results of checking documents, shard by shard: read from the cache, or found in one process or several.

A result is kept under everything that it depends on: the documents of its shard, with their files and lines, and the
inputs that its `Check` names. Other processes get only the documents, and the name of the function that finds the
results: it belongs to a module.

Shards of documents: objects in different shards cannot affect each other.

A CRD affects the objects of its group, and names conflict only within a group. Built-in kinds affect each other, for
example through admission plug-ins, so they are in one shard with all groups of Kubernetes. Admission policies and
quotas may affect everything, so with one there is only one shard.

    CRD of a.example, objects of a.example | CRD of b.example | Pods, ConfigMaps, objects of storage.k8s.io

So different processes can check them, and the result of a shard depends on nothing outside of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Generic, NamedTuple, TypeVar

from noxu.manifests.documents import Document, is_crd
from noxu.manifests.manifest_cache import Cache
from noxu.values import Json
from noxu_storage.types import Progress, no_progress

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
    parts = [list(of_file) for _, of_file in groupby(documents, key=lambda document: document.file)]
    return [Shard(part, old=[former[document.name] for document in part if document.name in former]) for part in parts]


def merged(shards: Iterable[Shard]) -> Shard:
    """One shard of all documents."""
    parts: tuple[list[Document], list[Document], list[Document]] = ([], [], [])
    for shard in shards:
        for part, documents in zip(parts, shard, strict=True):
            part += documents
    return Shard(*parts)


def batches(shards: Iterable[Shard], count: int) -> list[list[Shard]]:
    """The shards in at most `count` batches of similar size."""
    batched: list[list[Shard]] = [[] for _ in range(count)]
    sizes = [0] * count
    for shard in sorted(shards, key=lambda shard: shard.size, reverse=True):
        smallest = sizes.index(min(sizes))
        batched[smallest].append(shard)
        sizes[smallest] += shard.size
    return [batch for batch in batched if batch]


def _affects_everything(document: Document) -> bool:
    return document.kind == _QUOTA or _group(document) == _ADMISSION


def _by_group(documents: Iterable[Document]) -> dict[str, list[Document]]:
    groups: dict[str, list[Document]] = {}
    for document in documents:
        group = _group(document)
        if "." not in group or group.endswith(_KUBERNETES):
            group = _BUILT_IN
        groups.setdefault(group, []).append(document)
    return groups


def _group(document: Document) -> str:
    """The group of an object, or the one that a CRD defines."""
    if is_crd(document.value):
        spec = document.value.get("spec")
        return str(spec.get("group")) if isinstance(spec, dict) else _BUILT_IN
    return str(document.value.get("apiVersion") or "").rpartition("/")[0]


# -- results ---------------------------------------------------------------------------------------------------------


R = TypeVar("R")
Find = Callable[[Shard, Progress], Iterable[tuple[Document, R]]]


@dataclass(frozen=True)
class Check(Generic[R]):
    """What is found out about documents, and in which form it is kept.

    `find` returns a result for each of a shard's `documents`, in any order. `depends` is what the results depend on besides
    the shard. `from_json` raises LookupError, TypeError or ValueError for what `as_json` has not made. `reads_text`: `find`
    needs the texts of documents, besides their values. `kept`: whether a result would be the same at another time.
    """

    name: str
    find: Find[R]
    depends: object
    as_json: Callable[[R], Json]
    from_json: Callable[[Document, Json], R]
    reads_text: bool = True
    kept: Callable[[R], bool] = lambda _: True


class Results(dict[int, R]):
    """Results by the ids of their documents."""

    def of(self, documents: Iterable[Document]) -> list[R]:
        return [self[id(document)] for document in documents]

    def add(self, results: Iterable[tuple[Document, R]]) -> None:
        self.update((id(document), result) for document, result in results)


def add(
    gathered: Results[R],
    check: Check[R],
    parts: Sequence[Shard],
    cache: Cache,
    jobs: int = 1,
    report: Progress = no_progress,
) -> None:
    """Add the results of shards. `report` gets the number of documents that are checked and not in `gathered` yet."""
    missing = [shard for shard in parts if not (cache.keeps and _restore(gathered, check, shard, cache))]
    if jobs > 1 and len(missing) > 1:
        _find_in_processes(gathered, check, missing, jobs, report)
    elif missing:
        gathered.add(check.find(merged(missing), report))
    for shard in missing if cache.keeps else ():
        results = gathered.of(shard.documents)
        if all(map(check.kept, results)):
            cache.put([check.as_json(result) for result in results], check.name, *_parts(check, shard))


# -- processes --------------------------------------------------------------------------------------------------------


_BATCHES: Final = 4
"""For each process: all are busy until the end, and the progress is shown in steps."""


def _find_in_processes(
    gathered: Results[R], check: Check[R], missing: Sequence[Shard], jobs: int, report: Progress
) -> None:
    from concurrent.futures import ProcessPoolExecutor  # takes long to import

    parts = [merged(batch) for batch in batches(missing, _BATCHES * jobs)]
    sent = parts if check.reads_text else list(map(_without_text, parts))
    with ProcessPoolExecutor(min(jobs, len(parts))) as pool:
        answers = pool.map(_find, [check.find] * len(sent), [check.as_json] * len(sent), sent)
        for shard, values in zip(parts, answers, strict=True):
            gathered.add((shard.documents[n], check.from_json(shard.documents[n], value)) for n, value in values)
            report(0, 0)


def _without_text(shard: Shard) -> Shard:
    return Shard(*([document._replace(text=None) for document in part] for part in shard))


def _find(find: Find[R], as_json: Callable[[R], Json], shard: Shard) -> list[tuple[int, Json]]:
    """In another process: (the index of a document, its result)."""
    places = {id(document): n for n, document in enumerate(shard.documents)}
    return [(places[id(document)], as_json(result)) for document, result in find(shard, no_progress)]


# -- kept results -----------------------------------------------------------------------------------------------------


def _restore(gathered: Results[R], check: Check[R], shard: Shard, cache: Cache) -> bool:
    """Add the kept results of a shard. Returns whether there are some."""
    kept = cache.get(check.name, *_parts(check, shard))
    with suppress(LookupError, TypeError, ValueError):
        results = [check.from_json(document, value) for document, value in zip(shard.documents, kept, strict=True)]
        gathered.add(zip(shard.documents, results, strict=True))
        return True
    return False


def _parts(check: Check[R], shard: Shard) -> list[bytes]:
    """What the results of a shard depend on."""
    parts = [repr(check.depends).encode()]
    for documents in shard:
        parts.append(str(len(documents)).encode())
        for document in documents:
            assert document.text is not None
            place = f"{document.file}\0{document.number}\0{document.path}\0{document.text.first_line}"
            parts += [os.fsencode(place), document.text.digest]
    return parts
