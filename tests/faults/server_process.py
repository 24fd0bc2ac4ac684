"""A server in a process of its own, and the requests that tests send to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.optional import skip_without_platform
from tests.timing import HANGS_AFTER, cpu_seconds_of

ROOT = Path(__file__).parents[2]
MAPS = "/api/v1/namespaces/default/configmaps"


class Process:
    """A server that stores below `directory`. `cpu_seconds` is the processor time of its start.

    `command` runs the server; `serve` and its options are appended, with further `options`. The default is `python -m noxu`. In the profile
    envtest no controller adds objects to namespaces.
    """

    def __init__(
        self,
        directory: Path,
        port: int,
        command: Sequence[str] = ("-m", "noxu"),
        *,
        profile: str = "envtest",
        options: Sequence[str] = (),
    ) -> None:
        self.directory, self.port = directory, port
        (directory / "tmp").mkdir(exist_ok=True)
        arguments = ["serve", "--data", str(directory / "data"), "--port", str(port), "--profile", profile, *options]
        self.process = subprocess.Popen(
            [sys.executable, *command, *arguments, "--kubeconfig", str(directory / "kubeconfig")],
            cwd=ROOT,
            env=os.environ | {"TMPDIR": str(directory / "tmp")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline()
        self.cpu_seconds = cpu_seconds_of(self.process.pid)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, value: Any = None) -> tuple[int, Any]:
        with contextlib.closing(self.connect()) as connection:
            return exchange(connection, method, path, value)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGS_AFTER)

    def end(self, number: signal.Signals) -> str:
        """Send the signal and wait for the end. The rest of the server's output."""
        self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=HANGS_AFTER)
        return output

    def resident_bytes(self) -> int:
        """Its memory; 0 where there is no /proc."""
        status = Path(f"/proc/{self.process.pid}/status")
        found = re.search(r"VmRSS:\s+(\d+)", status.read_text()) if status.exists() else None
        return int(found[1]) * 1024 if found else 0


def exchange(connection: http.client.HTTPConnection, method: str, path: str, value: Any = None) -> tuple[int, Any]:
    body = None if value is None else json.dumps(value)
    connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        found: int = free.getsockname()[1]
        return found


@contextlib.contextmanager
def many_files(count: int) -> Iterator[None]:
    """Allow so many open files, in this process and in the server."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        skip_without_platform(f"{count} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
