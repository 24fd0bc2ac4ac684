"""The programs that faults may signal: which request is theirs, what pauses and resumes them, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from noxu import ApiError, Noxu
from noxu.control.faults.rules import parse
from noxu.values import Json
from tests.optional import needs_platform
from tests.rows import rows
from tests.timing import HANGS_AFTER, eventually

on_linux = needs_platform("/proc", present=Path("/proc/self/task").exists())

pytestmark = needs_platform("fork", present=hasattr(os, "fork"))
MAPS = "/api/v1/namespaces/default/configmaps"
CLIENT = f"""
import http.client, json, os, sys
def ask(name):
    connection = http.client.HTTPConnection(os.environ["NOXU_URL"].partition("//")[2])
    value = {{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": name}}}}
    connection.request("POST", "{MAPS}", json.dumps(value), {{"Content-Type": "application/json"}})
    return connection.getresponse().status
"""
"""Creates objects with `ask(NAME)`, each by a connection of its own."""
WRITES_TWO = CLIENT + "ask('first')\nask('second')\n"
STARTS_A_CHILD = CLIENT + "import subprocess\nsubprocess.run([sys.executable, '-c', os.environ['CHILD']])\n"


def created(noxu: Noxu) -> list[str]:
    listed = noxu.list("configmaps", namespace="default")
    return [value["metadata"]["name"] for value in listed if value["metadata"]["name"] != "kube-root-ca.crt"]


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def state(pid: int) -> str:
    """The state of a process, as the kernel names it: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def described(noxu: Noxu) -> list[Any]:
    with urllib.request.urlopen(f"{noxu.url}/_noxu/programs") as answer:
        listed: list[Any] = json.load(answer)["programs"]
    return listed


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


# -- what a rule does --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("when", "left"), [("before", []), ("after", ["first"])])
def test_a_program_is_killed_before_or_after_a_write(noxu: Noxu, when: str, left: list[str]) -> None:
    program = noxu.program(python(WRITES_TWO))
    with noxu.fault(verbs=["create"], process={"kill": when}, times=1) as fault, program:
        assert program.wait(HANGS_AFTER) == 128 + signal.SIGKILL
        assert created(noxu) == left
    assert [hit["request"]["verb"] for hit in fault.fired] == ["create"]


def test_it_starts_again_and_finishes_what_it_has_begun(noxu: Noxu, tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = noxu.program(python(WRITES_TWO), restart=1, log=log)
    with noxu.fault(verbs=["create"], process={"kill": "after"}, times=1), program:
        assert program.wait(HANGS_AFTER) == 0
    assert (program.lives, created(noxu)) == (2, ["first", "second"])
    notes = [line.split(maxsplit=2)[2].partition(":")[0] for line in log.read_text().splitlines()]
    assert notes == ["start 1", "exit", "start 2", "exit"]


@on_linux
def test_requests_of_others_are_not_hit(noxu: Noxu) -> None:
    program = noxu.program(python("import signal; signal.pause()"))
    with noxu.fault(process="kill") as fault, program:
        eventually(lambda: program.pid > 0)
        noxu.create(config_map("mine"), namespace="default")
        assert (program.pid > 0, fault.hits) == (True, 0)


@on_linux
def test_what_it_has_started_is_killed_with_it(noxu: Noxu) -> None:
    """And the requests of its children are its own."""
    program = noxu.program(python(STARTS_A_CHILD), environment={"CHILD": WRITES_TWO})
    with noxu.fault(process={"kill": "after"}), program:
        assert program.wait(HANGS_AFTER) == 128 + signal.SIGKILL
    assert created(noxu) == ["first"]


@on_linux
def test_a_paused_program_goes_on_when_the_fault_is_cleared(noxu: Noxu) -> None:
    program = noxu.program(python(WRITES_TWO))
    with program:
        with noxu.fault(verbs=["create"], process="pause", nth=1):
            eventually(lambda: program.pid and state(program.pid) == "T")
            assert described(noxu) == [{"pid": program.pid, "running": True, "paused": True}]
        assert program.wait(HANGS_AFTER) == 0
    assert created(noxu) == ["first", "second"]


@on_linux
def test_a_pause_ends_in_object_time(noxu: Noxu) -> None:
    noxu.clock.freeze()
    program = noxu.program(python(WRITES_TWO))
    with noxu.fault(verbs=["create"], process={"pause": "1h"}, nth=1), program:
        eventually(lambda: program.pid and state(program.pid) == "T")
        noxu.clock.advance("1h")
        assert program.wait(HANGS_AFTER) == 0


@on_linux
def test_a_trigger_pauses_and_resumes(noxu: Noxu) -> None:
    program = noxu.program(python("import signal; signal.pause()"))
    pausing: dict[str, Any] = {"trigger": {"created": "configmaps", "name": "stop"}, "process": "pause"}
    resuming: dict[str, Any] = {"trigger": {"created": "configmaps", "name": "go"}, "process": "resume"}
    with program, noxu.faults([pausing, resuming]) as faults:
        eventually(lambda: program.pid)
        noxu.create(config_map("stop"), namespace="default")
        eventually(lambda: state(program.pid) == "T")
        noxu.create(config_map("go"), namespace="default")
        eventually(lambda: state(program.pid) != "T")
    assert [hit["request"]["name"] for hit in faults.fired] == ["stop", "go"]


@on_linux
def test_a_paused_program_ends_with_its_context(noxu: Noxu) -> None:
    with noxu.program(python("import signal; signal.pause()")) as program:
        pid = eventually(lambda: program.pid)
        program.send(signal.SIGSTOP)
    assert program.status == 128 + signal.SIGTERM
    assert not Path(f"/proc/{pid}").exists()


def test_a_server_that_is_started_again_knows_it(noxu: Noxu) -> None:
    program = noxu.program(python(WRITES_TWO))
    noxu.stop()
    noxu.start()
    with noxu.fault(verbs=["create"], process={"kill": "after"}), program:
        assert program.wait(HANGS_AFTER) == 128 + signal.SIGKILL
    assert created(noxu) == ["first"]


DIES = """
import os, signal, sys, time
from noxu import Noxu
with Noxu() as noxu, noxu.program([sys.executable, "-c", "import os, signal; print(os.getpid(), flush=True); signal.pause()"]):
    signal.pause()
"""


@on_linux
def test_nothing_is_left_of_it_when_the_test_is_killed() -> None:
    with subprocess.Popen(python(DIES), stdout=subprocess.PIPE, text=True) as test:
        assert test.stdout is not None
        pid = int(test.stdout.readline())
        test.kill()
        eventually(lambda: not Path(f"/proc/{pid}").exists() or state(pid) == "Z")


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_without_a_program_there_is_no_such_fault(noxu: Noxu) -> None:
    with pytest.raises(
        ApiError, match=r"rules\[0\].process: only a program that Noxu has started is killed and paused"
    ):
        noxu.fault(process="kill").__enter__()


@rows(
    ("value", "message"),
    [
        ("stop", "rules[0].process: 'stop' is none of kill, pause, resume"),
        ("kil", "'kil' is none of kill, pause, resume; did you mean kill?"),
        ({"kill": "now"}, "rules[0].process: 'now' is none of before, after"),
        ({"pause": 5}, "rules[0].process: a duration is a text"),
        ({"kill": "after", "pause": "1s"}, "rules[0].process: it is kill, {kill: after}, pause, {pause: 5s} or resume"),
        ("resume", "a paused program asks for nothing: resume needs a trigger, and no match"),
    ],
)
def test_what_is_wrong_with_a_rule(value: Json, message: str) -> None:
    with pytest.raises(ApiError) as raised:
        parse([{"process": value}])
    assert message in raised.value.message
