"""Lines written by a thread: all of them, in order, within bounds; failures are logged once."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
import time
from collections.abc import Sequence

import pytest

from noxu.observability.line_writer import LineWriter


class Output:
    """Keeps lines. It waits while it is `blocked`, and fails while it is `full`."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.batches = 0
        self.is_closed = False
        self.full = False
        self.free = threading.Event()
        self.free.set()
        self.written = threading.Event()

    def write(self, lines: Sequence[bytes]) -> int:
        self.free.wait()
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.batches += 1
        self.lines += lines
        self.written.set()
        return 0

    def close(self) -> None:
        self.is_closed = True


async def test_lines_are_written_in_order_and_few_batches() -> None:
    output = Output()
    writer = LineWriter(output, "the log")
    expected = [b"%d\n" % n for n in range(1000)]
    for line in expected:
        writer.put(line, len(line))
    await writer.close()
    assert (output.lines, output.batches, output.is_closed) == (expected, 1, True)


async def test_a_line_is_written_soon() -> None:
    output = Output()
    writer = LineWriter(output, "the log")
    writer.put(b"a\n", 2)
    await asyncio.to_thread(output.written.wait)
    assert output.lines == [b"a\n"]
    await writer.close()


async def test_a_function_makes_its_line_in_the_thread() -> None:
    output, threads = Output(), []

    def make() -> bytes:
        threads.append(threading.current_thread())
        return b"made\n"

    writer = LineWriter(output, "the log")
    writer.put(make, 5)
    await writer.close()
    assert output.lines == [b"made\n"]
    assert threads != [threading.current_thread()]


async def test_a_bug_in_such_a_function_loses_its_line_only(caplog: pytest.LogCaptureFixture) -> None:
    output = Output()
    writer = LineWriter(output, "the log")
    writer.put(lambda: b"%d" % (1 // 0), 5)
    writer.put(b"next\n", 5)
    assert await writer.flushed() is False
    await writer.close()
    assert output.lines == [b"next\n"]
    assert caplog.messages == ["a line of the log failed"]
    assert writer.failed == 1


async def test_beyond_the_bound_lines_are_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    output = Output()
    output.free.clear()
    writer = LineWriter(output, "the log", max_waiting=10)
    for n in range(20):
        writer.put(b"%02d\n" % n, 3)
    assert writer.is_full
    output.free.set()
    await writer.close()
    await asyncio.sleep(0)
    assert output.lines == [b"00\n", b"01\n", b"02\n", b"03\n"]
    assert caplog.messages == [
        "the log is written too slowly: lines are dropped",
        "the log is written again: 16 lines were dropped",
    ]
    assert writer.failed == 16


async def test_room_waits_until_lines_are_written() -> None:
    output = Output()
    output.free.clear()
    writer = LineWriter(output, "the log", max_waiting=10)
    writer.put(b"0123456789\n", 11)
    waiting = asyncio.ensure_future(writer.room())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    output.free.set()
    await waiting
    assert not writer.is_full
    await writer.close()


async def test_a_full_disk_is_logged_once_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    output = Output()
    output.full = True
    writer = LineWriter(output, "the log")
    for _ in range(3):
        writer.put(b"lost\n", 5)
        assert await writer.flushed() is False
    output.full = False
    writer.put(b"kept\n", 5)
    assert await writer.flushed() is True
    await writer.close()
    assert output.lines == [b"kept\n"]
    assert caplog.messages == [
        "the log cannot be written: No space left on device; lines are lost",
        "the log is written again: 3 lines were lost",
    ]
    assert writer.failed == 3


async def test_the_event_loop_does_not_wait_for_a_slow_disk() -> None:
    output = Output()
    output.free.clear()
    writer = LineWriter(output, "the log")
    for _ in range(100):
        writer.put(b"x" * 1000, 1000)
    before = time.thread_time()
    await asyncio.sleep(0.05)
    assert time.thread_time() - before < 0.05
    assert output.lines == []
    output.free.set()
    await writer.close()
    assert len(output.lines) == 100
