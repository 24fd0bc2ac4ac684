"""Streams of commands in simulated pods: what is answered over WebSockets and SPDY, and what is refused with which reason."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from conformance.client import Client
from noxu.http import spdy
from noxu.http.simulated_pods import messages, outputs
from noxu.testing.handle import Noxu
from noxu.workloads.kubelet.commands import CommandResult, CommandRule
from tests.http.test_spdy import ClientSpdy
from tests.rows import rows
from tests.timing import HANGS_AFTER

POD: Final = "/api/v1/namespaces/default/pods/web-0"
RULES: Final = (
    CommandRule("web-*", ("greet",), CommandResult("hello\n", "careful\n")),
    CommandRule("web-*", ("fail",), CommandResult(stderr="no\n", code=3)),
    CommandRule("web-*", ("much",), CommandResult("x" * 100_000)),
)
PODS: Final = """
apiVersion: v1
kind: Pod
metadata: {name: web-0, annotations: {noxu.dev/logs: "one\\ntwo\\nthree"}}
spec: {nodeName: node-1, containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: late-0}
spec: {nodeName: gone, containers: [{name: c, image: nginx}]}
"""
FAILED: Final = {
    "metadata": {},
    "status": "Failure",
    "message": "command terminated with non-zero exit code: error executing command [fail], exit code 3",
    "reason": "NonZeroExitCode",
    "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
}
SUCCESS: Final = {"metadata": {}, "status": "Success"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    with Noxu(tmp_path_factory.mktemp("server"), [PODS], nodes=1) as server:
        server.wait("pods", "web-0", "Ready")
        commands = server._runner.running.plane.commands
        assert commands is not None
        for rule in RULES:
            commands.add(rule)
        yield server


@pytest.fixture(scope="module")
def api(server: Noxu) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


class Peer:
    """One connection, byte by byte."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host = parts.netloc
        self.socket = socket.create_connection((parts.hostname, parts.port), HANGS_AFTER)
        self.file = self.socket.makefile("rb")

    def ask(self, method: str, target: str, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
        lines = [f"{name}: {value}" for name, value in {"Host": self.host, **headers}.items()]
        self.socket.sendall("\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode())
        status, got = int(self.file.readline().split()[1]), {}
        while line := self.file.readline().strip().decode():
            name, _, value = line.partition(": ")
            got[name.lower()] = value
        return status, got

    def close(self) -> None:
        self.file.close()
        self.socket.close()


@pytest.fixture
def peer(server: Noxu) -> Iterator[Peer]:
    peer = Peer(server.url)
    yield peer
    peer.close()


def web_socket(*protocols: str) -> dict[str, str]:
    return {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
        **({"Sec-WebSocket-Protocol": ", ".join(protocols)} if protocols else {}),
    }


def spdy_of(*protocols: str) -> dict[str, str]:
    return {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": ", ".join(protocols)}


V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
NOTHING: Final = "nothing runs in simulated pods: "
ONE_OF: Final = "you must specify at least 1 of stdin, stdout, stderr"


@rows(
    "name, method, target, headers, status, text",
    [
        ("no rule", "POST", "web-0/exec?command=ls&command=-l&stdout=1", spdy_of(V4), 400,
         f"{NOTHING}'ls -l' is not executed in pod web-0; say what a command answers with `exec:` rules, or start with --exec succeed"),
        ("no command", "POST", "web-0/exec?stdout=1", spdy_of(V4), 400, "you must specify a command"),
        ("a port", "POST", "web-0/portforward?ports=80", spdy_of(V4), 400, f"{NOTHING}no port of pod web-0 is open"),
        ("a proxy", "GET", "web-0/proxy", {}, 503,
         f"error trying to reach service: {NOTHING}none of their ports is open"),
        ("no upgrade", "POST", "web-0/exec?command=greet&stdout=1", {}, 400, "Upgrade request required"),
        ("no stream", "POST", "web-0/exec?command=greet", spdy_of(V4), 400, ONE_OF),
        ("stderr of a terminal", "POST", "web-0/exec?command=greet&stderr=1&tty=1", spdy_of(V4), 400, ONE_OF),
        ("another container", "POST", "web-0/exec?command=greet&container=x&stdout=1", spdy_of(V4), 400,
         "container x is not valid for pod web-0"),
        ("a node that is gone", "POST", "late-0/exec?command=greet&stdout=1", spdy_of(V4), 404, 'nodes "gone" not found'),
        ("another upgrade", "POST", "web-0/exec?command=greet&stdout=1", {"Connection": "Upgrade", "Upgrade": "h2c"}, 400,
         "the streams of a command need an upgrade to a WebSocket or to SPDY/3.1"),
        ("an old protocol", "POST", "web-0/exec?command=greet&stdout=1", spdy_of("v3.channel.k8s.io"), 403,
         "unable to upgrade: unable to negotiate protocol: client supports [v3.channel.k8s.io], "
         f"server accepts [{V5} {V4}]"),
        ("an old protocol of WebSockets", "GET", "web-0/exec?command=greet&stdout=1", web_socket("channel.k8s.io"), 400,
         f"the WebSocket of a command has one of the protocols {V5}, {V4}"),
        ("a WebSocket that is posted", "POST", "web-0/exec?command=greet&stdout=1", web_socket(V5), 405, "bad method"),
    ],
)  # fmt: skip
def test_a_stream_is_refused(
    api: Client, name: str, method: str, target: str, headers: dict[str, str], status: int, text: str
) -> None:
    code, _, body = api.exchange(method, f"{POD.removesuffix('web-0')}{target}", None, headers)
    message = json.loads(body)["message"] if body.startswith(b"{") else body.decode()
    assert (code, message) == (status, text), name


@rows(
    "query, expected",
    [
        ("", b"one\ntwo\nthree\n"),
        ("?tailLines=1", b"three\n"),
        ("?tailLines=0", b""),
        ("?tailLines=2&limitBytes=5", b"two\nt"),
        ("?previous=true", b'previous terminated container "c" in pod "web-0" not found'),
    ],
)
def test_a_log_is_what_the_annotation_says(api: Client, query: str, expected: bytes) -> None:
    code, _, body = api.exchange("GET", f"{POD}/log{query}", None, {})
    assert (body if code == 200 else json.loads(body)["message"].encode()) == expected


def frames_of(peer: Peer) -> Iterator[tuple[int, bytes]]:
    """The frames of the server up to its close: (opcode, payload)."""
    while True:
        first, size = peer.file.read(2)
        size = int.from_bytes(peer.file.read(2), "big") if size == 126 else size
        yield first & 0x0F, peer.file.read(size)
        if first & 0x0F == 8:
            return


@pytest.mark.parametrize(
    ("query", "protocols", "expected"),
    [
        ("command=greet&stdout=1&stderr=1", (V5,), [(1, b""), (1, b"hello\n"), (2, b"careful\n"), (3, SUCCESS)]),
        ("command=greet&stdout=1&tty=1", (V4,), [(1, b""), (1, b"hello\ncareful\n"), (3, SUCCESS)]),
        ("command=fail&stderr=1&stdin=1", ("x", V4, V5), [(2, b""), (2, b"no\n"), (3, FAILED)]),
        ("command=fail&stdin=1", (V5, V4), [(3, b""), (3, FAILED)]),
    ],
)
def test_a_command_over_a_websocket(peer: Peer, query: str, protocols: tuple[str, ...], expected: object) -> None:
    status, headers = peer.ask("GET", f"{POD}/exec?{query}", web_socket(*protocols))
    assert (status, headers["sec-websocket-protocol"]) == (101, next(name for name in protocols if name != "x"))
    peer.socket.sendall(bytes(500_000))  # stdin, which is dropped, whatever it is
    *frames, close = frames_of(peer)
    assert close == (8, b"\x03\xe8")
    got = [(data[0], json.loads(data[1:]) if data[0] == 3 and data[1:] else data[1:]) for _, data in frames]
    assert {opcode for opcode, _ in frames} == {2}
    assert got == expected


def test_much_output_is_sent_in_pieces() -> None:
    sent = outputs(["stdout"], CommandResult("x" * 40_000), ["much"], is_terminal=False)
    assert [len(message) for message in messages(sent)] == [3, 16_389, 16_389, 7_237, 37]


def frame_of(peer: Peer) -> tuple[int, int, bytes]:
    """(Stream or kind of a control frame, flags, payload) of the next frame of the server."""
    head = peer.file.read(8)
    kind, size = int.from_bytes(head[:4], "big"), int.from_bytes(head[5:], "big")
    return kind, head[4], peer.file.read(size)


@pytest.mark.parametrize(
    ("command", "outputs", "status"),
    [
        ("greet", (b"hello\n", b"careful\n"), SUCCESS),
        ("fail", (b"", b"no\n"), FAILED),
        ("much", (b"x" * 100_000, b""), SUCCESS),
    ],
)
def test_a_command_over_spdy(peer: Peer, command: str, outputs: tuple[bytes, bytes], status: object) -> None:
    target = f"{POD}/exec?command={command}&stdin=1&stdout=1&stderr=1"
    code, headers = peer.ask("POST", target, spdy_of(V4, "v3.channel.k8s.io"))
    assert (code, headers["upgrade"], headers["x-stream-protocol-version"]) == (101, "SPDY/3.1", V4)
    client, inflate = ClientSpdy(), zlib.decompressobj(zdict=spdy.DICTIONARY)
    for id_, name in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")):
        peer.socket.sendall(client.open(id_, streamtype=name))
        kind, _, payload = frame_of(peer)
        assert (kind, payload[:4], inflate.decompress(payload[4:])) == (0x80030002, id_.to_bytes(4, "big"), bytes(4))
    got, ended = {1: b"", 5: b"", 7: b""}, set[int]()
    while len(ended) < 3:
        id_, flags, payload = frame_of(peer)
        got[id_] += payload
        ended |= {id_} if flags & 1 else set()
    assert (got[5], got[7]) == outputs
    assert json.loads(got[1]) == status
    peer.socket.sendall(spdy.pong(3))
    assert frame_of(peer) == (0x80030006, 0, (3).to_bytes(4, "big"))


def test_a_client_that_breaks_spdy_is_disconnected(peer: Peer) -> None:
    assert peer.ask("POST", f"{POD}/exec?command=greet&stdout=1", spdy_of(V4))[0] == 101
    peer.socket.sendall(bytes(8))
    assert frame_of(peer) == (0x80030007, 0, bytes(4) + (1).to_bytes(4, "big"))
    assert peer.file.read() == b""


KUBECTL: Final = [
    ("true", "exec web-0 -- greet", 0, "hello\ncareful\n"),
    ("false", "exec web-0 -- greet", 0, "hello\ncareful\n"),
    ("true", "exec -i web-0 -- fail", 3, "no\ncommand terminated with exit code 3\n"),
    ("false", "exec -i web-0 -- fail", 3, "no\ncommand terminated with exit code 3\n"),
    ("false", "attach web-0", 0, "one\ntwo\nthree\n"),
    ("true", "logs web-0 --tail 1", 0, "three\n"),
    ("true", "exec web-0 -- ls", 1, "nothing runs in simulated pods: 'ls' is not executed in pod web-0"),
    ("true", "port-forward web-0 8080:80", 1, "nothing runs in simulated pods: no port of pod web-0 is open"),
]


@pytest.mark.slow(every=8)
@pytest.mark.parametrize(("websockets", "command", "code", "output"), KUBECTL)
def test_kubectl(server: Noxu, tmp_path: Path, websockets: str, command: str, code: int, output: str) -> None:
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]),
        "HOME": str(tmp_path),
        "KUBECONFIG": str(server.kubeconfig),
        "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets,
    }
    process = subprocess.run(
        ["kubectl", *command.split()],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
        input="x",
    )
    assert process.returncode == code, process.stderr
    assert output in process.stdout + process.stderr
