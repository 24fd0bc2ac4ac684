"""A head of the largest size does not hold the event loop, whatever part of it is long."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from noxu.http.limits import DEFAULT_LIMITS
from noxu.testing.handle import Noxu
from tests.hostile.heads import HEADS
from tests.hostile.loop_monitor import LoopMonitor, longest_block
from tests.hostile.raw_http import Target, receive_head

BLOCKED = 0.05  # seconds
TRIES = 4  # of which the best counts


@pytest.fixture(scope="module")
def noxu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    with Noxu(tmp_path_factory.mktemp("heads")) as running:
        yield running


@pytest.fixture(scope="module")
def longest() -> float:
    return longest_block()


def status_of(target: Target, sent: bytes) -> int:
    with target.connect() as connection:
        connection.sendall(sent)
        answer = receive_head(connection)
        connection.shutdown(socket.SHUT_RDWR)
    return int(answer.split()[1])


@pytest.mark.parametrize("name", HEADS)
def test_a_long_part_of_a_head(target: Target, loop_monitor: LoopMonitor, longest: float, name: str) -> None:
    head = HEADS[name]
    sent = head.make()
    assert len(sent) <= DEFAULT_LIMITS.head
    blocked = 1e9
    for _ in range(TRIES):
        loop_monitor.reset()
        assert status_of(target, sent) == head.status
        blocked = min(blocked, loop_monitor.longest)
        if blocked < BLOCKED:
            break
    assert blocked < longest
