"""Conversion webhooks that hang, drip, pour or hang up cost no more than their timeout, and nobody but who asked."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from apiserver.registry import conversion_entries
from apiserver.registry.resource import Resource
from apiserver.testing.handle import Noxu
from conformance.client import Client

GROUP = "trapped.example.com"
SLACK = 1.0  # seconds: other tests share the machine
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

Answer = Callable[[Any, bytes], None]


class Webhook(socketserver.ThreadingTCPServer):
    """Reads a request, and leaves the connection to `answer`, which is told when the test is over."""

    allow_reuse_address = daemon_threads = True

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
        with contextlib.suppress(OSError):  # the caller has gone
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
    for one in request["objects"]:
        one["apiVersion"] = request["desiredAPIVersion"]
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
    """A server whose converters have a second, and 300 objects that are stored in v1."""
    with Noxu(tmp_path_factory.mktemp("noxu")) as noxu:
        _fill(noxu, serving.url)
        yield noxu


@pytest.fixture
def client(noxu: Noxu) -> Iterator[Client]:
    with Client(noxu.url) as client:
        yield client


def _fill(noxu: Noxu, url: str) -> None:
    noxu._server.registry.conversions.timeout = 1
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")]
    config = {"clientConfig": {"url": url}, "conversionReviewVersions": ["v1"]}
    noxu.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Cluster",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": versions,
                "conversion": {"strategy": "Webhook", "webhook": config},
            },
        },
        *({"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": f"w{n}"}} for n in range(300)),
    )


def widgets(version: str, name: str = "") -> str:
    return f"/apis/{GROUP}/{version}/widgets{f'/{name}' if name else ''}"


def timed(client: Client, path: str) -> tuple[float, int, Any]:
    began = time.monotonic()
    code, body = client.send("GET", path)
    return time.monotonic() - began, code, body["message"] if code != 200 else body


MUCH = json.dumps([{"name": "x", "value": n} for n in range(40_000)]).encode()


def inflating(connection: Any, body: bytes) -> None:
    """Gives a small object back with a lot in it."""
    request = json.loads(body)["request"]
    [value] = request["objects"]
    value |= {"apiVersion": request["desiredAPIVersion"], "spec": {"items": "MUCH"}}
    response = {"uid": request["uid"], "convertedObjects": [value], "result": {"status": "Success"}}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}
    content = json.dumps(review).encode().replace(b'"MUCH"', MUCH)
    connection.wfile.write(HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(content), content))


TRAPS: list[tuple[Answer, float, str]] = [
    (hang, 1.0, 'Post "{url}?timeout=1s": context deadline exceeded'),
    (drip_the_head, 1.0, 'Post "{url}?timeout=1s": context deadline exceeded'),
    (hang_after_the_head, 1.0, "context deadline exceeded"),
    (drip, 1.0, "context deadline exceeded"),
    (pour, 0.0, 'Post "{url}?timeout=1s": the answer has more than 8388608 bytes'),
    (hang_up, 0.0, 'Post "{url}?timeout=1s": EOF'),
    (redirect, 0.0, "the server responded with the status code 302 but did not return more information"),
    (deep, 0.0, "couldn't get version/kind; json parse error: invalid character '[' exceeded max depth"),
]


@pytest.mark.parametrize(("answer", "seconds", "told"), TRAPS, ids=[answer.__name__ for answer, _, _ in TRAPS])
def test_a_trap_costs_its_timeout(client: Client, webhook: Webhook, answer: Answer, seconds: float, told: str) -> None:
    webhook.answer = answer
    took, code, message = timed(client, widgets("v2", "w1"))
    assert code == 500
    assert message.startswith(f"conversion webhook for {GROUP}/v1, Kind=Widget failed: ")
    assert told.format(url=webhook.url) in message
    assert seconds <= took < seconds + SLACK


def test_a_list_costs_one_timeout_not_one_for_each_object(client: Client, webhook: Webhook) -> None:
    took, code, message = timed(client, widgets("v2"))
    assert (code, "context deadline exceeded" in message) == (500, True)
    assert took < 1.0 + SLACK
    assert webhook.calls == 3


def test_others_are_served_meanwhile(client: Client, webhook: Webhook, noxu: Noxu) -> None:
    def one(_: int) -> float:
        with Client(noxu.url) as mine:
            return timed(mine, widgets("v2", "w1"))[0]

    with ThreadPoolExecutor(30) as pool:
        waiting = pool.map(one, range(30))
        time.sleep(0.2)
        began = time.monotonic()
        quick = [timed(client, widgets("v1", "w1")) for _ in range(20)]
        assert all(code == 200 for _, code, _ in quick)
        assert time.monotonic() - began < 0.7  # before those that wait get their answers
        assert max(waiting) < 1.0 + SLACK


def test_a_watch_ends_and_watches_of_the_stored_version_go_on(client: Client, webhook: Webhook) -> None:
    connection = client.connect(10)
    connection.request("GET", f"{widgets('v2')}?watch=true")
    answer = connection.getresponse()
    [event] = [json.loads(line) for line in answer]
    assert event["type"] == "ERROR"
    assert "context deadline exceeded" in event["object"]["message"]
    connection.close()
    assert timed(client, widgets("v1", "w1"))[1] == 200


def test_what_it_makes_of_a_small_object_is_not_worked_on_in_the_loop(
    client: Client, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    prune = conversion_entries._prune

    def watched(value: Any, resource: Resource) -> None:
        threads.append(threading.current_thread().name)
        prune(value, resource)

    monkeypatch.setattr(conversion_entries, "_prune", watched)
    webhook.answer = inflating
    assert timed(client, widgets("v2", "w1"))[1] == 200
    made = {"apiVersion": f"{GROUP}/v2", "kind": "Widget", "metadata": {"name": "x"}}
    assert client.send("POST", widgets("v2"), made).code == 201
    assert client.send("DELETE", widgets("v1", "x")).code == 200
    assert {name.partition("_")[0] for name in threads} == {"noxu-heavy"}
    webhook.answer = honest
    threads.clear()
    assert timed(client, widgets("v2", "w1"))[1] == 200
    assert threads == ["noxu"]


def test_after_it_has_come_to_its_senses_everything_works(
    client: Client, webhook: Webhook, noxu: Noxu, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert timed(client, widgets("v2", "w1"))[1] == 500
    webhook.answer = honest
    monkeypatch.setattr(noxu._server.registry.conversions, "timeout", 20)  # it is no matter of time
    assert timed(client, widgets("v2", "w1"))[1] == 200
    assert len(timed(client, widgets("v2"))[2]["items"]) == 300


def test_a_client_that_leaves_takes_its_call_along(client: Client, webhook: Webhook, noxu: Noxu) -> None:
    gone = client.connect(5)
    gone.request("GET", widgets("v2", "w1"))
    deadline = time.monotonic() + 5
    while not webhook.calls:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    gone.close()
    assert timed(client, widgets("v1", "w1"))[1] == 200
