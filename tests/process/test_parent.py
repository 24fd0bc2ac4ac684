"""The end of the process that has started this one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.timing import HANGS_AFTER

# The grandchild reports its id, then waits for the end of its parent, which is killed meanwhile.
GRANDCHILD = """
import asyncio, os
from noxu.process import signals
{change}
started_by = os.getppid()
print(os.getpid(), flush=True)
asyncio.run(signals.parent_ended(started_by))
print("ended", flush=True)
"""
CHILD = "import subprocess, sys, threading, time; {start}; time.sleep(600)"
PROCESS = "subprocess.Popen([sys.executable, '-c', sys.argv[1]])"
THREAD = (
    "t = threading.Thread(target=subprocess.Popen, args=([sys.executable, '-c', sys.argv[1]],)); t.start(); t.join()"
)

HOW: list[tuple[str, str, str]] = [
    ("as the kernel says", PROCESS, ""),
    ("started by a thread that has ended before", THREAD, ""),
    ("asked every second", PROCESS, "del os.pidfd_open; signals.POLL = 0.01"),
]


@pytest.mark.parametrize(("start", "change"), [row[1:] for row in HOW], ids=[row[0] for row in HOW])
def test_the_end_of_a_killed_parent(start: str, change: str) -> None:
    command = [sys.executable, "-c", CHILD.format(start=start), GRANDCHILD.format(change=change)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        os.kill(grandchild, 0)
        child.kill()
        out, _ = child.communicate(timeout=HANGS_AFTER)
    assert out == "ended\n"


def test_a_parent_that_has_ended_already() -> None:
    program = "import asyncio\nfrom noxu.process.signals import parent_ended\nasyncio.run(parent_ended(1 << 22))"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=HANGS_AFTER)
