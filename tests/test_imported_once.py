"""Runs inside of pytester leave the modules that they import."""

from __future__ import annotations

import sys

import pytest

from noxu.cel import library
from noxu.cel.library import patches


def test_a_module_that_a_run_imports_is_imported_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "patches", patches)  # the run sets it to a second module
    monkeypatch.delitem(sys.modules, patches.__name__)
    pytester.makefile(".ini", pytest="[pytest]\nasyncio_default_fixture_loop_scope=function\n")
    pytester.makepyfile("import noxu.cel.library.patches\ndef test_nothing(): pass\n")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    assert patches.__name__ in sys.modules
    assert not [name for name in sys.modules if name.startswith("test_a_module_that")]
