"""Fixtures: a server in a process of its own."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.server_process import Process, free_port

SLOW = pytest.mark.slow


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.get_closest_marker("slow") is None:
        item.add_marker(SLOW)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def started(tmp_path: Path, port: int) -> Iterator[Process]:
    server = Process(tmp_path, port)
    yield server
    if server.process.poll() is None:
        server.end(signal.SIGKILL)
