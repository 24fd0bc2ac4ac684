"""The server under attack, which each module starts in a fixture `noxu`, and the monitor of its event loop."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from noxu.testing.handle import Noxu
from tests.hostile.loop_monitor import LoopMonitor
from tests.hostile.raw_http import Target

SLOW = pytest.mark.slow


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.get_closest_marker("slow") is None:
        item.add_marker(SLOW)


@pytest.fixture(scope="module")
def loop_monitor(noxu: Noxu) -> Iterator[LoopMonitor]:
    """Objects of the test session do not slow down the server's collector meanwhile, as in `noxu serve`."""
    gc.collect()
    gc.freeze()
    monitor = LoopMonitor()
    running = asyncio.run_coroutine_threadsafe(monitor.run(), noxu._loop)
    yield monitor
    running.cancel()
    gc.unfreeze()


@pytest.fixture(scope="module")
def target(noxu: Noxu) -> Target:
    return Target(noxu.url)
