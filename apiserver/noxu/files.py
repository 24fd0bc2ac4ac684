"""Write files as a whole or not at all, lock files and directories, and keep secrets to their owner.

Locks are flock(2)'s: they end with the process, whatever ends that. Windows has none of them, nor modes of files.

Secrets are keys, tokens, passwords, the store, the audit log. Only their owner should be able to read them. A file that
an option names is not this server's to change: if others may read or change it, the log says so once, at the start. A
file that this server has made has mode 0600; one that was copied back with another mode is set right, and not used if
that is impossible. A link counts as a file that an option names.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from noxu_storage.disk import sync

if TYPE_CHECKING:
    import ssl

BACKUP: Final = ".backup-"
"""How the name of a directory begins in which a backup is made (control/backup.py); a process that was killed leaves it."""


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


# -- certificates with their keys --------------------------------------------------------------------------------------


def load_certificate(
    context: ssl.SSLContext, certificate: bytes, key: bytes, password: Callable[[], str] | None = None
) -> None:
    """Load a certificate and its key, in PEM, into a context. Raises ssl.SSLError, OSError, and what `password` raises.

    The directory of the files is readable by its owner only, and gone after the call. `password` is called if the key is
    encrypted; without it OpenSSL would ask on the terminal.
    """
    with tempfile.TemporaryDirectory(prefix="noxu-") as directory:
        files = Path(directory, "certificate"), Path(directory, "key")
        for file, content in zip(files, (certificate, key), strict=True):
            file.write_bytes(content)
        context.load_cert_chain(*files, password=password)


# -- secrets -----------------------------------------------------------------------------------------------------------


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
