"""Signals stop a process with every event loop."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from noxu.process.signals import STOPPING, on_stop
from tests.timing import HANGS_AFTER


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


STUCK = """
import asyncio, contextlib, signal, sys
from noxu.process.signals import end_if_stuck, on_stop

async def main():
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    on_stop(loop, lambda number: stop.set())
    end_if_stuck(loop, 0.2)
    print("ready", flush=True)
    if sys.argv[1] == "stuck":
        while True:
            pass
    await stop.wait()
    await asyncio.sleep(0.5)  # it takes its time, and is not stuck
    print("stopped in good order", flush=True)

factory = None
if sys.argv[2] == "uvloop, if present":
    with contextlib.suppress(ImportError):
        from uvloop import new_event_loop as factory
with asyncio.Runner(loop_factory=factory) as runner:
    runner.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="platform: handlers of signals besides those of the loop")
@pytest.mark.parametrize(
    ("loop", "code", "said"), [("stuck", 128 + signal.SIGTERM, ""), ("idle", 0, "stopped in good order\n")]
)
@pytest.mark.parametrize("of", ["asyncio", "uvloop, if present"])
def test_a_signal_also_ends_a_process_whose_loop_is_stuck(loop: str, code: int, said: str, of: str) -> None:
    with subprocess.Popen([sys.executable, "-c", STUCK, loop, of], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == said
        assert process.wait(HANGS_AFTER) == code
