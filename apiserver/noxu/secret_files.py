"""Files with secrets: keys, tokens, passwords, the store, the audit log. Only their owner should be able to read them.

A file that an option names belongs to somebody else, who may have a reason: the log says once, at the start, that others may
read or change it. A file that this server has made has mode 0600; one that was copied back with another mode is set right, and
not used if that is impossible. A link leads to a file of somebody else. Windows has no modes of files.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o600
_READ, _WRITE = 0o044, 0o022  # by the group, or by all others

log = logging.getLogger("noxu")


def warn_if_shared(path: Path, option: str = "") -> None:
    """Warn if others may read or change a file, or put files into a directory. `option` is the one that names it."""
    mode = _mode(path)
    reading = 0 if path.is_dir() else _READ  # the names of files are no secrets
    rights = [verb for verb, bits in (("read", reading), ("changed", _WRITE)) if mode & bits]
    if rights:
        log.warning(
            "%s can be %s by other users (its mode is %04o): chmod %o %s",
            f"{option} {path}".strip(),
            " and ".join(rights),
            mode,
            mode & (0o700 | ~(reading | _WRITE)),
            path,
        )


def keep_private(path: Path) -> None:
    """Take the rights of others to a file of this server. Raises OSError if it is another user's."""
    if path.is_symlink():
        warn_if_shared(path)
        return
    mode = _mode(path)
    if mode & (_READ | _WRITE):
        path.chmod(mode & PRIVATE)
        log.warning("%s could be used by other users: its mode was %04o, and is %04o now", path, mode, mode & PRIVATE)


def _mode(path: Path) -> int:
    """The permissions of a file, 0 if it is not there or the platform has none."""
    if os.name == "nt":
        return 0
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0
