"""Many large requests at once: they wait for their turn, and the memory that they take together is bounded (S5)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.hostile.wire import Target, definition, path_of, thing

ROOT = Path(__file__).parents[2]
MEBIBYTE = 1024 * 1024
SIZE = int(os.environ.get("NOXU_BODY_KIB", "700")) * 1024  # of each body; 3000 takes a minute
AT_ONCE = 16
PIECES = {"empty objects": b"{},", "numbers": b"1,", "small texts": b'"a",'}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this machine does not tell what a process uses")
@pytest.mark.parametrize("shape", PIECES if SIZE > MEBIBYTE else ["empty objects"])
def test_sixteen_of_the_largest_bodies_at_once_take_less_than_a_gibibyte(tmp_path: Path, shape: str) -> None:
    (tmp_path / "crd.json").write_text(json.dumps(definition("drops")))
    sent = (
        json.dumps(thing("Drop", "x", "SPEC"))
        .encode()
        .replace(b'"SPEC"', b'{"a":[%b1]}' % (PIECES[shape] * (SIZE // len(PIECES[shape]))))
    )
    arguments = [
        "serve",
        "--memory",
        "--port",
        "0",
        "--kubeconfig",
        str(tmp_path / "kubeconfig"),
        str(tmp_path / "crd.json"),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "apiserver", *arguments], cwd=ROOT, env=os.environ, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found
            target = Target(found[0])
            before = _peak(server.pid)
            with ThreadPoolExecutor(16) as pool:
                asked = [
                    pool.submit(target.ask, "POST", f"{path_of('drops')}?dryRun=All", sent, timeout=100)
                    for _ in range(16)
                ]
                assert {each.result().status for each in asked} == {201}
            assert before < 200 * MEBIBYTE
            assert _peak(server.pid) < 1024 * MEBIBYTE
        finally:
            server.terminate()
            server.wait(20)


def _peak(pid: int) -> int:
    """The most memory that a process has had, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024
