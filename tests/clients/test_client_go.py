"""client-go, through a small program that is built where Go and client-go are on the machine: nothing is downloaded."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from apiserver.testing.handle import Noxu

SOURCES = Path(__file__).with_name("informer")
OFFLINE = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
PATIENCE = 120  # seconds for a build


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("go"):
        pytest.skip("there is no Go here")
    here = tmp_path_factory.mktemp("go") / "informer"
    shutil.copytree(SOURCES, here)
    try:
        built = subprocess.run(
            ["go", "build", "-o", "program", "."],
            check=False,
            cwd=here,
            env={**os.environ, **OFFLINE},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("the first build on this machine takes long; what is built is kept for the next one")
    if "GOPROXY=off" in built.stderr or "requires go >=" in built.stderr:
        pytest.skip("client-go is not here, or another Go than it needs")
    assert built.returncode == 0, built.stderr
    return here / "program"


@pytest.mark.timeout(PATIENCE + 100)
@pytest.mark.parametrize("streamed", ["true", "false"], ids=["the list is streamed", "the list is a list"])
def test_what_controllers_do(program: Path, server: Noxu, new_namespace: Callable[[], str], streamed: str) -> None:
    ran = subprocess.run(
        [program, server.kubeconfig, new_namespace()],
        check=False,
        env={**os.environ, "KUBE_FEATURE_WatchListClient": streamed},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ran.stdout.split() == ["informer", "typed", "metadata", "mapping", "election"], ran.stdout + ran.stderr
