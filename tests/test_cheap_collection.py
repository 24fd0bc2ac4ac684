"""Bytecode of tests lies in the virtual environment where none may lie beside the sources, and only of what is collected."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

TEST = """
import gc
import sys

AT_COLLECTION = sys.dont_write_bytecode, sys.pycache_prefix, gc.isenabled()

def test_now():
    assert AT_COLLECTION == {at_collection}
    assert (sys.dont_write_bytecode, sys.pycache_prefix, gc.isenabled()) == {while_it_runs}
"""


@pytest.mark.parametrize(
    ("unwanted", "in_environment", "is_kept"),
    [(True, True, True), (True, False, False), (False, True, False)],
    ids=["unwanted", "unwanted, without a virtual environment", "wanted beside the sources"],
)
def test_where_the_bytecode_of_tests_lies(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    unwanted: bool,
    in_environment: bool,
    is_kept: bool,
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", unwanted)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "base_prefix", sys.base_prefix if in_environment else str(tmp_path))
    folder = tmp_path / "collected"
    at_collection = (False, str(folder), False) if is_kept else (unwanted, sys.pycache_prefix, False)
    while_it_runs = (unwanted, sys.pycache_prefix, True)
    test = pytester.makepyfile(TEST.format(at_collection=at_collection, while_it_runs=while_it_runs))
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")

    pytester.runpytest_inprocess("-p", "tests.cheap_collection", "-p", "no:xdist").assert_outcomes(passed=1)

    assert [path.name.partition(".")[0] for path in folder.rglob("*.pyc")] == [test.stem] * is_kept
    assert (test.parent / "__pycache__").exists() == (not unwanted)
    assert gc.isenabled()
