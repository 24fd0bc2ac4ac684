"""Answers on the wire: headers, gzip, chunks, and errors in the format that was asked for."""

from __future__ import annotations

import gzip
import json
import re
import socket
import zlib
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from aiohttp.http import HttpVersion10

from conformance.client import Client
from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.http import app, sending
from noxu.http.answer import Answer, text_answer
from noxu.http.clients import Unsent
from noxu.http.exchange import Exchange
from noxu.http.responses import error_answer, too_late
from noxu.http.sending import PIECE
from tests.hostile.raw_http import Reply, parse_answer
from tests.http.wire import Wire, connected, received

NO_BACKEND: Any = None


async def sent(answer: Answer, method: str = "GET", **headers: str) -> tuple[Reply, Wire]:
    """What a client receives, and its connection."""
    connection, wire = connected()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    request = received(method, headers=given, connection=connection)
    exchange = Exchange(request, NO_BACKEND, "the-id", 0.0)
    exchange.headers += FROM_FILTERS
    waits = app.send(exchange, answer, Unsent())
    if waits is not None:
        await waits
    assert request.keep_alive != (b"Connection: close" in wire.sent)
    connection.connection_lost(None)
    return parse_answer(wire.sent), wire


FROM_FILTERS: Final = [("Warning", "a"), ("Warning", "b"), ("Audit-Id", "not mine")]


async def test_an_answer_has_its_headers_and_those_of_filters() -> None:
    reply, wire = await sent(Answer(b"{}", 201, "application/yaml", (("Vary", "Accept"),)))
    assert wire.sent.startswith(b"HTTP/1.1 201 Created\r\n")
    assert reply.body == b"{}"
    assert reply.headers.get_all("Warning") == ["a", "b"]
    assert reply.headers.get_all("Audit-Id") == ["the-id"]
    assert (reply.headers["Content-Type"], reply.headers["Vary"]) == ("application/yaml", "Accept")


async def test_an_answer_is_not_cached_unless_it_says_so() -> None:
    assert (await sent(Answer(b"")))[0].headers["Cache-Control"] == "no-cache, private"
    assert "Cache-Control" not in (await sent(Answer(b"", headers=())))[0].headers


@pytest.mark.parametrize(("headers", "closed"), [((), False), ((("Connection", "close"),), True)])
async def test_an_answer_may_close_the_connection(headers: Any, closed: bool) -> None:
    """`sent` checks that the connection learns of it."""
    reply, _ = await sent(Answer(b"", headers=headers))
    assert ("Connection" in reply.headers) == closed


LARGE = b"x" * (128 * 1024 + 1)
GZIPS: list[tuple[str, bytes, str, bool]] = [
    ("a large body", LARGE, "gzip", True),
    ("one among others", LARGE, "deflate, gzip", True),
    ("a body of 128 KiB", LARGE[:-1], "gzip", False),
    ("a client that does not take it", LARGE, "", False),
    ("a preference is not understood", LARGE, "gzip;q=1", False),
    ("a wildcard is not understood", LARGE, "*", False),
]


@pytest.mark.parametrize(("body", "accept", "packed"), [row[1:] for row in GZIPS], ids=[row[0] for row in GZIPS])
async def test_gzip(body: bytes, accept: str, packed: bool) -> None:
    reply, _ = await sent(Answer(body, headers=(("Vary", "Accept"),)), Accept_Encoding=accept)
    assert reply.headers["Content-Encoding"] == ("gzip" if packed else None)
    assert reply.headers.get_all("Vary") == ["Accept", "Accept-Encoding"][: 1 + packed]
    assert (gzip.decompress(reply.body) if packed else reply.body) == body


PARTS: list[tuple[str, Any, int]] = [
    ("small bytes", LARGE[:PIECE], 0),
    ("small parts", (LARGE[:10], memoryview(LARGE)[10:PIECE]), 0),
    ("large bytes", LARGE, 3),
    ("large parts", (LARGE[:10], memoryview(LARGE)[10:-1], b"y"), 4),
]
"""The number of writes after that of the head; a small body is written with it."""


@pytest.mark.parametrize(("body", "pieces"), [row[1:] for row in PARTS], ids=[row[0] for row in PARTS])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_large_body_is_written_in_pieces(method: str, body: Any, pieces: int) -> None:
    whole = b"".join([body] if isinstance(body, bytes) else body)
    reply, wire = await sent(Answer(body), method)
    assert reply.headers["Content-Length"] == str(len(whole))
    assert reply.body == (whole if method == "GET" else b"")
    assert len(wire.writes) == 1 + (pieces if method == "GET" else 0)


