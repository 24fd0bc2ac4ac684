"""The stand-in for etcd, run as a test suite runs it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from noxu.envtest import data_directory, etcd
from tests.timing import HANGS_AFTER, eventually


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextlib.contextmanager
def started(*words: str, cwd: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-I", "-S", etcd.__file__, *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(port: int, request: bytes) -> bytes:
    """The answer, until the server closes the connection."""

    def connected() -> socket.socket | None:
        try:
            return socket.create_connection(("127.0.0.1", port), HANGS_AFTER)
        except ConnectionRefusedError:
            return None

    connection = eventually(connected)
    assert connection is not None
    with connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(4096):
            answer += part
    return answer


def get(port: int, path: str) -> tuple[int, bytes]:
    head, _, body = ask(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()).partition(b"\r\n\r\n")
    return int(head.split()[1]), body


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def running(tmp_path: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    with started(f"--data-dir={tmp_path / 'd'}", f"--listen-client-urls=http://127.0.0.1:{port}") as process:
        yield process


ANSWERS = {
    "/health": (200, b'{"health":"true","reason":""}'),
    "/health?serializable=true": (200, b'{"health":"true","reason":""}'),
    "/readyz": (200, b"ok\n"),
    "/livez": (200, b"ok\n"),
    "/version": (200, b'{"etcdserver":"3.6.5","etcdcluster":"3.6.0","storage":"3.6.0"}'),
    "/metrics": (200, b""),
    "/v3/kv/range": (404, b"404 page not found\n"),
}


def test_requests_are_answered(running: object, port: int) -> None:
    assert {path: get(port, path) for path in ANSWERS} == ANSWERS


GARBAGE = {
    "nothing": b"",
    "no request": b"\x00\xff" * 100 + b"\r\n\r\n",
    "HTTP/2, as gRPC speaks it": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a handshake of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "endless headers": b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 10_000,
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_it_survives(running: subprocess.Popen[bytes], port: int, data: bytes) -> None:
    assert get(port, "/health")[0] == 200
    with socket.create_connection(("127.0.0.1", port)) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(data)
    assert get(port, "/health")[0] == 200
    assert running.poll() is None


def test_idle_connections_do_not_prevent_others(running: object, port: int) -> None:
    assert get(port, "/health")[0] == 200
    with contextlib.ExitStack() as idle:
        for _ in range(2 * etcd.MAX_CONNECTIONS):
            idle.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert get(port, "/health")[0] == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(running: subprocess.Popen[bytes], port: int, number: signal.Signals) -> None:
    assert get(port, "/health")[0] == 200
    running.send_signal(number)
    assert running.wait(HANGS_AFTER) == -number
    assert running.stderr is not None
    assert running.stderr.read() == b""


DIRECTORIES = {
    "one dash, as kube-api-test": (["-data-dir", "a b", "-wal-dir", "w", "--listen-client-urls", "http://0.0.0.0:{port}"], "a b", True),
    "two dashes, as envtest": (["--data-dir=ü", "--listen-client-urls=http://127.0.0.1:{port}", "--unsafe-no-fsync=true"], "ü", False),
    "a boolean without a value": (["--unsafe-no-fsync", "--data-dir", "d", "--listen-client-urls=http://localhost:{port}"], "d", False),
    "the default folder": (["--listen-client-urls=http://127.0.0.1:{port},http://127.0.0.1:1"], "default.etcd", True),
}  # fmt: skip


@pytest.mark.parametrize(("words", "folder", "fsync"), DIRECTORIES.values(), ids=DIRECTORIES)
def test_kube_apiserver_finds_the_data_directory(
    tmp_path: Path, port: int, words: list[str], folder: str, fsync: bool
) -> None:
    with started(*(word.format(port=port) for word in words), cwd=tmp_path):
        found = data_directory.find([f"http://0.0.0.0:{port}"], wait=HANGS_AFTER)
    assert found == data_directory.DataDirectory(tmp_path / folder, fsync)
    assert (tmp_path / folder).is_dir()


def test_where_no_etcd_listens_nothing_is_found(port: int) -> None:
    assert data_directory.find([f"http://127.0.0.1:{port}", "http://127.0.0.1:99999"], wait=0) is None


def test_what_is_not_this_etcd_is_another_one(port: int) -> None:
    urls = [f"http://127.0.0.1:{port}", "https://127.0.0.1:1"]
    assert data_directory.find(urls, wait=0) == data_directory.OtherEtcd(tuple(urls))
    assert data_directory.find(["unix:///tmp/etcd"], wait=0) == data_directory.OtherEtcd(("unix:///tmp/etcd",))


OTHERS = {
    "nothing": b"",
    "a page that does not exist": b"HTTP/1.1 404 Not Found\r\n\r\n404 page not found\n",
    "something else": b"HTTP/1.1 200 OK\r\n\r\nhello\n/etc",
}


@pytest.mark.parametrize("answer", OTHERS.values(), ids=OTHERS)
def test_another_etcd_answers(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, ThreadPoolExecutor(1) as pool:

        def reply() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        replied = pool.submit(reply)
        url = f"http://127.0.0.1:{other.getsockname()[1]}"
        assert data_directory.find([url], wait=0) == data_directory.OtherEtcd((url,))
        replied.result()


FAILURES = {
    "TLS": (
        ["--listen-client-urls=https://127.0.0.1:1"],
        "is not http://HOST:PORT, the only form that this etcd knows",
    ),
    "a port out of range": (["--listen-client-urls=http://127.0.0.1:99999"], "cannot start: "),
    "a file as the folder": (["--data-dir=/dev/null", "--listen-client-urls=http://127.0.0.1:1"], "cannot start: "),
}


@pytest.mark.parametrize(("words", "message"), FAILURES.values(), ids=FAILURES)
def test_it_does_not_start(tmp_path: Path, words: list[str], message: str) -> None:
    with started(*words, cwd=tmp_path) as process:
        out, err = process.communicate(timeout=HANGS_AFTER)
    assert (process.returncode, out) == (1, b"")
    assert message in os.fsdecode(err)


def test_a_port_in_use_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"http://127.0.0.1:{other.getsockname()[1]}"
        with started(f"--data-dir={tmp_path}", f"--listen-client-urls={url}") as process:
            _, err = process.communicate(timeout=HANGS_AFTER)
    assert process.returncode == 1
    assert b"Address already in use" in err


PREFIXES = {"/registry": "registry", "registry/": "registry", "/a/b": "a%2Fb", "/": "%2F", "/..": "%2E%2E"}


@pytest.mark.parametrize(("prefix", "folder"), PREFIXES.items())
def test_a_prefix_has_a_folder_of_its_own(prefix: str, folder: str) -> None:
    assert data_directory.DataDirectory(Path("/d"), fsync=True).of_prefix(prefix) == Path("/d/noxu", folder)
