"""The sources of the objects of a test: files, directories, texts, objects.

Pytest checks which of them are files before it imports the server, so their readers are imported later.
"""

from __future__ import annotations

import hashlib
import os
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

if TYPE_CHECKING:
    from noxu.manifests.documents import Document, Read

Source: TypeAlias = str | os.PathLike[str] | dict[str, Any]
"""A file or directory of manifests, a text that contains manifests (it may be indented), or an object."""


def several(source: Source | Iterable[Source]) -> tuple[Source, ...]:
    """Sources, of which one may be given by itself."""
    return (source,) if isinstance(source, (dict, str, os.PathLike)) else tuple(source)


def names(listed: str | Iterable[str]) -> tuple[str, ...]:
    """Names, of which one may be given by itself."""
    return (listed,) if isinstance(listed, str) else tuple(listed)


def path_of(source: object) -> Path | None:
    """The path of a source that is a file or a directory; None for an object, and for a text, which has several lines.

    Raises TypeError for what is no source.
    """
    __tracebackhide__ = True
    if not isinstance(source, (dict, str, os.PathLike)):
        kind = f"a {type(source).__name__}"
        advice = ": give its items" if isinstance(source, (list, tuple, set)) else ""
        raise TypeError(f"a source is a dict, a path, or a text with manifests, and not {kind}{advice}")
    if isinstance(source, dict) or (isinstance(source, str) and "\n" in source):
        return None
    return Path(source)


def documents(*sources: Source) -> list[Document]:
    """The objects of sources, in the order in which they have to be created. Raises LoadError, TypeError."""
    from noxu.manifests import documents as manifests
    from noxu.manifests import loading

    return loading.ready(manifests.checked(_read(sources, manifests.contents_of)))


def _read(sources: Iterable[Source], read: Read) -> Iterator[Document]:
    """The documents of sources; `read` reads the text of each file. Raises TypeError."""
    from noxu.api.codec import Decoded
    from noxu.manifests import documents as manifests

    for source in sources:
        if isinstance(source, dict):
            yield from manifests.flatten(Decoded(source), "object")
        elif (path := path_of(source)) is not None:
            yield from manifests.read_paths([path], read)
        else:
            yield from read(_text(source), "text").documents


def _text(source: object) -> bytes:
    return textwrap.dedent(str(source)).encode()


uses_cache = True
"""Whether what is made of sources may be kept in the user's cache, for later processes."""

# -- what distinguishes them -------------------------------------------------------------------------------------------


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


def _digest(source: Source) -> bytes:
    """That of an object or a text, which are never the same."""
    try:
        content = b"object\0" + orjson.dumps(source) if isinstance(source, dict) else b"text\0" + _text(source)
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
    """The digest of the files that are read from a path, with their names; empty if one cannot be read."""
    from noxu.manifests.documents import Contents

    digest = hashlib.sha256()

    def read(body: bytes, file: str) -> Contents:
        digest.update(b"%d %d\0%b%b" % (len(file), len(body), file.encode(errors="surrogateescape"), body))
        return Contents((), "")

    return b"" if any(document.error for document in _read([path], read)) else digest.digest()


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
