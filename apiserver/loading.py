"""Files to load at start: CRDs and objects, in YAML or JSON, several in a file, files in directories.

What others need comes first: CRDs, then namespaces, then everything else. What exists already is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from apiserver.api import codec
from apiserver.api.errors import ApiError, bad_request
from apiserver.api.types import Json, Object
from apiserver.registry.pipeline import Draft, Options
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry

SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_FIRST: Final = {"CustomResourceDefinition": 0, "Namespace": 1}


class LoadError(Exception):
    """A file cannot be read or an object is refused; the message names the file."""


class Document(NamedTuple):
    """One object, and where it stands."""

    value: Object
    source: str


def read_files(paths: Iterable[Path]) -> list[Document]:
    """All objects in files and directories (not hidden ones), in the order in which they are to be loaded."""
    return in_order(document for path in paths for file in _files(path) for document in read_file(file))


def in_order(documents: Iterable[Document]) -> list[Document]:
    """What others need comes first."""
    return sorted(documents, key=lambda document: _FIRST.get(str(document.value.get("kind")), len(_FIRST)))


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise LoadError(f"{path}: no such file or directory")
    if not path.is_dir():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.suffix in SUFFIXES
        and file.is_file()
        and not any(part.startswith(".") for part in file.parts[len(path.parts) :])
    )


def read_file(path: Path) -> Iterator[Document]:
    try:
        documents = decode_documents(path.read_bytes())
    except OSError as error:
        raise LoadError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise LoadError(f"{path}: {error}") from None
    yield from flatten(documents, str(path))


def read_text(text: str) -> Iterator[Document]:
    """Manifests that are at hand as text."""
    try:
        documents = decode_documents(text.encode())
    except ValueError as error:
        raise LoadError(str(error)) from None
    yield from flatten(documents, "text")


_SEPARATOR: Final = re.compile(rb"(?:\A|\n)---[^\n]*(?=\n|\Z)")  # kubectl's: what else stands in the line is dropped


def decode_documents(body: bytes) -> list[Json]:
    """All YAML documents of a file, or the one JSON document. Raises ValueError."""
    if body.lstrip()[:1] == b"{":
        return [codec.decode_json(body).value]
    return [codec.decode_yaml(part).value for part in _SEPARATOR.split(body) if part.strip()]


def flatten(documents: Iterable[Json], source: str) -> Iterator[Document]:
    """Objects, with the items of Lists in their place; empty documents are skipped."""
    for n, value in enumerate(documents, 1):
        where = f"{source}, document {n}" if n > 1 else source
        if value is None:
            continue
        if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
            raise LoadError(f"{where}: not a Kubernetes object: it has no kind")
        if value["kind"].endswith("List") and isinstance(value.get("items"), list):
            for item in value["items"]:
                yield Document(item, where)
        else:
            yield Document(value, where)


async def load(registry: Registry, documents: Iterable[Document]) -> int:
    """Create or replace every object; how many. Raises LoadError."""
    count = 0
    for document in documents:
        try:
            await apply(registry, document.value)
        except ApiError as error:
            raise LoadError(f"{document.source}: {error.message}") from None
        count += 1
    return count


async def apply(registry: Registry, value: Object) -> Object:
    """Create an object, or replace the one that is there; as it is stored. Raises ApiError."""
    resource = _resource_of(registry, value)
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    namespace = (metadata.get("namespace") or "default") if resource.namespaced else ""
    draft = _draft(registry, resource, value, namespace)
    try:
        written = await registry.create(draft)
    except ApiError as error:
        if error.reason != "AlreadyExists" or not metadata.get("name"):
            raise

        async def revise(old: Object) -> Draft:
            again = _draft(registry, resource, value, namespace)
            again.new["metadata"] = {**metadata, "resourceVersion": old["metadata"]["resourceVersion"]}
            again.operation, again.name = "UPDATE", metadata["name"]
            return again

        written = await registry.update(resource, namespace, metadata["name"], revise)
    return codec.decode_stored(written.body(resource))


def _resource_of(registry: Registry, value: Object) -> Resource:
    api_version, kind = str(value.get("apiVersion", "")), value.get("kind")
    for resource in registry.catalog.resources:
        if resource.kind == kind and resource.api_version == api_version:
            return resource
    raise bad_request(f'no resource serves kind "{kind}" in version "{api_version}": load its CRD, too')


def _draft(registry: Registry, resource: Resource, value: Object, namespace: str) -> Draft:
    fresh = codec.decode_stored(codec.encode(value, sort_keys=False))
    return registry.draft(resource, "CREATE", fresh, namespace=namespace, options=Options(field_manager="noxu"))
