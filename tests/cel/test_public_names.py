"""What other packages may import from the engine, and when it is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from noxu import cel
from tests.rows import rows


def imported_after(code: str) -> set[str]:
    """The modules of the engine that a new interpreter has imported after some code."""
    code = f"import sys; {code}; print(*(name for name in sys.modules if name.startswith('noxu.cel.')))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(result.stdout.split())


@rows("name", cel.__all__)
def test_every_name_exists(name: str) -> None:
    assert getattr(cel, name) is not None
    assert name in dir(cel)


def test_other_names_do_not() -> None:
    with pytest.raises(AttributeError, match=r"module 'noxu.cel' has no attribute 'nope'"):
        _ = cel.nope  # type: ignore[attr-defined]


def test_importing_the_package_imports_nothing() -> None:
    assert imported_after("import noxu.cel") == set()


def test_the_engine_is_imported_with_a_name_that_needs_it() -> None:
    small = imported_after("from noxu.cel import CelError, TimeExceeded")
    assert small == {"noxu.cel.errors"}
    assert "noxu.cel.program" in imported_after("from noxu.cel import RuleValidator")


@pytest.mark.slow
def test_the_command_line_and_the_registry_do_not_import_the_engine() -> None:
    assert "noxu.cel.program" not in imported_after("import noxu.cli, noxu.registry.custom, noxu.testing.handle")
