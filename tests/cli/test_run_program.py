"""`noxu run` of a program under test: it is killed, starts again, its output is kept, and nothing of it is left."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.optional import needs_platform
from tests.rows import rows
from tests.timing import HANGS_AFTER, eventually

pytestmark = [pytest.mark.slow, needs_platform("fork", present=hasattr(os, "fork"))]
on_linux = needs_platform("/proc", present=Path("/proc/self/task").exists())
WRITES = """
import http.client, json, os, sys
for n in range(int(sys.argv[1])):
    connection = http.client.HTTPConnection(os.environ["NOXU_URL"].partition("//")[2])
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}
    connection.request("POST", "/api/v1/namespaces/default/configmaps", json.dumps(value), {"Content-Type": "application/json"})
    print(connection.getresponse().status, flush=True)
"""
"""Creates so many objects, each by a connection of its own, and prints the codes."""


def noxu_run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "noxu", "run", *words], capture_output=True, text=True, timeout=HANGS_AFTER, check=False
    )


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def notes(log: Path) -> list[str]:
    """The lines of a log, without what differs from run to run."""
    lines = [line.split(maxsplit=2)[2] if line.startswith("noxu: ") else line for line in log.read_text().splitlines()]
    return [line.partition(": process")[0] for line in lines]


LIVES: list[tuple[str, Sequence[str], int, list[str]]] = [
    ("one life", ["--restart=0"], 0, ["start 1", "201", "201", "exit: status 0"]),
    ("killed after a write", ["--kill-after", "1 write"], 137, ["start 1", "exit: status 137"]),
    ("killed, and started again", ["--kill-after", "2 writes", "--restart=1"], 0, ["start 1", "201", "exit: status 137", "start 2", "201", "201", "exit: status 0"]),
    ("started again when it has ended", ["--restart=1"], 0, ["start 1", "201", "201", "exit: status 0", "start 2", "201", "201", "exit: status 0"]),
]  # fmt: skip


@pytest.mark.parametrize(("options", "status", "lines"), [row[1:] for row in LIVES], ids=[row[0] for row in LIVES])
def test_its_lives_are_in_the_log(tmp_path: Path, options: Sequence[str], status: int, lines: list[str]) -> None:
    log = tmp_path / "log"
    done = noxu_run(*options, "--log-file", str(log), "--", sys.executable, "-c", WRITES, "2")
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")
    assert notes(log) == lines
    assert log.stat().st_mode & 0o777 == 0o600


def test_it_is_killed_after_a_time_with_what_it_has_started(tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = noxu_run("--kill-after", "1s", "--log-file", str(log), "--", "sh", "-c", "sleep 600 & echo $! $$; wait")
    assert done.returncode == 137
    own = ["start 1", "kill: after 1 seconds", "exit: status 137"]
    assert [line for line in notes(log) if not line[0].isdigit()] == own
    pids = [line for line in notes(log) if line not in own]  # in any place; none, if the machine was busy
    eventually(lambda: not any(is_alive(int(pid)) for pid in " ".join(pids).split()))


@on_linux
def test_what_outlives_it_in_its_group_is_killed() -> None:
    done = noxu_run("--restart=0", "--", "sh", "-c", "sleep 600 >&- 2>&- & echo $!")
    assert done.returncode == 0
    eventually(lambda: not is_alive(int(done.stdout)))


@on_linux
def test_a_signal_ends_it_and_it_does_not_start_again() -> None:
    words = ["--restart", "--", "sh", "-c", "echo $$ $PPID; kill -STOP $$; exit 3"]
    with subprocess.Popen([sys.executable, "-m", "noxu", "run", *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline().split()[0])
        eventually(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        process.terminate()
        assert process.wait(HANGS_AFTER) == 128 + 15
        assert not is_alive(pid)


@on_linux
def test_a_paused_program_ends_when_the_supervisor_is_killed() -> None:
    line = "sleep 600 & echo $! $$ $PPID; kill -STOP $$; wait"
    words = [sys.executable, "-m", "noxu", "run", "--restart", "--", "sh", "-c", line]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child, command, _ = process.stdout.readline().split()
        process.kill()
        eventually(lambda: not any(is_alive(int(pid)) for pid in (child, command)))


def test_the_server_begins_with_faults(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("rules:\n- {match: {verbs: [create], resource: configmaps}, nth: 2, error: 503}\n")
    done = noxu_run("--faults", str(plan), "--", sys.executable, "-c", WRITES, "3")
    assert (done.stdout, done.returncode) == ("201\n503\n201\n", 0)


def test_presets_hit_the_same_requests_with_the_same_seed() -> None:
    words = ["--preset", "slow-api", "--fault-seed", "7", "--", sys.executable, "-c", WRITES, "30"]
    first, second = noxu_run(*words), noxu_run(*words)
    assert first.stdout == second.stdout
    assert "429" in first.stdout


@rows(
    ("words", "status", "message"),
    [
        ("--kill-after soon -- true", 2, "must be a duration, such as 5s, or a number of writes, such as '3 writes'"),
        ("--kill-after 0 -- true", 2, "must be a duration"),
        ("--restart=-1 -- true", 2, "argument --restart: "),
        ("--restart config/crd -- true", 2, "argument --restart: "),
        ("--preset conflict -- true", 1, 'there is no preset "conflict", only'),
        ("--log-file /nothing/log -- true", 1, "/nothing/log cannot be written: No such file or directory"),
    ],
)
def test_what_is_refused(words: str, status: int, message: str) -> None:
    done = noxu_run(*words.split())
    assert done.returncode == status
    assert message in done.stderr


def test_writes_are_not_counted_for_a_tenant() -> None:
    done = noxu_run("--server", "http://127.0.0.1:1", "--kill-after", "3 writes", "--", "true")
    assert done.returncode == 2
    assert "--kill-after: writes are counted by a server of the command, and not for --server" in done.stderr
