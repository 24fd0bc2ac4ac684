"""`./release` builds nothing without its tools. What it builds is tested beside this file, and by the script itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_failing_step_ends_it_before_anything_is_removed(tmp_path: Path) -> None:
    (tmp_path / "release").write_bytes((ROOT / "release").read_bytes())
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "old").touch()
    ran = subprocess.run(
        ["/bin/sh", "release"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHON": "false", "PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)},
    )
    assert (ran.returncode, ran.stdout) == (1, "== tools\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dist", "release"]
    assert (tmp_path / "dist" / "old").exists()


def test_it_uploads_nothing() -> None:
    commands = [line for line in (ROOT / "release").read_text().splitlines() if not line.startswith("#")]
    assert [
        line for line in commands if any(word in line for word in ("upload", "twine", "publish", "push", "curl"))
    ] == []
