"""Room on the disk that is kept for deletions: who has filled a disk must be able to remove something.

A file next to the store, `noxu.db-reserve`, occupies SIZE bytes while the store is open. When the disk is full it is given up,
and only deletions use the room. There is room for everything again when a file of twice the size fits.

File systems that compress, or copy on write, may not keep what they promise; and other programs may be faster.
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
