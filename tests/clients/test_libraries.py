"""Python libraries against a server: each is used by a program of its own, which asserts what it sees.

They do not share a process with the tests: some leave connections open, or threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from apiserver.testing.handle import Noxu

PROGRAMS = sorted(Path(__file__).with_name("programs").glob("with_*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem.removeprefix("with_"))
def test_a_library(program: Path, server: Noxu, new_namespace: Callable[[], str], tmp_path: Path) -> None:
    library = program.stem.removeprefix("with_")
    if not find_spec(library):
        pytest.skip(f"{library} is not installed")
    ran = subprocess.run(
        [sys.executable, program, server.kubeconfig, new_namespace()],
        check=False,
        env={**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(server.kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
    )
    if ran.returncode:
        pytest.fail(ran.stdout[-4000:], pytrace=False)
