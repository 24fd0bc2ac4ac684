"""Schemas of kinds by the names of their files, without their CRDs: the bundles of kubeconform and flux-schema.

    example.com/widget_v1.json          flux-schema, and the catalogues that kubeconform uses
    widget-example.com-v1.json          kubeconform with the full group
    widget-example-v1.json              kubeconform: the first label of the group
    example.com_widget_v1.json

A bundle is a directory, at any depth of which the files may be, an archive of one (.tar, .tar.gz, .tgz, .zip), or one such file.
Only what objects need is read: kinds that are built in, and those that a CRD among the documents defines, are left alone.
"""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.crd import json_schemas
from noxu.manifests.documents import Document, LoadError, is_crd
from noxu.manifests.positions import Text
from noxu.registry.builtin import built_in_versions
from noxu.values import Json, Object

MAX_BYTES: Final = 16 * 1024 * 1024  # of one schema; the largest of public CRDs have 5 MB
MAX_DEPTH: Final = 250  # levels of JSON in a schema: what converts it recurses
ARCHIVES: Final = (".tar", ".tar.gz", ".tgz", ".zip")
_JSON: Final = ".json"

Read = Callable[[], bytes]


class SchemaFile(NamedTuple):
    """A file of a bundle. `name` is its path in lower case, of which the last two parts count; `place` is for people."""

    name: str
    place: str
    read: Read


def definitions(paths: Iterable[Path], documents: Iterable[Document]) -> list[Document]:
    """Definitions of the kinds of documents that have none, from the first bundle that has a schema. Raises LoadError."""
    with ExitStack() as stack:  # archives stay open until all is read
        return _definitions([file for path in paths for file in _files(path, stack)], list(documents))


def _definitions(files: Iterable[SchemaFile], documents: Sequence[Document]) -> list[Document]:
    known = {(versions.storage.group, versions.storage.kind) for versions in built_in_versions()}
    known |= {_defined(document.value) for document in documents if is_crd(document.value)}
    wanted: dict[tuple[str, str], dict[str, None]] = {}
    for document in documents:
        group, _, version = str(document.value.get("apiVersion") or "").rpartition("/")
        if group and document.kind and (group, document.kind) not in known:
            wanted.setdefault((group, document.kind), {})[version] = None
    by_end: dict[str, SchemaFile] = {}
    for file in files:
        for end in _ends(file.name):
            by_end.setdefault(end, file)
    found = (_definition(group, kind, versions, by_end) for (group, kind), versions in wanted.items())
    return [each for each in found if each is not None]


def _definition(group: str, kind: str, versions: Iterable[str], by_end: Mapping[str, SchemaFile]) -> Document | None:
    """Raises LoadError."""
    schemas: dict[str, Object] = {}
    place = ""
    for version in versions:
        file = next((by_end[each] for each in file_names(group, kind, version) if each in by_end), None)
        if file is not None:
            place = file.place
            schemas[version] = _schema(file)
    if not schemas:
        return None
    value = json_schemas.definition(group, kind, schemas)
    return Document(value, place, text=Text(codec.encode(value, sort_keys=False)))


def file_names(group: str, kind: str, version: str) -> Iterator[str]:
    """The names that the file of a kind may have, in lower case."""
    group, kind, version = group.lower(), kind.lower(), version.lower()
    yield f"{group}/{kind}_{version}.json"
    yield f"{kind}-{group}-{version}.json"
    yield f"{group}_{kind}_{version}.json"
    yield f"{kind}-{group.partition('.')[0]}-{version}.json"


def _ends(name: str) -> Iterator[str]:
    """The last parts of a path by which a file is found: its name, and that with its directory."""
    parts = name.split("/")
    yield parts[-1]
    yield "/".join(parts[-2:])


def _schema(file: SchemaFile) -> Object:
    """Raises LoadError."""
    try:
        content = file.read()
        value: Json = codec.decode_answer(content)
    except (OSError, ValueError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise LoadError(f"{file.place}: it cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise LoadError(f"{file.place}: a JSON schema is an object")
    if _is_deep(value):
        raise LoadError(f"{file.place}: it is nested more than {MAX_DEPTH} levels deep")
    return value


def _is_deep(schema: Object) -> bool:
    level: list[Json] = [schema]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
        ]
    return bool(level)


def _defined(crd: Object) -> tuple[str, str]:
    spec = crd.get("spec")
    if not isinstance(spec, dict) or not isinstance(names := spec.get("names"), dict):
        return "", ""
    return str(spec.get("group")), str(names.get("kind"))


# -- the files of a bundle ---------------------------------------------------------------------------------------------


def _files(path: Path, stack: ExitStack) -> Iterator[SchemaFile]:
    """The JSON files of a bundle. Raises LoadError."""
    try:
        if path.is_dir():
            for file in sorted(path.rglob(f"*{_JSON}")):
                if file.is_file():
                    yield _on_disk(file)
        elif path.name.endswith(".zip"):
            archive = stack.enter_context(zipfile.ZipFile(path))
            for info in archive.infolist():
                if info.filename.endswith(_JSON):
                    read = partial(_of_zip, archive, info)
                    yield SchemaFile(info.filename.lower(), f"{path}/{info.filename}", read)
        elif path.name.endswith(ARCHIVES):
            tar = stack.enter_context(tarfile.open(path))  # noqa: SIM115 - the stack closes it
            for member in tar.getmembers():
                if member.isfile() and member.name.endswith(_JSON):
                    yield SchemaFile(member.name.lower(), f"{path}/{member.name}", partial(_of_tar, tar, member))
        elif path.is_file():
            yield _on_disk(path)
        else:
            raise LoadError(f"{path}: no such file or directory")
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise LoadError(f"{path}: it cannot be read: {error}") from None


def _on_disk(file: Path) -> SchemaFile:
    return SchemaFile(file.absolute().as_posix().lower(), str(file), partial(_of_file, file))


def _of_file(file: Path) -> bytes:
    _check_size(file.stat().st_size)
    return file.read_bytes()


def _of_zip(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    _check_size(info.file_size)
    return archive.read(info)


def _of_tar(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    _check_size(member.size)
    file = archive.extractfile(member)
    assert file is not None
    with file:
        return file.read()


def _check_size(size: int) -> None:
    """Raises ValueError for a schema that is too large."""
    if size > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES} bytes")
