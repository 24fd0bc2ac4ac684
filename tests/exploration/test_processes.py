"""What is known of the processes of a run: those that were started in its directory, and the ports at which they listen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from noxu.exploration import pod_mounts, processes
from tests.optional import skip_without_platform

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it is about /proc")
LISTENS = """
import os, socket, time
os.setsid()  # it leaves its group
for port in range(20000, 30000):
    try:
        fixed = socket.create_server(("127.0.0.1", port))
        break
    except OSError:
        pass
chosen = socket.create_server(("127.0.0.1", 0))
print(port, flush=True)
time.sleep(600)
"""


@contextmanager
def listening(directory: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with subprocess.Popen(
        [sys.executable, "-c", LISTENS], env={"HOME": str(directory)}, stdout=subprocess.PIPE, text=True
    ) as started:
        try:
            assert started.stdout is not None
            yield started, int(started.stdout.readline())
        finally:
            started.kill()


def test_processes_are_found_by_their_directory(tmp_path: Path) -> None:
    with listening(tmp_path) as (started, port):
        assert processes.of_directory(tmp_path) == [started.pid]
        assert processes.fixed_ports([started.pid]) == [port]
        assert processes.of_directory(tmp_path / "other") == []
        processes.kill_those_of(tmp_path)
        assert started.wait() == -9
    assert processes.of_directory(tmp_path) == []


def test_a_program_finds_the_files_of_a_pod(tmp_path: Path) -> None:
    if pod_mounts.failure():
        skip_without_platform("mounts in a namespace of a user")
    pod_mounts.write_files(tmp_path, "t0ken", b"authority", "default")
    script = f'cat "{pod_mounts.PLACE}"/* && LC_ALL=C ls -A /run && echo "$0 $1"'
    ran = subprocess.run(
        pod_mounts.words(tmp_path, ["sh", "-c", script, "zero", "one"]), capture_output=True, text=True, check=False
    )
    there = sorted({path.name for path in Path("/run").iterdir()} | {"secrets"})
    assert ran.stdout.splitlines() == ["authoritydefaultt0ken" + there[0], *there[1:], "zero one"], ran.stderr
    assert not pod_mounts.PLACE.exists()


def test_a_program_resolves_names_of_its_own(tmp_path: Path) -> None:
    if pod_mounts.failure():
        skip_without_platform("mounts in a namespace of a user")
    pod_mounts.write_hosts(tmp_path, {"a-client.default.svc.cluster.local": "127.0.0.9"})
    resolve = "import socket; print(socket.gethostbyname('a-client.default.svc.cluster.local'))"
    ran = subprocess.run(
        pod_mounts.words(tmp_path, [sys.executable, "-c", resolve]), capture_output=True, text=True, check=False
    )
    assert ran.stdout == "127.0.0.9\n", ran.stderr
    assert "a-client" not in pod_mounts.NAMES.read_text()


def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    if pod_mounts.failure():
        skip_without_platform("mounts in a namespace of a user")
    pod_mounts.write_files(tmp_path, "t0ken", b"authority", "default")
    ran = subprocess.run(pod_mounts.words(tmp_path, ["./gone"]), capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (126, "./gone cannot be run: No such file or directory\n")
