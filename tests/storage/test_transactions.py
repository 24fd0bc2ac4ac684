"""Turns: who waits for a transaction, and learns that it was overtaken; and which writes a transaction may have."""

from __future__ import annotations

import asyncio

from noxu_storage.transactions import StagedWrite, Turn, refused
from noxu_storage.types import Key, Revision
from tests.rows import rows
from tests.timing import loop_turns

A, B = Key("c", "p", "a"), Key("c", "p", "b")


async def test_without_a_transaction_nothing_waits() -> None:
    turn = Turn()
    assert not turn.is_taken
    assert await turn.ended() is False


async def test_what_waits_in_the_turn_is_overtaken_if_there_are_writes() -> None:
    """Whether it begins to wait before or after they are made, and not if none are."""
    turn, waiting = Turn(), []
    async with turn.taken():
        waiting.append(asyncio.ensure_future(turn.ended()))
        await loop_turns()
        turn.made += 1
        waiting.append(asyncio.ensure_future(turn.ended()))
        await loop_turns()
        assert turn.is_taken
    assert await asyncio.gather(*waiting) == [True, True]
    async with turn.taken():
        nothing = asyncio.ensure_future(turn.ended())
        await loop_turns()
    assert await nothing is False


async def test_transactions_have_their_turns_one_after_the_other() -> None:
    turn, order = Turn(), []

    async def transact(name: str) -> None:
        async with turn.taken():
            order.append(f"{name} begins")
            await loop_turns()
            turn.made += 1
            order.append(f"{name} ends")

    first, second = asyncio.ensure_future(transact("a")), asyncio.ensure_future(transact("b"))
    await asyncio.sleep(0)
    assert await turn.ended()
    await asyncio.gather(first, second)
    assert order == ["a begins", "a ends", "b begins", "b ends"]
    assert await turn.ended() is False


async def test_a_turn_ends_with_a_failure() -> None:
    turn = Turn()

    async def fail() -> None:
        async with turn.taken():
            raise LookupError

    await asyncio.gather(fail(), return_exceptions=True)
    assert not turn.is_taken


def revision_of(key: Key) -> Revision:
    return 7 if key == A else 0


@rows(
    "writes, expected",
    [
        ([], None),
        ([StagedWrite(A, b"", 7), StagedWrite(B, b"", 0)], None),
        ([StagedWrite(A, None, 7), StagedWrite(A, b"", 0)], None),
        ([StagedWrite(B, b"", 0), StagedWrite(A, b"", 6)], A),
        ([StagedWrite(B, None, 0)], B),
        ([StagedWrite(B, b"", 0), StagedWrite(B, b"", 0)], B),
        ([StagedWrite(A, b"", 7), StagedWrite(A, None, 7)], A),
        ([StagedWrite(A, None, 7), StagedWrite(A, None, 0)], A),
    ],
)
def test_the_first_write_that_cannot_be_made(writes: list[StagedWrite], expected: Key | None) -> None:
    assert refused(writes, revision_of) == expected