async def test_so_is_a_large_part_of_a_body_in_chunks() -> None:
    """The transport copies what it cannot send, and the bytes that the client shall get are held already."""

    async def large() -> AsyncIterator[bytes]:
        yield b"["
        yield LARGE

    reply, wire = await sent(Answer(large()))
    assert reply.body == b"[" + LARGE
    assert len(wire.writes) == 1 + 4 + 1, "the head, pieces, the end"
    assert max(wire.writes) == PIECE + len(b"10000\r\n\r\n")


async def chunks() -> AsyncIterator[bytes]:
    for part in (b"[1", b",2", b"]"):
        yield part


CHUNKED: list[tuple[str, str, str, bytes, bool]] = [
    ("as they are made", "GET", "", b"[1,2]", False),
    ("packed, however few", "GET", "gzip", b"[1,2]", True),
    ("not at all for HEAD", "HEAD", "", b"", False),
]


@pytest.mark.parametrize(
    ("method", "accept", "body", "packed"), [row[1:] for row in CHUNKED], ids=[row[0] for row in CHUNKED]
)
async def test_chunks_are_sent(method: str, accept: str, body: bytes, packed: bool) -> None:
    reply, wire = await sent(Answer(chunks()), method, Accept_Encoding=accept)
    assert reply.headers["Content-Encoding"] == ("gzip" if packed else None)
    assert reply.headers["Transfer-Encoding"] == (None if method == "HEAD" else "chunked")
    assert (zlib.decompress(reply.body, wbits=31) if packed else reply.body) == body
    assert len(wire.writes) == (1 if method == "HEAD" else 4 if packed else 5)


# -- errors -----------------------------------------------------------------------------------------------------------

NOT_FOUND = errors.not_found(errors.Qualified("", "pods"), "a")
JSON, YAML = "application/json", "application/yaml"
FORMATS: list[tuple[str, str, dict[str, str], str, str]] = [
    ("JSON", "/a", {}, JSON, '{"kind":"Status",'),
    ("YAML", "/a", {"Accept": YAML}, YAML, "apiVersion: v1\n"),
    ("protobuf", "/a", {"Accept": "application/vnd.kubernetes.protobuf"}, "application/vnd.kubernetes.protobuf", "k8s\0"),
    ("no format for errors: indented JSON", "/a", {"Accept": "text/html"}, JSON, '{\n  "kind": "Status",'),
    ("a table: indented JSON", "/a", {"Accept": f"{JSON};as=Table;v=v1;g=meta.k8s.io"}, JSON, '{\n  "kind": "Status",'),
    ("a person: indented JSON", "/a", {"User-Agent": "curl/8"}, JSON, '{\n  "kind": "Status",'),
    ("on request: indented JSON", "/a?pretty=1", {}, JSON, '{\n  "kind": "Status",'),
    ("a malformed target", "/%zz?pretty=1", {}, JSON, '{\n  "kind": "Status",'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "headers", "content_type", "start"), [row[1:] for row in FORMATS], ids=[row[0] for row in FORMATS]
)
def test_an_error_as(target: str, headers: dict[str, str], content_type: str, start: str) -> None:
    answer = error_answer(NOT_FOUND, received("GET", target, headers))
    assert isinstance(answer.body, bytes)
    assert (answer.status, answer.content_type) == (404, content_type)
    assert answer.body.decode("latin-1").startswith(start)
    assert ("Cache-Control", "no-cache, private") in answer.headers


def test_an_error_that_upstream_writes_as_text() -> None:
    error = ApiError(429, "slow down", text="slow down\n")
    error.retry_after = 1
    assert error_answer(error, received("GET", "/a")) == text_answer("slow down\n", 429, (("Retry-After", "1"),))


def test_an_error_says_when_to_try_again() -> None:
    answer = error_answer(errors.timeout("late", 7), received("GET", "/a"))
    assert ("Retry-After", "7") in answer.headers


def test_a_deadline_that_has_passed_is_answered_in_upstreams_form() -> None:
    error = too_late()
    assert error.code == 504
    assert json.loads(error.text or "") == {
        "metadata": {}, "status": "Failure", "reason": "Timeout", "details": {}, "code": 504,
        "message": "Timeout: request did not complete within the allotted timeout",
    }  # fmt: skip


# -- answers that are written at once ---------------------------------------------------------------------------------

