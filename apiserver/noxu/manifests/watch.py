"""Watch the files with which a server was started, and apply their changes (`noxu serve --watch`).

The files are polled, which works on every file system, also on those of containers and networks: a thread asks for
their times and sizes every half a second, or less often if there are so many that it would take more than a fiftieth of
a processor. Changes are read when two rounds have found the same, so the several steps of an editor or `git checkout`
are one change. In a directory, files with names of manifests and kustomizations are watched, except for hidden ones. Of
a kustomization all files of its directory are watched, and the files and directories that it names by their paths,
which may be kustomizations, too.

Only documents that have changed are applied, and those that were refused before, because the CRD that they lacked may
exist now. A file with a document that cannot be read is named, and nothing of it is applied. Objects whose documents
are gone stay, and are named. A kustomization is built again when a file changes in its directory, or one to which it
refers.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from noxu.api import codec
from noxu.containment import Contained
from noxu.control_plane import ControlPlane
from noxu.manifests import documents as manifests
from noxu.manifests import files as manifest_files
from noxu.manifests import loading
from noxu.manifests.applying import Applying
from noxu.manifests.documents import STDIN, Document
from noxu.manifests.files import COMPRESSED, SUFFIXES, LoadError
from noxu.manifests.served_files import Loaded, Origins, ServedFiles
from noxu.manifests.tool_files import KUSTOMIZATIONS
from noxu.values import Json

EVERY: Final = 0.5  # seconds
SETTLED: Final = 0.15  # seconds without a change
MOST_ROUNDS: Final = 20  # until they settle; files that change all the time do not keep others waiting
SHARE: Final = 50  # a round may take one part of so many of a processor

log = logging.getLogger("noxu")

Source = str
"""What documents name as their file: a path, or that of a kustomization's directory with `, built`."""


class FileWatch:
    """The files and kustomizations of a server, and what of them has been applied.

    `create_namespaces`: create the namespaces that no file makes. `every`, `settled`: in seconds.
    """

    def __init__(
        self,
        files: Sequence[Path],
        directories: Sequence[Path] = (),
        *,
        create_namespaces: bool = False,
        every: float = EVERY,
        settled: float = SETTLED,
    ) -> None:
        self._files = [path for path in files if str(path) != STDIN]
        self._kustomizations = list(directories)
        self._create_namespaces = create_namespaces
        self._every, self._settled = every, settled
        self._paths = WatchedPaths(self._files, self._kustomizations)
        self._scanned = self._paths.signatures()
        self._applied: dict[Source, set[bytes]] = {}
        """The digests of the documents of each source that have been applied."""
        self._names: dict[Source, Origins] = {}
        self._unfinished: set[Source] = set()
        """Sources with documents that are not applied."""
        self.changes = 0
        """How often the files have changed."""

    async def run(self, plane: ControlPlane, loaded: Loaded) -> None:
        """Apply changes until cancelled. `loaded` is what the server was started with, with its documents."""
        served = loaded.served
        self._remember(served, loaded.documents, loaded.done)
        pause = self._every
        while True:
            await asyncio.sleep(pause)
            scanned, took = await asyncio.to_thread(self._scan)
            pause = max(self._every, SHARE * took)
            if scanned != self._scanned:
                with Contained("applying changed files"):
                    await self._apply(plane, served, await self._settle(scanned))

    def _scan(self) -> tuple[dict[Path, Signatures], float]:
        """What the files are now, and the processor time that it took to ask for it."""
        began = time.thread_time()
        return self._paths.signatures(), time.thread_time() - began

    async def _settle(self, scanned: dict[Path, Signatures]) -> dict[Path, Signatures]:
        """What the files are when they do not change any more, or have changed for MOST_ROUNDS."""
        for _ in range(MOST_ROUNDS):
            await asyncio.sleep(self._settled)
            newer, _took = await asyncio.to_thread(self._scan)
            if newer == scanned:
                break
            scanned = newer
        return scanned

    async def _apply(self, plane: ControlPlane, served: ServedFiles, scanned: dict[Path, Signatures]) -> None:
        former, self._scanned = self._scanned, scanned
        self.changes += 1  # before they are read: who reads them from here on has the change
        sources = await asyncio.to_thread(self._read, former, scanned)
        readable: dict[Source, list[Document]] = {}
        for source, inside in sources.items():
            ready, errors = loading.readable(inside or [])
            if not errors:
                readable[source] = ready
                continue
            for error in errors:
                log.error("not applied: %s", error)
            log.error("%s: nothing of it is applied until it can be read; its objects stay as they are", source)
        documents = [item for inside in readable.values() for item in inside]
        new = [item for item in manifests.in_order(documents) if digest(item) not in self._applied.get(item.file, ())]
        done: list[Document] = []
        if new:
            applying = Applying(done)
            for error in await loading.load(plane, new, writer=applying, create_namespaces=self._create_namespaces):
                log.error("not applied: %s", error)
            if done:
                log.info("files have changed: %s", applying.named)
        for source in readable:
            self._names.pop(source, None)
            self._applied[source] = self._applied.get(source, set()) & {digest(item) for item in readable[source]}
        self._remember(served, documents, done)
        await served.replace({name: origin for names in self._names.values() for name, origin in names.items()})

    def _remember(self, served: ServedFiles, documents: Iterable[Document], done: Iterable[Document]) -> None:
        documents = list(documents)
        for document in done:
            self._applied.setdefault(document.file, set()).add(digest(document))
        for document in documents:
            self._names.setdefault(document.file, Origins()).update(served.origin_of(document))
        missing = {changed.file for changed in documents if digest(changed) not in self._applied.get(changed.file, ())}
        self._unfinished = (self._unfinished - {changed.file for changed in documents}) | missing

    # -- in a thread --------------------------------------------------------------------------------------------------

    def _read(self, former: dict[Path, Signatures], scanned: dict[Path, Signatures]) -> dict[Source, list[Document]]:
        """The documents of the sources that have changed; none for those that are gone."""
        sources: dict[Source, list[Document]] = {}
        for path in self._files:
            changed = _changed(former[path], scanned[path])
            sources |= {source: [] for source in changed & self._names.keys()}
            for file in _manifests(path):
                if str(file) in changed or str(file) in self._unfinished or str(file) not in self._applied:
                    sources[str(file)] = list(map(loading.packed, manifests.read_file(file, skip=file != path)))
        for directory in self._kustomizations:
            source = f"{directory}, built"
            if _changed(former[directory], scanned[directory]) or source in self._unfinished:
                sources[source] = list(map(loading.packed, manifests.build(directory)))
        return sources


