"""Recordings of the servers of tests: with `--noxu-record DIR`, the file of each server of a failed test stays in the directory.

With `--noxu-html DIR` a page is made of it, which shows the recording without a server.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

MAX_NAME: Final = 120  # characters of a file's name
LINES: Final = "noxu.recordings.lines"
ANSWERS: Final = "noxu.console.recorded_answers"
PAGE: Final = "noxu.console.static_file"
FAILED: Final = pytest.StashKey[bool]()
"""Of a node of the collection: a test in it has failed."""


@contextlib.contextmanager
def recorded(node: pytest.Item | pytest.Collector, records: Path | None, pages: Path | None) -> Iterator[Path]:
    """The file of a server's recording, which stays if a test of the node fails: as it is in `records`, as a page in `pages`."""
    directory = records or pages or Path()
    for each in filter(None, (records, pages)):
        each.mkdir(parents=True, exist_ok=True)
    path = free_file(directory, os.environ.get("PYTEST_XDIST_WORKER", ""), node.nodeid or "session")
    try:
        yield path
    finally:
        has_failed = node.stash.get(FAILED, False)
        if has_failed and pages is not None and path.stat().st_size:
            answers = import_module(ANSWERS).answers(import_module(LINES).read(path))
            (pages / path.name).with_suffix(".html").write_bytes(import_module(PAGE).page(answers))
        if not has_failed or records is None:
            path.unlink(missing_ok=True)


def free_file(directory: Path, worker: str, node: str) -> Path:
    """A file for a node, which is not there yet: `tests-test_a.py-test_b.noxu`, then `…-2.noxu`."""
    stem = re.sub(r"[^\w.\[\]=-]+", "-", f"{node} {worker}".strip())[-MAX_NAME:].strip("-")
    number = 1
    while True:
        path = directory / f"{stem}{f'-{number}' if number > 1 else ''}.noxu"
        with contextlib.suppress(FileExistsError):
            path.touch(0o600, exist_ok=False)  # another worker looks, too
            return path
        number += 1


def mark_failed(item: pytest.Item) -> None:
    """Let the recordings of a test's servers stay, also those of its module, class and session."""
    for node in item.listchain():
        node.stash[FAILED] = True
