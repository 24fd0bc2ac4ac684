"""Connections that are used in bad faith: slow, endless, too many, smuggled (hazards R12, S5, S10, S20, S21)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from apiserver.http import app, body, connection, filters
from apiserver.testing.handle import Noxu
from tests.hostile.wire import Target, hear, status_of

MAPS = "/api/v1/namespaces/default/configmaps"
MAP = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a"}}).encode()
HOST = b"Host: 127.0.0.1\r\n"


@pytest.fixture
def target(noxu: Noxu) -> Target:
    return Target(noxu.url)


def seconds_until_closed(connection: socket.socket) -> float:
    began = time.monotonic()
    connection.settimeout(10)
    with contextlib.suppress(ConnectionError):
        while connection.recv(65536):
            pass
    return time.monotonic() - began


# -- slow (R12). The deadlines are upstream's; here they are shortened, and none may come before its time


def test_the_deadlines_are_upstreams() -> None:
    assert (connection.HEAD_DEADLINE, connection.IDLE_DEADLINE) == (32, 90)
    assert (body.BODY_DEADLINE, app.REQUEST_DEADLINE) == (60, 60)


HALF = {
    "nothing": b"",
    "half a line": b"GET /version HT",
    "half a head": b"GET /version HTTP/1.1\r\n" + HOST,
    "half a header": b"GET /version HTTP/1.1\r\n" + HOST + b"Accept: ",
}


@pytest.mark.parametrize("sent", HALF)
def test_half_a_head_is_waited_for_so_long_and_no_longer(
    noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch, sent: str
) -> None:
    monkeypatch.setattr(connection, "HEAD_DEADLINE", 0.4)
    with target.connect() as peer:
        peer.sendall(HALF[sent])
        assert 0.3 < seconds_until_closed(peer) < 5


def drip(peer: socket.socket) -> None:
    """One header after the other, for ten seconds."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        peer.sendall(b"A: b\r\n")
        time.sleep(0.02)


