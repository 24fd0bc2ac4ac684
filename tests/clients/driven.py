"""Client libraries that do what a test says: programs that read a command a line, and answer with a line of JSON.

The commands are those of `informer/driven/main.go`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Self

import pytest

from tests.clients.test_client_go import build
from tests.optional import require_package

PYTHON: Final = Path(__file__).with_name("programs") / "driven_kubernetes.py"


class Driven:
    """A process of a client. It is killed when the context is left."""

    def __init__(self, name: str, command: list[str | Path], environment: dict[str, str]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            command,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __call__(self, *words: object) -> Any:
        """The answer to a command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(*words, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, f"{self.name} has ended"
        return json.loads(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.kill()


def client_go(kubeconfig: Path, folder: Path, *, streamed: bool) -> Driven:
    """client-go, with streamed lists or with lists and watches. It is built, or the test is skipped."""
    name = "client-go, streamed list" if streamed else "client-go"
    return Driven(
        name, [build(folder, "./driven"), kubeconfig], {"KUBE_FEATURE_WatchListClient": str(streamed).lower()}
    )


def python(kubeconfig: Path, _: Path) -> Driven:
    require_package("kubernetes")
    return Driven("kubernetes", [sys.executable, PYTHON, kubeconfig], {})


CLIENTS: Final[dict[str, Callable[[Path, Path], Driven]]] = {
    "client-go": lambda kubeconfig, folder: client_go(kubeconfig, folder, streamed=False),
    "client-go, streamed list": lambda kubeconfig, folder: client_go(kubeconfig, folder, streamed=True),
    "kubernetes": python,
}


@pytest.fixture(scope="module", params=CLIENTS)
def client(request: pytest.FixtureRequest, server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    """A client of the server."""
    folder = tmp_path_factory.mktemp("client") / "module"
    with CLIENTS[request.param](server.kubeconfig, folder) as driven:
        yield driven
