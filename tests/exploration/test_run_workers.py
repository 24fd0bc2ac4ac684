"""Runs in processes of their own: what they show is what they show here, and nothing is left of one, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance import taught
from noxu.exploration import exploring, learning, processes, runs
from noxu.exploration.attempts import Confirmed, Judged, Learnt
from noxu.exploration.judging import clean_runs
from noxu.exploration.masks import learn
from noxu.exploration.plans import CLEAN
from noxu.exploration.run_programs import KnownTimes
from noxu.exploration.run_workers import RunWorkers
from noxu.exploration.settings import ControllerCommand, Exploration
from tests.exploration import recordings
from tests.optional import needs_platform
from tests.timing import HANGS_AFTER, eventually

ROOT = Path(__file__).parents[2]
RECORDING = recordings.clean().recording()
MASK = learn([RECORDING])
LEARNT = Learnt([RECORDING], MASK, clean_runs([RECORDING], MASK), KnownTimes(), ())
NOTHING = Exploration((ControllerCommand(("false",)),), ())
on_linux = needs_platform("/proc/…/children", present=Path(f"/proc/self/task/{os.getpid()}/children").exists())


def _networks() -> bool:
    """Whether processes may have networks of their own."""
    code = "from noxu.exploration import run_workers; run_workers.enter_network()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.fixture(autouse=True)
def allowed() -> Iterator[None]:
    """What ends the runs of a test is not about later ones."""
    yield
    runs.allow()


def children() -> list[int]:
    """The processes that this one has started, with those of other threads."""
    found = list[int]()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # the thread has ended
            found += map(int, (task / "children").read_text().split())
    return found


def waiting(seconds: int = 3600) -> Exploration:
    """The controller asks for nothing, and so the run waits for it."""
    sleeps = ControllerCommand((sys.executable, "-c", f"import time; time.sleep({seconds})"))
    return replace(NOTHING, controllers=(sleeps,), start_within=float(seconds))


def test_a_plan_is_judged_as_it_is_here() -> None:
    with RunWorkers(NOTHING, LEARNT) as workers:
        judged = workers.attempt(CLEAN)
        assert judged.plan is CLEAN
        assert judged.failed.startswith("the controller ended with status 1 before it asked for anything")
        assert workers.attempt(CLEAN).failed.startswith("the controller ended with status 1")  # the same one again


@pytest.mark.slow
def test_an_exploration_finds_the_same_with_several_processes() -> None:
    [case] = [bug for bug in taught.BUGS if bug.name == "crash"]
    command = (sys.executable, "-m", "tests.exploration.taught.crash", "--bug")
    explored = replace(taught.exploration(case, command), jobs=2, start_within=HANGS_AFTER)
    learnt = learning.learn(explored)
    happened = list(exploring.explore(explored, learnt, learnt.plans, until=time.monotonic() + HANGS_AFTER))
    assert {id(each.plan) for each in happened if isinstance(each, Judged)} == {id(plan) for plan in learnt.plans}
    found = [each.finding.sentence for each in happened if isinstance(each, Confirmed) and each.is_stable]
    assert "secrets default/a is missing at the end" in found


@on_linux
def test_a_process_that_is_killed_is_no_verdict() -> None:
    before, judged = set(children()), list[Judged]()
    with RunWorkers(waiting(), LEARNT) as workers:
        thread = threading.Thread(target=lambda: judged.append(workers.attempt(CLEAN)))
        thread.start()
        eventually(lambda: set(children()) - before)
        [worker] = set(children()) - before
        os.kill(worker, signal.SIGKILL)
        thread.join()
        [(_, findings, recording, _, failed, _)] = judged
        assert (findings, recording) == ((), None)
        assert failed == "the process of the run has ended with status -9"


@on_linux
def test_what_is_interrupted_has_no_result_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before, raised = set(children()), list[BaseException]()

    def attempt(workers: RunWorkers) -> None:
        try:
            workers.attempt(CLEAN)
        except runs.RunInterrupted as error:
            raised.append(error)

    with RunWorkers(waiting(), LEARNT) as workers:
        thread = threading.Thread(target=attempt, args=(workers,))
        thread.start()
        eventually(lambda: list(tmp_path.glob("*/*/*")))  # the run has begun
        runs.interrupt()
        thread.join()
        assert len(raised) == 1
        with pytest.raises(runs.RunInterrupted):
            workers.attempt(CLEAN)
    assert set(children()) <= before
    assert list(tmp_path.iterdir()) == []


ASKS = """
import sys, time
from tests.exploration.test_run_workers import CLEAN, LEARNT, RunWorkers, waiting
import tempfile
tempfile.tempdir = sys.argv[1]
with RunWorkers(waiting(), LEARNT) as workers:
    workers.attempt(CLEAN)
