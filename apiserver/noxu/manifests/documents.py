"""Manifests: objects in YAML or JSON files and directories.

They are read as kubectl reads them: a line that begins with `---` separates documents, a List is replaced by its items,
and empty documents are skipped. A document that cannot be read is returned with an `error`: the caller decides whether
it makes the others unusable. Files in a directory that are no manifests are skipped, with a warning in the log.

Noxu does not do kustomize's work: for a kustomization it runs `kustomize`, or the one in `kubectl`, and reads the
output.
"""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from noxu.api import codec
from noxu.api.codec import Decoded
from noxu.api.field import ROOT, child, index
from noxu.api.field import Path as FieldPath
from noxu.manifests import files as manifest_files
from noxu.manifests import tool_files
from noxu.manifests.files import LoadError as LoadError
from noxu.manifests.files import Skipped
from noxu.manifests.files import content as content
from noxu.manifests.positions import Position, Text
from noxu.manifests.tool_files import CRD as CRD
from noxu.manifests.tool_files import KUSTOMIZATIONS
from noxu.values import Json, Object

STDIN: Final = "-"
NO_KIND: Final = "not a Kubernetes object: it has no kind"
_FIRST: Final = {CRD: 0, "Namespace": 1}


log = logging.getLogger("noxu")


class Document(NamedTuple):
    """One object and its location: document `number` of a file, counted from 1.

    `duplicates` and `strict` are the decoder's messages about duplicate keys (see `codec.Decoded`). With an `error`,
    `value` is empty; with `number` 0, the file itself cannot be read. `text` is the text of the document, None if there
    is none, and `path` the path of the object in it, such as `items[2]` in a List. `packed` is the JSON of the object if
    `value` is only what identifies it (`loading.packed`).
    """

    value: Object
    file: str
    number: int = 1
    duplicates: Sequence[str] = ()
    strict: Sequence[str] = ()
    error: str = ""
    text: Text | None = None
    path: FieldPath = ROOT
    packed: bytes = b""

    def position(self, field: FieldPath = ROOT) -> Position | None:
        """Where a field of the object is in the file, or the innermost field around it; with an `error`, where that is.

        None if the object is not from a text.
        """
        if self.text is None:
            return None
        return self.text.error if self.error and not self.path else self.text.position(joined(self.path, field))

    def place(self, field: FieldPath = ROOT) -> str:
        """The file, and in it the line and column of a field: `objects.yaml:4:8`."""
        position = self.position(field)
        return f"{self.file}:{position.line}:{position.column}" if position else self.file

    @property
    def source(self) -> str:
        return f"{self.file}, document {self.number}" if self.number > 1 else self.file

    @property
    def kind(self) -> str:
        kind = self.value.get("kind")
        return kind if isinstance(kind, str) else ""

    @property
    def namespace(self) -> str:
        return self._metadata("namespace")

    @property
    def name(self) -> str:
        """The name, or else the generateName."""
        return self._metadata("name") or self._metadata("generateName")

    def _metadata(self, field: str) -> str:
        metadata = self.value.get("metadata")
        text = metadata.get(field) if isinstance(metadata, dict) else None
        return text if isinstance(text, str) else ""


def joined(path: FieldPath, field: FieldPath) -> FieldPath:
    """The path of a field of the object at `path`: `items[0]` + `spec.a` → `items[0].spec.a`."""
    return child(path, field) if path and field else path or field


class Part(NamedTuple):
    """A part of a file: a document, decoded if that is possible, or a separator."""

    text: bytes
    decoded: Decoded | None = None
    error: str = ""

    @property
    def is_document(self) -> bool:
        return self.decoded is not None or bool(self.error)


# A line break before the dashes belongs to the separator. The rest of the line is ignored, as in kubectl. A pattern that
# begins with fixed bytes is found fast.
_SEPARATOR: Final = re.compile(rb"(\n---[^\n]*)")


def split(body: bytes) -> list[Part]:
    """The parts of a file: one JSON document, or YAML documents and separators. Their texts joined are the file.

    >>> [part.text for part in split(b"a: 1\\n---\\nb: 2\\n")]
    [b'a: 1', b'\\n---', b'\\nb: 2\\n']
    """
    json_error = ""
    if looks_like_json(body):
        try:
            return [Part(body, codec.decode_json(body))]
        except ValueError as error:
            json_error = str(error)
    texts = _SEPARATOR.split(b"\n" + body)
    first = 0 if texts[0] else 1
    texts[first] = texts[first][1:]  # the line break that was put before the text
    parts = [Part(text) if n % 2 or not text.strip() else _yaml(text) for n, text in enumerate(texts)]
    if json_error and len(parts) == 1 and parts[0].error:  # neither JSON nor YAML that begins with a brace
        return [Part(body, error=json_error)]
    return parts


def looks_like_json(body: bytes) -> bool:
    return body.lstrip()[:1] == b"{"


def _yaml(text: bytes) -> Part:
    try:
        return Part(text, codec.decode_yaml(text))
    except ValueError as error:
        return Part(text, error=str(error))


Split: TypeAlias = Callable[[bytes], list[Part]]


class Contents(NamedTuple):
    """The documents of a file. `skipped`: why they are not to be created if it is in a directory, "" if they are."""

    documents: Sequence[Document]
    skipped: str


Read: TypeAlias = Callable[[bytes, str], Contents]
"""Reads the text of a file with a name."""


def contents_of(body: bytes, file: str, split: Split = split) -> Contents:
    """What is in a file with this text."""
    parts = split(body)
    decoded = [document for _, documents in documents_of(parts, file) for document in documents]
    return Contents(decoded, no_manifest(parts))


