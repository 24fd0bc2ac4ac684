"""The image: everything that is installed into it is pinned with hashes, and everything that it copies is sent.

No engine of containers is needed: these tests read the Dockerfile.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
# One instruction is one line: continued lines are joined.
INSTRUCTIONS = [
    line
    for line in re.sub(r"\s*\\\n\s*", " ", (ROOT / "Dockerfile").read_text()).splitlines()
    if line and not line.startswith("#")
]


def arguments(instruction: str) -> list[str]:
    """The arguments of all instructions with this name."""
    return [line.removeprefix(f"{instruction} ") for line in INSTRUCTIONS if line.startswith(f"{instruction} ")]


def copied() -> list[str]:
    """The paths that are copied from the checkout."""
    return [path for copy in arguments("COPY") if not copy.startswith("--from=") for path in copy.split()[:-1]]


def test_everything_that_is_installed_is_pinned_with_hashes() -> None:
    commands = [
        command for run in arguments("RUN") for command in run.split(" && ") if " install --no-cache" in command
    ]
    kinds = []
    for command in commands:
        words = command.split()
        if "--no-index" in words:  # the wheel that was just built, alone
            assert {"--no-deps", "/wheel/*.whl"} <= set(words), command
            kinds.append("wheel")
        else:
            assert {"--require-hashes", "--only-binary"} <= set(words), command
            assert words[-2] == "-r", command
            assert words[-1] in copied(), command
            kinds.append(words[-1])
    assert kinds == ["requirements/build.txt", "requirements/runtime.txt", "wheel"]


def test_nothing_else_installs_anything() -> None:
    runs = " && ".join(arguments("RUN"))
    assert len(re.findall(r"bin/pip\b", runs)) == 3
    assert not re.search(r"(?<![\w/-])(pip|apt|apt-get|curl|wget|uv)\b|-m (pip|ensurepip)\b", runs)
    assert arguments("ADD") == []


def test_the_base_image_is_one_argument() -> None:
    assert arguments("FROM") == ["${BASE} AS build", "${BASE}"]
    assert arguments("ARG") == ["BASE=python:3.13-slim"]


def test_what_is_copied_exists_and_is_sent() -> None:
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line != "*"}
    assert set(copied()) == sent
    assert [path for path in copied() if not (ROOT / path).exists()] == []
