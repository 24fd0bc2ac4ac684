"""Conversion webhooks that hang, answer slowly or endlessly, or close the connection: only their own requests fail."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from conformance.client import Client
from noxu.registry.conversion import converters
from noxu.registry.resource import Resource
from noxu.testing.handle import Noxu
from tests import definitions
from tests.timing import HANGS_AFTER, eventually

GROUP = "trapped.example.com"
LONG = int(HANGS_AFTER)  # seconds: a timeout that is not reached
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"

Answer = Callable[[Any, bytes], None]


class Webhook(socketserver.ThreadingTCPServer):
    """Reads a request and hands the connection to `answer`. `over` is set when the test is over."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 128  # without retransmissions when many connect at once

    def __init__(self) -> None:
        self.answer: Answer = hang
        self.calls = 0
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), Connection)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/convert"


class Connection(socketserver.StreamRequestHandler):
    server: Webhook

    def handle(self) -> None:
        self.over = self.server.over  # of this test
        length = 0
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = self.rfile.read(length)
        self.server.calls += 1
        with contextlib.suppress(OSError):  # the caller has closed the connection
            self.server.answer(self, body)


def hang(connection: Any, _: bytes) -> None:
    connection.over.wait()


def hang_after_the_head(connection: Any, _: bytes) -> None:
    connection.wfile.write(HEAD + b"Content-Length: 1000\r\n\r\n")
    connection.over.wait()


def drip(connection: Any, _: bytes) -> None:
    connection.wfile.write(HEAD + b"Content-Length: 100000\r\n\r\n")
    while not connection.over.wait(0.05):
        connection.wfile.write(b" ")


def drip_the_head(connection: Any, _: bytes) -> None:
    connection.wfile.write(HEAD)
    while not connection.over.wait(0.05):
        connection.wfile.write(b"X-More: 1\r\n")


def pour(connection: Any, _: bytes) -> None:
    connection.wfile.write(HEAD + b"Content-Length: 104857600\r\n\r\n")
    for _ in range(100):
        connection.wfile.write(b" " * 1024 * 1024)


def hang_up(connection: Any, _: bytes) -> None:
    connection.connection.close()


def redirect(connection: Any, _: bytes) -> None:
    connection.wfile.write(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")


def deep(connection: Any, _: bytes) -> None:
    body = b'{"response":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    connection.wfile.write(HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


def honest(connection: Any, body: bytes) -> None:
    review = json.loads(body)
    request = review["request"]
    for value in request["objects"]:
        value["apiVersion"] = request["desiredAPIVersion"]
    review["response"] = {
        "uid": request["uid"],
        "convertedObjects": request["objects"],
        "result": {"status": "Success"},
    }
    content = json.dumps(review).encode()
    connection.wfile.write(HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(content), content))


@pytest.fixture(scope="module")
def serving() -> Iterator[Webhook]:
    with Webhook() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def webhook(serving: Webhook) -> Iterator[Webhook]:
    serving.answer, serving.calls, serving.over = hang, 0, threading.Event()
    yield serving
    serving.over.set()


@pytest.fixture(scope="module")
def noxu(tmp_path_factory: pytest.TempPathFactory, serving: Webhook) -> Iterator[Noxu]:
    """A server with 300 objects stored in v1, and a timeout of one second for converters."""
    with Noxu(tmp_path_factory.mktemp("noxu")) as noxu:
        _fill(noxu, serving.url)
        yield noxu


@pytest.fixture
def client(noxu: Noxu) -> Iterator[Client]:
    with Client(noxu.url) as client:
        yield client


def _fill(noxu: Noxu, url: str) -> None:
    noxu._server.plane.conversions.timeout = 1
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")]
    config = {"clientConfig": {"url": url}, "conversionReviewVersions": ["v1"]}
    definition = definitions.widgets(*versions, group=GROUP, scope="Cluster")
    definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": config}
    noxu.apply(
        definition,
        *({"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": f"w{n}"}} for n in range(300)),
    )


def widgets(version: str, name: str = "") -> str:
    return f"/apis/{GROUP}/{version}/widgets{f'/{name}' if name else ''}"


def get(client: Client, path: str) -> tuple[int, Any]:
    """The status code and the body; of an error, its message."""
    code, body = client.send("GET", path)
    return code, body["message"] if code != 200 else body


