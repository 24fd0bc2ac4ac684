"""Malicious clients of HTTPS: no TLS, half a handshake, thousands of handshakes, broken records (hazards R12, S5)."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from noxu.http import tls
from noxu.security.certificates import new_authority
from noxu.security.tls import Material, Named, ServerTls
from noxu.testing.handle import Noxu
from tests.hostile.loop_monitor import LoopMonitor, longest_block
from tests.hostile.raw_http import Target, receive, set_limits, status_of
from tests.security.handshakes import client_context
from tests.security.test_tls import SERVER, written
from tests.timing import eventually

GET = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture(scope="module")
def noxu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    with Noxu(tmp_path_factory.mktemp("noxu"), tls=True) as server:
        yield server


@pytest.fixture
def target(noxu: Noxu) -> Target:
    """Without TLS: its bytes are those of the socket."""
    return Target(noxu.url)


@pytest.fixture
def secure(noxu: Noxu) -> Target:
    return Target.of(noxu)


@pytest.fixture(autouse=True)
def nothing_remains(noxu: Noxu, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No connection and no bytes are left behind, and the log has neither tracebacks nor errors."""
    yield
    clients = noxu._server.clients
    eventually(lambda: (len(clients.connections), clients.incoming.total) == (0, 0))
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.WARNING] == []


