"""How runs are waited for."""

from __future__ import annotations

import signal
import sys
import threading
from concurrent.futures import FIRST_COMPLETED, Future

import pytest

from noxu.exploration import runs


@pytest.mark.skipif(sys.platform == "win32", reason="platform: signals of threads")
def test_a_signal_that_does_not_wake_its_thread_is_handled_while_runs_are_waited_for() -> None:
    """As one that another thread gets, and one that comes just before the thread waits for a lock."""
    handled, run = threading.Event(), Future[None]()

    def other_thread() -> None:
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        if handled.wait(30):
            run.set_result(None)

    before = signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=handled.set).start())
    try:
        thread = threading.Timer(0.05, other_thread)
        thread.start()
        assert runs.wait_for([run]) == ({run}, set())
        thread.join()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_first_that_is_done() -> None:
    done, other = Future[int](), Future[int]()
    done.set_result(1)
    assert runs.wait_for([done, other], FIRST_COMPLETED) == ({done}, {other})
