"""Calls to webhooks, and to servers that only pretend to be some.

Each call ends at its timeout at the latest, and does not block the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import re
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from noxu.http import webhooks
from noxu.http.trace_context import TRACE_CONTEXT, TraceContext
from noxu.http.webhooks import WebhookClient
from noxu.webhook.client import BadAnswer, CallFailed, Service, WebhookEndpoint, WebhookReply, describe
from tests.optional import needs_program
from tests.timing import hang_guard, longest_block

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

needs_openssl = needs_program("openssl")


@pytest.fixture
async def client() -> AsyncIterator[WebhookClient]:
    caller = WebhookClient()
    yield caller
    await caller.close()


@contextlib.asynccontextmanager
async def serving(serve: Serve, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server that does this with each connection."""

    tasks: set[asyncio.Future[None]] = set()

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                await serve(reader, writer)
        finally:
            writer.transport.abort()

    def start(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(run(reader, writer)))

    server = await asyncio.start_server(start, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answering(text: bytes, seen: list[bytes] | None = None, *, once: bool = False) -> Serve:
    """Reads requests, or one request, and answers each with this text."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            if seen is not None:
                seen.append(head + body)
            writer.write(text)
            await writer.drain()
            if once:
                writer.close()
                await writer.wait_closed()
                return

    return serve


def http(body: bytes = b"{}", status: str = "200 OK", **headers: str) -> bytes:
    given = {"Content-Length": str(len(body)), "Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


async def failure(caller: WebhookClient, endpoint: WebhookEndpoint, **options: Any) -> str:
    with pytest.raises(CallFailed) as error:
        await caller(endpoint, b"{}", **{"timeout": 30, **options})
    return error.value.text


def plain(port: int, path: str = "/x") -> WebhookEndpoint:
    return WebhookEndpoint(f"http://127.0.0.1:{port}{path}")


# -- what is sent, and what comes back --------------------------------------------------------------------------------


async def test_a_thread_imports_aiohttps_client_for_the_first_call(
    client: WebhookClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    async def imported(name: str) -> None:
        names.append(name)

    monkeypatch.setattr(webhooks, "imported", imported)
    async with serving(answering(http())) as port:
        for _ in range(2):
            await client(plain(port), b"{}", timeout=27)
    assert names == ["aiohttp.client"]


@pytest.mark.parametrize("traceparent", ["", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"])
async def test_the_trace_of_a_request_goes_on_in_the_webhook(client: WebhookClient, traceparent: str) -> None:
    seen: list[bytes] = []
    async with serving(answering(http(), seen)) as port:
        TRACE_CONTEXT.set(TraceContext(traceparent) if traceparent else None)
        await client(plain(port), b"{}", timeout=27)
    [sent] = seen
    assert (b"traceparent" in sent.lower()) == bool(traceparent)
    assert traceparent.encode() in sent


async def test_a_client_that_was_not_needed_is_closed_at_once() -> None:
    await WebhookClient().close()


async def test_a_review_is_posted_as_upstream_does(client: WebhookClient) -> None:
    seen: list[bytes] = []
    async with serving(answering(http(b'{"a":1}'), seen=seen)) as port:
        reply = await client(plain(port), b'{"question":1}', timeout=27)
    assert reply == WebhookReply(200, "application/json", b'{"a":1}')
    head, _, body = seen[0].partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    assert (line, body) == ("POST /x?timeout=27s HTTP/1.1", b'{"question":1}')
    assert dict(header.split(": ", 1) for header in headers) == {
        "Host": f"127.0.0.1:{port}",
        "Accept": "application/json, */*",
        "Accept-Encoding": "gzip",
        "Content-Type": "application/json",
        "User-Agent": "kube-apiserver-admission",
        "Content-Length": "14",
    }


async def test_a_connection_is_used_again(client: WebhookClient) -> None:
    connections = 0
    answer = answering(http())

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await answer(reader, writer)

    async with serving(count) as port:
        for _ in range(3):
            await client(plain(port), b"{}", timeout=30)
    assert connections == 1


async def test_an_answer_may_be_packed(client: WebhookClient) -> None:
    packed = gzip.compress(b'{"a":1}')
    async with serving(answering(http(packed, Content_Encoding="gzip"))) as port:
        assert (await client(plain(port), b"{}", timeout=30)).body == b'{"a":1}'


async def test_an_error_is_an_answer(client: WebhookClient) -> None:
    async with serving(answering(http(b"boom", "500 Oh", Content_Type="text/plain"))) as port:
        assert await client(plain(port), b"{}", timeout=30) == WebhookReply(500, "text/plain", b"boom")


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
async def test_redirects_are_not_followed(client: WebhookClient, status: str) -> None:
    """CVE-2020-8561, CVE-2022-3172."""
    followed: list[bytes] = []
    async with (
        serving(answering(http(), seen=followed)) as secret,
        serving(answering(http(b"", status, Location=f"http://127.0.0.1:{secret}/"))) as port,
    ):
        reply = await client(plain(port), b"{}", timeout=30)
    assert (reply.code, followed) == (int(status[:3]), [])


async def test_proxies_of_the_environment_are_not_asked(client: WebhookClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    async with serving(answering(http(), seen=asked)) as proxy, serving(answering(http(b"direct"))) as port:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
        monkeypatch.delenv("no_proxy", raising=False)
        assert (await client(plain(port), b"{}", timeout=30)).body == b"direct"
    assert asked == []


@pytest.mark.parametrize("host", ["10.255.255.1", "example.com", "localhost.example.com", "[2001:db8::1]"])
async def test_plain_http_does_not_leave_this_machine(client: WebhookClient, host: str) -> None:
    text = await failure(client, WebhookEndpoint(f"http://{host}/x"), timeout=1)
    assert text == "plain HTTP is for webhooks on this machine"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "[::1]"])
async def test_this_machine_has_several_names(client: WebhookClient, host: str) -> None:
    text = await failure(client, WebhookEndpoint(f"http://{host}:1/x"))
    assert text.startswith(f'Post "http://{host}:1/x?timeout=30s": dial tcp ')


async def test_cookies_are_not_kept(client: WebhookClient) -> None:
    seen: list[bytes] = []
    async with serving(answering(http(Set_Cookie="a=b"), seen=seen)) as port:
        for _ in range(2):
            await client(plain(port), b"{}", timeout=30)
    assert b"cookie" not in b"".join(seen).lower()


# -- servers that fail ------------------------------------------------------------------------------------------------


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")


FAILING: list[tuple[str, Serve, str]] = [
    ("hangs up", hang_up, 'Post "{url}?timeout=30s": EOF'),
    ("resets the connection", reset, 'Post "{url}?timeout=30s": read tcp {address}: read: connection reset by peer'),
    ("breaks off the body", answering(http(b"{", Content_Length="100"), once=True), "unexpected error when reading response body. Please retry. Original error: unexpected EOF"),
    ("is not packed as it says", answering(http(b"{}", Content_Encoding="gzip"), once=True), "unexpected error when reading response body. Please retry. Original error: "),
    ("breaks off what is packed", answering(http(gzip.compress(b"{}" * 99)[:-9], Content_Encoding="gzip"), once=True), "unexpected error when reading response body. Please retry. Original error: unexpected EOF"),
    ("says too much", answering(http(b"x" * 2000), once=True), 'Post "{url}?timeout=30s": the answer has more than 1000 bytes'),
    ("says too much, packed", answering(http(gzip.compress(b"x" * 50_000_000), Content_Encoding="gzip"), once=True), 'Post "{url}?timeout=30s": the answer has more than 1000 bytes'),
    ("speaks something else", answering(b"SSH-2.0-x\r\n\r\n", once=True), 'Post "{url}?timeout=30s": net/http: HTTP/1.x transport connection broken: malformed HTTP response'),
]  # fmt: skip


@pytest.mark.parametrize(("serve", "text"), [row[1:] for row in FAILING], ids=[row[0] for row in FAILING])
async def test_a_server_that(client: WebhookClient, serve: Serve, text: str) -> None:
    async with serving(serve) as port:
        reply = await failure(client, plain(port), limit=1000)
    assert reply.startswith(text.format(url=f"http://127.0.0.1:{port}/x", address=f"127.0.0.1:{port}"))


async def test_a_closed_port(client: WebhookClient) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    text = await failure(client, WebhookEndpoint(f"https://127.0.0.1:{port}/x"))
    assert (
        text == f'Post "https://127.0.0.1:{port}/x?timeout=30s": dial tcp 127.0.0.1:{port}: connect: connection refused'
    )


async def test_a_host_that_does_not_exist(client: WebhookClient) -> None:
    text = await failure(client, WebhookEndpoint("https://hook.ns.svc.invalid:443/x"))
    assert (
        text
        == 'Post "https://hook.ns.svc.invalid:443/x?timeout=30s": dial tcp: lookup hook.ns.svc.invalid: no such host'
    )


UNUSABLE: list[tuple[str, str, str]] = [
    ("a port out of range", "http://127.0.0.1:99999/", "dial tcp: address 99999: invalid port"),
    ("a port out of range, with TLS", "https://127.0.0.1:65536/x", "dial tcp: address 65536: invalid port"),
    ("a port out of range, over IPv6", "http://[::1]:99999/", "dial tcp: address 99999: invalid port"),
    ("a port of many digits", f"https://h:{'9' * 5000}/", f"dial tcp: address {'9' * 5000}: invalid port"),
    ("an empty label", "https://a..b/", "dial tcp: lookup a..b: no such host"),
    ("a label that is too long", f"https://{'a' * 64}.com/", f"dial tcp: lookup {'a' * 64}.com: no such host"),
    ("a name that is too long", f"https://{'a.' * 300}a/", f"dial tcp: lookup {'a.' * 300}a: no such host"),
    ("a dot at the beginning", "https://.a/", "dial tcp: lookup .a: no such host"),
    ("letters outside ASCII", "https://h\u00e9.invalid/", "dial tcp: lookup h\u00e9.invalid: no such host"),
    ("bytes that are no text", "https://\udcff/", "dial tcp: lookup \udcff: no such host"),
    ("Punycode of nothing", "https://xn--/", "dial tcp: lookup xn--: no such host"),
    ("no host", "https://:80/", "dial tcp: lookup : no such host"),
]  # fmt: skip


@pytest.mark.parametrize(("url", "why"), [row[1:] for row in UNUSABLE], ids=[row[0] for row in UNUSABLE])
async def test_an_address_that_cannot_be_used(client: WebhookClient, url: str, why: str) -> None:
    """The validation of configurations accepts these URLs, as upstream's does."""
    assert await failure(client, WebhookEndpoint(url)) == f"{describe(WebhookEndpoint(url), 30)}: {why}"


async def test_what_is_not_http_is_an_answer() -> None:
    """So its text is not logged."""
    async with serving(answering(b"secret\r\n\r\n", once=True)) as port:
        client = WebhookClient()
        with pytest.raises(BadAnswer):
            await client(plain(port), b"{}", timeout=30)
        await client.close()


async def test_a_service_that_does_not_exist(client: WebhookClient) -> None:
    endpoint = WebhookEndpoint("https://hook.ns.svc.invalid:8443/x", service=Service("ns", "hook", 8443))
    text = await failure(client, endpoint)
    assert text == 'Post "https://hook.ns.svc.invalid:8443/x?timeout=30s": service "hook" not found'


# -- servers that take their time -------------------------------------------------------------------------------------


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def stop_in_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    await asyncio.Event().wait()


async def stop_in_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(http(b"{", Content_Length="2"))
    await asyncio.Event().wait()


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(http(b"", Content_Length="1000000"))
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(http(b"", Content_Length="", Transfer_Encoding="chunked"))
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    for _ in range(1600):  # 100 MB
        writer.write(chunk)
        await writer.drain()


LATE = "context deadline exceeded"
IN_BODY = f"unexpected error when reading response body. Please retry. Original error: {LATE}"
ENDLESS: list[tuple[str, Serve, int, str]] = [
    ("never answers", hang, 1, f'Post "{{url}}?timeout=1s": {LATE}'),
    ("stops in the headers", stop_in_headers, 1, f'Post "{{url}}?timeout=1s": {LATE}'),
    ("stops in the body", stop_in_body, 1, IN_BODY),
    ("drips", drip, 1, IN_BODY),
    ("sends 100 MB", flood, 60, 'Post "{url}?timeout=60s": the answer has more than 8388608 bytes'),
]


@pytest.mark.slow
@pytest.mark.parametrize(("serve", "timeout", "text"), [row[1:] for row in ENDLESS], ids=[row[0] for row in ENDLESS])
async def test_a_call_ends_although_the_server(client: WebhookClient, serve: Serve, timeout: int, text: str) -> None:  # noqa: ASYNC109
    async with serving(serve) as port, hang_guard():
        assert await failure(client, plain(port), timeout=timeout) == text.format(url=f"http://127.0.0.1:{port}/x")


@pytest.mark.slow
@needs_openssl
async def test_a_call_ends_although_the_tls_handshake_does_not(client: WebhookClient) -> None:
    async with serving(hang) as port, hang_guard():
        text = await failure(client, WebhookEndpoint(f"https://127.0.0.1:{port}/x"), timeout=1)
    assert text == f'Post "https://127.0.0.1:{port}/x?timeout=1s": {LATE}'


@pytest.mark.slow
async def test_endless_answers_do_not_block_the_loop(client: WebhookClient) -> None:
    """While another task sleeps for a millisecond the loop's thread computes little, with 55 calls in progress."""
    async with serving(drip) as port, serving(flood) as other:

        async def call_all() -> None:
            calls = [failure(client, plain(port), timeout=1) for _ in range(50)]
            await asyncio.gather(*calls, *[failure(client, plain(other), timeout=1, limit=100_000) for _ in range(5)])

        longest = min([(await longest_block(call_all))[1] for _ in range(3)])
    assert longest < 0.3  # 0.03 s


# -- TLS --------------------------------------------------------------------------------------------------------------


class Authority:
    """A certificate for some names, that signs itself."""

    def __init__(self, directory: Path, names: str) -> None:
        key, pem = directory / "key.pem", directory / "cert.pem"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        command += ["-days", "2", "-subj", "/CN=hook", "-addext", f"subjectAltName={names}"]
        subprocess.run([*command, "-keyout", str(key), "-out", str(pem)], check=True, stderr=subprocess.DEVNULL)
        self.bundle = pem.read_bytes()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(pem, key)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "IP:127.0.0.1,DNS:hook.ns.svc")


