"""Hundreds of servers are started and stopped in one process: nothing of them remains.

What is kept for all servers of a process (compiled tables, templates of the first objects) is there after WARM starts. Some
bounded caches, also those of libraries, have entries for each port, and are not full yet.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from noxu import Noxu

ROOT = Path(__file__).parents[2]
STARTS, WARM = 500, 100
USED = 10  # one server of so many gets requests
LEAKED = 10  # blocks of memory for each start; a server that remains has thousands


class Held(NamedTuple):
    """What the process has. `files` is 0 where there is no /proc."""

    blocks: int
    objects: int
    threads: int
    files: int


def held() -> Held:
    for _ in range(3):  # finalizers make garbage
        gc.collect()
    files = Path("/proc/self/fd")
    return Held(
        sys.getallocatedblocks(),
        len(gc.get_objects()),
        threading.active_count(),
        len(list(files.iterdir())) if files.is_dir() else 0,
    )


def start_and_stop(first: int, end: int) -> None:
    for n in range(first, end):
        with Noxu() as server:
            if n % USED == 0:
                server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"a-{n}"}})
                assert server.get("configmaps", f"a-{n}")["metadata"]["name"] == f"a-{n}"


def report() -> None:
    """Write what the process has after WARM starts, and after STARTS."""
    start_and_stop(0, WARM)
    before = held()
    start_and_stop(WARM, STARTS)
    sys.stdout.write(json.dumps([before, held()]))


@pytest.mark.slow
def test_servers_that_are_stopped_leave_nothing_behind() -> None:
    """In a process without the servers and caches of other tests."""
    code = f"from {__name__} import report; report()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    before, after = (Held(*found) for found in json.loads(done.stdout))
    allowed = LEAKED * (STARTS - WARM)
    assert after.blocks - before.blocks < allowed
    assert after.objects - before.objects < allowed
    assert after.threads <= before.threads
    assert after.files <= before.files
