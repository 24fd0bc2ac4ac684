"""A suite in Go with controller-runtime's envtest, also by the commands of the documentation.

It is built from the module cache; nothing is downloaded.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from noxu.envtest import assets
from tests.docs.blocks import blocks
from tests.optional import skip_without_program
from tests.timing import HANGS_AFTER

SOURCES: Final = Path(__file__).with_name("suite")
OFFLINE: Final = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
BUILD_TIMEOUT: Final = 1200  # seconds: the first build on a machine compiles all of client-go


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the suite, with its test program."""
    if not shutil.which("go"):
        skip_without_program("go")
    directory = tmp_path_factory.mktemp("go") / "suite"
    shutil.copytree(SOURCES, directory)
    command = ["go", "test", "-c", "-o", "suite.test", "."]
    built = subprocess.run(
        command,
        check=False,
        cwd=directory,
        env=os.environ | OFFLINE,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT,
    )
    if "GOPROXY=off" in built.stderr or "requires go >=" in built.stderr:
        skip_without_program("go with controller-runtime in its module cache")
    assert built.returncode == 0, built.stderr
    return directory


@pytest.mark.timeout(BUILD_TIMEOUT + 600)
def test_an_environment_has_users_definitions_and_webhooks(suite: Path, tmp_path: Path) -> None:
    folder = tmp_path / "assets"
    assets.write(folder)
    ran = subprocess.run(
        ["./suite.test"],
        check=False,
        cwd=suite,
        env=os.environ | {"KUBEBUILDER_ASSETS": str(folder), "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT": "true"},
        capture_output=True,
        text=True,
        timeout=5 * HANGS_AFTER,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


BLOCKS: Final = (
    "README.md sh eval $(noxu envtest env)",
    "docs/envtest.md sh pip install noxu",
    "docs/envtest.md sh export NOXU_NODES=3",  # workloads_test.go
)


@pytest.mark.timeout(BUILD_TIMEOUT + 600)
@pytest.mark.parametrize("name", BLOCKS)
def test_the_commands_of_a_page(name: str, suite: Path, tmp_path: Path) -> None:
    """All but the installation, in the folder of the suite. The programs are written into the cache of a new user."""
    found = subprocess.run(["go", "env", "GOCACHE"], check=True, capture_output=True, text=True)
    program = tmp_path / "bin" / "noxu"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m noxu "$@"\n')
    program.chmod(0o755)
    [text] = [block.text for block in blocks() if block.name == name]
    ran = subprocess.run(
        ["/bin/sh", "-ec", text.replace("pip install noxu\n", "")],
        check=False,
        cwd=suite,
        env=os.environ
        | OFFLINE
        | {
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(tmp_path),
            "GOCACHE": found.stdout.strip(),
        },
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT,
    )
    assert (ran.returncode, ran.stdout.split()[:2]) == (0, ["ok", "suite"]), ran.stdout + ran.stderr
    assert (tmp_path / "noxu").exists()
