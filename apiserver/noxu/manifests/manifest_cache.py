"""Results that are kept under the user's cache directory, `$XDG_CACHE_HOME/noxu/checks` or `~/.cache/noxu/checks`.

The name of an entry is a digest of everything that the result depends on, including this version of Noxu: its modules,
with their sizes and times, Python's version and the engine of patterns. An entry has a digest of its content; an entry
that is unreadable, damaged or of an unexpected form counts as absent. A directory that cannot be written is no error.
The oldest entries are removed when there are more than MAX_BYTES.

Files whose objects were packed at an earlier start are neither parsed nor encoded again (see `loading.packed`).

An entry of the cache is the length of its head, the head as JSON, and the JSON of all objects, one after the other:

    00 00 00 52   ["",[[0,64,1,[[{"kind":"A",…},1,[],[],"","",31]]]]]   {"kind":"A",…,"data":{"a":"1"}}

The head has the reason to skip the file in a directory and, for each document, the place of its text in the file, its
first line, and its objects: their identity, their number, the decoder's messages, the error, the path, and the length
of their JSON.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

import orjson

from noxu.api.codec import Decoded
from noxu.crd.known_definitions import KnownDefinitions, unchanged_from_json, valid_specs_from_json
from noxu.files import write_whole
from noxu.manifests.documents import Contents, Document, Part, Read, contents_of, documents_of, no_manifest, split
from noxu.manifests.loading import packed
from noxu.manifests.positions import Text
from noxu.schema import patterns
from noxu.values import Json

MAX_BYTES: Final = 256 * 1024 * 1024
MIN_SPLIT: Final = 16 * 1024  # bytes; smaller files are read faster than found
_DIGEST: Final = 32  # bytes
PACKAGE: Final = Path(__file__).parents[2]


def user_directory() -> Path | None:
    """None for a user without a home directory."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "noxu", "checks")
    except RuntimeError:
        return None


@lru_cache(maxsize=1)
def version() -> bytes:
    """What the code is: its modules with their sizes and times of modification, Python's version, the engine of patterns."""
    digest = hashlib.sha256(f"{sys.version}\0{patterns.engine()}\0".encode())
    for path in sorted(_modules(str(PACKAGE))):
        status = os.stat(path)  # noqa: PTH116 - of hundreds of modules
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.digest()


def _modules(directory: str) -> Iterator[str]:
    for entry in os.scandir(directory):
        if entry.is_dir():
            yield from _modules(entry.path)
        elif entry.name.endswith(".py"):
            yield entry.path


