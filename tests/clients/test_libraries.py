"""Python client libraries. Each is used by a program in `programs`, which asserts the results.

The programs run in processes of their own, because some libraries leave connections or threads open.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from noxu.testing.handle import Noxu
from tests.optional import require_package
from tests.timing import HANGS_AFTER

PROGRAMS = sorted(Path(__file__).with_name("programs").glob("with_*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem.removeprefix("with_"))
def test_the_library_works_against_the_server(
    program: Path, server: Noxu, new_namespace: Callable[[], str], tmp_path: Path
) -> None:
    require_package(program.stem.removeprefix("with_"))
    process = subprocess.run(
        [sys.executable, program, server.kubeconfig, new_namespace()],
        check=False,
        env={**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(server.kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=5 * HANGS_AFTER,
    )
    if process.returncode:
        pytest.fail(process.stdout[-4000:], pytrace=False)
