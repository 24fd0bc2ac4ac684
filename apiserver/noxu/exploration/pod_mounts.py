"""A program that sees files of a pod: those of a service account, whose path is fixed in client libraries, and names of hosts.

The path exists in a mount namespace of the program alone, so nothing of this machine changes. A directory of memory takes the
place of /run there, with all that is in it, since /var/run/secrets cannot be made by everyone. On Linux, as root or where users may
have namespaces of their own (unshare(2), mount_namespaces(7)).

This file is a script, too, which mounts and becomes the program. It imports the standard library only: another interpreter
may run it.
"""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

PLACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
FILES: Final = "serviceaccount"
HOSTS: Final = "run"
NAMES: Final = Path("/etc/hosts")
_NEW_MOUNTS: Final = 0x00020000  # CLONE_NEWNS
_NEW_USERS: Final = 0x10000000  # CLONE_NEWUSER
_BIND: Final = 4096  # MS_BIND
_RECURSIVE: Final = 16384  # MS_REC
_PRIVATE: Final = 1 << 18  # MS_PRIVATE
FORBIDDEN: Final = 125
"""The exit status if this system does not allow it."""


def write_files(directory: Path, token: str, authority: bytes, namespace: str) -> None:
    """The files of a service account, for `words`."""
    (directory / HOSTS).mkdir(parents=True)
    files = directory / FILES
    files.mkdir(mode=0o700)
    (files / "token").write_text(token)
    (files / "ca.crt").write_bytes(authority)
    (files / "namespace").write_text(namespace)


def write_hosts(directory: Path, addresses: Mapping[str, str]) -> None:
    """The file of hosts, for `words`: that of this machine, after further names."""
    if addresses:
        there = NAMES.read_text() if NAMES.exists() else ""
        lines = [f"{address} {name}\n" for name, address in addresses.items()]
        (directory / NAMES.name).write_text("".join(lines) + there)


def words(directory: Path, command: Sequence[str]) -> list[str]:
    """The command that mounts the files of a directory, as far as it has them, and becomes a program."""
    return [sys.executable, "-I", "-S", __file__, str(directory), *command]


def failure() -> str:
    """Why a program cannot have mounts of its own here; "" if it can."""
    if sys.platform != "linux":
        return "it needs mount namespaces, which only Linux has"
    with tempfile.TemporaryDirectory(prefix="noxu-explore-") as name:
        write_files(Path(name), "", b"", "default")
        tried = subprocess.run(  # noqa: S603 - this file
            words(Path(name), ["sh", "-c", f"test -e {PLACE}/token"]), capture_output=True, text=True, check=False
        )
    return "" if tried.returncode == 0 else tried.stderr.strip() or f"it ended with status {tried.returncode}"


def _mount(source: str, target: str, kind: str = "", flags: int = 0) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(source.encode(), os.fsencode(target), kind.encode() or None, flags, None):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def enter(namespace: int) -> None:
    """A namespace of this process; with a user namespace, in which this user is itself, if it may not have one otherwise.

    `namespace`: a flag of unshare(2). Raises OSError.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(namespace) == 0:
        return
    user, group = os.getuid(), os.getgid()
    if library.unshare(namespace | _NEW_USERS):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "unshare")
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"{user} {user} 1")
    (own / "gid_map").write_text(f"{group} {group} 1")


def _make_place(hosts: Path) -> None:
    """A directory that is /run, except that it is in memory: `hosts` is where the other one is then."""
    run = PLACE.parents[2].resolve()
    _mount(str(run), str(hosts), flags=_BIND | _RECURSIVE)
    _mount("none", str(run), "tmpfs")
    for entry in hosts.iterdir():
        shown, mode = run / entry.name, entry.lstat().st_mode
        if stat.S_ISLNK(mode):
            shown.symlink_to(entry.readlink())
            continue
        shown.mkdir() if stat.S_ISDIR(mode) else shown.touch()
        _mount(str(entry), str(shown), flags=_BIND | _RECURSIVE)
    PLACE.mkdir(parents=True)


def main(directory: str, *command: str) -> None:
    try:
        enter(_NEW_MOUNTS)
        _mount("none", "/", flags=_PRIVATE | _RECURSIVE)
        if Path(directory, FILES).exists():
            if not PLACE.is_dir():
                _make_place(Path(directory, HOSTS))
            _mount(str(Path(directory, FILES)), str(PLACE), flags=_BIND)
        if Path(directory, NAMES.name).exists():
            _mount(str(Path(directory, NAMES.name)), str(NAMES), flags=_BIND)
    except OSError as error:
        sys.stderr.write(f"this system forbids mounts of a program's own: {error}\n")
        sys.exit(FORBIDDEN)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the program under test
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be run: {error.strerror}\n")
        sys.exit(126)


if __name__ == "__main__":
    main(*sys.argv[1:])
