"""Handshakes in memory: a client and a server that exchange bytes without sockets."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import NamedTuple

from noxu.security.certificates import CertifiedKey


class Ends(NamedTuple):
    """Both ends of a connection after the handshake."""

    client: ssl.SSLObject
    server: ssl.SSLObject


def client_context(authority: bytes, identity: CertifiedKey | None = None, *, strict: bool = False) -> ssl.SSLContext:
    """A client that trusts a CA, and may have a certificate. `strict` is Python's default since 3.13."""
    context = ssl.create_default_context(cadata=authority.decode())
    if strict:
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    if identity is not None:
        with tempfile.TemporaryDirectory() as directory:
            certificate, key = Path(directory) / "certificate", Path(directory) / "key"
            certificate.write_bytes(identity.certificate)
            key.write_bytes(identity.key)
            context.load_cert_chain(certificate, key)
    return context


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, name: str = "localhost") -> Ends:
    """Raises SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = Ends(
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    waiting = list(ends)
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass
    return ends
