"""The plugins of this test suite: the summary of skipped tests, and the selection of `--quick`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quick import SLOW, select

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


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["in one process", "in two workers"])
def test_the_summary_groups_skipped_tests_by_reason(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(test_one=SKIPPING, test_two=SKIPPING)
    result = pytester.runpytest_subprocess("-p", "tests.skip_summary", *options)
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


def test_without_skipped_tests_there_is_no_summary(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile("def test_runs(): ...")
    result = pytester.runpytest_subprocess("-p", "tests.skip_summary")
    result.stdout.no_fnmatch_line("*something is absent*")


def folder(test: str) -> str:
    """The folder of a test below tests/, or the file for one that is in none."""
    return test.partition("::")[0].split("/")[1]


def test_every_folder_is_represented_in_the_quick_tests() -> None:
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    folders = {folder(name) for name in files}
    assert {folder(name) for name in select(f"{name}::test_{n}" for name in files for n in range(2))} == folders


def test_every_slow_test_exists() -> None:
    for prefix in SLOW:
        path, _, name = prefix.partition("::")
        assert (ROOT / path).exists(), prefix
        assert not name or f"def {name}" in (ROOT / path).read_text(), prefix
