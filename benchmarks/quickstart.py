"""Measures the commands of docs/quickstart.md, as they are there, with a new environment.

    python -m benchmarks.quickstart

The blocks `sh` of the page run one after the other in a copy of the checkout; the second one, the server, goes on while the
others run, and the third sets the path of the kubeconfig that the server prints. A block `text` is what the block before
prints. pip takes packages from its cache if they are there: the second run has a warm cache. kubectl must be on the PATH, and
the port 6440 free.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs/quickstart.md"
TARGET: Final = 60.0  # seconds
COPIED: Final = ("apiserver", "noxu", "storage", "pyproject.toml", "README.md", "LICENSE")
_BLOCK: Final = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SET: Final = re.compile(r"export KUBECONFIG=(\S+)\n")


class Step(NamedTuple):
    """A block of commands, and what it prints if the page says so."""

    commands: str
    printed: str | None


def steps(page: str) -> list[Step]:
    """The blocks of the page; the first three install, serve, and set KUBECONFIG."""
    found: list[Step] = []
    for language, text in _BLOCK.findall(page):
        if language == "sh":
            found.append(Step(text, None))
        else:
            found[-1] = found[-1]._replace(printed=text)
    return found


def run(step: Step, directory: Path, environment: str = "") -> tuple[float, str]:
    """How many seconds the commands take, and what they print. One that fails is an error unless its output is known."""
    began = time.monotonic()
    ran = subprocess.run(
        ["sh", "-c", environment + step.commands], check=False, cwd=directory, capture_output=True, text=True
    )
    seconds = time.monotonic() - began
    printed = ran.stdout + ran.stderr
    if step.printed is None and ran.returncode:
        raise RuntimeError(f"{step.commands}{printed}")
    if step.printed not in (None, printed):
        raise RuntimeError(f"{step.commands}prints\n{printed}and not\n{step.printed}")
    return seconds, printed


def serve(step: Step, directory: Path) -> tuple[float, subprocess.Popen[str], str]:
    """Start the server. Returns how long it takes until it says what to export, the process, and that command."""
    began = time.monotonic()
    process = subprocess.Popen(["sh", "-c", "exec " + step.commands], cwd=directory, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    for line in process.stdout:
        if _SET.fullmatch(command := line.strip() + "\n"):
            return time.monotonic() - began, process, command
    raise RuntimeError("the server has ended")


def main() -> None:
    install, server, export, *others = steps(PAGE.read_text())
    assert _SET.fullmatch(export.commands)
    with tempfile.TemporaryDirectory(prefix="quickstart-") as name:
        directory = Path(name)
        for part in COPIED:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, directory / part, symlinks=True)
            else:
                shutil.copy(ROOT / part, directory / part)
        rows = [(install.commands, run(install, directory)[0])]
        seconds, process, environment = serve(server, directory)
        try:
            rows.append((server.commands, seconds))
            rows += [(step.commands, run(step, directory, environment)[0]) for step in others]
        finally:
            process.terminate()
            process.wait()
    total = sum(seconds for _, seconds in rows)
    used = os.times()
    print("| command | seconds |\n|---|---|")
    for commands, seconds in rows:
        print(f"| `{commands.splitlines()[0]}` | {seconds:.1f} |")
    print(f"| all | {total:.1f} |")
    print(f"| processor time of all | {used.children_user + used.children_system:.1f} |")
    if total > TARGET:
        sys.exit(f"more than {TARGET:.0f} s")


if __name__ == "__main__":
    main()
