"""When the controllers of a server have done everything that they have to do now.

A controller's work is in its queue: keys that are ready, or processed, or to be retried. What it writes is in the queues of
the controllers that follow it before its own key is done, because the cache delivers a change before it answers the writer.
So the controllers have settled when a look at all queues finds nothing, once nothing has been waited for.

What is due later (`add_after`) is no work yet, and neither is a retry: it may fail forever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from noxu.controllers.controller import Reconciler


def busy(controllers: Iterable[Reconciler[Any]]) -> dict[str, list[str]]:
    """The keys that wait or are processed, by the name of their controller; empty if the controllers have settled."""
    found = {controller.name: controller.queue.unprocessed for controller in controllers}
    return {name: [str(key) for key in keys] for name, keys in found.items() if keys}


async def settled(controllers: Sequence[Reconciler[Any]]) -> None:
    """Return when no controller has a key that is ready or processed."""
    is_settled = False
    while not is_settled:
        is_settled = True
        for controller in controllers:
            for key in controller.queue.unprocessed:
                is_settled = False
                await controller.queue.processed(key)


def hasten(controllers: Iterable[Reconciler[Any]], seconds: float) -> None:
    """Do now, once, what the controllers would do of their own accord within so many seconds: retry, look again."""
    for controller in controllers:
        controller.queue.retry_early(seconds)
        if controller.on_process_time:
            controller.queue.begin_early(seconds)
