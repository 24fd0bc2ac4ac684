"""Pending writes: their revisions, and how the callers of a transaction are answered."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from noxu_storage import group_commit as module
from noxu_storage.group_commit import PendingWrites
from noxu_storage.types import Key, OutcomeUnknown

A, B = Key("c", "p", "a"), Key("c", "p", "b")


async def test_pending_writes_get_the_next_revisions() -> None:
    pending = PendingWrites(5)
    assert [pending.add(key, 0, b"v").revision for key in (A, B)] == [6, 7]
    transaction = pending.begin_commit()
    assert [write.row[:4] for write in transaction.writes] == [(*A, 6), (*B, 7)]
    assert pending.add(A, 6, b"w").revision == 8


async def test_the_newest_pending_write_determines_the_revision_of_a_key() -> None:
    pending = PendingWrites(1)
    assert pending.newest(A) is None
    first = pending.add(A, 0, b"v")
    assert (pending.newest(A), first.resulting_revision) == (first, 2)
    second = pending.add(A, 2, None)
    assert (pending.newest(A), second.resulting_revision) == (second, 0)


async def test_after_a_commit_only_later_writes_are_pending() -> None:
    pending = PendingWrites(1)
    for key in (A, B):
        pending.add(key, 0, b"v")
    transaction = pending.begin_commit()
    later = pending.add(A, 2, b"w")
    pending.committed(transaction)
    assert (pending.newest(A), pending.newest(B)) == (later, None)


async def test_success_answers_callers_that_have_not_been_cancelled_with_revisions() -> None:
    pending = PendingWrites(1)
    writes = [pending.add(A, 0, b"1"), pending.add(A, 2, b"2"), pending.add(A, 3, b"3")]
    writes[1].result.cancel()
    pending.begin_commit().succeed()
    assert [write.result.result() for write in (writes[0], writes[2])] == [2, 4]


async def test_failure_answers_each_caller_with_a_new_exception() -> None:
    pending = PendingWrites(1)
    writes = [pending.add(A, 0, b"1"), pending.add(B, 0, b"2"), pending.add(B, 3, b"3")]
    writes[2].result.cancel()
    pending.begin_commit().fail(partial(OutcomeUnknown, "it failed"))
    errors = [write.result.exception() for write in writes[:2]]
    assert [type(error) for error in errors] == [OutcomeUnknown, OutcomeUnknown]
    assert errors[0] is not errors[1]


async def test_a_reset_retries_collected_writes_and_continues_after_the_log() -> None:
    pending = PendingWrites(1)
    pending.add(A, 0, b"1")
    transaction = pending.begin_commit()
    collected = [pending.add(A, 2, b"2"), pending.add(B, 0, b"3")]
    collected[0].result.cancel()
    pending.reset(4)
    assert collected[1].result.result() is None
    assert not transaction.writes[0].result.done()  # its outcome is not decided here
    assert (pending.newest(A), bool(pending)) == (None, False)
    assert pending.add(A, 0, b"4").revision == 5
    transaction.succeed()


async def test_cancelling_one_waiter_of_a_transaction_does_not_cancel_the_others() -> None:
    pending = PendingWrites(1)
    write = pending.add(A, 0, b"1")
    waiting = [asyncio.create_task(write.transaction.finished()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    assert [waiter.done() for waiter in waiting] == [True, False, False]
    pending.begin_commit().succeed()
    await asyncio.gather(*waiting[1:])


@pytest.mark.parametrize("end", ["succeed", "fail", "reset"])
async def test_waiters_continue_however_the_transaction_ends(end: str) -> None:
    pending = PendingWrites(1)
    write = pending.add(A, 0, b"1")
    waiting = asyncio.create_task(write.transaction.finished())
    await asyncio.sleep(0)
    if end == "reset":
        pending.reset(1)
    elif end == "succeed":
        pending.begin_commit().succeed()
    else:
        pending.begin_commit().fail(partial(OutcomeUnknown, ""))
        assert write.result.exception()
    await waiting


async def test_an_invalid_row_is_refused_and_uses_no_revision() -> None:
    pending = PendingWrites(1)
    with pytest.raises(ValueError, match="surrogates"):
        pending.add(Key("c", "p", "\ud800"), 0, b"v")
    with pytest.raises(TypeError):
        pending.add(A, 0, "text")  # type: ignore[arg-type]
    assert not pending
    assert pending.add(A, 0, b"v").revision == 2


@pytest.mark.parametrize(
    ("sizes", "full"),
    [([], False), ([1, 1], False), ([1, 1, 1], True), ([99], False), ([100], True), ([60, 40], True), ([1000], True)],
)
async def test_the_number_and_the_bytes_of_pending_writes_are_limited(
    sizes: list[int], full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PENDING_WRITES", 3)
    monkeypatch.setattr(module, "MAX_PENDING_BYTES", 100)
    pending = PendingWrites(1)
    for number, size in enumerate(sizes):
        pending.add(Key("c", "p", f"n{number}"), 0, b"v" * size)
        if number == 0:
            transaction = pending.begin_commit()  # what is being committed counts, too
    assert pending.full is full
    if sizes:
        pending.committed(transaction)
        assert not pending.full
