"""`/_noxu/` over HTTP: who may use it, what it answers, and answers that stay open until their client is gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from conformance.client import Client
from noxu.config import own_version
from noxu.control.arguments import BOOLEAN, INTEGER, TEXT, Argument
from noxu.control.calls import ControlCall, ControlRoute, Created, Download
from noxu.control.running import Held
from noxu.http import control
from noxu.testing.handle import MakeNoxu, Noxu
from noxu.values import Object
from tests.timing import HANGS_AFTER, eventually


class Holding:
    """Routes of a test, which keep what they were asked and what has ended."""

    def __init__(self) -> None:
        self.calls: list[ControlCall] = []
        self.held: list[Held] = []
        self.ended: list[str] = []

    @property
    def routes(self) -> Sequence[ControlRoute]:
        name = {"name": Argument(TEXT, "its name", required=True), "parts": Argument(INTEGER, "how many", 1)}
        return (
            ControlRoute("GET", "/_noxu/things/{thing}", self.get, "Get.", {"wide": Argument(BOOLEAN, "all")}),
            ControlRoute("POST", "/_noxu/things", self.create, "Create.", body=name),
            ControlRoute("POST", "/_noxu/held/{name}", self.hold, "Hold."),
            ControlRoute("GET", "/_noxu/file", self.file, "Download."),
            ControlRoute("GET", "/_noxu/bug", self.bug, "Fail."),
        )

    async def get(self, call: ControlCall) -> Object:
        self.calls.append(call)
        return {"thing": call.path["thing"], "wide": call.query["wide"]}

    async def create(self, call: ControlCall) -> Created:
        return Created({"name": call.body["name"], "parts": call.body["parts"], "user": call.user.name})

    async def hold(self, call: ControlCall) -> Held:
        name = call.path["name"]

        async def end() -> None:
            self.ended.append(name)

        held = Held({"name": name}, end)
        self.held.append(held)
        return held

    async def file(self, _call: ControlCall) -> Download:
        return Download(b"\0\1", "application/vnd.sqlite3")

    async def bug(self, _call: ControlCall) -> Object:
        raise RuntimeError("it is broken")


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> Holding:
    found = Holding()
    monkeypatch.setattr(control, "ROUTES", found.routes)
    return found


class Sent(NamedTuple):
    code: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)


def send(url: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Sent:
    with Client(url) as client:
        sent = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        code, received, text = client.exchange(method, path, sent, headers or {})
        return Sent(code, dict(received), text)


# -- answers -----------------------------------------------------------------------------------------------------------


def test_the_root_has_the_version_and_the_routes(noxu: Noxu) -> None:
    sent = send(noxu.url, "GET", "/_noxu/")
    assert sent.code == 200
    assert sent.headers["Content-Type"] == "application/json"
    assert sent.value["version"] == own_version()
    assert {"method": "GET", "path": "/_noxu/", "about": "List what stands here."} in sent.value["routes"]
    assert send(noxu.url, "GET", "/_noxu").value == sent.value


def test_a_call_has_its_path_its_query_and_its_server(noxu: Noxu, holding: Holding) -> None:
    sent = send(noxu.url, "GET", "/_noxu/things/a%20b?wide=true")
    assert (sent.code, sent.value) == (200, {"thing": "a b", "wide": True})
    [call] = holding.calls
    assert call.control.server.url == noxu.url
    assert call.plane is call.control.server.plane


def test_what_was_created_is_a_201(noxu: Noxu, holding: Holding) -> None:
    sent = send(noxu.url, "POST", "/_noxu/things", {"name": "a"})
    assert (sent.code, sent.value) == (201, {"name": "a", "parts": 1, "user": "system:anonymous"})


def test_a_download_is_what_it_is(noxu: Noxu, holding: Holding) -> None:
    sent = send(noxu.url, "GET", "/_noxu/file")
    assert (sent.code, sent.headers["Content-Type"], sent.body) == (200, "application/vnd.sqlite3", b"\0\1")


REFUSED: list[tuple[str, str, str, Any, int, str]] = [
    (
        "another path",
        "GET",
        "/_noxu/thing/a",
        None,
        404,
        "/_noxu/thing/a is no path of Noxu; did you mean /_noxu/things? (GET /_noxu/ describes /_noxu/bug, ",
    ),
    ("another method", "DELETE", "/_noxu/things", None, 405, "/_noxu/things has no method DELETE, only POST"),
    ("a misspelt parameter", "GET", "/_noxu/things/a?wid=1", None, 400, "did you mean wide?"),
    ("a misspelt field", "POST", "/_noxu/things", {"name": "a", "part": 2}, 422, "did you mean parts?"),
    ("a missing field", "POST", "/_noxu/things", {}, 422, "name: it is required"),
    ("a body that is no JSON", "POST", "/_noxu/things", b"a: 1", 400, "the body is no JSON object"),
    ("a body that is no object", "POST", "/_noxu/things", [], 400, "the body is no JSON object, but []"),
    ("a body where none is taken", "GET", "/_noxu/file", {}, 400, "/_noxu/file takes no body with this method"),
    ("a body that is too large", "POST", "/_noxu/things", b"1" * 3_200_000, 413, "limit is 3145728"),
    ("a bug", "GET", "/_noxu/bug", None, 500, "this is a bug in the server"),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_is_wrong_is_refused_with_a_status(
    noxu: Noxu, holding: Holding, method: str, path: str, body: Any, code: int, message: str
) -> None:
    sent = send(noxu.url, method, path, body)
    assert sent.code == code
    assert sent.value["kind"] == "Status"
    assert message in sent.value["message"]
    assert sent.headers.get("Allow") == ("POST" if code == 405 else None)


def test_it_is_in_no_document_of_the_api(noxu: Noxu) -> None:
    for path in ("/", "/openapi/v2", "/openapi/v3", "/api", "/apis"):
        assert b"_noxu" not in send(noxu.url, "GET", path).body


@pytest.mark.parametrize("path", ["/_noxuu", "/_noxus/", "/x/_noxu/"])
def test_a_path_beside_it_is_not_found_as_any_other(noxu: Noxu, path: str) -> None:
    assert "paths" in send(noxu.url, "GET", path).value


def test_nothing_is_imported_for_other_requests() -> None:
    program = (
        "import sys\nfrom noxu.testing.handle import Noxu\nimport urllib.request\n"
        "with Noxu() as noxu:\n"
        "    urllib.request.urlopen(noxu.url + '/api').read()\n"
        "    print([name for name in ('noxu.http.control', 'noxu.control.routes') if name in sys.modules])\n"
        "    urllib.request.urlopen(noxu.url + '/_noxu/').read()\n"
        "    print('noxu.http.control' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["[]", "True", ""]


# -- who may -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example.com"},
        {"Origin": "http://evil.example.com"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_web_pages_of_others_may_not(noxu: Noxu, holding: Holding, headers: dict[str, str]) -> None:
    assert send(noxu.url, "POST", "/_noxu/things", {"name": "a"}, headers).code == 403


def test_with_rbac_only_masters_and_those_with_a_rule_for_its_paths_may(make_noxu: MakeNoxu, holding: Holding) -> None:
    noxu = make_noxu(authorization_modes=["RBAC"], users={"root": ["system:masters"], "dev": [], "reader": []})
    noxu.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "reader"},
            "rules": [{"nonResourceURLs": ["/_noxu/*"], "verbs": ["get"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "reader"},
            "subjects": [{"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "ClusterRole", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
        },
    )

    def code(user: str, method: str, path: str, body: Any = None) -> int:
        return send(noxu.url, method, path, body, noxu.users[user].headers if user else {}).code

    assert code("root", "GET", "/_noxu/things/a") == 200
    assert code("root", "POST", "/_noxu/things", {"name": "a"}) == 201
    assert code("reader", "GET", "/_noxu/things/a") == 200
    assert code("reader", "POST", "/_noxu/things", {"name": "a"}) == 403
    for user in ("dev", ""):  # who may discover the API: system:discovery is bound to all who are authenticated
        assert code(user, "GET", "/version") == 200
        assert code(user, "GET", "/_noxu/things/a") == 403
        assert code(user, "GET", "/_noxu/nothing") == 403, "what exists is not told"
    assert send(noxu.url, "POST", "/_noxu/things", {"name": "a"}, noxu.users["root"].headers).value["user"] == "root"


# -- held answers ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def connection(url: str, path: str, version: str = "1.1", headers: str = "") -> Iterator[socket.socket]:
    """A connection that has asked for a held answer."""
    host, port = urlsplit(url).hostname, urlsplit(url).port
    with socket.create_connection((host, port), timeout=HANGS_AFTER) as opened:
        request = f"POST {path} HTTP/{version}\r\nHost: localhost\r\nContent-Length: 0\r\n{headers}\r\n"
        opened.sendall(request.encode())
        yield opened


def read_until(opened: socket.socket, end: bytes) -> bytes:
    received = b""
    while not received.endswith(end):
        more = opened.recv(4096)
        assert more, received
        received += more
    return received


LINE = b'{"name":"a"}\n'
CHUNK = b"d\r\n" + LINE + b"\r\n"


@pytest.mark.parametrize(
    ("version", "headers", "end"),
    [("1.1", "", CHUNK), ("1.1", "Accept-Encoding: gzip\r\n", CHUNK), ("1.0", "", b"\r\n\r\n" + LINE)],
    ids=["HTTP/1.1", "a client that accepts gzip", "HTTP/1.0"],
)
def test_a_held_answer_begins_at_once_and_ends_with_its_client(
    noxu: Noxu, holding: Holding, version: str, headers: str, end: bytes
) -> None:
    with connection(noxu.url, "/_noxu/held/a", version, headers) as opened:
        assert read_until(opened, end).startswith(f"HTTP/{version} 201 Created\r\n".encode())
        assert holding.ended == []
    eventually(lambda: holding.ended == ["a"])


@pytest.mark.parametrize(("version", "beat"), [("1.1", b"1\r\n\n\r\n"), ("1.0", b"\n")])
def test_a_held_answer_has_an_empty_line_now_and_then(
    noxu: Noxu, holding: Holding, monkeypatch: pytest.MonkeyPatch, version: str, beat: bytes
) -> None:
    monkeypatch.setattr(control, "BEAT", 0.05)
    with connection(noxu.url, "/_noxu/held/a", version) as opened:
        assert read_until(opened, beat * 3).endswith(beat * 3)
    eventually(lambda: holding.ended == ["a"])


def test_a_held_answer_ends_when_its_client_is_killed(noxu: Noxu, holding: Holding) -> None:
    program = (
        "import urllib.request, time\n"
        f"answer = urllib.request.urlopen({noxu.url + '/_noxu/held/a'!r}, data=b'')\n"
        "print(answer.readline(), flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == f"{LINE!r}\n"
        assert holding.ended == []
        client.send_signal(signal.SIGKILL)
    eventually(lambda: holding.ended == ["a"])


def test_a_held_answer_ends_when_it_is_over(noxu: Noxu, holding: Holding) -> None:
    with connection(noxu.url, "/_noxu/held/a") as opened:
        read_until(opened, CHUNK)
        noxu._loop.call_soon_threadsafe(holding.held[0].over.set)
        assert opened.recv(4096) == b"0\r\n\r\n"
        assert opened.recv(4096) == b""
    eventually(lambda: holding.ended == ["a"])


def test_a_held_answer_ends_with_the_server(make_noxu: MakeNoxu, holding: Holding) -> None:
    noxu = make_noxu()
    with connection(noxu.url, "/_noxu/held/a") as opened:
        read_until(opened, CHUNK)
        noxu.stop()
        assert holding.ended == ["a"], "before the server has stopped"
        assert opened.recv(4096) == b"0\r\n\r\n"
        assert opened.recv(4096) == b""


def test_what_is_held_is_not_in_flight(noxu: Noxu, holding: Holding) -> None:
    with connection(noxu.url, "/_noxu/held/a") as opened:
        read_until(opened, CHUNK)

        async def running() -> int:
            limits = [filter_ for filter_ in noxu._server.app.filters if hasattr(filter_, "mutating")]
            return sum(limit.mutating.running for limit in limits)

        assert asyncio.run_coroutine_threadsafe(running(), noxu._loop).result() == 0


def test_a_server_that_stops_begins_nothing(noxu: Noxu, holding: Holding) -> None:
    noxu._server.control.is_closed = True
    sent = send(noxu.url, "GET", "/_noxu/things/a")
    assert (sent.code, sent.value["message"]) == (503, "the server stops")