def test_dripping_does_not_put_off_the_deadline(noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_DEADLINE", 0.5)
    with target.connect() as peer:
        peer.sendall(b"GET /version HTTP/1.1\r\n" + HOST)
        began = time.monotonic()
        with pytest.raises(ConnectionError):
            drip(peer)
        assert time.monotonic() - began < 5


def test_the_head_of_a_later_request_has_a_deadline_of_its_own(
    noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    with target.connect() as peer:
        peer.sendall(b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n")
        assert status_of(hear(peer)) == 200
        monkeypatch.setattr(connection, "HEAD_DEADLINE", 0.4)
        peer.sendall(b"GET /livez")
        assert 0.3 < seconds_until_closed(peer) < 5


def test_hundreds_of_half_heads_are_all_closed_and_others_served_meanwhile(
    noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_DEADLINE", 1.0)
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(target.connect()) for _ in range(300)]
        for peer in peers:
            peer.sendall(b"GET /version HTTP/1.1\r\n" + HOST)
        assert target.ask("GET", "/version").status == 200
        assert all(seconds_until_closed(peer) < 5 for peer in peers)


@pytest.mark.parametrize("head", [b"Content-Length: 100\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_a_body_is_waited_for_so_long_and_no_longer(
    noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    monkeypatch.setattr(body, "BODY_DEADLINE", 0.4)
    with target.connect() as peer:
        peer.sendall(b"POST " + MAPS.encode() + b" HTTP/1.1\r\n" + HOST + head + b"\r\n")
        began = time.monotonic()
        answer = hear(peer, silence=5)
    assert 0.3 < time.monotonic() - began < 5
    assert status_of(answer) == 504
    assert b'"message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout"' in answer


def test_whoever_is_idle_is_let_go(noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "IDLE_DEADLINE", 0.4)
    with target.connect() as peer:
        peer.sendall(b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n")
        assert status_of(hear(peer, silence=0.05)) == 200
        assert seconds_until_closed(peer) < 5


# -- large heads (S5)


@pytest.mark.parametrize(
    ("size", "status"), [(1024 * 1024 - 200, 200), (1024 * 1024 + 5000, 431)], ids=["a megabyte", "more"]
)
@pytest.mark.parametrize("lines", [1, 100], ids=["in one line", "in many"])
def test_a_head_may_be_a_megabyte(target: Target, size: int, status: int, lines: int) -> None:
    each = b"A: " + b"a" * (size // lines - 5) + b"\r\n"
    assert status_of(target.say(b"GET /version HTTP/1.1\r\n" + HOST + each * lines + b"\r\n")) == status


def test_what_comes_behind_a_watch_is_limited_as_well(target: Target) -> None:
    """A head that nobody waits for yet must not fill the memory."""
    with target.connect() as peer:
        peer.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\n".encode() + HOST + b"\r\n")
        assert status_of(hear(peer)) == 200
        peer.sendall(b"GET /version HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            peer.sendall((b"B: " + b"b" * 65536 + b"\r\n") * 1000)


def test_thousands_of_headers_are_fine(target: Target) -> None:
    many = b"".join(b"A%d: b\r\n" % n for n in range(3000))
    assert status_of(target.say(b"GET /version HTTP/1.1\r\n" + HOST + many + b"\r\n")) == 200


def test_a_long_selector_is_fine(target: Target) -> None:
    selector = ",".join(f"label{n}!=value{n}" for n in range(3000)).replace("=", "%3D")
    assert target.ask("GET", f"{MAPS}?labelSelector={selector}").status == 200


# -- too many at once (S5): upstream's filter, its limits and its answer


def test_the_limits_are_upstreams() -> None:
    assert (filters.MAX_IN_FLIGHT, filters.MAX_MUTATING_IN_FLIGHT) == (400, 200)


@contextlib.contextmanager
def busy(target: Target, count: int, request: bytes) -> Iterator[None]:
    """So many requests under way: their bodies do not come."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(target.connect()).sendall(request)
        time.sleep(0.3)
        yield


SLOW_WRITE = f"POST {MAPS} HTTP/1.1\r\nContent-Length: 9\r\n".encode() + HOST + b"\r\n"


def test_beyond_the_limit_of_writes_others_are_told_to_try_again(target: Target) -> None:
    with busy(target, filters.MAX_MUTATING_IN_FLIGHT, SLOW_WRITE):
        refused = target.ask("POST", MAPS, MAP)
        assert refused.status == 429
        assert refused.body == b"Too many requests, please try again later.\n"
        assert refused.headers["Retry-After"] == "1"
        assert refused.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert refused.headers["X-Content-Type-Options"] == "nosniff"
        assert target.ask("GET", MAPS).status == 200  # reads have their own limit
        with target.connect() as watch:
            watch.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\n".encode() + HOST + b"\r\n")
            assert status_of(hear(watch)) == 200
    deadline = time.monotonic() + 5
    while (answer := target.ask("POST", MAPS, MAP)).status == 429 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert answer.status == 201


def test_beyond_the_limit_of_reads_the_health_checks_still_answer(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    async def slow(call: object) -> None:
        await asyncio.to_thread(release.wait, 10)
        raise app.errors.page_not_found()

    monkeypatch.setattr(app, "handler_of", lambda *_: slow)
    gate = filters.InFlight(limit=2)
    monkeypatch.setattr(filters.InFlight, "request", lambda _, verb, request=gate.request: request(verb))
    read = f"GET {MAPS}/a HTTP/1.1\r\n".encode() + HOST + b"\r\n"
    with busy(target, 2, read):
        assert target.ask("GET", "/version").status == 429
        assert target.ask("GET", "/livez").status == 200
        release.set()


# -- smuggling (S10): what two parsers might read in two ways is refused, and nothing of it is done

CREATE = f"POST {MAPS} HTTP/1.1\r\n".encode() + HOST
BODY = MAP
CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)

SMUGGLED = {
    "a length and chunks": CREATE + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED,
    "chunks and a length": CREATE + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + CHUNKED,
    "two lengths": CREATE + b"Content-Length: %d\r\nContent-Length: 0\r\n\r\n" % len(BODY) + BODY,
    "two lengths in one": CREATE + b"Content-Length: %d, 0\r\n\r\n" % len(BODY) + BODY,
    "a signed length": CREATE + b"Content-Length: +%d\r\n\r\n" % len(BODY) + BODY,
    "a negative length": CREATE + b"Content-Length: -1\r\n\r\n" + BODY,
    "a hexadecimal length": CREATE + b"Content-Length: 0x%x\r\n\r\n" % len(BODY) + BODY,
    "an empty length": CREATE + b"Content-Length: \r\n\r\n" + BODY,
    "a length beyond all numbers": CREATE + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n" + BODY,
    "digits of another script": CREATE + "Content-Length: \u0661\r\n\r\n".encode() + BODY,
    "chunks twice": CREATE + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + CHUNKED,
    "chunks not at the end": CREATE + b"Transfer-Encoding: chunked, identity\r\n\r\n" + CHUNKED,
    "another encoding": CREATE + b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKED,
    "a space before the colon": CREATE + b"Transfer-Encoding : chunked\r\n\r\n" + CHUNKED,
    "a tab before the colon": CREATE + b"Content-Length\t: 4\r\n\r\n" + BODY,
    "a folded header": CREATE + b"X: a\r\n Transfer-Encoding: chunked\r\n\r\n" + CHUNKED,
    "a header without a colon": CREATE + b"Content-Length 4\r\n\r\n" + BODY,
    "a header without a name": CREATE + b": 4\r\n\r\n",
    "a null in a header": CREATE + b"A: b\x00c\r\n\r\n",
    "a bare carriage return": CREATE + b"A: b\rContent-Length: 0\r\n\r\n",
    "lines that end in LF": CREATE.replace(b"\r\n", b"\n") + b"Content-Length: %d\n\n" % len(BODY) + BODY,
    "a chunk size that is none": CREATE + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a signed chunk size": CREATE + b"Transfer-Encoding: chunked\r\n\r\n+%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n",
    "a chunk longer than its size": CREATE + b"Transfer-Encoding: chunked\r\n\r\n4\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a chunk size ended by LF": CREATE + b"Transfer-Encoding: chunked\r\n\r\n%x\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n",
    "a chunk size beyond all numbers": CREATE + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 20 + b"\r\n" + BODY,
    "no host": CREATE.replace(HOST, b"") + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    "two hosts": CREATE + HOST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    "no version": f"POST {MAPS}\r\n".encode() + HOST + b"\r\n",
    "a version beyond ours": CREATE.replace(b"HTTP/1.1", b"HTTP/3.7") + b"Content-Length: 0\r\n\r\n",
    "no protocol": CREATE.replace(b"HTTP/1.1", b"FTP/1.1") + b"Content-Length: 0\r\n\r\n",
    "a space in the path": CREATE.replace(MAPS.encode(), MAPS.encode() + b" /x") + b"Content-Length: 0\r\n\r\n",
    "a method that is none": CREATE.replace(b"POST", b"PO ST") + b"Content-Length: 0\r\n\r\n",
    "a space before the method": b" " + CREATE + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    "HTTP/2, unasked": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),
}  # fmt: skip


@pytest.mark.parametrize("how", SMUGGLED)
def test_a_request_that_can_be_read_in_two_ways_is_refused(noxu_session: Noxu, how: str) -> None:
    target = Target(noxu_session.url)
    before = len(target.ask("GET", MAPS).json["items"])
    answer = target.say(SMUGGLED[how])
    assert status_of(answer) == 400, answer[:300]
    assert answer.count(b" 400 Bad Request") == 1
    assert len(target.ask("GET", MAPS).json["items"]) == before


def test_what_is_refused_closes_the_connection(noxu_session: Noxu) -> None:
    """What comes behind a request that was not understood is not read as another one."""
    target = Target(noxu_session.url)
    answer = target.say(SMUGGLED["two lengths"] + CREATE + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
    assert answer.count(b" 400 Bad Request") == 1


def test_pipelined_requests_are_answered_in_order(noxu_session: Noxu) -> None:
    asked = [b"/version", b"/livez", b"/api/v1/namespaces/default/configmaps/none", b"/livez"]
    answer = Target(noxu_session.url).say(b"".join(b"GET %b HTTP/1.1\r\n" % path + HOST + b"\r\n" for path in asked))
    assert [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]] == [200, 200, 404, 200]


# -- browsers (S21)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "127.0.0.1:{port}"}, 200),
        ({"Host": "localhost:{port}"}, 200),
        ({"Host": "[::1]:{port}"}, 200),
        ({"Host": "noxu.localhost"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:{port}"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "localhost.evil.example:{port}"}, 403),
        ({"Host": "192.168.0.1:{port}"}, 403),
        ({"Host": "127.0.0.1:{port}", "Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Host": "127.0.0.1:{port}", "Origin": "http://evil.example"}, 403),
        ({"Host": "127.0.0.1:{port}", "Origin": "http://127.0.0.1:1"}, 403),
        ({"Host": "127.0.0.1:{port}", "Origin": "null"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["/version", "/api/v1/namespaces", "/openapi/v2", "/livez", "/nothing"])
def test_web_pages_of_others_reach_nothing(noxu_session: Noxu, headers: dict[str, str], status: int, path: str) -> None:
    target = Target(noxu_session.url)
    given = {name: value.format(port=target.port) for name, value in headers.items()}
    answer = target.ask("GET", path, headers=given)
    assert (answer.status == 403) == (status == 403)
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_page_cannot_ask_what_it_may_do(noxu_session: Noxu) -> None:
    """No answer to a preflight allows anything."""
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "DELETE"}
    answer = Target(noxu_session.url).ask("OPTIONS", MAPS, headers=headers)
    assert answer.status == 403
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]
