"""Work beside a run ends with it, and a server that has ended is no failure of it."""

from __future__ import annotations

import threading

import pytest

from noxu.exploration.meanwhile import meanwhile
from noxu.testing.errors import Stopped
from tests.timing import HANGS_AFTER


def test_the_work_begins_with_the_block_and_ends_with_it() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(over: threading.Event) -> None:
        begun.set()
        assert over.wait(HANGS_AFTER)
        ended.set()

    with meanwhile("test", work):
        assert begun.wait(HANGS_AFTER)
        assert not ended.is_set()
    assert ended.is_set()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_work_that_asks_a_server_ends_when_that_is_stopped() -> None:
    def work(_: threading.Event) -> None:
        raise Stopped

    with meanwhile("test", work):
        pass
