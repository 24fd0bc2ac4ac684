"""The objects of the files with which a server starts: they are applied, and those that have left the files are named.

A data directory has the names of the objects that were in the files of its last start, `applied.json`. An object that is in
none of the files any more is not deleted; the log names it once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from noxu.config import Config, NotLoadedError, StartError
from noxu.control_plane import WITHOUT_CONTROLLERS, ControlPlane, assemble, running
from noxu.crd import openapi_kinds
from noxu.files import write_whole
from noxu.manifests import documents as manifests
from noxu.manifests import loading
from noxu.manifests.applying import Applying
from noxu.manifests.documents import Document, Read
from noxu.registry.stored_object import key_of
from noxu.values import Object
from noxu_storage.memory import MemoryStore

if TYPE_CHECKING:
    from noxu.crd.known_definitions import KnownDefinitions

FILE: Final = "applied.json"
"""The name of the file in the data directory."""
MOST_NAMED: Final = 10

log = logging.getLogger("noxu")


class Name(NamedTuple):
    """What distinguishes the objects of files, whatever their versions are. `namespace` is "" for cluster scope."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"


class Origin(NamedTuple):
    """Where an object was found, and the version in which it was there."""

    api_version: str
    file: str


Origins = dict[Name, Origin]


class ServedFiles:
    """The names of the objects in the files of a server, by which it finds out which have left them."""

    def __init__(self, plane: ControlPlane, directory: Path | None) -> None:
        """`directory` is the data directory, None if the server has none."""
        self._plane = plane
        self._directory = directory
        self._origins: Origins = {}

    async def read(self) -> Origins:
        """The objects of the files of the last start."""
        if self._directory is not None:
            self._origins = await asyncio.to_thread(_read, self._directory)
        return self._origins

    async def replace(self, origins: Origins) -> None:
        """These are the objects in the files now: name those that have left them."""
        former, self._origins = self._origins, origins
        await _name_those_that_left(self._plane, former, origins)
        if former != origins and self._directory is not None:
            await asyncio.to_thread(_keep, self._directory, origins)

    def origin_of(self, document: Document) -> Origins:
        """The object of a document; none if it has no name, or its kind is not served."""
        value = document.value
        resource, name = loading.resource_of(self._plane, value), loading.name_of(value)
        if resource is None or not name:
            return {}
        named = Name(resource.group, resource.kind, loading.namespace_of(resource, value), name)
        return {named: Origin(str(value.get("apiVersion")), document.file)}


class Loaded(NamedTuple):
    """What a server has loaded: the errors of objects that are refused, all documents, and those that are applied.

    The documents are only collected for those who ask for them.
    """

    errors: list[str]
    served: ServedFiles
    documents: list[Document]
    done: list[Document]


async def load(
    plane: ControlPlane,
    config: Config,
    documents: Iterable[Document],
    definitions: KnownDefinitions | None,
    *,
    collects: bool = False,
) -> Loaded:
    """Apply all objects of the documents. A server in memory that is given objects, but no files, keeps them as they are."""
    served = ServedFiles(plane, config.data)
    if not (config.files or config.kustomizations or config.data or config.etcd):
        creates = config.create_namespaces
        errors = await loading.load(plane, documents, definitions=definitions, create_namespaces=creates)
        return Loaded(errors, served, [], [])
    origins, seen = Origins(), list[Document]()
    done: list[Document] | None = [] if collects else None
    applying = Applying(done)

    def noted() -> Iterator[Document]:
        for document in documents:
            yield document
            origins.update(served.origin_of(document))  # when its CRD has been written
            if collects:
                seen.append(document)

    errors = await loading.load(
        plane, noted(), definitions=definitions, writer=applying, create_namespaces=config.create_namespaces
    )
    if not errors or config.keep_going:
        log.info("%s", applying.summary)
        former = await served.read()
        await served.replace({**former, **origins} if config.keep_going else origins)  # others may be unreadable
    return Loaded(errors, served, seen, done or [])