@needs_openssl
async def test_the_ca_bundle_is_what_is_trusted(client: WebhookClient, authority: Authority) -> None:
    async with serving(answering(http(b"yes")), authority.context) as port:
        assert (
            await client(WebhookEndpoint(f"https://127.0.0.1:{port}/x", authority.bundle), b"{}", timeout=30)
        ).body == b"yes"


@pytest.mark.slow
@needs_openssl
@pytest.mark.parametrize("headers", [{}, {"Connection": "close"}], ids=["kept", "closed before"])
async def test_no_connection_is_open_when_the_client_is_closed(authority: Authority, headers: dict[str, str]) -> None:
    """Also if the webhook never says goodbye, for which TLS waits half a minute."""
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(http(b"yes", **headers))
        await ended.wait()

    client = WebhookClient()
    async with hang_guard(), serving(serve, authority.context) as port:
        await client(WebhookEndpoint(f"https://127.0.0.1:{port}/x", authority.bundle), b"{}", timeout=30)
        assert len(connections_to(port)) == 1
        await client.close()
        assert connections_to(port) == []
        ended.set()


def connections_to(port: int) -> list[socket.socket]:
    """The open sockets in this process that are connected to a port."""
    found = []
    for thing in gc.get_objects():
        if type(thing) is socket.socket and thing.family == socket.AF_INET:
            with contextlib.suppress(OSError):
                if thing.getpeername()[1] == port:
                    found.append(thing)
    return found


