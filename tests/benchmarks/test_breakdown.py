"""Stacks and the parts that they belong to, shares, the table, and a process that samples itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import breakdown
from benchmarks.breakdown import LOOP, THREADS, Sample, Site

STAGES = frozenset({"track_managers", "persist"})
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ([], LOOP),
        (
            [
                Site("apiserver/noxu/apply/manager.py", "update"),
                Site("apiserver/noxu/registry/write/decide.py", "track_managers"),
            ],
            "stage: track_managers",
        ),
        (
            [
                Site("apiserver/noxu/registry/write/decide.py", "track_managers"),
                Site("apiserver/noxu/registry/write/__init__.py", "run"),
            ],
            "stage: track_managers",
        ),
        ([Site("apiserver/noxu/registry/write/decide.py", "check_name")], "cache, watches"),
        ([Site("apiserver/noxu/registry/write/__init__.py", "run")], "driver of the stages"),
        (
            [Site("storage/noxu_storage/sqlite.py", "commit"), Site("apiserver/noxu/http/app.py", "handle")],
            "store, in the event loop",
        ),
        (
            [
                Site("storage/noxu_storage/sqlite.py", "commit"),
                Site("apiserver/noxu/registry/write/store.py", "persist"),
            ],
            "stage: persist",
        ),
        ([Site("apiserver/noxu/http/sending.py", "send")], "request and response"),
        ([Site("apiserver/noxu/clock.py", "now")], "other"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_stack_belongs_to_its_stage_else_to_its_innermost_part(stack: list[Site], expected: str) -> None:
    assert breakdown.part(stack, STAGES) == expected


def test_shares_are_of_the_time_of_all_threads() -> None:
    sample = Sample(4.0, {LOOP: 1.0, "stage: track_managers": 2.0})
    assert breakdown.shares(sample) == {THREADS: 0.25, LOOP: 0.25, "stage: track_managers": 0.5}


def test_the_table_has_the_most_expensive_parts_first_and_none_below_a_microsecond() -> None:
    found = {"get, 64 at a time": {LOOP: 40.0, "other": 0.6}, "update": {"stage: track_managers": 90.0, LOOP: 20.0}}
    assert breakdown.table(found).splitlines() == [
        "| µs | get | update |",
        "| --- | --: | --: |",
        "| **all** | **41** | **110** |",
        "| stage: track_managers |  | 90 |",
        f"| {LOOP} | 40 | 20 |",
    ]


@pytest.mark.slow
def test_a_process_samples_its_main_thread(tmp_path: Path) -> None:
    code = f"""
import os, signal, sys, time
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from benchmarks.breakdown import Sampler
from noxu.api import codec
Sampler(Path({str(tmp_path / "sample")!r})).begin()
while time.thread_time() < 1.0:
    codec.encode({{"a": [1] * 100}}, sort_keys=True)
os.kill(os.getpid(), signal.SIGUSR2)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    sample = Sample(**json.loads((tmp_path / "sample").read_text()))
    assert set(sample.parts) <= {"other", LOOP}
    assert 0 < sum(sample.parts.values()) <= sample.all_threads * 1.01


def test_an_unknown_operation_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        breakdown.main(["--operations", "update;levitate"])
    assert stopped.value.code == 2
    assert "no such operation: levitate" in capsys.readouterr().err