@pytest.fixture
def long_timeout(noxu: Noxu, monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeout that no call reaches: the observed times do not depend on it."""
    monkeypatch.setattr(noxu._server.plane.conversions, "timeout", LONG)


LARGE = json.dumps([{"name": "x", "value": n} for n in range(40_000)]).encode()


def inflating(connection: Any, body: bytes) -> None:
    """Returns a small object with a large spec."""
    request = json.loads(body)["request"]
    [value] = request["objects"]
    value |= {"apiVersion": request["desiredAPIVersion"], "spec": {"items": "LARGE"}}
    response = {"uid": request["uid"], "convertedObjects": [value], "result": {"status": "Success"}}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}
    content = json.dumps(review).encode().replace(b'"LARGE"', LARGE)
    connection.wfile.write(HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(content), content))


ENDLESS: list[tuple[Answer, str]] = [
    (hang, 'Post "{url}?timeout=1s": context deadline exceeded'),
    (drip_the_head, 'Post "{url}?timeout=1s": context deadline exceeded'),
    (hang_after_the_head, "context deadline exceeded"),
    (drip, "context deadline exceeded"),
]
INVALID: list[tuple[Answer, str]] = [
    (pour, f'Post "{{url}}?timeout={LONG}s": the answer has more than 8388608 bytes'),
    (hang_up, f'Post "{{url}}?timeout={LONG}s": EOF'),
    (redirect, "the server responded with the status code 302 but did not return more information"),
    (deep, "couldn't get version/kind; json parse error: invalid character '[' exceeded max depth"),
]


def fails(client: Client, webhook: Webhook, answer: Answer, text: str) -> None:
    webhook.answer = answer
    code, message = get(client, widgets("v2", "w1"))
    assert code == 500
    assert message.startswith(f"conversion webhook for {GROUP}/v1, Kind=Widget failed: ")
    assert text.format(url=webhook.url) in message


@pytest.mark.parametrize(("answer", "text"), ENDLESS, ids=[answer.__name__ for answer, _ in ENDLESS])
def test_an_answer_that_does_not_end_fails_at_the_timeout(
    client: Client, webhook: Webhook, answer: Answer, text: str
) -> None:
    fails(client, webhook, answer, text)


@pytest.mark.usefixtures("long_timeout")
@pytest.mark.parametrize(("answer", "text"), INVALID, ids=[answer.__name__ for answer, _ in INVALID])
def test_an_invalid_answer_fails_before_the_timeout(
    client: Client, webhook: Webhook, answer: Answer, text: str
) -> None:
    fails(client, webhook, answer, text)


def test_the_objects_of_a_list_are_converted_concurrently(client: Client, webhook: Webhook) -> None:
    """So a list takes one timeout, not one for every batch."""
    code, message = get(client, widgets("v2"))
    assert (code, "context deadline exceeded" in message) == (500, True)
    eventually(lambda: webhook.calls == 3)


@pytest.mark.usefixtures("long_timeout")
def test_other_requests_are_answered_while_the_webhook_hangs(client: Client, webhook: Webhook, noxu: Noxu) -> None:
    def read(_: int) -> int:
        with Client(noxu.url) as own:
            return get(own, widgets("v2", "w1"))[0]

    with ThreadPoolExecutor(30) as pool:
        try:
            waiting = [pool.submit(read, number) for number in range(30)]
            eventually(lambda: webhook.calls == 30)
            for _ in range(20):
                assert get(client, widgets("v1", "w1"))[0] == 200
            assert not any(request.done() for request in waiting)
        finally:
            webhook.over.set()
        assert {request.result() for request in waiting} == {500}


def test_a_watch_ends_and_watches_of_the_stored_version_go_on(client: Client, webhook: Webhook) -> None:
    connection = client.connect(HANGS_AFTER)
    connection.request("GET", f"{widgets('v2')}?watch=true")
    answer = connection.getresponse()
    [event] = [json.loads(line) for line in answer]
    assert event["type"] == "ERROR"
    assert "context deadline exceeded" in event["object"]["message"]
    connection.close()
    assert get(client, widgets("v1", "w1"))[0] == 200


@pytest.mark.usefixtures("long_timeout")
def test_a_large_converted_object_is_not_processed_in_the_event_loop(
    client: Client, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    prune = converters._prune

    def recorded(value: Any, resource: Resource) -> None:
        threads.append(threading.current_thread().name)
        prune(value, resource)

    monkeypatch.setattr(converters, "_prune", recorded)
    webhook.answer = inflating
    assert get(client, widgets("v2", "w1"))[0] == 200
    sent = {"apiVersion": f"{GROUP}/v2", "kind": "Widget", "metadata": {"name": "x"}}
    assert client.send("POST", widgets("v2"), sent).code == 201
    assert client.send("DELETE", widgets("v1", "x")).code == 200
    assert {name.partition("_")[0] for name in threads} == {"noxu-offload"}
    webhook.answer = honest
    threads.clear()
    assert get(client, widgets("v2", "w1"))[0] == 200
    assert threads == ["noxu"]


def test_when_the_webhook_works_again_objects_are_converted(
    client: Client, webhook: Webhook, noxu: Noxu, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert get(client, widgets("v2", "w1"))[0] == 500
    webhook.answer = honest
    monkeypatch.setattr(noxu._server.plane.conversions, "timeout", LONG)
    assert get(client, widgets("v2", "w1"))[0] == 200
    code, found = get(client, widgets("v2"))
    assert code == 200, found
    assert len(found["items"]) == 300


@pytest.mark.usefixtures("long_timeout")
def test_the_call_of_a_client_that_disconnects_is_cancelled(client: Client, webhook: Webhook) -> None:
    closed = threading.Event()

    def wait_for_the_end(connection: Any, _: bytes) -> None:
        connection.rfile.read()
        closed.set()

    webhook.answer = wait_for_the_end
    disconnecting = client.connect(HANGS_AFTER)
    disconnecting.request("GET", widgets("v2", "w1"))
    eventually(lambda: webhook.calls)
    disconnecting.close()
    assert closed.wait(HANGS_AFTER / 2)
    assert get(client, widgets("v1", "w1"))[0] == 200
