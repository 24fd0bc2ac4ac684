"""Records of TLS: however the network divides them, the connection above receives what the client has written."""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from collections.abc import Iterable
from typing import Any

import pytest

from noxu.http.clients import Clients
from noxu.http.tls import RECORD, Handshakes, TlsConnection
from noxu.security.certificates import new_authority
from noxu.security.tls import Material, ServerTls
from tests.security.handshakes import client_context


class Received(asyncio.Protocol):
    """The connection above TLS: keeps what it receives."""

    def __init__(self) -> None:
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data


class Socket(asyncio.Transport):
    """The transport below TLS: keeps what is sent to the client."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return False


class Client:
    """A client whose bytes arrive when the test says so."""

    def __init__(self) -> None:
        authority = new_authority()
        server = ServerTls(Material(authority.issue_server(["localhost"])))
        self.above, self.socket = Received(), Socket()
        self.server = TlsConnection(lambda: self.above, server.context, Handshakes(), Clients())
        self.server.connection_made(self.socket)
        self._from_server, self._to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = client_context(authority.identity.certificate)
        self._tls = context.wrap_bio(self._from_server, self._to_server, server_hostname="localhost")

    async def connect(self) -> None:
        for _ in range(3):
            with contextlib.suppress(ssl.SSLWantReadError):
                self._tls.do_handshake()
            if sent := self._to_server.read():
                self.server.data_received(sent)
            await asyncio.sleep(0)  # steps of handshakes have their turn
            self._from_server.write(self.socket.sent)
            self.socket.sent = b""

    def encrypted(self, data: bytes) -> bytes:
        self._tls.write(data)
        return self._to_server.read()


@pytest.fixture
async def client() -> Client:
    made = Client()
    await made.connect()
    return made


SIZES = (1, 100, RECORD - 1, RECORD, RECORD + 1, 3 * RECORD)


@pytest.mark.parametrize("size", SIZES)
async def test_a_record_divided_in_two(client: Client, size: int) -> None:
    for at in (1, 4, 5, 6, 21, size // 2, -20, -2, -1):
        client.above.data = b""
        data = random.Random(size).randbytes(size)
        encrypted = client.encrypted(data)
        client.server.data_received(encrypted[:at])
        client.server.data_received(encrypted[at:])
        assert client.above.data == data, f"divided at {at}"


@pytest.mark.parametrize("seed", range(20))
async def test_many_records_in_pieces_of_any_size(client: Client, seed: int) -> None:
    choose = random.Random(seed)
    messages = [choose.randbytes(choose.choice((1, 50, 400, 5000, RECORD, 40_000))) for _ in range(20)]
    encrypted = b"".join(client.encrypted(each) for each in messages)
    for piece in divided(encrypted, choose):
        client.server.data_received(piece)
    assert client.above.data == b"".join(messages)


def divided(data: bytes, choose: random.Random) -> Iterable[bytes]:
    while data:
        size = choose.choice((1, 5, 30, 1000, RECORD, 100_000))
        yield data[:size]
        data = data[size:]
