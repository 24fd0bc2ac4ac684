"""Files that are written as a whole or not at all, files in use, and directories that one process at a time changes.

Locks are flock(2)'s: they end with the process, whatever ends that. Windows has none of them, nor modes of files."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from noxu_storage.disk import sync


def write_whole(path: Path, content: bytes, mode: int = 0o600, *, durable: bool = False) -> None:
    """Make or replace a file, whatever the umask is: readers see the old content or all of the new. Raises OSError.

    `durable`: the content is on the disk before the file has its name.
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)
            file.write(content)
            if durable:
                file.flush()
                sync(file.fileno())
        os.replace(temporary, path)  # noqa: PTH105 - atomic on every platform
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Others see that the file is in use (`is_in_use`), where the file system can lock it, unless it is replaced."""
    with contextlib.ExitStack() as lock:
        with contextlib.suppress(OSError):
            lock.enter_context(_flock(path, "LOCK_SH"))
        yield


def is_in_use(path: Path) -> bool:
    """Whether another process, or another part of this one, uses a file. False where that cannot be known."""
    try:
        with _flock(path, "LOCK_EX"):
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def _flock(path: Path, kind: str) -> Iterator[None]:
    """Lock a file, without waiting. Raises BlockingIOError, OSError."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("rb") as file:
        fcntl.flock(file, getattr(fcntl, kind) | fcntl.LOCK_NB)
        yield


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Other processes that lock the directory wait. Raises OSError."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
