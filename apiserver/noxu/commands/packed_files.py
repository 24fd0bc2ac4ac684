"""Files whose objects were packed at an earlier start: neither parsed nor encoded again (see `loading.packed`).

An entry of the cache is the length of its head, the head as JSON, and the JSON of all objects, one after the other:

    00 00 00 52   ["",[[0,64,1,[[{"kind":"A",…},1,[],[],"","",31]]]]]   {"kind":"A",…,"data":{"a":"1"}}

The head has why the file is skipped in a directory, and of each document where its text is in the file, its first line, and
its objects: what identifies them, their number, the decoder's messages, the error, the path, and the length of their JSON.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import partial
from typing import Final

import orjson

from noxu.commands.cache import Cache
from noxu.manifests.documents import Contents, Document, Read, contents_of, documents_of, no_manifest, split
from noxu.manifests.loading import packed
from noxu.manifests.positions import Text
from noxu.values import Json

_LENGTH: Final = 4  # bytes
_MIN_SIZE: Final = 512  # bytes; what reads YAML is not imported if all files are kept


def reader(cache: Cache) -> Read:
    """Reads the packed documents of files, or takes them from the cache."""
    return partial(_read, cache)


def _read(cache: Cache, body: bytes, file: str) -> Contents:
    if not cache.keeps or len(body) < _MIN_SIZE:
        found = contents_of(body, file)
        return found._replace(documents=list(map(packed, found.documents)))
    digest = hashlib.sha256(body).digest()
    kept = cache.get_bytes("packed files", digest)
    if kept is not None:
        with suppress(LookupError, TypeError, ValueError):
            return _restored(body, file, kept)
    parts = split(body)
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + len(part.text))
    texts: list[Json] = []
    documents: list[Document] = []
    for n, found_documents in documents_of(parts, file):
        inside = list(map(packed, found_documents))
        documents += inside
        if inside and inside[0].text is not None:
            texts.append([starts[n], starts[n + 1], inside[0].text.first_line, list(map(_as_json, inside))])
    skipped = no_manifest(parts)
    with suppress(TypeError):  # a number or a text that JSON cannot have
        head = orjson.dumps([skipped, texts])
        cache.put_bytes(
            b"".join((len(head).to_bytes(_LENGTH, "big"), head, *(document.packed for document in documents))),
            "packed files",
            digest,
        )
    return Contents(documents, skipped)


def _as_json(document: Document) -> Json:
    value, _, number, duplicates, strict, error, _, path, content = document
    return [value, number, list(duplicates), list(strict), error, path, len(content)]


def _restored(body: bytes, file: str, kept: memoryview) -> Contents:
    """Raises LookupError, TypeError, ValueError for what `_read` has not kept."""
    at = _LENGTH + int.from_bytes(kept[:_LENGTH], "big")
    skipped, texts = orjson.loads(kept[_LENGTH:at])
    documents = []
    for start, end, line, inside in texts:
        text = Text(body[start:end], line)
        for value, number, duplicates, strict, error, path, length in inside:
            content = bytes(kept[at : at + length])
            at += length
            documents.append(Document(value, file, number, duplicates, strict, error, text, path, content))
    if at != len(kept):
        raise ValueError
    return Contents(documents, skipped)