def _changed(former: Signatures, current: Signatures) -> set[str]:
    return {path for path in former.keys() | current.keys() if former.get(path) != current.get(path)}


def _manifests(path: Path) -> Iterator[Path]:
    try:
        yield from manifest_files.files(path, "serve")[0]
    except LoadError as error:
        log.warning("%s; its objects stay as they are", error)


def digest(document: Document) -> bytes:
    """What distinguishes the content of a document."""
    content = document.packed or codec.encode(document.value, sort_keys=False)
    return hashlib.blake2b(content, digest_size=16).digest()


# -- what is watched ---------------------------------------------------------------------------------------------------


Signature = tuple[int, int, int, int]
"""A file's times of modification and of change in nanoseconds, its size, and its inode."""
Signatures = dict[str, Signature]
"""By path. A path that does not exist is missing."""
_SUFFIXES: Final = tuple(SUFFIXES)
_MOST_TEXT: Final = 4096  # characters of a path


class WatchedPaths:
    """The state of files and kustomizations. Methods may be called in any thread, one at a time."""

    def __init__(self, paths: list[Path], kustomizations: list[Path]) -> None:
        self._paths = paths
        self._kustomizations = kustomizations
        self._references: dict[str, tuple[Signature, list[str]]] = {}

    def signatures(self) -> dict[Path, Signatures]:
        """What the files are now, by the path or the kustomization that they belong to."""
        signatures = {
            path: {file: signature for file, signature in _files(str(path)) if file == str(path) or _may_be_read(file)}
            for path in self._paths
        }
        for directory in self._kustomizations:
            signatures.setdefault(directory, {}).update(self._kustomization(directory))
        return signatures

    def _kustomization(self, directory: Path) -> Signatures:
        signatures: Signatures = {}
        todo, seen = [str(directory)], set[str]()
        while todo:
            path = todo.pop()
            if path in seen:
                continue
            seen.add(path)
            for file, signature in _files(path):
                signatures[file] = signature
                folder, name = os.path.split(file)
                if name in KUSTOMIZATIONS:
                    todo += [named for named in self._named(folder, file, signature) if named not in signatures]
        return signatures

    def _named(self, folder: str, file: str, signature: Signature) -> list[str]:
        """The paths that a kustomization names. It is read again when it has changed."""
        references = self._references.get(file)
        if references is None or references[0] != signature:
            references = self._references[file] = signature, list(_references(folder, file))
        return references[1]


def _may_be_read(file: str) -> bool:
    name = os.path.basename(file)  # noqa: PTH119 - of thousands of files
    return name in KUSTOMIZATIONS or name.removesuffix(COMPRESSED).endswith(_SUFFIXES)


def _files(path: str) -> Iterator[tuple[str, Signature]]:
    """The file, or the files of the directory, with their signatures. Links are followed, but not in circles."""
    todo, seen = [path], set[tuple[int, int]]()
    while todo:
        current = todo.pop()
        try:
            status = os.stat(current)  # noqa: PTH116 - of thousands of files
            if not os.path.isdir(current):  # noqa: PTH112
                yield current, (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
                continue
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            todo += [entry.path for entry in os.scandir(current) if not entry.name.startswith(".")]
        except OSError:  # it has gone in the meantime, or is not readable
            continue


def _references(folder: str, file: str) -> Iterator[str]:
    try:
        todo: list[Json] = [codec.decode_yaml(Path(file).read_bytes()).value]
    except (OSError, ValueError):
        return
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, list):
            todo += value
        elif isinstance(value, str) and value and len(value) < _MOST_TEXT and "\n" not in value and "\0" not in value:
            for text in (value, value.rpartition("=")[2]):  # of a generator: KEY=PATH
                path = os.path.normpath(os.path.join(folder, text))  # noqa: PTH118
                if text and os.path.exists(path):  # noqa: PTH110
                    yield path
