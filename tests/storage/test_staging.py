"""Writes on their way: numbered, judged by each other, answered together or thrown back together."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from storage import staging as module
from storage.staging import Staging
from storage.types import Key, Unknown

A, B = Key("c", "p", "a"), Key("c", "p", "b")


async def test_staged_writes_get_the_revisions_that_follow() -> None:
    staging = Staging(5)
    assert [staging.add(key, 0, b"v").revision for key in (A, B)] == [6, 7]
    commit = staging.take()
    assert [write.row[:4] for write in commit.writes] == [(*A, 6), (*B, 7)]
    assert staging.add(A, 6, b"w").revision == 8


async def test_a_key_is_as_its_last_staged_write_leaves_it() -> None:
    staging = Staging(1)
    assert staging.newest(A) is None
    first = staging.add(A, 0, b"v")
    assert (staging.newest(A), first.leaves) == (first, 2)
    second = staging.add(A, 2, None)
    assert (staging.newest(A), second.leaves) == (second, 0)


async def test_when_a_commit_is_done_its_writes_are_no_longer_staged_but_later_ones_are() -> None:
    staging = Staging(1)
    for key in (A, B):
        staging.add(key, 0, b"v")
    commit = staging.take()
    later = staging.add(A, 2, b"w")
    staging.done(commit)
    assert (staging.newest(A), staging.newest(B)) == (later, None)


async def test_success_answers_with_revisions_and_leaves_out_who_has_gone() -> None:
    staging = Staging(1)
    writes = [staging.add(A, 0, b"1"), staging.add(A, 2, b"2"), staging.add(A, 3, b"3")]
    writes[1].answer.cancel()
    staging.take().succeed()
    assert [write.answer.result() for write in (writes[0], writes[2])] == [2, 4]


async def test_failure_answers_everybody_with_an_error_of_his_own() -> None:
    staging = Staging(1)
    writes = [staging.add(A, 0, b"1"), staging.add(B, 0, b"2"), staging.add(B, 3, b"3")]
    writes[2].answer.cancel()
    staging.take().fail(partial(Unknown, "it failed"))
    errors = [write.answer.exception() for write in writes[:2]]
    assert [type(error) for error in errors] == [Unknown, Unknown]
    assert errors[0] is not errors[1]


async def test_a_reset_throws_back_what_was_collected_and_counts_on_from_the_log() -> None:
    staging = Staging(1)
    staging.add(A, 0, b"1")
    commit = staging.take()
    collected = [staging.add(A, 2, b"2"), staging.add(B, 0, b"3")]
    collected[0].answer.cancel()
    staging.reset(4)
    assert collected[1].answer.result() is None
    assert not commit.writes[0].answer.done()  # its outcome is not known here
    assert (staging.newest(A), bool(staging)) == (None, False)
    assert staging.add(A, 0, b"4").revision == 5
    commit.succeed()


async def test_waiting_for_a_commit_is_everybodys_and_nobody_can_cancel_it() -> None:
    staging = Staging(1)
    write = staging.add(A, 0, b"1")
    waiting = [asyncio.create_task(write.commit.settled()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    assert [waiter.done() for waiter in waiting] == [True, False, False]
    staging.take().succeed()
    await asyncio.gather(*waiting[1:])


@pytest.mark.parametrize("end", ["succeed", "fail", "reset"])
async def test_waiters_go_on_however_the_commit_ends(end: str) -> None:
    staging = Staging(1)
    write = staging.add(A, 0, b"1")
    waiting = asyncio.create_task(write.commit.settled())
    await asyncio.sleep(0)
    if end == "reset":
        staging.reset(1)
    elif end == "succeed":
        staging.take().succeed()
    else:
        staging.take().fail(partial(Unknown, ""))
        assert write.answer.exception()
    await waiting


async def test_what_cannot_be_a_row_is_refused_and_takes_no_revision() -> None:
    staging = Staging(1)
    with pytest.raises(ValueError, match="surrogates"):
        staging.add(Key("c", "p", "\ud800"), 0, b"v")
    with pytest.raises(TypeError):
        staging.add(A, 0, "text")  # type: ignore[arg-type]
    assert not staging
    assert staging.add(A, 0, b"v").revision == 2


@pytest.mark.parametrize(
    ("sizes", "full"),
    [([], False), ([1, 1], False), ([1, 1, 1], True), ([99], False), ([100], True), ([60, 40], True), ([1000], True)],
)
async def test_it_is_full_by_number_and_by_bytes(sizes: list[int], full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STAGED", 3)
    monkeypatch.setattr(module, "MAX_STAGED_BYTES", 100)
    staging = Staging(1)
    for number, size in enumerate(sizes):
        staging.add(Key("c", "p", f"n{number}"), 0, b"v" * size)
        if number == 0:
            commit = staging.take()  # what is being made counts too
    assert staging.full is full
    if sizes:
        staging.done(commit)
        assert not staging.full
