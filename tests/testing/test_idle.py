"""`noxu.idle()`: what keeps a server from being idle, and that it is never said too early."""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import time
from typing import Any, Self
from urllib.parse import urlsplit

import pytest

from noxu import ApiError, Noxu
from noxu.values import Object
from tests.timing import eventually

MAPS = "/api/v1/namespaces/default/configmaps"
LONGEST_DELAY = 0.02  # seconds of a controller


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def connection_to(server: Noxu) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)


class Copier(threading.Thread):
    """A controller in a thread: for each ConfigMap in-N it writes out-N after a while, up to 20 ms."""

    def __init__(self, server: Noxu, seed: int) -> None:
        super().__init__(daemon=True)
        self._chance = random.Random(seed)
        self._watching, self._writing = connection_to(server), connection_to(server)
        self._watching.request("GET", f"{MAPS}?watch=1&resourceVersion=1", headers={"User-Agent": "copier"})
        self._events = self._watching.getresponse()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._watching.sock.shutdown(socket.SHUT_RDWR)  # wakes the thread, which reads
        self.join()
        for closed in (self._events, self._watching, self._writing):
            closed.close()

    def run(self) -> None:
        for line in iter(self._events.readline, b""):
            name = json.loads(line)["object"]["metadata"]["name"]
            if name.startswith("in-"):
                time.sleep(self._chance.random() * LONGEST_DELAY)
                body = json.dumps(config_map(name.replace("in-", "out-")))
                self._writing.request("POST", MAPS, body, {"Content-Type": "application/json"})
                self._writing.getresponse().read()


def test_a_server_without_clients_is_idle(noxu: Noxu) -> None:
    answer = noxu.idle(quiet=0)
    assert (answer["quiet"], answer["requests"]) == (0, 0)


@pytest.mark.slow
def test_it_is_idle_when_a_controller_has_done_its_work(noxu: Noxu) -> None:
    """The quiet time is a hundred times as long as the controller takes; `python -m benchmarks.faults --runs` has a short one."""
    with Copier(noxu, 7):
        for n in range(3):
            noxu.create(config_map(f"in-{n}"))
            noxu.idle(quiet=100 * LONGEST_DELAY)
            names = [value["metadata"]["name"] for value in noxu.list("configmaps", namespace="default")]
            assert f"out-{n}" in names


def test_a_request_under_way_is_named(noxu: Noxu) -> None:
    noxu.idle(quiet=0)  # from now on requests are observed
    connection = connection_to(noxu)
    with noxu.fault(verbs=["get"], hang=True) as fault:
        connection.request("GET", f"{MAPS}/a")
        eventually(lambda: fault.hits)
        with pytest.raises(ApiError) as late:
            noxu.idle(timeout=0.2)
    assert late.value.code == 504
    assert "the server is not idle after 0.2 s: GET /api/v1/namespaces/default/configmaps/a" in late.value.message
    connection.close()
    noxu.idle(quiet=0)


def test_a_request_from_before_counts(noxu: Noxu) -> None:
    connection = connection_to(noxu)
    with noxu.fault(verbs=["get"], hang=True) as fault:
        connection.request("GET", f"{MAPS}/a")
        eventually(lambda: fault.hits)
        with pytest.raises(ApiError, match=r"not idle after 0\.2 s: /api/v1/.*/a for \('127.0.0.1'"):
            noxu.idle(timeout=0.2)
    connection.close()


def test_a_client_that_polls_is_not_quiet(noxu: Noxu) -> None:
    connection, stop = connection_to(noxu), threading.Event()

    def poll() -> None:
        while not stop.is_set():
            connection.request("GET", MAPS)
            connection.getresponse().read()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        with pytest.raises(ApiError, match=r"no 2 s passed without a request"):
            noxu.idle(quiet=2, timeout=2)
        noxu.idle(quiet=0, ignore=["configmaps"])
    finally:
        stop.set()
        thread.join()
        connection.close()


def test_a_watch_whose_client_does_not_read_is_named(noxu: Noxu) -> None:
    place = urlsplit(noxu.url)
    with socket.socket() as client:
        client.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF, 4096
        )  # so that little is unread, and the server is patient
        client.connect((place.hostname, place.port))
        client.sendall(f"GET {MAPS}?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
        assert client.recv(12) == b"HTTP/1.1 200"
        noxu.create(config_map("large", data="x" * 200_000))
        with pytest.raises(ApiError, match="has not sent everything"):
            noxu.idle(quiet=0.05, timeout=0.5)


def test_controllers_are_waited_for(noxu: Noxu) -> None:
    noxu.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    noxu.idle(quiet=0)
    assert noxu.get("serviceaccount", "default", namespace="shop")


async def test_in_a_coroutine(noxu: Noxu) -> None:
    await noxu.create(config_map("a"))
    assert (await noxu.idle(quiet=0.01))["seconds"] >= 0.01


@pytest.mark.parametrize("arguments", [{"quiet": 2, "timeout": 1}, {"quiet": -1}, {"timeout": 4000}])
def test_what_is_refused(noxu: Noxu, arguments: Any) -> None:
    with pytest.raises(ApiError, match="quiet is at most timeout, and that at most an hour"):
        noxu.idle(**arguments)


# -- over HTTP ---------------------------------------------------------------------------------------


def test_over_http(noxu: Noxu) -> None:
    connection = connection_to(noxu)
    connection.request("GET", "/_noxu/idle?quiet=20ms&timeout=5s&ignore=leases,events")
    answer = connection.getresponse()
    assert answer.status == 200
    assert json.loads(answer.read())["quiet"] == 0.02
    connection.close()
