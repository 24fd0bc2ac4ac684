"""Signals stop a process with every event loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest

from noxu.apiserver.signals import STOPPING, on_stop


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Restore the handlers of the test run."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class LoopOfWindows(asyncio.SelectorEventLoop):
    """An event loop without handlers of signals."""

    def add_signal_handler(self, *_: object) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("loop_type", [asyncio.SelectorEventLoop, LoopOfWindows])
@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_wakes_the_loop(loop_type: type[asyncio.SelectorEventLoop], number: signal.Signals) -> None:
    async def wait() -> int:
        loop = asyncio.get_running_loop()
        received: asyncio.Future[int] = loop.create_future()
        on_stop(loop, received.set_result)
        loop.call_soon(signal.raise_signal, number)
        return await received

    with asyncio.Runner(loop_factory=loop_type) as runner:
        assert runner.run(asyncio.wait_for(wait(), 60)) == number


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="platform: SIGHUP")
def test_a_signal_that_nohup_ignores_stays_ignored() -> None:
    async def wait() -> list[int]:
        received: list[int] = []
        on_stop(asyncio.get_running_loop(), received.append)
        signal.raise_signal(signal.SIGHUP)
        await asyncio.sleep(0)
        return received

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert asyncio.run(wait()) == []


def test_they_include_those_of_the_terminal_and_of_supervisors() -> None:
    assert {signal.SIGINT, signal.SIGTERM} <= set(STOPPING)
