"""The results of checking documents, shard by shard: kept ones, or found now, in this process or in several.

A result is kept for what it depends on: the documents of its shard, with their files and lines, and what its `Check` names.
All other processes get is the documents and the function that finds the results, which therefore belongs to a module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from noxu.commands import shards
from noxu.commands.cache import Cache
from noxu.commands.shards import Shard
from noxu.manifests.documents import Document
from noxu.values import Json
from noxu_storage.types import Progress, no_progress

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

    def add(self, found: Iterable[tuple[Document, R]]) -> None:
        self.update((id(document), result) for document, result in found)


def add(
    found: Results[R],
    check: Check[R],
    parts: Sequence[Shard],
    cache: Cache,
    jobs: int = 1,
    report: Progress = no_progress,
) -> None:
    """Add the results of shards. `report` is called with the number of documents that are checked, and not in `found` yet."""
    missing = [shard for shard in parts if not (cache.keeps and _restore(found, check, shard, cache))]
    if jobs > 1 and len(missing) > 1:
        _find_in_processes(found, check, missing, jobs, report)
    elif missing:
        found.add(check.find(shards.merged(missing), report))
    for shard in missing if cache.keeps else ():
        results = found.of(shard.documents)
        if all(map(check.kept, results)):
            cache.put([check.as_json(result) for result in results], check.name, *_parts(check, shard))


# -- processes --------------------------------------------------------------------------------------------------------


_BATCHES: Final = 4
"""For each process: all are busy until the end, and the progress is shown in steps."""


def _find_in_processes(
    found: Results[R], check: Check[R], missing: Sequence[Shard], jobs: int, report: Progress
) -> None:
    from concurrent.futures import ProcessPoolExecutor  # takes long to import

    merged = [shards.merged(batch) for batch in shards.batches(missing, _BATCHES * jobs)]
    sent = merged if check.reads_text else list(map(_without_text, merged))
    with ProcessPoolExecutor(min(jobs, len(merged))) as pool:
        answers = pool.map(_find, [check.find] * len(sent), [check.as_json] * len(sent), sent)
        for shard, values in zip(merged, answers, strict=True):
            found.add((shard.documents[n], check.from_json(shard.documents[n], value)) for n, value in values)
            report(0, 0)


def _without_text(shard: Shard) -> Shard:
    return Shard(*([document._replace(text=None) for document in part] for part in shard))


def _find(find: Find[R], as_json: Callable[[R], Json], shard: Shard) -> list[tuple[int, Json]]:
    """In another process: (the index of a document, its result)."""
    places = {id(document): n for n, document in enumerate(shard.documents)}
    return [(places[id(document)], as_json(result)) for document, result in find(shard, no_progress)]


# -- kept results -----------------------------------------------------------------------------------------------------


def _restore(found: Results[R], check: Check[R], shard: Shard, cache: Cache) -> bool:
    """Add the kept results of a shard. Returns whether there are some."""
    kept = cache.get(check.name, *_parts(check, shard))
    with suppress(LookupError, TypeError, ValueError):
        results = [check.from_json(document, value) for document, value in zip(shard.documents, kept, strict=True)]
        found.add(zip(shard.documents, results, strict=True))
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