@needs_openssl
async def test_only_the_ca_bundle_is_trusted(client: WebhookClient, authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other", "IP:127.0.0.1")
    async with serving(answering(http()), authority.context) as port:
        url = f"https://127.0.0.1:{port}/x"
        start = f'Post "{url}?timeout=30s": tls: failed to verify certificate: x509: certificate signed by unknown authority'
        assert await failure(client, WebhookEndpoint(url)) == start
        hint = '(possibly because of "x509: ECDSA verification failure" while trying to verify candidate authority certificate "hook")'
        assert await failure(client, WebhookEndpoint(url, other.bundle)) == f"{start} {hint}"


@needs_openssl
async def test_the_name_has_to_be_right(client: WebhookClient, authority: Authority) -> None:
    async with serving(answering(http()), authority.context) as port:
        text = await failure(client, WebhookEndpoint(f"https://localhost:{port}/x", authority.bundle))
    assert text.endswith("x509: certificate is valid for hook.ns.svc, not localhost")


@needs_openssl
async def test_a_service_is_where_it_is_said_to_be(authority: Authority) -> None:
    seen: list[bytes] = []
    service = Service("ns", "hook", 443)
    async with serving(answering(http(b"yes"), seen=seen), authority.context) as port:
        client = WebhookClient({service: f"127.0.0.1:{port}"})
        endpoint = WebhookEndpoint("https://hook.ns.svc:443/x", authority.bundle, service)
        assert (await client(endpoint, b"{}", timeout=30)).body == b"yes"
        await client.close()
    assert b"Host: hook.ns.svc\r\n" in seen[0] or b"Host: hook.ns.svc:443\r\n" in seen[0]


@needs_openssl
async def test_http_where_https_was_expected(client: WebhookClient) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(http(b"", "400 Bad Request"))
        await writer.drain()

    async with serving(speak) as port:
        text = await failure(client, WebhookEndpoint(f"https://127.0.0.1:{port}/x"))
    assert text.endswith(": http: server gave HTTP response to HTTPS client")


async def test_a_large_review_is_sent(client: WebhookClient) -> None:
    received: list[int] = []

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        [length] = re.findall(rb"content-length: (\d+)", head)
        received.append(len(await reader.readexactly(int(length))))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with serving(count) as port:
        await client(plain(port), b"x" * 3_000_000, timeout=30)
    assert received == [3_000_000]
