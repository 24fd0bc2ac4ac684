"""The examples in docs/conversion.md work."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "conversion.md").read_text()
FILES = {
    name: text for _, name, text in re.findall(r"^```(\w+) file=(\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
}


@pytest.fixture
def port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


def test_the_examples_work(pytester: pytest.Pytester, port: str) -> None:
    assert set(FILES) == {"webhook.py", "crd.yaml", "test_widgets.py", "test_function.py"}
    for name, text in FILES.items():
        (pytester.path / name).write_text(text.replace("9443", port))
    pytester.syspathinsert()
    pytester.makefile(".ini", pytest="[pytest]\nasyncio_default_fixture_loop_scope=function\n")
    pytester.runpytest_inprocess().assert_outcomes(passed=2)
