"""Where a kube-apiserver keeps its objects: in a folder of the etcd that its command line names.

The `etcd` of this package tells its data directory. Each prefix (`--etcd-prefix`) has a database of its own there, as in an
etcd. With any other etcd, or none, objects are in memory.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from noxu.apiserver.envtest.etcd import DATA_PATH

DEFAULT_PREFIX: Final = "/registry"
WAIT: Final = 5.0  # seconds for an etcd that was started at the same time
POLL: Final = 0.02  # seconds between two attempts
ANSWER_WITHIN: Final = 2.0  # seconds
MAX_ANSWER: Final = 16 * 1024  # bytes
_FOLDER: Final = "noxu"
_MODES: Final = {b"unsafe-no-fsync": False, b"fsync": True}


class DataDirectory(NamedTuple):
    """What an etcd tells: its data directory, and whether it waits for the disk."""

    path: Path
    fsync: bool

    def of_prefix(self, prefix: str) -> Path:
        """The folder of the objects with a prefix: `/registry/` → `noxu/registry`, `/a/b` → `noxu/a%2Fb`."""
        name = quote(prefix.strip("/"), safe="").replace(".", "%2E")
        return self.path / _FOLDER / (name or "%2F")


def find(urls: Sequence[str], wait: float = WAIT) -> DataDirectory | None:
    """Ask the servers one after the other, the first until it listens. None: none of them is the etcd of this package."""
    deadline = time.monotonic() + wait
    for url in urls:
        try:
            found = _read(_ask(*_address(url), deadline))
        except (OSError, ValueError):
            continue
        if found is not None:
            return found
    return None


def _address(url: str) -> tuple[str, int]:
    """Raises ValueError for what is not http://HOST:PORT."""
    scheme, _, rest = url.strip().partition("://")
    host, _, port = rest.rstrip("/").rpartition(":")
    if scheme != "http" or not host:
        raise ValueError(url)
    host = host.strip("[]")
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), int(port)  # noqa: S104 - to connect to


def _ask(host: str, port: int, deadline: float) -> bytes:
    """The answer of an etcd, as soon as it listens. Raises OSError."""
    while True:
        try:
            connection = socket.create_connection((host, port), ANSWER_WITHIN)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL)
        else:
            break
    with connection:
        connection.sendall(f"GET {DATA_PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while len(answer) < MAX_ANSWER and (part := connection.recv(4096)):
            answer += part
    return answer


def _read(answer: bytes) -> DataDirectory | None:
    head, _, text = answer.partition(b"\r\n\r\n")
    mode, _, path = text.partition(b"\n")
    if not head.startswith(b"HTTP/1.1 200 ") or mode not in _MODES or not path.startswith(b"/"):
        return None
    return DataDirectory(Path(os.fsdecode(path)), _MODES[mode])
