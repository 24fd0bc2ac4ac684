"""kubectl against the `server` of a module."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

import pytest

from noxu.testing.handle import Noxu
from tests.optional import skip_without_program
from tests.timing import HANGS_AFTER

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def kubectl(server: Noxu, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """Runs a command whose words have no spaces, and returns what it prints."""
    if not (program := shutil.which("kubectl")):
        skip_without_program("kubectl")
    home = tmp_path_factory.mktemp("home")
    environment = {**os.environ, "HOME": str(home), "KUBECONFIG": str(server.kubeconfig)}

    def run(command: str) -> str:
        ran = subprocess.run(
            [str(program), *command.split()],
            check=False,
            env=environment,
            capture_output=True,
            text=True,
            timeout=2 * HANGS_AFTER,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    return run
