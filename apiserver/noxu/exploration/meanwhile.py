"""What goes on beside the thread of a run, which waits for something meanwhile: object time passes, views end, output is dropped.

    def look(over: threading.Event) -> None:
        while not over.wait(0.1):
            ...

    with meanwhile("log", look):
        run()

The work ends with the block, whatever ends that, so nothing is left of a run.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError

from noxu.testing.errors import Stopped


@contextlib.contextmanager
def meanwhile(name: str, work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Do `work` in a thread while the block runs. The event is set when that is over, and the thread is waited for.

    Work that asks a server ends when the server does: the exploration is interrupted.
    """
    over = threading.Event()

    def do() -> None:
        with contextlib.suppress(Stopped, CancelledError):
            work(over)

    thread = threading.Thread(target=do, name=f"noxu-explore-{name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
