"""The audit log of a server that is killed: lines are whole, but for the last one."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import ssl
import threading
from pathlib import Path
from typing import Any

from tests.faults.server_process import MAPS, Process, exchange, free_port
from tests.timing import eventually

REQUESTS = 40


def started(directory: Path, *options: str) -> Process:
    return Process(directory, free_port(), options=["--audit-log-path", str(directory / "audit.log"), *options])


def ask_until_it_is_gone(server: Process, answered: list[int]) -> None:
    with (
        contextlib.suppress(OSError, ValueError, http.client.HTTPException),
        contextlib.closing(server.connect()) as connection,
    ):
        while True:
            answered.append(exchange(connection, "GET", MAPS)[0])


def test_a_server_that_is_killed_leaves_whole_lines(tmp_path: Path) -> None:
    server, answered = started(tmp_path), list[int]()
    clients = [threading.Thread(target=ask_until_it_is_gone, args=(server, answered)) for _ in range(3)]
    for client in clients:
        client.start()
    log = tmp_path / "audit.log"
    eventually(lambda: len(answered) > 200 and log.read_bytes().count(b"\n") > 100)  # a thread writes them, on any disk
    server.end(signal.SIGKILL)
    for client in clients:
        client.join()
    *whole, last = log.read_bytes().split(b"\n")
    events = [json.loads(line) for line in whole]
    assert len(events) > 100
    assert {event["responseStatus"]["code"] for event in events} == {200}
    assert last == b"" or not last.endswith(b"}")
    log.write_bytes(b"\n".join(whole) + b'\n{"kind":"Ev')  # as if the last write had been cut off
    again = started(tmp_path)
    again.ask("GET", MAPS)
    again.end(signal.SIGTERM)
    *before, torn, after = log.read_bytes().splitlines()
    assert [json.loads(line)["kind"] for line in (*before, after)] == ["Event"] * (len(before) + 1)
    assert torn == b'{"kind":"Ev'


def test_a_server_that_is_stopped_has_written_everything(tmp_path: Path) -> None:
    server = started(tmp_path, "--log", "json", "--log-requests", "--verbose")
    with contextlib.closing(server.connect()) as connection:
        for _ in range(REQUESTS):
            exchange(connection, "GET", MAPS)
    output = server.end(signal.SIGTERM)
    assert len((tmp_path / "audit.log").read_text().splitlines()) == REQUESTS
    lines: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    requests = [line for line in lines if line["message"] == "request"]
    assert [(line["verb"], line["path"], line["code"]) for line in requests] == [("list", MAPS, 200)] * REQUESTS


def test_the_audit_log_can_go_to_stdout(tmp_path: Path) -> None:
    server = Process(tmp_path, free_port(), options=["--audit-log-path", "-", "--quiet"])
    server.ask("GET", MAPS)
    output = server.end(signal.SIGTERM)
    [event] = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert event["requestURI"] == MAPS


def test_no_key_of_the_server_is_in_its_output(tmp_path: Path) -> None:
    """Its own keys, and the one of an administrator that its kubeconfig has."""
    server = Process(tmp_path, free_port(), options=["--audit-log-path", "-", "--tls", "--log-requests", "--verbose"])
    context = ssl._create_unverified_context()
    with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", server.port, context=context)) as connection:
        assert exchange(connection, "GET", MAPS)[0] in (200, 401, 403)
    assert (tmp_path / "kubeconfig").exists(), server.first_line
    kubeconfig = (tmp_path / "kubeconfig").read_text()
    keys = [file.read_text() for file in (tmp_path / "data").rglob("*.key")]
    output = server.first_line + server.end(signal.SIGTERM)
    secrets = [line for key in keys for line in key.splitlines() if "-----" not in line]
    secrets += re.findall(r"(?:token|client-key-data): *\"?([^\s\"]+)", kubeconfig)
    assert len(keys) > 1
    assert len(secrets) > len(keys)
    assert [secret for secret in secrets if secret in output] == []
    assert "PRIVATE KEY" not in output
