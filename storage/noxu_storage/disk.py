"""The files of a store on its disk: durable, with room for deletions, and noticed when they are deleted.

**Durable.** On macOS fsync(2) leaves what it writes in the cache of the disk, which a power failure empties; F_FULLFSYNC writes
that cache, too, on file systems that know it. SQLite does the same for the files of a store (`PRAGMA fullfsync`).

**Room.** Objects can be deleted when the disk is full. A file next to the store, `noxu.db-reserve`, occupies SIZE bytes
while the store is open. When the disk is full it is given up, and only deletions use the room. There is room for
everything again when a file of twice the size fits. File systems that compress, or copy on write, may not keep what
they promise; and other programs may be faster.

**Deleted.** A deleted file can still be read and written through open handles, but nothing finds it again: SQLite commits to
it without an error. So the store keeps a handle of its own to the database and to its WAL, and looks at their link counts.
POSIX releases all locks of a process on a file when any handle to it is closed. So the database's handle stays open until
SQLite has closed the file, and is replaced only by a handle to another file.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

SIZE: Final = 1024 * 1024  # bytes: a hundred deletions, with what SQLite writes for each
CHUNK: Final = 64 * 1024  # bytes; sizes are multiples of it
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


def sync(handle: int) -> None:
    """Make a file, or the names in a directory, durable. Raises OSError."""
    try:
        import fcntl

        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined, unused-ignore]  # macOS has it
    except (ImportError, AttributeError, OSError):  # another platform, or a file system without it
        os.fsync(handle)


class Reserve:
    """The reserve of a store. `take` and `give` may be repeated."""

    def __init__(self, store: Path) -> None:
        self._path = Path(f"{store}-reserve")

    def take(self, *, spare: int = 0) -> bool:
        """Occupy the room, if there is as much and `spare` bytes besides. False if the disk is too full for that.

        Where no file can be made, for any other reason, there is no reserve, and this returns true.
        """
        try:
            handle = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            return error.errno not in _FULL
        try:
            allocate(handle, SIZE + spare)
            os.ftruncate(handle, SIZE)
        except OSError as error:
            self.give()
            return error.errno not in _FULL
        finally:
            os.close(handle)
        return True

    def give(self) -> bool:
        """Give up the room. Returns whether there was any."""
        with suppress(OSError):
            self._path.unlink()
            return True
        return False


def allocate(handle: int, size: int) -> None:
    """Have the file system find room for the first bytes of a file. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
        return
    os.lseek(handle, 0, os.SEEK_SET)
    for _ in range(0, size, CHUNK):
        os.write(handle, bytes(CHUNK))


class LinkedFiles:
    """The files of a store that SQLite has open: the database and its WAL."""

    def __init__(self, path: Path) -> None:
        self._wal = Path(f"{path}-wal")
        self._paths = (path, self._wal)
        self._handles: dict[Path, int] = {}
        self.refresh()

    def refresh(self) -> None:
        """Follow the files that have the names now. Called when SQLite has opened them."""
        for path in self._paths:
            with suppress(OSError):
                old, named = self._handles.get(path), path.stat()
                if old is None or not os.path.samestat(os.fstat(old), named):
                    self._handles[path] = os.open(path, os.O_RDONLY)
                    if old is not None:
                        os.close(old)

    def release_wal(self) -> None:
        """Forget the WAL before SQLite closes the database, which deletes it."""
        if (handle := self._handles.pop(self._wal, None)) is not None:
            os.close(handle)

    def deleted(self) -> str:
        """What was deleted, and what to do; "" if nothing was."""
        for path, handle in self._handles.items():
            if os.fstat(handle).st_nlink == 0:
                return (
                    f"{path} was deleted while it was in use: nothing more can be stored. Save what can still be read "
                    "(kubectl get -o yaml), and restart the server"
                )
        return ""

    def close(self) -> None:
        for handle in self._handles.values():
            os.close(handle)
        self._handles.clear()
