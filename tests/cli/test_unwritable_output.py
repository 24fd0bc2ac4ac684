"""A standard output that is full or closed: a sentence instead of a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NOXU = f"{sys.executable} -m noxu"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="platform: /dev/full")
@pytest.mark.parametrize(
    ("command", "status", "errors"),
    [
        (f"{NOXU} version >/dev/full", 1, "noxu: the output cannot be written: No space left on device\n"),
        (f"{NOXU} version >&-", 0, ""),
        (f"{NOXU} help >&- 2>&-", 0, ""),
        (f"exec 3>&1; {{ {NOXU} completion bash; echo $? >&3; }} | true; exit 0", 0, ""),
    ],
    ids=["full", "closed", "all closed", "the reader is gone"],
)
def test_no_traceback(command: str, status: int, errors: str) -> None:
    ran = subprocess.run(["sh", "-c", command], check=False, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (status, errors)
