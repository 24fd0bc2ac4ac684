"""Find the objects of a kube-apiserver: they are in a folder of the etcd that its command line names.

The `etcd` of this package tells its data directory. Each prefix (`--etcd-prefix`) has a database of its own there, as in an
etcd. Another etcd keeps the objects itself. Where no etcd listens, objects are in memory.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from noxu.envtest.etcd import DATA_PATH

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


class OtherEtcd(NamedTuple):
    """Servers of another etcd, which has the objects."""

    urls: tuple[str, ...]


def find(urls: Sequence[str], wait: float = WAIT) -> DataDirectory | OtherEtcd | None:
    """Ask the servers one after the other, the first until it listens. None: none of them listens."""
    deadline = time.monotonic() + wait
    others = False
    for url in urls:
        address = _address(url)
        if address is None:
            others = True
            continue
        try:
            connection = _connected(*address, deadline)
        except OSError:
            continue
        answer = _ask(connection)
        if answer is not None:
            return answer
        others = True
    return OtherEtcd(tuple(urls)) if others else None


def _address(url: str) -> tuple[str, int] | None:
    """The host and port of http://HOST:PORT; None for any other URL, which the etcd of this package does not have."""
    scheme, _, rest = url.strip().partition("://")
    host, _, port = rest.rstrip("/").rpartition(":")
    if scheme != "http" or not host or not port.isdecimal():
        return None
    host = host.strip("[]")
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), int(port)  # noqa: S104 - to connect to


def _connected(host: str, port: int, deadline: float) -> socket.socket:
    """A connection to a server, as soon as it listens. Raises OSError."""
    while True:
        try:
            return socket.create_connection((host, port), ANSWER_WITHIN)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL)
        except OverflowError:
            raise OSError(f"port {port} is out of range") from None


def _ask(connection: socket.socket) -> DataDirectory | None:
    """What the server at the other end tells; None if it is not the etcd of this package."""
    answer = b""
    with connection, suppress(OSError):
        connection.sendall(f"GET {DATA_PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        while len(answer) < MAX_ANSWER and (part := connection.recv(4096)):
            answer += part
    return _read(answer)


def _read(answer: bytes) -> DataDirectory | None:
    head, _, text = answer.partition(b"\r\n\r\n")
    mode, _, path = text.partition(b"\n")
    if not head.startswith(b"HTTP/1.1 200 ") or mode not in _MODES or not path.startswith(b"/"):
        return None
    return DataDirectory(Path(os.fsdecode(path)), _MODES[mode])
