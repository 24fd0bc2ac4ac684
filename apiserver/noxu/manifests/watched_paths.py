"""Paths that are watched by asking for the times and sizes of their files: it works on every file system.

Of a directory files count whose names are those of manifests and kustomizations, except for hidden ones; of a kustomization all
files of its directory, and what it names by its path: files, and directories, which may be kustomizations, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from noxu.api import codec
from noxu.manifests.files import COMPRESSED, SUFFIXES
from noxu.manifests.kustomization_files import NAMES as KUSTOMIZATIONS
from noxu.values import Json

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
        found = {
            path: {file: each for file, each in _files(str(path)) if file == str(path) or _may_be_read(file)}
            for path in self._paths
        }
        for directory in self._kustomizations:
            found.setdefault(directory, {}).update(self._kustomization(directory))
        return found

    def _kustomization(self, directory: Path) -> Signatures:
        found: Signatures = {}
        todo, seen = [str(directory)], set[str]()
        while todo:
            path = todo.pop()
            if path in seen:
                continue
            seen.add(path)
            for file, signature in _files(path):
                found[file] = signature
                folder, name = os.path.split(file)
                if name in KUSTOMIZATIONS:
                    todo += [each for each in self._named(folder, file, signature) if each not in found]
        return found

    def _named(self, folder: str, file: str, signature: Signature) -> list[str]:
        """The paths that a kustomization names. It is read again when it has changed."""
        known = self._references.get(file)
        if known is None or known[0] != signature:
            known = self._references[file] = signature, list(_references(folder, file))
        return known[1]


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
