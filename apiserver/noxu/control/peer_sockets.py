"""The other ends of connections, if they are on this machine, as the kernel of Linux knows them: sock_diag(7).

A question costs 3 µs. /proc/net/tcp says the same, and costs a millisecond, because the kernel goes through a table of all
sockets that there could be. What is not on this machine, or on another system, is not found.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

_SOCK_DIAG: Final = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY: Final = 20  # SOCK_DIAG_BY_FAMILY, of requests and of answers
_REQUEST: Final = 1  # NLM_F_REQUEST
_ANY_STATE: Final = 0xFFFFFFFF
_ANY_COOKIE: Final = b"\xff" * 8
_ESTABLISHED: Final = 1
_HEADER: Final = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_ASKED: Final = struct.Struct("=BBBBI")  # inet_diag_req_v2: family, protocol, extensions, padding, states
_STATE: Final = struct.Struct("=BBBB")  # inet_diag_msg: family, state, timer, retransmissions
_NUMBERS: Final = struct.Struct("=IIIII")  # … expires, rqueue, wqueue, uid, inode
_ADDRESSES: Final = 48  # bytes between them: inet_diag_sockid
_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))

Addresses = tuple[object, object]
"""Of a connection, at the side of the server: as of `getpeername` and `getsockname`."""


class PeerSocket(NamedTuple):
    """`inode`: its number, which the descriptors of its process have. `unread`: bytes that have arrived, and were not read."""

    inode: int
    unread: int


def find(connections: Iterable[Addresses]) -> list[PeerSocket]:
    """The sockets of the clients of these connections, without those that are not found, or closed by the server."""
    found = list[PeerSocket]()
    if hasattr(socket, "AF_NETLINK"):
        with (
            contextlib.suppress(OSError),  # it is not allowed here, or the kernel does not have it
            socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel,
        ):
            kernel.setblocking(False)  # the answer is there when the question is sent
            for peer, own in connections:
                if isinstance(peer, tuple) and isinstance(own, tuple):  # a Unix socket has no addresses
                    kernel.send(_question(peer, own))
                    found += _answer(kernel.recv(8192))
    return found


def inode(peer: object, own: object) -> int:
    """The number of a client's socket; 0: it is not on this machine, or closed."""
    if not (isinstance(peer, tuple) and isinstance(own, tuple)):
        return 0
    known = find([(peer, own)])
    return known[0].inode if known else _inode_in_tables(peer[1], own[1])


def of_process(pid: int) -> Iterator[int]:
    """The numbers of the sockets that a process has open, as far as it may be looked at."""
    with contextlib.suppress(OSError):  # it has ended
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # it is closed
                kind, _, number = str(descriptor.readlink()).partition("socket:[")
                if number and not kind:
                    yield int(number.removesuffix("]"))


def _question(client: tuple[str, int], server: tuple[str, int]) -> bytes:
    """About the one socket that has the client's address, and is connected with the server's."""
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    places = b"".join(socket.inet_pton(family, host).ljust(16, b"\0") for host, *_ in (client, server))
    ports, no_interface = struct.pack("!HH", client[1], server[1]), bytes(4)
    asked = _ASKED.pack(family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE) + ports + places + no_interface + _ANY_COOKIE
    return _HEADER.pack(_HEADER.size + len(asked), _BY_FAMILY, _REQUEST, 0, 0) + asked


def _answer(message: bytes) -> list[PeerSocket]:
    kind = _HEADER.unpack_from(message)[1]
    if kind != _BY_FAMILY:  # an error: there is none
        return []
    state = _STATE.unpack_from(message, _HEADER.size)[1]
    _, unread, _, _, number = _NUMBERS.unpack_from(message, _HEADER.size + _STATE.size + _ADDRESSES)
    # where the server has closed the connection, its end counts as a byte
    return [PeerSocket(number, unread)] if state == _ESTABLISHED else []


def _inode_in_tables(client: int, server: int) -> int:
    for table in _TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, remote, *_, number = line.split()[:10]
            if _port(local) == client and _port(remote) == server:
                return int(number)
    return 0


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