def read_paths(paths: Iterable[Path], read: Read = contents_of, command: str = "") -> Iterator[Document]:
    """All documents of files and directories (except for hidden files in them), and of stdin for the path `-`.

    `command` is the command of `noxu` that reads them (see `manifest_files.files`).
    """
    for path in paths:
        if str(path) == STDIN:
            yield from read(sys.stdin.buffer.read(), "stdin").documents
            continue
        try:
            listed = files(path, command)
        except LoadError as error:
            name = manifest_files.name_of(path)
            yield Document({}, name, 0, error=str(error).removeprefix(f"{name}: "))
            continue
        for file in listed:
            yield from read_file(file, read, skip=file != path)


def files(path: Path, command: str = "") -> list[Path]:
    """The manifests in a directory, or the file itself. What is skipped is logged. Raises LoadError."""
    paths, skipped = manifest_files.files(path, command)
    for reason in skipped:
        log.warning("%s", reason)
    if not paths:
        log.warning("%s: there is no manifest in this directory", path)
    return paths


def read_file(path: Path, read: Read = contents_of, *, skip: bool = False) -> Iterator[Document]:
    """The documents of a file. `skip`: skip a file whose content is no manifest, with a warning."""
    try:
        contents = read(content(path), str(path))
    except LoadError as error:
        yield Document({}, str(path), 0, error=str(error))
        return
    if skip and contents.skipped:
        log.warning("%s", Skipped(path, contents.skipped))
    else:
        yield from contents.documents


def no_manifest(parts: Sequence[Part]) -> str:
    """Why the content of a file in a directory is not to be created, "" if it is."""
    documents = [part for part in parts if part.is_document]
    if any(part.error for part in documents):
        broken = all(part.decoded is None and tool_files.is_template(part.text) for part in documents if part.error)
        return tool_files.TEMPLATE if broken else ""
    values = [part.decoded.value for part in documents if part.decoded is not None]
    return tool_files.reason(value for value in values if value is not None)


def read(body: bytes, file: str, split: Split = split) -> Iterator[Document]:
    """The documents of a file with this text."""
    yield from contents_of(body, file, split).documents


def documents_of(parts: Iterable[Part], file: str) -> Iterator[tuple[int, list[Document]]]:
    """(the index of a part of a file, the documents in it), for each part that is a document."""
    number, line = 0, 1
    for n, part in enumerate(parts):
        if part.is_document:
            number += 1
            text = Text(part.text, line)
            if part.decoded is None:
                yield n, [Document({}, file, number, error=part.error, text=text)]
            else:
                yield n, list(flatten(part.decoded, file, number, text))
        line += part.text.count(b"\n")


def flatten(decoded: Decoded, file: str, number: int = 1, text: Text | None = None) -> Iterator[Document]:
    """The object of a document, or the items of a List; nothing for an empty document."""
    if not is_list(decoded.value):
        if decoded.value is not None:
            yield _document(decoded, Document({}, file, number, text=text))
        return
    todo = [(decoded.value, ROOT)]
    while todo:
        value, path = todo.pop()
        if is_list(value):
            below = child(path, "items")
            todo += [(item, index(below, n)) for n, item in reversed(list(enumerate(value["items"])))]
        else:
            yield _document(Decoded(value), Document({}, file, number, text=text, path=path))


def _document(decoded: Decoded, location: Document) -> Document:
    value = decoded.value
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return location._replace(error=NO_KIND)
    return location._replace(value=value, duplicates=decoded.duplicates, strict=decoded.strict)


def is_list(value: Json) -> bool:
    """Whether a value is a List of objects."""
    return isinstance(value, dict) and str(value.get("kind")).endswith("List") and isinstance(value.get("items"), list)


def is_crd(value: Json) -> bool:
    """Whether a value is a CRD, of any version."""
    return isinstance(value, dict) and value.get("kind") == CRD


def in_order(documents: Iterable[Document]) -> list[Document]:
    """Sort documents in the order in which they have to be created: CRDs, then namespaces, then everything else."""
    return sorted(documents, key=lambda document: _FIRST.get(document.kind, len(_FIRST)))


def checked(documents: Iterable[Document]) -> Iterator[Document]:
    """The same documents. Raises LoadError at the first one that cannot be read."""
    for document in documents:
        if document.error:
            raise LoadError(f"{document.source}: {document.error}")
        yield document


# -- kustomizations ----------------------------------------------------------------------------------------------------


PROGRAMS: Final = (("kustomize", "build"), ("kubectl", "kustomize"))
"""In this order; the directory is their last argument."""


def build(directory: Path) -> Iterator[Document]:
    """The documents that a kustomization makes, or one with an error."""
    output, error = _run(directory)
    if error:
        yield Document({}, str(directory), 0, error=error)
    else:
        yield from read(output, f"{directory}, built")


def _run(directory: Path) -> tuple[bytes, str]:
    """What kustomize prints, or an error."""
    if not directory.is_dir():
        return (
            b"",
            "it is no directory: -k takes the one of a kustomization" if directory.exists() else "no such directory",
        )
    if not any((directory / name).is_file() for name in KUSTOMIZATIONS):
        return b"", "it has no kustomization.yaml"
    for program, argument in PROGRAMS:
        if path := shutil.which(program):
            ran = subprocess.run([path, argument, str(directory)], capture_output=True, check=False)  # noqa: S603 - from the user's PATH
            message = ran.stderr.decode(errors="replace").strip()
            return ran.stdout, f"{program} {argument}: {message}" if ran.returncode else ""
    return (
        b"",
        f"-k needs kustomize or kubectl; elsewhere: kubectl kustomize {directory} > all.yaml; noxu serve all.yaml",
    )
