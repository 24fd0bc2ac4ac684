"""What clients may cost a server: one frozen value, which everything in front of the handlers reads.

Each field has a number, a unit and an origin. "Go" is net/http, in whose words kube-apiserver configures its server; what has
no origin is ours. A size that belongs to one algorithm stands where that is: the length of a method in `methods`, the
parts of a handshake in `tls`, the piece of a body that is written at once in `sending`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_MIB: Final = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Times are seconds, sizes are bytes."""

    # -- one connection
    head_deadline: float = 32.0
    """For the head of a request, or a handshake, to arrive; upstream's ReadHeaderTimeout."""
    body_deadline: float = 60.0
    """For a body to arrive; upstream's RequestTimeout."""
    idle_deadline: float = 90.0
    """Between two requests; upstream's IdleTimeout."""
    send_deadline: float = 30.0
    """For which a client may read nothing of its answer."""
    lingering: float = 1.0
    """For which the rest of a refused body is read, so that the client receives the answer."""
    head: int = _MIB
    """Of a head; Go's http.DefaultMaxHeaderBytes. A selector alone may have 45 KB."""
    slack: int = 4096
    """Of a head beyond that; Go's buffer, which it allows in addition."""
    headers: int = 10_000
    """Header fields of a head."""
    trailer: int = 16 * 1024
    """Of a body's framing without content: of trailers, and of extensions of a chunk."""
    read_ahead: int = 256 * 1024
    """Of a body that is not read yet: half of what makes the connection stop reading. And of what follows an upgrade."""
    pipelined: int = 32
    """Requests of one connection that wait for the one before."""
    frames: int = 8 * 1024
    """Of frames that arrive at once on a WebSocket, whose messages may have 4 KiB."""
    kept_target: int = 4096
    """Of a target from which on an idle connection counts as an incomplete request: the parser keeps it."""
    kernel_unsent: int = 32 * 1024
    """That the kernel buffers for a client that reads nothing, if it can limit them."""

    # -- all connections
    connections: int = 12_000
    """10,000 watches, and others."""
    reserved_files: int = 64
    """Files that are not connections of clients: the database, webhooks. At most half of what is allowed."""
    incoming: int = 128 * _MIB
    """Of requests that have not arrived completely, together."""
    unsent: int = 256 * _MIB
    """Of answers that clients have not read, together."""
    min_stalled: float = 1.0
    """Without reading after which a client may be disconnected in favour of others."""


DEFAULT_LIMITS: Final = Limits()
