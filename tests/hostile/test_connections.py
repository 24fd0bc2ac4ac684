"""Malicious connections: slow, endless, too many, smuggling requests (hazards R12, S5, S10, S20, S21)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from noxu import config
from noxu.api import errors
from noxu.http import app, connection, filters
from noxu.http.clients import Unsent
from noxu.http.limits import DEFAULT_LIMITS, Limits
from noxu.testing.handle import Noxu
from tests.hostile.raw_http import (
    Reply,
    Target,
    custom_resource,
    definition,
    path_of,
    receive,
    receive_head,
    set_limits,
    split_answers,
    status_of,
)
from tests.timing import HANGS_AFTER, eventually

pytestmark = pytest.mark.slow(every=30)

MAPS = "/api/v1/namespaces/default/configmaps"
MAP = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a"}}).encode()
HOST = b"Host: 127.0.0.1\r\n"


@pytest.fixture(params=["http", "https"])
def noxu(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Noxu]:
    with Noxu(tmp_path, tls=request.param == "https") as server:
        yield server


@pytest.fixture
def target(noxu: Noxu) -> Target:
    return Target.by_client(noxu)


# -- slow clients (R12). The tests shorten upstream's deadlines and check that no connection is closed early. A busy
# machine may close it late, so the upper bound is UNSHORTENED: reaching it means that the short deadline is not used.

UNSHORTENED = 30.0  # seconds: less than any of upstream's deadlines


def seconds_until_closed(connection: socket.socket) -> float:
    began = time.monotonic()
    receive(connection)
    return time.monotonic() - began


def test_the_deadlines_are_upstreams() -> None:
    assert (DEFAULT_LIMITS.head_deadline, DEFAULT_LIMITS.idle_deadline) == (32, 90)
    assert (DEFAULT_LIMITS.body_deadline, config.REQUEST_TIMEOUT) == (60, 60)


HALF = {
    "nothing": b"",
    "half a line": b"GET /version HT",
    "half a head": b"GET /version HTTP/1.1\r\n" + HOST,
    "half a header": b"GET /version HTTP/1.1\r\n" + HOST + b"Accept: ",
}


@pytest.mark.parametrize("sent", HALF)
def test_a_head_has_to_be_complete_before_its_deadline(
    noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch, sent: str
) -> None:
    set_limits(monkeypatch, noxu, head_deadline=0.4)
    with target.connect() as peer:
        peer.sendall(HALF[sent])
        assert 0.3 < seconds_until_closed(peer) < UNSHORTENED


def drip(peer: socket.socket) -> None:
    """Send one header after another, until the server closes the connection."""
    end = time.monotonic() + UNSHORTENED
    while time.monotonic() < end:
        peer.sendall(b"A: b\r\n")
        time.sleep(0.02)


def test_sending_a_head_slowly_does_not_postpone_the_deadline(
    noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(monkeypatch, noxu, head_deadline=0.5)
    with target.connect() as peer:
        peer.sendall(b"GET /version HTTP/1.1\r\n" + HOST)
        with pytest.raises((ConnectionError, ssl.SSLEOFError)):
            drip(peer)


async def turns() -> None:
    """Some turns of the server's loop: it waits for the next request when it has finished with the one before."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_the_head_of_a_later_request_has_a_deadline_of_its_own(
    noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    with target.connect() as peer:
        peer.sendall(b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n")
        assert status_of(receive(peer, answers=1)) == 200
        asyncio.run_coroutine_threadsafe(turns(), noxu._loop).result()
        set_limits(monkeypatch, noxu, head_deadline=0.4)
        peer.sendall(b"GET /livez")
        assert 0.3 < seconds_until_closed(peer) < UNSHORTENED


def test_hundreds_of_incomplete_heads_do_not_block_others(
    noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(monkeypatch, noxu, head_deadline=1.0)
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(target.connect()) for _ in range(300)]
        for peer in peers:
            with contextlib.suppress(ConnectionError):  # its deadline has come already
                peer.sendall(b"GET /version HTTP/1.1\r\n" + HOST)
        assert target.send("GET", "/version").status == 200
        assert all(seconds_until_closed(peer) < UNSHORTENED for peer in peers)


@pytest.mark.parametrize("head", [b"Content-Length: 100\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_a_body_has_to_arrive_before_its_deadline(
    noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    set_limits(monkeypatch, noxu, body_deadline=0.4)
    with target.connect() as peer:
        peer.sendall(b"POST " + MAPS.encode() + b" HTTP/1.1\r\n" + HOST + head + b"\r\n")
        began = time.monotonic()
        answer = receive(peer, answers=1)
    assert 0.3 < time.monotonic() - began < UNSHORTENED
    assert status_of(answer) == 504
    assert b'"message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout"' in answer


def test_an_idle_connection_is_closed(noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, noxu, idle_deadline=0.4)
    with target.connect() as peer:
        peer.sendall(b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n")
        assert status_of(receive(peer, answers=1)) == 200
        assert seconds_until_closed(peer) < UNSHORTENED


# -- clients that do not read their answers (S5)

DROPS = path_of("drops")
LARGE = custom_resource("Drop", "large", {"text": "x" * 1_000_000})
MEDIUM = custom_resource("Drop", "medium", {"text": "x" * 75_000})
GET_LARGE = f"GET {DROPS}/large HTTP/1.1\r\n".encode() + HOST + b"\r\n"
LIST_LARGE = f"GET {DROPS}?pretty=1 HTTP/1.1\r\n".encode() + HOST + b"\r\n"
PIPELINED = (f"GET {MAPS} HTTP/1.1\r\n".encode() + HOST + b"\r\n") * 20_000


@contextlib.contextmanager
def not_reading(target: Target, request: bytes) -> Iterator[socket.socket]:
    """A client that sends a request, reads the start of the answer, and then nothing."""
    with target.connect(receive_buffer=4096) as peer:
        with contextlib.suppress(ConnectionError):  # of many requests the server reads only the first
            send_some(peer, request)
        assert peer.recv(12) in (b"HTTP/1.0 200", b"HTTP/1.1 200")
        yield peer


def send_some(peer: socket.socket, data: bytes) -> None:
    """Send as much as the server takes at once."""
    peer.setblocking(False)
    with contextlib.suppress(BlockingIOError, ssl.SSLWantWriteError):
        while data:
            data = data[peer.send(data) :]
    peer.settimeout(HANGS_AFTER)


def is_reset(peer: socket.socket) -> bool:
    """Whether the server has disconnected the client, without reading from the connection."""
    poll = select.poll()
    poll.register(peer, select.POLLHUP)
    return bool(poll.poll(0))


STALLING = {
    "an object": GET_LARGE,
    "the last piece of an object": GET_LARGE.replace(b"large", b"medium"),
    "a list": LIST_LARGE,
    "many small answers": PIPELINED,
    "an answer before the end of the connection": GET_LARGE.replace(b"HTTP/1.1", b"HTTP/1.0"),
}


@pytest.mark.parametrize("request_", STALLING.values(), ids=STALLING)
def test_a_client_that_does_not_read_its_answer_is_disconnected(
    noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch, request_: bytes
) -> None:
    noxu.apply(definition("drops"), LARGE, MEDIUM)
    set_limits(monkeypatch, noxu, send_deadline=0.2)
    with not_reading(target, request_) as peer:
        eventually(lambda: is_reset(peer))


def test_a_client_that_reads_slowly_gets_its_whole_answer(
    noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time that the deadline passes the client has read something."""
    noxu.apply(definition("drops"), LARGE)
    passed: list[int] = []
    deadline_passed = connection.Connection._send_deadline_passed

    def recorded(self: connection.Connection) -> None:
        if self.unsent_bytes() < self._unsent_before:
            passed.append(self.unsent_bytes())
            deadline_passed(self)
        else:  # not yet: on a busy machine the client has had no turn
            self._start_send_timer()

    monkeypatch.setattr(connection.Connection, "_send_deadline_passed", recorded)
    set_limits(monkeypatch, noxu, send_deadline=0.001)
    with not_reading(target, GET_LARGE) as peer:
        received = 0
        while received < 1_000_000:
            received += len(peer.recv(16_384))
            if not passed:
                time.sleep(0.005)  # slower than the deadline
    assert passed


def test_answers_share_the_bytes_of_an_object(noxu: Noxu, target: Target) -> None:
    noxu.apply(definition("drops"), LARGE)
    unsent = noxu._server.app.unsent
    with not_reading(target, GET_LARGE), not_reading(target, GET_LARGE), not_reading(target, GET_LARGE):
        eventually(lambda: len(unsent._held) == 3)
        assert 1_000_000 < unsent.total < 1_001_000
    eventually(lambda: unsent.total == 0)


def test_clients_that_do_not_read_do_not_keep_others_out(
    noxu: Noxu, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They occupy all places until another client is refused; it can try again."""
    noxu.apply(definition("drops"), LARGE)
    monkeypatch.setattr(noxu._server.clients.unsent, "limits", Limits(min_stalled=0.0))
    in_flight = next(each for each in noxu._server.app.filters if isinstance(each, filters.InFlight))
    for limit in (in_flight.reading, in_flight.mutating):
        monkeypatch.setattr(limit, "maximum", 2)
    with not_reading(target, GET_LARGE) as first, not_reading(target, GET_LARGE) as second:
        eventually(lambda: len(noxu._server.app.unsent._stalled) == 2)
        assert target.send("GET", MAPS).status == 429
        eventually(lambda: target.send("GET", MAPS).status == 200)
        assert is_reset(first)
        assert not is_reset(second)


# -- large heads (S5)


@pytest.mark.parametrize(
    ("size", "status"), [(1024 * 1024 - 200, 200), (1024 * 1024 + 5000, 431)], ids=["a megabyte", "more"]
)
@pytest.mark.parametrize("lines", [1, 100], ids=["in one line", "in many"])
def test_a_head_may_be_a_megabyte(target: Target, size: int, status: int, lines: int) -> None:
    each = b"A: " + b"a" * (size // lines - 5) + b"\r\n"
    head = b"GET /version HTTP/1.1\r\n" + HOST + each * lines + b"\r\n"
    assert status_of(target.send_raw(head, answers=1)) == status


def test_the_size_of_a_head_that_follows_a_watch_is_limited(target: Target) -> None:
    """The server does not read the next request before the watch ends; what is buffered until then must be bounded."""
    with target.connect() as peer:
        peer.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\n".encode() + HOST + b"\r\n")
        assert status_of(receive_head(peer)) == 200
        peer.sendall(b"GET /version HTTP/1.1\r\n")
        with pytest.raises((ConnectionError, ssl.SSLEOFError)):
            peer.sendall((b"B: " + b"b" * 65536 + b"\r\n") * 1000)


def test_thousands_of_headers_are_accepted(target: Target) -> None:
    many = b"".join(b"A%d: b\r\n" % n for n in range(3000))
    assert status_of(target.send_raw(b"GET /version HTTP/1.1\r\n" + HOST + many + b"\r\n", answers=1)) == 200


def test_a_long_selector_is_accepted(target: Target) -> None:
    selector = ",".join(f"label{n}!=value{n}" for n in range(3000)).replace("=", "%3D")
    assert target.send("GET", f"{MAPS}?labelSelector={selector}").status == 200


# -- too many concurrent requests (S5): upstream's filter, its limits and its answer


def test_the_limits_are_upstreams() -> None:
    assert (config.MAX_IN_FLIGHT, config.MAX_MUTATING_IN_FLIGHT) == (400, 200)


@contextlib.contextmanager
def in_flight(target: Target, count: int, request: bytes) -> Iterator[None]:
    """Send `count` requests that do not end."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(target.connect()).sendall(request)
        yield


ENDLESS_WRITE = f"POST {MAPS} HTTP/1.1\r\nContent-Length: 9\r\n".encode() + HOST + b"\r\n"  # its body never arrives


def test_writes_beyond_the_limit_are_refused_and_may_be_retried(target: Target) -> None:
    def refused() -> Reply | None:
        answer = target.send("POST", MAPS, MAP)
        return answer if answer.status == 429 else None

    with in_flight(target, config.MAX_MUTATING_IN_FLIGHT, ENDLESS_WRITE):
        answer = eventually(refused)
        assert answer is not None
        assert answer.body == b"Too many requests, please try again later.\n"
        assert answer.headers["Retry-After"] == "1"
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert target.send("GET", MAPS).status == 200  # reads have their own limit
        with target.connect() as watch:
            watch.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\n".encode() + HOST + b"\r\n")
            assert status_of(receive_head(watch)) == 200
    eventually(lambda: target.send("POST", MAPS, MAP).status == 201)


def test_health_checks_are_answered_beyond_the_limit_of_reads(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    async def slow(call: object) -> None:
        await asyncio.to_thread(release.wait, 10)
        raise errors.page_not_found()

    monkeypatch.setattr(app, "handler_of", lambda *_: slow)
    enter = filters.InFlight(Unsent(), limit=2).enter
    monkeypatch.setattr(filters.InFlight, "enter", lambda _, exchange: enter(exchange))
    read = f"GET {MAPS}/a HTTP/1.1\r\n".encode() + HOST + b"\r\n"
    with in_flight(target, 2, read):
        try:
            eventually(lambda: target.send("GET", "/version").status == 429)
            assert target.send("GET", "/livez").status == 200
        finally:
            release.set()


# -- smuggling (S10): a request that two parsers may understand differently is refused, and has no effect

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
    "Arabic digits": CREATE + "Content-Length: \u0661\r\n\r\n".encode() + BODY,
    "chunks twice": CREATE + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + CHUNKED,
    "chunks not at the end": CREATE + b"Transfer-Encoding: chunked, identity\r\n\r\n" + CHUNKED,
    "two encodings in two headers": CREATE + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED,
    "another encoding": CREATE + b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKED,
    "a space before the colon": CREATE + b"Transfer-Encoding : chunked\r\n\r\n" + CHUNKED,
    "a tab before the colon": CREATE + b"Content-Length\t: 4\r\n\r\n" + BODY,
    "a folded header": CREATE + b"X: a\r\n Transfer-Encoding: chunked\r\n\r\n" + CHUNKED,
    "a header without a colon": CREATE + b"Content-Length 4\r\n\r\n" + BODY,
    "a header without a name": CREATE + b": 4\r\n\r\n",
    "a null in a header": CREATE + b"A: b\x00c\r\n\r\n",
    "a bare carriage return": CREATE + b"A: b\rContent-Length: 0\r\n\r\n",
    "lines that end in LF": CREATE.replace(b"\r\n", b"\n") + b"Content-Length: %d\n\n" % len(BODY) + BODY,
    "a chunk size that is no number": CREATE + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a signed chunk size": CREATE + b"Transfer-Encoding: chunked\r\n\r\n+%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n",
    "a chunk longer than its size": CREATE + b"Transfer-Encoding: chunked\r\n\r\n4\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a chunk size ended by LF": CREATE + b"Transfer-Encoding: chunked\r\n\r\n%x\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n",
    "a chunk size beyond all numbers": CREATE + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 20 + b"\r\n" + BODY,
    "no host": CREATE.replace(HOST, b"") + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    "two hosts": CREATE + HOST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    "no version": f"POST {MAPS}\r\n".encode() + HOST + b"\r\n",
    "an unknown version": CREATE.replace(b"HTTP/1.1", b"HTTP/1.7") + b"Content-Length: 0\r\n\r\n",
    "no protocol": CREATE.replace(b"HTTP/1.1", b"FTP/1.1") + b"Content-Length: 0\r\n\r\n",
    "a space in the path": CREATE.replace(MAPS.encode(), MAPS.encode() + b" /x") + b"Content-Length: 0\r\n\r\n",
    "an invalid method": CREATE.replace(b"POST", b"PO ST") + b"Content-Length: 0\r\n\r\n",
    "a space before the method": b" " + CREATE + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    "HTTP/2 without negotiation": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),
}  # fmt: skip


@pytest.mark.parametrize("how", SMUGGLED)
def test_an_ambiguous_request_is_refused(noxu_session: Noxu, how: str) -> None:
    target = Target(noxu_session.url)
    before = len(target.send("GET", MAPS).json["items"])
    answer = target.send_raw(SMUGGLED[how])
    assert status_of(answer) == 400, answer[:300]
    assert answer.count(b" 400 Bad Request") == 1
    assert len(target.send("GET", MAPS).json["items"]) == before


def test_a_refused_request_closes_the_connection(noxu_session: Noxu) -> None:
    """Bytes that follow an ambiguous request are not read as another request."""
    target = Target(noxu_session.url)
    answer = target.send_raw(SMUGGLED["two lengths"] + CREATE + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
    assert answer.count(b" 400 Bad Request") == 1


LENGTH = b"Content-Length: %d\r\n" % len(BODY)
UNSUPPORTED: list[tuple[str, bytes, int]] = [
    ("packed chunks", CREATE + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKED, 501),
    ("chunks in HTTP/1.0", CREATE.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKED, 400),
    ("HTTP/2.0 in the request line", CREATE.replace(b"1.1", b"2.0") + LENGTH + b"\r\n" + BODY, 505),
    ("HTTP/0.9 in the request line", CREATE.replace(b"1.1", b"0.9") + LENGTH + b"\r\n" + BODY, 400),
    ("HTTP/3.7 in the request line", CREATE.replace(b"1.1", b"3.7") + LENGTH + b"\r\n" + BODY, 505),
    ("a version in the path, too", b"GET /HTTP/3.7 HTTP/1.2\r\n" + HOST + b"\r\n", 400),
    ("a longer version", CREATE.replace(b"1.1", b"10.1") + LENGTH + b"\r\n" + BODY, 400),
    ("an unknown expectation", CREATE + LENGTH + b"Expect: x\r\n\r\n" + BODY, 417),
    ("an expectation like a known one", CREATE + LENGTH + b"Expect: 100-continued\r\n\r\n" + BODY, 417),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "status"), [row[1:] for row in UNSUPPORTED], ids=[row[0] for row in UNSUPPORTED])
def test_what_the_server_does_not_support_is_refused(noxu_session: Noxu, request_: bytes, status: int) -> None:
    """As net/http does: the connection closes, so that what follows is not read as another request."""
    next_request = b"" if b"HTTP/1" not in request_ else b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n"
    target = Target(noxu_session.url)
    before = len(target.send("GET", MAPS).json["items"])
    received = target.send_raw(request_ + next_request)
    [answer] = split_answers(received)
    assert answer.status == status
    assert received.startswith(b"HTTP/1.1 "), "whatever the version of the request"
    assert answer.headers["Connection"] == "close"
    assert len(target.send("GET", MAPS).json["items"]) == before


@pytest.mark.parametrize("expect", [b"100-continue", b"100-Continue", b"x, 100-continue", b""])
def test_an_expectation_that_is_met(noxu_session: Noxu, expect: bytes) -> None:
    received = Target(noxu_session.url).send_raw(CREATE + LENGTH + b"Expect: " + expect + b"\r\n\r\n" + BODY, answers=1)
    assert status_of(received.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")) == 201


METHODS: list[tuple[str, bytes, int]] = [
    ("an unknown method", b"FOO %b" % MAPS.encode(), 405),
    ("a method in small letters", b"get %b" % MAPS.encode(), 405),
    ("a method that begins as another", b"PATCHED %b" % MAPS.encode(), 405),
    ("a long method", b"A" * 5000 + b" /version", 405),
    ("a method of signs", b"!#$%&'*+-.^_`|~ /version", 405),
    ("a method of WebDAV", b"PROPFIND /version", 405),
    ("an unknown method of a document", b"FOO /livez", 200),
    ("an unknown method of no path", b"FOO /nothing", 404),
    ("options of the server", b"OPTIONS *", 200),
    ("a tunnel to another host", b"CONNECT a:1", 403),
    ("a tunnel to this host", b"CONNECT 127.0.0.1:1", 404),
    ("a tunnel to a path", b"CONNECT /version", 405),
    ("a URL without a path", b"GET http://127.0.0.1", 404),
]  # fmt: skip


@pytest.mark.parametrize(("line", "status"), [row[1:] for row in METHODS], ids=[row[0] for row in METHODS])
def test_a_method_may_be_any_token(noxu_session: Noxu, line: bytes, status: int) -> None:
    received = Target(noxu_session.url).send_raw(line + b" HTTP/1.1\r\n" + HOST + b"\r\n", answers=1)
    assert status_of(received) == status, received


def test_the_connection_can_be_used_after_an_unknown_method(noxu_session: Noxu) -> None:
    with Target(noxu_session.url).connect() as peer:
        for line, status in (
            (b"FOO /version", 405),
            (b"GET /livez", 200),
            (b"BAR /version", 405),
            (b"BAR /livez", 200),
        ):
            peer.sendall(line + b" HTTP/1.1\r\n" + HOST)
            peer.sendall(b"Content-Length: 2\r\n\r\nhi")
            assert status_of(receive(peer, answers=1)) == status


def test_the_bytes_of_a_body_are_no_methods(noxu_session: Noxu) -> None:
    """A piece of a body that looks like the beginning of a request is not changed."""
    text = b'{"metadata":{"name":"foo"},"data":{"a":"'
    with Target(noxu_session.url).connect() as peer:
        peer.sendall(CREATE + b"Content-Length: %d\r\n\r\n" % (len(text) + 15))
        peer.sendall(text)
        time.sleep(0.1)  # so that the rest arrives by itself
        peer.sendall(b"FOO /livez " + b'"}}\n')
        [answer] = split_answers(receive(peer, answers=1))
        assert answer.json["data"] == {"a": "FOO /livez "}


def test_malformed_chunks_that_arrive_late_are_refused_at_once(noxu_session: Noxu) -> None:
    with Target(noxu_session.url).connect() as peer:
        peer.sendall(CREATE + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
        time.sleep(0.1)  # so that the handler waits for the rest
        peer.sendall(b"x\r\n")
        [answer] = split_answers(receive(peer))
        assert (answer.status, answer.headers["Connection"]) == (400, "close")


def test_a_body_that_is_too_large_closes_the_connection_and_says_so(noxu_session: Noxu) -> None:
    for head in (b"Content-Length: 4000000\r\n", b"Transfer-Encoding: chunked\r\n"):
        with Target(noxu_session.url).connect() as peer:
            peer.sendall(CREATE + head + b"\r\n")
            if b"chunked" in head:
                peer.sendall(b"3d0900\r\n" + b" " * 4_000_000)
            [answer] = split_answers(receive(peer))
            assert (answer.status, answer.headers["Connection"]) == (413, "close")


@pytest.mark.parametrize(
    "request_",
    [b"GET /version HTTP/1.1\r\n" + HOST + b"\r\n", b"GET /nothing HTTP/1.1\r\n" + HOST + b"\r\n", b"GET\r\n\r\n",
     b"GET %b?watch=1&timeoutSeconds=1 HTTP/1.1\r\n" % MAPS.encode() + HOST + b"\r\n"],
    ids=["a document", "no path", "no HTTP", "a watch"],
)  # fmt: skip
def test_an_answer_does_not_name_the_libraries_of_the_server(noxu_session: Noxu, request_: bytes) -> None:
    with Target(noxu_session.url).connect() as peer:
        peer.sendall(request_)
        head = receive_head(peer)
    assert b"\r\nServer: noxu\r\n" in head
    assert b"aiohttp" not in head


def test_pipelined_requests_are_answered_in_order(noxu_session: Noxu) -> None:
    paths = [b"/version", b"/livez", b"/api/v1/namespaces/default/configmaps/none", b"/livez"]
    requests = b"".join(b"GET %b HTTP/1.1\r\n" % path + HOST + b"\r\n" for path in paths)
    received = Target(noxu_session.url).send_raw(requests, answers=len(paths))
    assert [answer.status for answer in split_answers(received)] == [200, 200, 404, 200]


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
        ({"Host": "127.0.0.1:{port}", "Origin": "http://127.0.0.1:8001"}, 403),
        ({"Host": "127.0.0.1:{port}", "Origin": "http://localhost:{port}"}, 403),
        ({"Host": "127.0.0.1:{port}", "Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Host": "127.0.0.1:{port}", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Host": "127.0.0.1:{port}", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "127.0.0.1:{port}", "Sec-Fetch-Site": "none"}, 200),
        ({"Host": "[::1]evil.com"}, 403),
        ({"Host": "[::1].localhost"}, 403),
        ({"Host": "evil.com:80.localhost"}, 403),
        ({"Host": "127.0.0.1:{port}", "Origin": "null"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["/version", "/api/v1/namespaces", "/openapi/v2", "/livez", "/nothing"])
def test_web_pages_of_other_origins_are_refused(
    noxu_session: Noxu, headers: dict[str, str], status: int, path: str
) -> None:
    target = Target(noxu_session.url)
    formatted = {name: value.format(port=target.port) for name, value in headers.items()}
    answer = target.send("GET", path, headers=formatted)
    assert (answer.status == 403) == (status == 403)
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_preflight_request_is_refused(noxu_session: Noxu) -> None:
    """The answer carries no Access-Control header."""
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "DELETE"}
    answer = Target(noxu_session.url).send("OPTIONS", MAPS, headers=headers)
    assert answer.status == 403
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


# -- bodies in chunks ---------------------------------------------------------------------------------------------------

CHUNKED = (
    b"POST "
    + MAPS.encode()
    + b" HTTP/1.1\r\n"
    + HOST
    + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)
ENDLESS = {
    "trailers": (b"2\r\n{}\r\n0\r\n", b"X: " + b"x" * 1_000 + b"\r\n"),
    "trailers of a body without content": (b"0\r\n", b"X: " + b"x" * 1_000 + b"\r\n"),
    "one trailer": (b"0\r\nX: ", b"x" * 1_000),
    "the extension of a chunk": (b"2;a=", b"x" * 1_000),
    "the extension of the last chunk": (b"2\r\n{}\r\n0;a=", b"x" * 1_000),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_the_framing_of_a_body_may_not_be_endless(noxu: Noxu, target: Target, what: str) -> None:
    begin, more = ENDLESS[what]
    with target.connect() as peer:
        peer.sendall(CHUNKED + begin)
        sent = 0
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while not select.select([peer], [], [], 0.001)[0]:
                peer.sendall(more)
                sent += len(more)
                assert sent < 8 * DEFAULT_LIMITS.trailer
            receive(peer)  # until it is closed


def test_trailers_and_extensions_of_chunks_are_ignored(target: Target) -> None:
    """As in Go: also as many as there are chunks."""
    chunks = b"".join(b"1;ext=%b\r\n%c\r\n" % (b"e" * 100, byte) for byte in MAP)
    sent = CHUNKED.replace(b"POST", b"POST", 1) + chunks + b"0\r\nX-Trailer: a\r\nX-Other: b\r\n\r\n"
    received = b""
    with target.connect() as peer:
        for start in range(0, len(sent), 2_000):
            peer.sendall(sent[start : start + 2_000])
        received = receive(peer, answers=1)
    assert status_of(received) == 201


def test_idle_connections_with_long_targets_are_closed_when_there_are_too_many(noxu: Noxu, target: Target) -> None:
    """The parser keeps the target of the last request, and there may be 12,000 connections."""
    incoming = noxu._server.clients.incoming
    incoming.limits = Limits(incoming=500_000)
    long, short = (b"GET /livez?%b HTTP/1.1\r\n%b\r\n" % (b"x" * size, HOST) for size in (200_000, 2))
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(target.connect()) for _ in range(3)]
        for peer in peers[:2]:
            peer.sendall(long)
            assert status_of(receive(peer, answers=1)) == 200
        eventually(lambda: 400_000 < incoming.total < 401_000)
        peers[1].sendall(short)
        assert status_of(receive(peers[1], answers=1)) == 200
        eventually(lambda: 200_000 < incoming.total < 201_000)
        for peer in peers[1:]:
            peer.sendall(long)
            assert status_of(receive(peer, answers=1)) == 200
        assert receive(peers[0]) == b""
        eventually(lambda: 400_000 < incoming.total < 401_000)
        for peer in peers[1:]:
            peer.sendall(short)
            assert status_of(receive(peer, answers=1)) == 200
    eventually(lambda: incoming.total == 0)
