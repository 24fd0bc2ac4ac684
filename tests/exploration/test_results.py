"""Exploring from Python and from pytest: what is wrong is said in a sentence, and files of findings are never overwritten."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import noxu
from noxu.exploration import processes, results, runs
from noxu.exploration.attempts import Confirmed
from noxu.exploration.findings import RunFinding
from noxu.exploration.plans import CLEAN
from noxu.exploration.run_steps import RunFailed
from noxu.exploration.settings import ControllerCommand, Exploration
from tests.exploration import recordings
from tests.timing import HANGS_AFTER

WIDGETS = Path(__file__).parent / "taught" / "widgets.yaml"
WORKLOAD = [{"apply": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}}]


def ends() -> None:
    raise SystemExit(f"no flag --kubeconfig, but {os.environ['KUBECONFIG'][-10:]}")


def test_a_function_that_ends_at_once_is_named() -> None:
    with pytest.raises(noxu.StartError, match=r"status 1 before it asked for anything:\n(?s:.*)but kubeconfig"):
        noxu.explore(controller=ends, workload=WORKLOAD)


def test_an_exploration_that_has_failed_does_not_interrupt_later_runs() -> None:
    with pytest.raises(noxu.StartError, match="status 1 before it asked for anything"):
        noxu.explore(command=["false"], workload=WORKLOAD)
    with pytest.raises(RunFailed, match="status 1 before it asked for anything"):
        runs.run(Exploration((ControllerCommand(("false",)),), ()), CLEAN)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workload": WORKLOAD}, "there is no controller: command="),
        ({"command": ["true"]}, "there is no workload: workload="),
        ({"command": "true", "workload": WORKLOAD}, "command: 'true' is a text; it is a list of words"),
        ({"command": ["true"], "controller": ends}, "command and controller: give one of them"),
    ],
)
def test_what_is_lacking_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        noxu.explore(**arguments)  # type: ignore[arg-type]


def confirmed() -> Confirmed:
    finding = RunFinding("missing", "secrets default/a", "secrets default/a is missing", (), ())
    return Confirmed(1, finding, (), CLEAN._replace(klass="crash"), recordings.clean().recording(), is_stable=True)


def test_files_of_findings_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "explore-1.noxu").write_text("mine")
    first, second = (results.saved(tmp_path, confirmed(), recordings.clean().recording()) for _ in range(2))
    assert [path.name for path in (*first, *second)] == [
        "explore-2.yaml", "explore-2.noxu", "explore-3.yaml", "explore-3.noxu",
    ]  # fmt: skip
    assert (tmp_path / "explore-1.noxu").read_text() == "mine"
    assert first[0].read_text().startswith("# secrets default/a is missing\nclass: crash\n")


def test_a_mark_that_is_wrong_fails_its_test_with_a_sentence(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope=function\n")
    pytester.makepyfile(
        """
import pytest

def test_of_nothing(explored):
    explored.assert_nothing()

@pytest.mark.noxu_explore("gone.yaml")
def test_of_a_file_that_is_gone(explored):
    explored.assert_nothing()

@pytest.mark.noxu_explore(contrller=["true"])
def test_of_a_misspelt_argument(explored):
    explored.assert_nothing()
"""
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines(
        [
            "explored: of what? @pytest.mark.noxu_explore*",
            "noxu does not explore: *gone.yaml cannot be read: No such file or directory",
            "@pytest.mark.noxu_explore *contrller*; did you mean controller?*",
        ]
    )


# -- what is in the way


IGNORES = f"""
import os, signal, subprocess, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.exploration.taught.kit import Client
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import os, time; os.setsid(); time.sleep(600)"])  # leaves the group
client = Client()
while True:
    sys.stdout.write("x" * 1000000)
    try:
        client.ask("GET", "/api/v1/configmaps")
    except Exception:
        pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_exploration_of_a_program_that_defends_itself(tmp_path: Path, number: signal.Signals) -> None:
    """It ignores SIGTERM, forks a daemon, writes without end and is never idle: nothing is left of it."""
    program, sample, places = tmp_path / "ignores.py", tmp_path / "sample.yaml", tmp_path / "tmp"
    places.mkdir()
    program.write_text(IGNORES)
    sample.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}")
    words = [sys.executable, "-m", "noxu", "explore", "--apply", str(sample), "--", sys.executable, str(program)]
    environment = {**os.environ, "TMPDIR": str(places)}
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as exploring:
        try:
            while not any(place.stat().st_size for place in places.glob("noxu-explore-*/output")):
                assert exploring.poll() is None
                time.sleep(0.05)
            time.sleep(0.5)
            exploring.send_signal(number)
            _, said = exploring.communicate(timeout=HANGS_AFTER)
        finally:
            exploring.kill()
    assert exploring.returncode == 128 + number
    assert said.endswith("noxu: the exploration was ended while it learnt from clean runs: nothing is found yet\n")
    assert list(places.iterdir()) == []
    assert processes.of_directory(places) == []
