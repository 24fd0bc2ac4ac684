"""The types of the public names, as a project sees them that checks its tests strictly."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = Path(__file__).with_name("typed_tests.py")


@pytest.mark.slow
def test_mypy_strict_accepts_the_tests_of_a_user(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unused `type: ignore` comments are errors, so what they allow is refused."""
    shutil.copy(TESTS, pytester.path / "test_typed.py")
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    options = ("--strict", "--follow-imports=silent", f"--cache-dir={os.devnull}", "--config-file=")
    checked = pytester.run(sys.executable, "-m", "mypy", *options, "test_typed.py")
    assert checked.outlines == ["Success: no issues found in 1 source file"]


def test_the_tests_of_a_user_pass(pytester: pytest.Pytester) -> None:
    shutil.copy(TESTS, pytester.path / "test_typed.py")
    result = pytester.runpytest_inprocess(
        "-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"
    )
    result.assert_outcomes(passed=3)
