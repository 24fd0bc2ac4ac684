"""Client libraries that do what a test says: programs that read a command a line, and answer with a line of JSON.

The commands are those of `informer/driven/main.go`. kube-rs is skipped unless it was built before, by `cargo build` in
`kube_rs`, which compiles 200 crates: nothing is downloaded here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Self

import pytest

from tests.clients.test_client_go import BUILD_TIMEOUT, build
from tests.optional import require_package, skip_without_program

PROGRAMS: Final = Path(__file__).with_name("programs")
KUBE_RS: Final = Path(__file__).with_name("kube_rs")


class Driven:
    """A process of a client, which calls itself `agent` (a pattern). It is killed when the context is left."""

    def __init__(
        self, name: str, command: list[str | Path], environment: dict[str, str], agent: str = "driven/*"
    ) -> None:
        self.name, self.agent = name, agent
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


Built = Callable[[], Path]
"""The program of client-go; it is built at the first call, or the test is skipped."""


def client_go(kubeconfig: Path, built: Built, *, streamed: bool) -> Driven:
    """client-go, with streamed lists or with lists and watches."""
    name = "client-go, streamed list" if streamed else "client-go"
    return Driven(name, [built(), kubeconfig], {"KUBE_FEATURE_WatchListClient": str(streamed).lower()})


def python(kubeconfig: Path, _: Built) -> Driven:
    require_package("kubernetes")
    return Driven("kubernetes", [sys.executable, PROGRAMS / "driven_kubernetes.py", kubeconfig], {})


def kube_rs(kubeconfig: Path, *, streamed: bool) -> Driven:
    """kube-rs, with streamed lists or with lists and watches."""
    program, more = kube_rs_built(), ["streamed"] if streamed else []
    name = "kube-rs, streamed list" if streamed else "kube-rs"
    return Driven(name, [program, *more], {"KUBECONFIG": str(kubeconfig)})


@cache
def kube_rs_built() -> Path:
    """The program of kube-rs, which is built again if its source is newer."""
    program = KUBE_RS / "target/debug/driven"
    if not shutil.which("cargo") or not program.exists():
        skip_without_program("cargo, with tests/clients/kube_rs built")
    command = ["cargo", "build", "--offline", "--quiet"]
    built = subprocess.run(command, check=False, cwd=KUBE_RS, capture_output=True, text=True, timeout=BUILD_TIMEOUT)
    assert built.returncode == 0, built.stderr
    return program


def kopf(kubeconfig: Path) -> Driven:
    require_package("kopf")
    return Driven("kopf", [sys.executable, PROGRAMS / "driven_kopf.py", kubeconfig], {}, "kopf/*")


CLIENTS: Final[dict[str, Callable[[Path, Built], Driven]]] = {
    "client-go": lambda kubeconfig, built: client_go(kubeconfig, built, streamed=False),
    "client-go, streamed list": lambda kubeconfig, built: client_go(kubeconfig, built, streamed=True),
    "kubernetes": python,
    "kube-rs": lambda kubeconfig, _: kube_rs(kubeconfig, streamed=False),
    "kube-rs, streamed list": lambda kubeconfig, _: kube_rs(kubeconfig, streamed=True),
}
"""Those with all commands. An operator of kopf follows, and has no others of theirs."""


@cache
def built_in(base: Path) -> Path:
    """The program of client-go, which is built once below the directory of a run."""
    return build(Path(tempfile.mkdtemp(prefix="client", dir=base)) / "module", "./driven")


@pytest.fixture(scope="module", params=CLIENTS)
def client(request: pytest.FixtureRequest, server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    """A client of the server."""
    start = CLIENTS | {"kopf": lambda kubeconfig, _: kopf(kubeconfig)}
    with start[request.param](server.kubeconfig, partial(built_in, tmp_path_factory.getbasetemp())) as driven:
        yield driven