def hello() -> bytes:
    """The first message of a client."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


# -- HTTP without TLS: net/http's answer

WITHOUT_TLS: list[tuple[str, bytes, bytes]] = [
    ("GET", GET, tls.ANSWER_TO_HTTP),
    ("HEAD", GET.replace(b"GET", b"HEAD"), tls.ANSWER_TO_HTTP),
    ("POST", GET.replace(b"GET", b"POST"), tls.ANSWER_TO_HTTP),
    ("PUT", GET.replace(b"GET", b"PUT"), tls.ANSWER_TO_HTTP),
    ("OPTIONS", GET.replace(b"GET", b"OPTIONS"), tls.ANSWER_TO_HTTP),
    ("a method that net/http does not recognise here", GET.replace(b"GET", b"DELETE"), b""),
    ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b""),
    ("another protocol", b"SSH-2.0-x\r\n", b""),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answer"), [row[1:] for row in WITHOUT_TLS], ids=[row[0] for row in WITHOUT_TLS])
def test_the_answer_to_a_client_without_tls(target: Target, sent: bytes, answer: bytes) -> None:
    assert target.send_raw(sent) == answer


def test_its_text() -> None:
    assert tls.ANSWER_TO_HTTP == (b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")


def test_its_first_bytes_may_come_one_by_one(target: Target) -> None:
    with target.connect() as peer:
        for byte in b"GET /":
            peer.send(bytes([byte]))
        assert receive(peer) == tls.ANSWER_TO_HTTP


# -- handshakes that fail

FAILING = {
    "a version that nothing has": b"\x16\x09\x09\x00\x04abcd",
    "a record that is too long": b"\x16\x03\x01\xff\xff" + bytes(65535),
    "a message that is no hello": b"\x16\x03\x01\x00\x04\x0b\x00\x00\x00",
    "a hello of SSL 3": b"\x16\x03\x00\x00\x2f\x01\x00\x00\x2b\x03\x00"
    + bytes(32)
    + b"\x00\x00\x04\x00\x0a\x00\x05\x01\x00",
    "a damaged hello": hello()[:60] + bytes(40) + hello()[100:],
}


@pytest.mark.parametrize("sent", FAILING.values(), ids=FAILING)
def test_a_handshake_that_fails_is_one_line_in_the_log(
    noxu: Noxu, target: Target, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(tls, "LOGGED_EVERY", 0.0)
    caplog.set_level(logging.INFO, "noxu")
    answer = target.send_raw(sent)
    assert answer[:1] in (b"", b"\x15"), "an alert, or nothing"
    eventually(lambda: caplog.records)
    (record,) = caplog.records
    line = record.getMessage()
    assert line.startswith("http: TLS handshake error from 127.0.0.1:")
    assert len(line) < 150
    assert "\n" not in line
    assert record.exc_info is None


def test_a_foreign_certificate_ends_the_handshake(secure: Target, noxu: Noxu, caplog: pytest.LogCaptureFixture) -> None:
    foreign = new_authority().issue_client("eve", ["system:masters"])
    assert noxu._server.secured is not None
    secure.tls = client_context(noxu._server.secured.certificate_authority, foreign)
    with pytest.raises(ssl.SSLError, match=r"(?i)unknown.ca"), secure.connect() as peer:  # noqa: PT012 - TLS 1.3 says so later
        peer.sendall(GET)
        peer.recv(1)


def test_many_failures_are_few_lines(target: Target, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "noxu")
    for _ in range(100):
        target.send_raw(b"GET / HTTP/1.1\r\n\r\n")
    assert len(caplog.records) < 50


# -- handshakes that do not end

HALF = {"nothing": b"", "a byte": b"\x16", "half a record": hello()[:100], "a hello": hello(), "no TLS": b"GET"}


@pytest.mark.parametrize("sent", HALF.values(), ids=HALF)
def test_a_handshake_has_to_be_complete_before_its_deadline(
    noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    set_limits(monkeypatch, noxu, head_deadline=0.3)
    with target.connect() as peer:
        peer.sendall(sent)
        receive(peer)


def test_incomplete_handshakes_count_as_idle_connections(
    noxu: Noxu, target: Target, secure: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noxu._server.clients.connections, "limit", 20)
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(target.connect()) for _ in range(40)]
        for peer in peers:
            with contextlib.suppress(ConnectionError):
                peer.sendall(hello())
        assert secure.send("GET", "/livez").status == 200
        eventually(lambda: len(noxu._server.clients.connections) <= 20)


def test_the_first_of_too_many_incomplete_handshakes_makes_room(
    target: Target, secure: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "MAX_HANDSHAKES", 3)
    with target.connect() as first, target.connect() as second, target.connect() as third:
        for peer in (first, second, third):
            peer.sendall(hello())
            assert peer.recv(1) == b"\x16"
        assert secure.send("GET", "/livez").status == 200
        receive(first)
        second.setblocking(False)
        while True:
            try:
                assert second.recv(65536), "it is still connected"
            except BlockingIOError:
                break


def test_incomplete_handshakes_count_as_incoming_bytes(noxu: Noxu, target: Target) -> None:
    """A record says how long it is: the server keeps what it has until it is complete."""
    with target.connect() as peer:
        peer.sendall(b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc" + bytes(10_000))
        eventually(lambda: noxu._server.clients.incoming.total > 10_000)


# -- work


def test_hundreds_of_handshakes_at_once_do_not_block_the_loop(
    target: Target, secure: Target, loop_monitor: LoopMonitor
) -> None:
    first = hello()
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(target.connect()) for _ in range(300)]
        loop_monitor.reset()
        for peer in peers:
            peer.sendall(first)
        assert secure.send("GET", "/livez").status == 200
        for peer in peers:
            assert peer.recv(1) == b"\x16"
    assert loop_monitor.longest < longest_block()


def test_many_tiny_records_do_not_block_the_loop(noxu: Noxu, secure: Target, loop_monitor: LoopMonitor) -> None:
    """A body of which each byte is a record."""
    with target_in_memory(secure) as (peer, client, outgoing):
        client.write(b"POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n")
        for _ in range(29_000):
            client.write(b" ")
        sent = outgoing.read()
        loop_monitor.reset()
        peer.sendall(sent)
        assert secure.send("GET", "/livez").status == 200
    assert loop_monitor.longest < longest_block()


@contextlib.contextmanager
def target_in_memory(target: Target) -> Iterator[tuple[socket.socket, ssl.SSLObject, ssl.MemoryBIO]]:
    """A connection after the handshake, whose records the test sends itself."""
    assert target.tls is not None
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = target.tls.wrap_bio(incoming, outgoing, server_hostname=target.host)
    with Target(f"https://{target.host}:{target.port}").connect() as peer:
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                peer.sendall(outgoing.read())
                incoming.write(peer.recv(65536))
        peer.sendall(outgoing.read())
        yield peer, client, outgoing


def test_half_a_record_counts_as_incoming_bytes(noxu: Noxu, secure: Target) -> None:
    incoming = noxu._server.clients.incoming
    with target_in_memory(secure) as (peer, client, outgoing):
        client.write(GET + b"x" * 10_000)
        record = outgoing.read()
        peer.sendall(record[:9000])
        eventually(lambda: incoming.total >= 9000)
        peer.sendall(record[9000:])
        eventually(lambda: not any(isinstance(each, tls.TlsConnection) for each in incoming._sizes))


def test_handshakes_end_with_the_server(tmp_path: Path) -> None:
    with Noxu(tmp_path, tls=True) as server:
        peer = Target(server.url).connect()
        peer.sendall(hello())
        assert peer.recv(1) == b"\x16"
    with peer:
        receive(peer)


@pytest.fixture
def named(tmp_path: Path) -> ServerTls:
    return ServerTls(Material(SERVER, (Named(written(tmp_path, "a", SERVER)),)))


def test_a_name_beyond_ascii_in_a_handshake_gives_no_traceback(
    named: ServerTls, capsys: pytest.CaptureFixture[str]
) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    incoming.write(hello().replace(b"localhost", b"\xff\xfe\xfdalhost"))
    with pytest.raises(ssl.SSLError, match=r"(?i)callback.failed"):
        named.context("").wrap_bio(incoming, outgoing, server_side=True).do_handshake()
    assert capsys.readouterr().err == ""


DAMAGED = {
    "a record whose content was changed": lambda record: record[:-1] + bytes([record[-1] ^ 1]),
    "a record that is too long": lambda record: b"\x17\x03\x03" + struct.pack("!H", 65535) + bytes(65535),
    "no record": lambda record: b"GET / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_ends_the_connection(secure: Target, damage: object) -> None:
    assert callable(damage)
    with target_in_memory(secure) as (peer, client, outgoing):
        client.write(GET)
        peer.sendall(damage(outgoing.read()))
        assert b"HTTP/1.1" not in receive(peer)


def test_records_may_come_byte_by_byte(secure: Target) -> None:
    with target_in_memory(secure) as (peer, client, outgoing):
        client.write(GET)
        for byte in outgoing.read():
            peer.send(bytes([byte]))
        assert peer.recv(1) == b"\x17"


def test_the_end_is_announced(secure: Target) -> None:
    """A client can tell the end of an answer without a length from an attacker's."""
    with secure.connect() as peer:
        assert isinstance(peer, ssl.SSLSocket)
        peer.suppress_ragged_eofs = False  # type: ignore[attr-defined] # absent in typeshed
        peer.sendall(GET.replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert status_of(receive(peer)) == 200


def test_a_client_may_announce_its_end(secure: Target, tmp_path: Path) -> None:
    with secure.connect() as peer:
        assert isinstance(peer, ssl.SSLSocket)
        peer.sendall(GET)
        assert status_of(receive(peer, answers=1)) == 200
        peer.unwrap()
