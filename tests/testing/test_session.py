"""The session behind the handle, and threads that call while it ends."""

from __future__ import annotations

import asyncio
import threading

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
