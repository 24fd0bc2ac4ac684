"""`.ci/run` installs a browser where it can, and runs the checks whatever becomes of that."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ({"id": "echo 0", "apt-get": "exit 100"}, "ci: Chromium cannot be installed"),
        ({"id": "echo 0", "apt-get": "exit 0"}, ""),
        ({"id": "echo 0", "apt-get": "exit 100", "chromium": ""}, ""),
        ({"id": "echo 1000", "apt-get": "exit 100"}, ""),
        ({"id": "echo 0"}, ""),
    ],
    ids=["without a network", "with a network", "with a browser", "as a user", "on another system"],
)
def test_the_checks_run(tmp_path: Path, programs: dict[str, str], said: str) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    commands = {
        "check": "echo the checks, $HYPOTHESIS_PROFILE",
        **{f"path/{name}": line for name, line in programs.items()},
    }
    (tmp_path / "path").mkdir()
    for name, line in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    for name in ("dirname", "sh", "timeout"):
        program = shutil.which(name)
        assert program
        (tmp_path / "path" / name).symlink_to(program)
    ran = subprocess.run(
        ["/bin/sh", ".ci/run"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PATH": str(tmp_path / "path")},
    )
    assert (ran.returncode, ran.stdout) == (0, "the checks, gate\n")
    assert ran.stderr.startswith(said)
    assert bool(ran.stderr) == bool(said)