"""


@on_linux
def test_it_ends_with_what_it_runs_when_who_asks_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ASKS, str(tmp_path)], cwd=ROOT) as asking:

        def programs() -> list[int]:
            return [pid for place in tmp_path.glob("*/*") for pid in processes.of_directory(place)]

        eventually(programs)
        running = programs()
        asking.kill()
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in running))
    eventually(lambda: not list(tmp_path.iterdir()))


LISTENS = """
import socket, sys
socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("it has begun to", "listen")
"""


@needs_platform("networks of processes", present=_networks())
def test_in_a_network_of_its_own_a_fixed_port_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listens = replace(NOTHING, controllers=(ControllerCommand((sys.executable, "-c", LISTENS, str(port))),))
        with RunWorkers(listens, LEARNT) as workers:
            assert "Address already in use" in workers.attempt(CLEAN).failed
        with RunWorkers(listens, LEARNT, own_networks=True) as workers:
            assert "it has begun to listen" in workers.attempt(CLEAN).failed


NEEDS = """
import runpy, socket, sys
listens = socket.create_server(("127.0.0.1", int(sys.argv.pop(1))))
needs = int(sys.argv.pop(1))
if needs:
    socket.create_connection(("127.0.0.1", needs))
runpy.run_module("tests.exploration.taught.crash", run_name="__main__")
"""


def free_port() -> int:
    """One that the system would not choose, as a fixed one is."""
    for n in range(10_000):
        port = 20_000 + (os.getpid() + n) % 10_000  # several processes look at the same time
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("none is free")


@pytest.mark.slow
@needs_platform("networks of processes", present=_networks())
@pytest.mark.parametrize("needs_another", [pytest.param(False, id="by itself"), pytest.param(True, id="with another")])
def test_what_listens_on_a_fixed_port_has_a_network_unless_it_needs_what_is_elsewhere(needs_another: bool) -> None:
    [case] = [bug for bug in taught.BUGS if bug.name == "crash"]
    with socket.create_server(("127.0.0.1", 0)) as other:
        needed = other.getsockname()[1] if needs_another else 0
        command = (sys.executable, "-c", NEEDS, str(free_port()), str(needed))
        explored = replace(taught.exploration(case, command), jobs=4, start_within=HANGS_AFTER, clean_runs=1)
        learnt = learning.learn(explored)
    assert len(learnt.ports) == 1
    assert learnt.jobs == (1 if needs_another else 4)


FORBIDS = """
import os, sys
from noxu.exploration import run_workers
def enter_network(): raise PermissionError(1, "Operation not permitted")
run_workers.enter_network = enter_network
run_workers.work(sys.argv[1], run_workers.OWN_NETWORK)
"""


def test_a_system_that_forbids_networks_is_no_error_to_a_person(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", FORBIDS, str(tmp_path)], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (125, b"", b"")


def test_a_bug_of_ours_is_raised_where_it_was_asked_for_with_its_traceback() -> None:
    with RunWorkers(NOTHING, LEARNT) as workers, pytest.raises(AttributeError) as raised:
        workers.attempt(None)  # type: ignore[arg-type]
    [note] = raised.value.__notes__
    assert "in attempt" in note
