"""One server with three nodes, whose clock stands, and kubectl: for all tests of workloads as a person sees them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest

from noxu.testing.handle import Noxu
from tests.optional import skip_without_program
from tests.timing import HANGS_AFTER

Kubectl = Callable[..., str]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    with Noxu(tmp_path_factory.mktemp("server"), nodes=3) as server:
        server.clock.freeze()
        for node in server.wait("nodes", "Ready", count=3):
            server.patch(node, {"spec": {"taints": None}})  # they are new, and not ready for a moment
        yield server


@pytest.fixture(scope="session")
def kubectl(server: Noxu, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """Runs a command, and returns what it prints; `fails`: it must end with status 1, and this is its error."""
    if not (program := shutil.which("kubectl")):
        skip_without_program("kubectl")
    home = tmp_path_factory.mktemp("home")
    environment = {**os.environ, "HOME": str(home), "KUBECONFIG": str(server.kubeconfig)}

    def run(command: str, *, fails: bool = False) -> str:
        ran = subprocess.run(
            [str(program), *command.split()],
            check=False,
            env=environment,
            capture_output=True,
            text=True,
            timeout=2 * HANGS_AFTER,
        )
        assert ran.returncode == int(fails), ran.stderr
        return ran.stderr if fails else ran.stdout

    return run
