"""Definitions are settled before their writers are answered."""

from __future__ import annotations

import asyncio

from apiserver.registry.lifecycle import Definitions


class Settling(Definitions):
    """Settling takes one turn of the loop, and changes nothing."""

    def __init__(self) -> None:
        self._settling = {}
        self._changed = set()

    async def _step(self, name: str) -> bool:
        await asyncio.sleep(0)
        return False


async def _in_the_turn_in_which_it_ends() -> None:
    lifecycle = Settling()
    lifecycle._wake("w")
    task = lifecycle._settling["w"]
    for _ in range(2):
        await asyncio.sleep(0)
    assert task.done()
    assert lifecycle._settling == {}
    await lifecycle.settled("w")
    lifecycle._wake("w")
    assert not lifecycle._settling["w"].done()
    await lifecycle.settled("w")


def test_what_has_settled_is_not_waited_for_any_more() -> None:
    asyncio.run(_in_the_turn_in_which_it_ends())
