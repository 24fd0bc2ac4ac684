"""The session behind the handle, and threads that call while it ends."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from noxu import Noxu
from noxu.testing.errors import Stopped
from tests.timing import HANGS_AFTER


def test_a_call_that_comes_while_the_server_stops_ends() -> None:
    stops, asked = threading.Event(), threading.Event()

    async def hold() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:  # the loop cancels its tasks: what begins from now on is not cancelled
            stops.set()
            asked.wait(HANGS_AFTER)

    with Noxu() as noxu:
        runner = noxu._runner
        runner.submit(hold())
        stopping = threading.Thread(target=runner.stop)
        stopping.start()
        assert stops.wait(HANGS_AFTER)
        late = runner.submit(asyncio.sleep(3600))
        asked.set()
        with pytest.raises(Stopped):
            late.result(HANGS_AFTER)
        stopping.join()
        with pytest.raises(Stopped):
            runner.submit(asyncio.sleep(3600))


class CollectsGarbage:
    """A loop that is asked for something at the moment at which Python collects garbage."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def is_closed(self) -> bool:
        gc.collect()
        return self._loop.is_closed()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


def test_a_watch_that_is_collected_during_a_call_does_not_hold_it(noxu: Noxu, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[object] = [noxu.watch("configmaps")]
    forgotten.append(forgotten)  # a cycle, which only the collector finds
    del forgotten
    with monkeypatch.context() as patched:
        patched.setattr(noxu._runner, "loop", CollectsGarbage(noxu._runner.loop))
        called = threading.Thread(target=lambda: noxu._runner.submit(asyncio.sleep(0)), daemon=True)
        called.start()
        called.join(HANGS_AFTER)
        assert not called.is_alive()
