"""A smoke test of an installed `noxu`: does it start, serve a CRD, refuse what is invalid, and stop?

    python distribution/smoke.py COMMAND...        # such as .venv/bin/noxu, or python noxu.pyz

It needs the standard library only, and talks to the server that it starts. Exit status 0: all is well; otherwise an
exception says what is not.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

WITHIN: Final = 120.0  # seconds for each step; the first run of a single file unpacks it
CRD: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}},
                                "x-kubernetes-validations": [{"rule": "self.name != 'b'"}],
                            }
                        },
                    }
                },
            }
        ],
    },
}
WIDGETS: Final = "/apis/example.com/v1/namespaces/default/widgets"
WRITES: Final = (("a", 201), ("A", 422), ("b", 422))
"""Names of widgets, and the codes with which their creation is answered: valid, not of the pattern, refused by the rule."""


def smoke(command: Sequence[str]) -> None:
    """Raises AssertionError, CalledProcessError, TimeoutError."""
    version = subprocess.run([*command, "--version"], check=True, capture_output=True, text=True, timeout=WITHIN).stdout
    assert version.startswith("noxu "), version
    with tempfile.TemporaryDirectory() as name:
        kubeconfig, crd = Path(name) / "kubeconfig", Path(name) / "crd.json"
        crd.write_text(json.dumps(CRD))
        subprocess.run([*command, "validate", "-f", str(crd)], check=True, capture_output=True, timeout=WITHIN)
        arguments = ["serve", "--memory", "--port", "0", "--kubeconfig", str(kubeconfig), str(crd)]
        server = subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL)
        try:
            _use(_url(server, kubeconfig))
            server.send_signal(signal.SIGTERM)
            assert server.wait(WITHIN) == 0
            assert not kubeconfig.exists()
        finally:
            server.kill()
            server.wait()


def _url(server: subprocess.Popen[bytes], kubeconfig: Path) -> str:
    """The URL of a server when it is ready."""
    end = time.monotonic() + WITHIN
    while not kubeconfig.exists():
        if server.poll() is not None:
            raise AssertionError(f"the server ended with the status {server.returncode}")
        if time.monotonic() > end:
            raise TimeoutError("the server is not ready")
        time.sleep(0.01)
    return str(json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])


def _use(url: str) -> None:
    assert _request(f"{url}/readyz") == (200, b"ok")
    for name, code in WRITES:
        widget = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"generateName": "w-"},
            "spec": {"name": name},
        }
        found, body = _request(f"{url}{WIDGETS}", widget)
        assert found == code, body
    _, body = _request(f"{url}{WIDGETS}")
    assert [item["spec"]["name"] for item in json.loads(body)["items"]] == ["a"]


def _request(url: str, value: Any = None) -> tuple[int, bytes]:
    """The code and the body of the answer; a POST if there is a value."""
    body = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=WITHIN) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


if __name__ == "__main__":
    smoke(sys.argv[1:])
    sys.stdout.write(f"smoke test passed: {' '.join(sys.argv[1:])}\n")