WHOLE: list[tuple[str, str, str, bool]] = [
    ("an object", "GET /api/v1/namespaces/default HTTP/1.1", "", True),
    ("a short list", "GET /api/v1/namespaces HTTP/1.1", "Accept: application/yaml", True),
    ("an error", "GET /api/v1/namespaces/absent HTTP/1.1", "", True),
    ("plain text", "GET /livez/ping HTTP/1.1", "", True),
    ("the client's Audit-Id", "GET /livez/ping HTTP/1.1", "Audit-Id: mine", True),
    ("an Audit-Id in another script", "GET /livez/ping HTTP/1.1", "Audit-Id: \u00fc", False),
    ("only the head", "HEAD /livez/ping HTTP/1.1", "", False),
    ("HTTP/1.0", "GET /livez/ping HTTP/1.0", "", False),
    ("HTTP/1.0 that stays", "GET /livez/ping HTTP/1.0", "Connection: keep-alive", False),
    ("the last request", "GET /livez/ping HTTP/1.1", "Connection: close", False),
    ("no body", "OPTIONS * HTTP/1.1", "", False),
    ("a warning", "POST /api/v1/namespaces/default/configmaps?dryRun=All HTTP/1.1", "", False),
]
_LAST: Final = b"GET /livez/ping HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n"
_UNKNOWN: Final = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"unknown":1}'


def conversation(served: Client, line: str, header: str) -> bytes:
    """What a connection receives for a request and the one that ends it; the date and new ids are left out."""
    place = served.connect()
    place.close()
    body = _UNKNOWN if line.startswith("POST") else b""
    head = f"{line}\r\nHost: {place.host}:{place.port}\r\nContent-Length: {len(body)}\r\nContent-Type: application/json\r\n"
    text = f"{head}{header}\r\n\r\n" if header else f"{head}\r\n"
    closes = header == "Connection: close" or (line.endswith("/1.0") and not header)
    received = b""
    with socket.create_connection((place.host, place.port)) as connection:
        connection.sendall(text.encode() + body + (b"" if closes else _LAST % place.host.encode()))
        while part := connection.recv(65536):
            received += part
    received = re.sub(rb"Date: [^\r]*", b"Date: now", received)
    return re.sub(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", b"an-id", received)


@pytest.mark.parametrize(("line", "header", "at_once"), [row[1:] for row in WHOLE], ids=[row[0] for row in WHOLE])
def test_an_answer_that_is_written_at_once_is_like_any_other(
    served: Client, monkeypatch: pytest.MonkeyPatch, line: str, header: str, at_once: bool
) -> None:
    written: list[bool] = []
    send, send_any = app.send, sending.send

    def noted(*given: Any) -> Any:
        written.append(True)
        return send(*given)

    def noted_any(*given: Any) -> Any:
        written[-1] = False
        return send_any(*given)

    monkeypatch.setattr(app, "send", noted)
    monkeypatch.setattr(sending, "send", noted_any)
    found = conversation(served, line, header)
    assert written[0] == at_once
    monkeypatch.setattr(sending, "usual_head", lambda *_: None)
    assert found == conversation(served, line, header)
    assert found.startswith(b"HTTP/1.")


HEADS: list[tuple[str, int, str, Any]] = [
    ("an answer without a body", 204, "text/plain", ()),
    ("no type", 200, "", ()),
    ("a header of the connection", 200, "text/plain", (("Connection", "close"),)),
    ("a header that every answer has", 200, "text/plain", (("date", "now"),)),
    ("a line end in a header", 200, "text/plain", (("A", "b\r\nC: d"),)),
    ("a line end in the type", 200, "text/plain\n", ()),
    ("another script", 200, "text/plain", (("A", "\u00fc"),)),
]


@pytest.mark.parametrize(("status", "kind", "headers"), [row[1:] for row in HEADS], ids=[row[0] for row in HEADS])
def test_an_unusual_head_is_not_kept(status: int, kind: str, headers: Any) -> None:
    assert sending.usual_head(status, kind, headers) is None
    assert sending.usual_head(200, "text/plain", (("A", "b"),)) is not None


# -- HTTP/1.0, which has no chunks


async def test_a_body_in_chunks_ends_with_the_connection_of_an_old_client() -> None:
    connection, wire = connected()
    request = received(version=HttpVersion10, headers={"Connection": "keep-alive"}, connection=connection)
    waits = app.send(Exchange(request, NO_BACKEND, "the-id", 0.0), Answer(chunks()), Unsent())
    assert waits is not None
    await waits
    head, _, body = wire.sent.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 200 OK\r\n")
    assert b"Transfer-Encoding" not in head
    assert b"keep-alive" not in head
    assert (body, request.keep_alive) == (b"[1,2]", False)
    connection.connection_lost(None)
