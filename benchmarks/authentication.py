"""Measures what credentials cost: processor time of the server for a GET by each kind of user, compared with an anonymous one.

    python -m benchmarks.authentication [--requests N] [--rounds N]

The server runs in a process of its own. The kinds take turns, and the fastest round of each counts. A first request,
which verifies the signature of a token, is shown by itself.
"""

from __future__ import annotations

import argparse
import http.client
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]
PATH = "/api/v1/namespaces/default"
ACCOUNT = f"{PATH}/serviceaccounts/default/token"


class Served:
    """A server in a process of its own, and one connection to it."""

    def __init__(self, directory: Path) -> None:
        (directory / "tokens").write_text("static,jane,1,g\n")
        kubeconfig = directory / "kubeconfig"
        options = [
            "--memory",
            "--port",
            "0",
            "--kubeconfig",
            str(kubeconfig),
            "--token-auth-file",
            str(directory / "tokens"),
        ]
        command = [sys.executable, "-m", "noxu", "serve", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
        while not kubeconfig.exists():
            if self.process.poll() is not None:
                raise SystemExit("the server did not start")
            time.sleep(0.01)
        url = urlsplit(json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
        self.connection = http.client.HTTPConnection(url.hostname or "", url.port)

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> bytes:
        self.connection.request(method, path, body, dict(headers))
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status}")
        return text

    def seconds(self) -> float:
        """The processor time of the server."""
        fields = Path(f"/proc/{self.process.pid}/schedstat").read_text().split()
        return int(fields[0]) / 1e9

    def stop(self) -> None:
        self.connection.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def token(served: Served) -> dict[str, str]:
    body = served.send("POST", ACCOUNT, {"Content-Type": "application/json"}, b"{}")
    return {"Authorization": f"Bearer {json.loads(body)['status']['token']}"}


def microseconds(served: Served, headers: Mapping[str, str], requests: int) -> float:
    """Of the processor, for one request."""
    begin = served.seconds()
    for _ in range(requests):
        served.send("GET", PATH, headers)
    return (served.seconds() - begin) / requests * 1e6


def first_uses(served: Served, requests: int) -> float:
    """Microseconds for a request with a token that the server has not seen yet."""
    tokens = [token(served) for _ in range(requests)]
    begin = served.seconds()
    for headers in tokens:
        served.send("GET", PATH, headers)
    return (served.seconds() - begin) / requests * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="What credentials cost.")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        served = Served(Path(directory))
        try:
            kinds = {
                "anonymous": {},
                "static token": {"Authorization": "Bearer static"},
                "service account": token(served),
                "impersonation": {"Authorization": "Bearer static", "Impersonate-User": "bob"},
            }
            found: dict[str, list[float]] = {name: [] for name in kinds}
            for _ in range(options.rounds):
                for name, headers in kinds.items():
                    found[name].append(microseconds(served, headers, options.requests))
            first = first_uses(served, 200)
        finally:
            served.stop()
    least = {name: min(values) for name, values in found.items()} | {"first use of a token": first}
    print(f"{'microseconds for a GET':<24} {'':>8} {'ratio':>6}")
    for name, value in least.items():
        print(f"{name:<24} {value:>8.1f} {value / least['anonymous']:>6.2f}")


if __name__ == "__main__":
    main()