class Cache:
    """Results by what they depend on. `directory` None: nothing is kept."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._has_written = False

    @property
    def keeps(self) -> bool:
        """Whether results are kept."""
        return self._directory is not None

    def get(self, kind: str, *parts: bytes) -> Json:
        """A result, None if there is none."""
        body = self.get_bytes(kind, *parts)
        try:
            value: Json = None if body is None else orjson.loads(body)
        except ValueError:
            return None
        return value

    def get_bytes(self, kind: str, *parts: bytes) -> memoryview | None:
        """The bytes of a result, None if there is none."""
        if self._directory is None:
            return None
        path = self._path(kind, parts)
        try:
            kept = memoryview(path.read_bytes())
        except OSError:
            return None
        if hashlib.sha256(kept[_DIGEST:]).digest() != kept[:_DIGEST]:
            return None
        with suppress(OSError):
            os.utime(path)
        return kept[_DIGEST:]

    def put(self, value: Json, kind: str, *parts: bytes) -> None:
        """Keep a result. One that JSON cannot have, such as a huge integer, is not kept."""
        if not self.keeps:
            return
        with suppress(TypeError):
            self.put_bytes(orjson.dumps(value), kind, *parts)

    def put_bytes(self, body: bytes, kind: str, *parts: bytes) -> None:
        """Keep the bytes of a result."""
        if self._directory is None:
            return
        path = self._path(kind, parts)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, hashlib.sha256(body).digest() + body)
            self._has_written = True
        except OSError:
            self._directory = None

    def _path(self, kind: str, parts: tuple[bytes, ...]) -> Path:
        assert self._directory is not None
        digest = hashlib.sha256(version())
        for part in (kind.encode(), *parts):
            digest.update(len(part).to_bytes(8, "big") + part)
        name = digest.hexdigest()
        return self._directory / name[:2] / name[2:]

    def split(self, body: bytes) -> list[Part]:
        """The parts of a file, as `documents.split` finds them."""
        if self._directory is None or len(body) < MIN_SPLIT:
            return split(body)
        digest = hashlib.sha256(body).digest()
        kept = self.get("parts", digest)
        if kept is not None:
            with suppress(LookupError, TypeError, ValueError):
                return _parts(body, kept)
        parts = split(body)
        self.put([_part_as_json(part) for part in parts], "parts", digest)
        return parts

    def known_definitions(self) -> KnownDefinitions:
        """What is known of definitions."""
        return KnownDefinitions(
            valid_specs_from_json(self.get("valid specs")),
            unchanged_from_json(self.get("unchanged definitions")),
        )

    def keep_known_definitions(self, definitions: KnownDefinitions) -> None:
        """Keep it, if there is something new. What another process keeps at the same time may be lost."""
        if definitions.valid_specs.has_new:
            self.put(definitions.valid_specs.as_json(), "valid specs")
        if definitions.unchanged.has_new:
            self.put(definitions.unchanged.as_json(), "unchanged definitions")

    @property
    def reader(self) -> Read:
        """Reads the packed documents of files, or takes them from the cache."""
        return partial(_read_packed, self)

    def tidy(self) -> None:
        """Remove the oldest entries if there are too many. Only after a result was kept."""
        if self._directory is None or not self._has_written:
            return
        with suppress(OSError):
            entries = [
                (status.st_mtime, status.st_size, path)
                for path in self._directory.glob("??/*")
                for status in [path.stat()]
            ]
            total = sum(size for _, size, _ in entries)
            for _, size, path in sorted(entries):
                if total <= MAX_BYTES:
                    break
                path.unlink(missing_ok=True)
                total -= size


def _part_as_json(part: Part) -> Json:
    decoded = part.decoded
    return [
        len(part.text),
        part.error,
        None if decoded is None else [decoded.value, list(decoded.duplicates), decoded.yaml],
    ]


def _parts(body: bytes, kept: Json) -> list[Part]:
    """Raises LookupError, TypeError, ValueError for what `_part_as_json` has not made."""
    parts, at = [], 0
    for length, error, kept_decoded in kept:
        decoded = None
        if kept_decoded is not None:
            value, duplicates, yaml = kept_decoded
            decoded = Decoded(value, duplicates if duplicates or yaml else (), yaml)
        parts.append(Part(body[at : at + length], decoded, str(error)))
        at += length
    if at != len(body):
        raise ValueError
    return parts


# -- files whose objects are packed ------------------------------------------------------------------------------------


_LENGTH: Final = 4  # bytes
_MIN_SIZE: Final = 512  # bytes; what reads YAML is not imported if all files are kept


def _read_packed(cache: Cache, body: bytes, file: str) -> Contents:
    if not cache.keeps or len(body) < _MIN_SIZE:
        contents = contents_of(body, file)
        return contents._replace(documents=list(map(packed, contents.documents)))
    digest = hashlib.sha256(body).digest()
    kept = cache.get_bytes("packed files", digest)
    if kept is not None:
        with suppress(LookupError, TypeError, ValueError):
            return _unpacked(body, file, kept)
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
            texts.append([starts[n], starts[n + 1], inside[0].text.first_line, list(map(_packed_as_json, inside))])
    skipped = no_manifest(parts)
    with suppress(TypeError):  # a number or a text that JSON cannot have
        head = orjson.dumps([skipped, texts])
        cache.put_bytes(
            b"".join((len(head).to_bytes(_LENGTH, "big"), head, *(document.packed for document in documents))),
            "packed files",
            digest,
        )
    return Contents(documents, skipped)


def _packed_as_json(document: Document) -> Json:
    value, _, number, duplicates, strict, error, _, path, content = document
    return [value, number, list(duplicates), list(strict), error, path, len(content)]


def _unpacked(body: bytes, file: str, kept: memoryview) -> Contents:
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
