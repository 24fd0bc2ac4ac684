"""A network of a process's own, in which a fixed port is free: a loopback interface, and nothing else. network_namespaces(7) of Linux.

What the process starts is there, too. It cannot be reached from outside, and reaches nothing there. For root, or where users may have
namespaces of their own (user_namespaces(7)).
"""

from __future__ import annotations

import socket
import struct
import sys
from typing import Final

from noxu.exploration import pod_mounts

try:  # noqa: SIM105 - as elsewhere
    import fcntl
except ImportError:  # Windows
    pass

_NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET
_SET_FLAGS: Final = 0x8914  # SIOCSIFFLAGS
_UP: Final = 0x1 | 0x40  # IFF_UP, IFF_RUNNING
_INTERFACE: Final = struct.Struct("16sH22x")  # ifreq: name and flags


def enter() -> None:
    """Enter a new one. There must be no other threads yet. Raises OSError."""
    if sys.platform != "linux":
        raise OSError("only Linux has networks of processes")
    pod_mounts.enter(_NEW_NETWORK)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, _INTERFACE.pack(b"lo", _UP))