async def _name_those_that_left(
    plane: ControlPlane, former: Mapping[Name, Origin], origins: Mapping[Name, Origin]
) -> None:
    """Log the objects that were in the files, are not there any more, and still exist."""
    left = [name for name, origin in former.items() if name not in origins and await _exists(plane, name, origin)]
    if not left:
        return
    more = f", and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
    named = ", ".join(f"{name} ({former[name].file})" for name in left[:MOST_NAMED])
    is_one = len(left) == 1
    log.warning(
        "%s no longer in the files and %s not deleted: %s%s; `kubectl delete` does that",
        "one object is" if is_one else f"{len(left)} objects are",
        "is" if is_one else "are",
        named,
        more,
    )


async def _exists(plane: ControlPlane, name: Name, origin: Origin) -> bool:
    resource = plane.served_resources.current.find_kind(origin.api_version, name.kind)
    if resource is None:
        return False
    return key_of(resource, name.namespace, name.name) in (await plane.reader.collection(resource)).entries


def _read(directory: Path) -> Origins:
    """The objects of the last start; none if the file is missing or damaged."""
    origins = Origins()
    with suppress(OSError, ValueError, TypeError, KeyError):
        for row in orjson.loads((directory / FILE).read_bytes())["objects"]:
            group, kind, namespace, name, api_version, file = map(str, row)
            origins[Name(group, kind, namespace, name)] = Origin(api_version, file)
    return origins


def _keep(directory: Path, origins: Origins) -> None:
    content = {"objects": [[*name, *origin] for name, origin in sorted(origins.items())]}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_whole(directory / FILE, orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        log.warning("the names of the objects in the files are not kept in %s: %s", directory / FILE, error.strerror)


# -- what is read before a server starts ------------------------------------------------------------------------------


def reads_stdin(config: Config) -> bool:
    """Whether the standard input is among the files, which cannot be read again."""
    return manifests.STDIN in map(str, config.files)


def read_documents(config: Config, read: Read | None) -> list[Document]:
    """The documents of the files and kustomizations, in the order in which they are to be loaded. Raises StartError."""
    merged = chain(
        manifests.read_paths(config.files, read or manifests.contents_of, "serve"),
        *map(manifests.build, config.kustomizations),
    )
    documents, errors = loading.readable(map(loading.packed, merged))
    if errors and not config.keep_going and _is_new(config):
        errors += asyncio.run(_refusals(config, documents))
    check_loaded(config, errors)
    return documents


def _is_new(config: Config) -> bool:
    """Whether the store is certain to be empty."""
    return config.etcd is None and (config.data is None or not (config.data / "noxu.db").exists())


async def _refusals(config: Config, documents: list[Document]) -> list[str]:
    """The errors with which a new server would refuse objects. Kinds that it does not have may be in unreadable files."""
    settings = replace(WITHOUT_CONTROLLERS, features=config.features, admission_plugins=config.admission_plugins)
    plane = assemble(settings, MemoryStore())
    async with running(plane):
        return await loading.load(plane, documents, skip_unknown=True, create_namespaces=True)


def check_loaded(config: Config, errors: list[str]) -> None:
    """Log errors of manifests, if the server is to start nevertheless. Raises NotLoadedError if it is not."""
    if not errors:
        return
    if not config.keep_going:
        raise NotLoadedError(*errors)
    for error in errors:
        log.error("not loaded: %s", error)


def _definitions_in(file: Path) -> Iterator[Object]:
    """The documents of a file in JSON or YAML. Raises ValueError."""
    try:
        body = manifests.content(file)
    except manifests.LoadError as error:
        raise ValueError(str(error)) from None
    for part in manifests.split(body):
        if part.error:
            raise ValueError(part.error)
        if part.decoded is not None:
            yield part.decoded.value or {}


def foreign_kinds(paths: Sequence[Path]) -> list[Object]:
    """The definitions of the kinds in OpenAPI documents. Raises StartError."""
    file = paths[0]

    def documents() -> Iterator[Object]:
        nonlocal file
        for file in (file for path in paths for file in manifests.files(path)):
            yield from _definitions_in(file)

    try:
        return openapi_kinds.definitions(documents())
    except manifests.LoadError as error:
        raise StartError(f"--kinds {error}") from None
    except ValueError as error:
        raise StartError(f"--kinds {file}: {error}") from None
