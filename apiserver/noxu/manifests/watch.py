"""Watch the files with which a server was started, and apply what changes (`noxu serve --watch`).

The files are polled, which works on every file system, also on those of containers and networks: a thread asks for their
times and sizes every half a second, or less often if there are so many that it would take more than a fiftieth of a
processor. What has changed is read when two rounds have found the same, so what an editor or `git checkout` does in several
steps is one change.

Only documents that have changed are applied, and those that were refused before: the CRD that they miss may be there now. A
file with a document that cannot be read is named, and nothing of it is applied. Objects whose documents are gone stay, and
are named. A kustomization is built again when a file changes in its directory, or one to which it refers.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from noxu.api import codec
from noxu.containment import Contained
from noxu.control_plane import ControlPlane
from noxu.manifests import documents as manifests
from noxu.manifests import files as manifest_files
from noxu.manifests import kustomizations, loading
from noxu.manifests.applying import Applying
from noxu.manifests.documents import STDIN, Document
from noxu.manifests.files import LoadError
from noxu.manifests.served_files import Loaded, Origins, ServedFiles
from noxu.manifests.watched_paths import Signatures, WatchedPaths

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
        self._found = self._paths.signatures()
        self._applied: dict[Source, set[bytes]] = {}
        """The digests of the documents of each source that have been applied."""
        self._names: dict[Source, Origins] = {}
        self._unfinished: set[Source] = set()
        """Sources with documents that are not applied."""

    async def run(self, plane: ControlPlane, loaded: Loaded) -> None:
        """Apply changes until cancelled. `loaded` is what the server was started with, with its documents."""
        served = loaded.served
        self._remember(served, loaded.documents, loaded.done)
        pause = self._every
        while True:
            await asyncio.sleep(pause)
            found, took = await asyncio.to_thread(self._scan)
            pause = max(self._every, SHARE * took)
            if found != self._found:
                with Contained("applying changed files"):
                    await self._apply(plane, served, await self._settle(found))

    def _scan(self) -> tuple[dict[Path, Signatures], float]:
        """What the files are now, and the processor time that it took to ask for it."""
        began = time.thread_time()
        return self._paths.signatures(), time.thread_time() - began

    async def _settle(self, found: dict[Path, Signatures]) -> dict[Path, Signatures]:
        """What the files are when they do not change any more, or have changed for MOST_ROUNDS."""
        for _ in range(MOST_ROUNDS):
            await asyncio.sleep(self._settled)
            newer, _took = await asyncio.to_thread(self._scan)
            if newer == found:
                break
            found = newer
        return found

    async def _apply(self, plane: ControlPlane, served: ServedFiles, found: dict[Path, Signatures]) -> None:
        former, self._found = self._found, found
        sources = await asyncio.to_thread(self._read, former, found)
        readable: dict[Source, list[Document]] = {}
        for source, inside in sources.items():
            ready, errors = loading.readable(inside or [])
            if not errors:
                readable[source] = ready
                continue
            for error in errors:
                log.error("not applied: %s", error)
            log.error("%s: nothing of it is applied until it can be read; its objects stay as they are", source)
        documents = [document for inside in readable.values() for document in inside]
        new = [each for each in manifests.in_order(documents) if digest(each) not in self._applied.get(each.file, ())]
        done: list[Document] = []
        if new:
            applying = Applying(done)
            for error in await loading.load(plane, new, writer=applying, create_namespaces=self._create_namespaces):
                log.error("not applied: %s", error)
            if done:
                log.info("files have changed: %s", applying.named)
        for source in readable:
            self._names.pop(source, None)
            self._applied[source] = self._applied.get(source, set()) & {digest(each) for each in readable[source]}
        self._remember(served, documents, done)
        await served.replace({name: origin for names in self._names.values() for name, origin in names.items()})

    def _remember(self, served: ServedFiles, documents: Iterable[Document], done: Iterable[Document]) -> None:
        documents = list(documents)
        for document in done:
            self._applied.setdefault(document.file, set()).add(digest(document))
        for document in documents:
            self._names.setdefault(document.file, Origins()).update(served.origin_of(document))
        missing = {each.file for each in documents if digest(each) not in self._applied.get(each.file, ())}
        self._unfinished = (self._unfinished - {each.file for each in documents}) | missing

    # -- in a thread --------------------------------------------------------------------------------------------------

    def _read(self, former: dict[Path, Signatures], found: dict[Path, Signatures]) -> dict[Source, list[Document]]:
        """The documents of the sources that have changed; none for those that are gone."""
        sources: dict[Source, list[Document]] = {}
        for path in self._files:
            changed = _changed(former[path], found[path])
            sources |= {source: [] for source in changed & self._names.keys()}
            for file in _manifests(path):
                if str(file) in changed or str(file) in self._unfinished or str(file) not in self._applied:
                    sources[str(file)] = list(map(loading.packed, manifests.read_file(file, skip=file != path)))
        for directory in self._kustomizations:
            source = f"{directory}, built"
            if _changed(former[directory], found[directory]) or source in self._unfinished:
                sources[source] = list(map(loading.packed, kustomizations.build(directory)))
        return sources


def _changed(former: Signatures, found: Signatures) -> set[str]:
    return {path for path in former.keys() | found.keys() if former.get(path) != found.get(path)}


def _manifests(path: Path) -> Iterator[Path]:
    try:
        yield from manifest_files.files(path, "serve")[0]
    except LoadError as error:
        log.warning("%s; its objects stay as they are", error)


def digest(document: Document) -> bytes:
    """What distinguishes the content of a document."""
    content = document.packed or codec.encode(document.value, sort_keys=False)
    return hashlib.blake2b(content, digest_size=16).digest()
