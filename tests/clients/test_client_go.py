"""A program that uses client-go. It is built from the module cache; nothing is downloaded."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from noxu.testing.handle import Noxu
from tests.optional import skip_without_program
from tests.timing import HANGS_AFTER

SOURCES = Path(__file__).with_name("informer")
OFFLINE = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
BUILD_TIMEOUT = 1200  # seconds: the first build on a machine compiles all of client-go


def build(folder: Path, package: str) -> Path:
    """The program of a package of the module, built in a folder that does not exist."""
    if not shutil.which("go"):
        skip_without_program("go")
    shutil.copytree(SOURCES, folder)
    built = subprocess.run(
        ["go", "build", "-o", "program", package],
        check=False,
        cwd=folder,
        env={**os.environ, **OFFLINE},
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT,
    )
    if "GOPROXY=off" in built.stderr or "requires go >=" in built.stderr:
        skip_without_program("go with client-go in its module cache")
    assert built.returncode == 0, built.stderr
    return folder / "program"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("go") / "informer", ".")


@pytest.mark.timeout(BUILD_TIMEOUT + 600)
@pytest.mark.parametrize("streamed", ["true", "false"], ids=["streamed list", "list and watch"])
def test_client_go_works_against_the_server(
    program: Path, server: Noxu, new_namespace: Callable[[], str], streamed: str
) -> None:
    process = subprocess.run(
        [program, server.kubeconfig, new_namespace()],
        check=False,
        env={**os.environ, "KUBE_FEATURE_WatchListClient": streamed},
        capture_output=True,
        text=True,
        timeout=5 * HANGS_AFTER,
    )
    assert process.stdout.split() == ["informer", "typed", "metadata", "mapping", "election"], (
        process.stdout + process.stderr
    )
