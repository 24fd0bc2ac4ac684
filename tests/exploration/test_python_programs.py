"""A controller that is a function becomes the command of a process; what cannot run in one is refused with a sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from noxu.exploration.python_programs import command_of
from noxu.exploration.settings import SettingsError
from tests.rows import rows
from tests.timing import HANGS_AFTER


def controls() -> None:
    """A function of a module that pytest has imported by its file."""
    sys.stdout.write(f"controls {sys.argv}\n")


async def controls_too() -> None:
    sys.stdout.write("controls in a loop\n")


def needs(client: object) -> object:
    return client


class Namespace:
    @staticmethod
    def controls() -> None:
        sys.stdout.write("controls in a class\n")


def closure() -> Callable[[], None]:
    return lambda: None


def output(controller: Any) -> str:
    command = command_of(controller)
    ran = subprocess.run(
        command.words, env=command.environment, capture_output=True, text=True, timeout=HANGS_AFTER, check=True
    )
    return ran.stdout.strip()


def test_functions_run_in_processes() -> None:
    assert output(controls) == "controls ['controls']"
    assert output(controls_too) == "controls in a loop"
    assert output(Namespace.controls) == "controls in a class"


def test_a_function_of_a_module_is_imported_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "operator_of_test.py").write_text("def main():\n    print(__name__)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert output("operator_of_test:main") == "operator_of_test"


def test_words_are_a_command() -> None:
    assert command_of(["./manager", Path("config")]) == (("./manager", "config"), {})


@rows(
    ("controller", "message"),
    [
        ("tests.nothing:main", "there is no module 'tests.nothing' in sys.path"),
        ("./manager", "'./manager' is not 'package.module:function'; a command is a list of words"),
        ("manager", "'manager' is not 'package.module:function'"),
        (lambda: None, "<lambda> cannot run in a process of its own"),
        (closure(), "closure.<locals>.<lambda> cannot run in a process of its own"),
        (needs, "needs is called without arguments, and needs client"),
        (partial(needs, None), "is no function of a module: define one with def, which calls it"),
        ([], "a command has at least one word"),
    ],
)
def test_what_cannot_run_in_a_process_is_refused(controller: Any, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        command_of(controller)
    assert str(refused.value).startswith("controller: ")
    assert message in str(refused.value)
