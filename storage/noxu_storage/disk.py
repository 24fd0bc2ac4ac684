"""What makes files durable.

On macOS fsync(2) leaves what it writes in the cache of the disk, which a power failure empties; F_FULLFSYNC writes that cache,
too, on file systems that know it. SQLite does the same for the files of a store (`PRAGMA fullfsync`).
"""

from __future__ import annotations

import os


def sync(handle: int) -> None:
    """Make a file, or the names in a directory, durable. Raises OSError."""
    try:
        import fcntl

        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined, unused-ignore]  # macOS has it
    except (ImportError, AttributeError, OSError):  # another platform, or a file system without it
        os.fsync(handle)
