"""Files that are written as a whole or not at all, and directories that one process at a time changes."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write_whole(path: Path, content: bytes, mode: int = 0o600, *, durable: bool = False) -> None:
    """Make or replace a file, whatever the umask is: readers see the old content or all of the new. Raises OSError.

    `durable`: the content is on the disk before the file has its name.
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)  # noqa: PTH105 - atomic on every platform
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Other processes that lock the directory wait. The lock ends with the process, whatever ends that. Raises OSError."""
    import fcntl

    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
