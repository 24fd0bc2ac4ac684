"""Notice that a file of a running store was deleted.

A deleted file can still be read and written through open handles, but nothing finds it again: SQLite commits to it without
an error. So the store keeps a handle of its own to the database and to its WAL, and looks at their link counts.

POSIX releases all locks of a process on a file when any handle to it is closed. So the database's handle stays open until
SQLite has closed the file, and is replaced only by a handle to another file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


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
