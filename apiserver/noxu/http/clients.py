"""What all connections of a server have in common: the limits on them together, and the number of handshakes that failed."""

from __future__ import annotations

from dataclasses import dataclass, field

from noxu.http.incoming import Incoming
from noxu.http.open_connections import OpenConnections, max_connections
from noxu.http.unsent import Unsent
from noxu.instruments import Counter


def _handshake_errors() -> Counter:
    return Counter(
        "apiserver_tls_handshake_errors_total", "Number of requests dropped with 'TLS handshake error from' error"
    )


@dataclass(eq=False, slots=True)
class Clients:
    """The clients of one server."""

    unsent: Unsent = field(default_factory=Unsent)
    incoming: Incoming = field(default_factory=Incoming)
    connections: OpenConnections = field(default_factory=lambda: OpenConnections(max_connections()))
    handshake_errors: Counter = field(default_factory=_handshake_errors)
