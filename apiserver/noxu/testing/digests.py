"""What distinguishes the sources of servers: a digest of their content. Files that have not changed are not read again."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import orjson

from noxu.manifests.documents import STDIN, Contents, read_paths
from noxu.testing.sources import Source, path_of, text_of


def digest_of(sources: Sequence[Source]) -> bytes:
    """The digest of the content of sources; empty if it has none: they cannot be read, or JSON cannot have an object.

    A file is not read again as long as its state is the same, and certain to be that of its content (`_state`).
    """
    digest = hashlib.sha256()
    for source in sources:
        part = _digest_of_path(path) if (path := path_of(source)) is not None else _digest(source)
        if not part:
            return b""
        digest.update(part)
    return digest.digest()


def bytes_of_files(sources: Sequence[Source]) -> int:
    """The size of the files of sources, as far as it is known."""
    paths = filter(None, map(path_of, sources))
    return sum(size for path in paths for _, _, _, size, _ in _state(path))


def _digest(source: Source) -> bytes:
    """That of an object or a text, which are never the same."""
    try:
        content = b"object\0" + orjson.dumps(source) if isinstance(source, dict) else b"text\0" + text_of(source)
    except TypeError:
        return b""
    return hashlib.sha256(content).digest()


_known: dict[Path, tuple[_State, bytes]] = {}
"""Of paths that were read: their state before, and the digest. Threads may use it at the same time."""
_MAX_KNOWN: Final = 64
_SETTLED_AFTER: Final = 2.0
"""Seconds after which a change of a file has another time, whatever the resolution of a file system is."""
_State: TypeAlias = tuple[tuple[str, int, int, int, int], ...]


def _digest_of_path(path: Path) -> bytes:
    if str(path) == STDIN:  # which can be read once
        return b""
    now, state = time.time(), _state(path)
    known, digest = _known.get(path, ((), b""))
    if state and state == known:
        return digest
    digest = _read_digest(path)
    if state and max(max(changed, modified) for _, changed, modified, _, _ in state) < (now - _SETTLED_AFTER) * 1e9:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[path] = state, digest
    return digest


def _read_digest(path: Path) -> bytes:
    """The digest of the files that are read from a path; empty if one cannot be read."""
    digest = hashlib.sha256()

    def read(body: bytes, _file: str) -> Contents:
        digest.update(b"%d\0" % len(body) + body)  # where the files are makes no difference
        return Contents((), "")

    return b"" if any(document.error for document in read_paths([path], read)) else digest.digest()


def _state(path: Path) -> _State:
    """The name of each file below a path, its times, size and number, in the order of the names; empty if that is unknown.

    The time of a change of the inode cannot be set, so a file that was written has another one, or was written just before.
    What is in linked directories is unknown.
    """
    try:
        if not path.is_dir():
            return (_state_of(str(path), path.stat()),)
        return tuple(sorted(_states_in(str(path))))
    except OSError:
        return ()


def _states_in(directory: str) -> Iterator[tuple[str, int, int, int, int]]:
    """Raises OSError."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _states_in(entry.path)
            elif entry.is_dir():
                raise OSError
            else:
                yield _state_of(entry.path, entry.stat())


def _state_of(name: str, status: os.stat_result) -> tuple[str, int, int, int, int]:
    return name, status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino
