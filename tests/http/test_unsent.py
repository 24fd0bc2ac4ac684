"""The bytes of answers that are not read: how they are counted, and who is disconnected when there are too many."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from noxu.http import unsent as unsent_module
from noxu.http.unsent import MIN_STALLED, Part, Unsent
from tests.timing import eventually_async


class Peer:
    """A client with `size` unsent bytes. Disconnected, it ends its answer, as a handler does whose client is gone."""

    def __init__(self, unsent: Unsent, size: int = 1000) -> None:
        self.size, self.aborted = size, False
        self._unsent = unsent
        self._answers = contextlib.ExitStack()

    def unsent_bytes(self) -> int:
        return self.size

    def abort(self) -> None:
        self.aborted = True

    def sends(self, *parts: Part) -> None:
        self._answers.enter_context(self._unsent.held(self, parts))

    def is_done(self) -> None:
        self._answers.close()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


X, Y = b"x" * 2000, b"y" * 1000


def stalled(unsent: Unsent, clock: Clock, count: int, *, seconds: float) -> list[Peer]:
    """Clients that have stalled one after another, the last of them `seconds` ago."""
    peers = [Peer(unsent) for _ in range(count)]
    for peer in peers:
        unsent.stalls(peer)
        clock.now += 0.001
    clock.now += seconds
    return peers


COUNTED: list[tuple[str, list[tuple[Part, ...]], int]] = [
    ("one answer", [(X,)], 2000),
    ("two answers", [(X,), (Y,)], 3000),
    ("two answers with the same bytes", [(X,), (X,)], 2000),
    ("slices of the same bytes", [(memoryview(X)[:10], b"12345", memoryview(X)[10:]), (X,)], 2005),
    ("the same bytes twice in an answer", [(X, X)], 2000),
    ("nothing", [()], 0),
]


@pytest.mark.parametrize(("answers", "total"), [row[1:] for row in COUNTED], ids=[row[0] for row in COUNTED])
def test_bytes_count_once_until_the_last_answer_is_sent(answers: list[tuple[Part, ...]], total: int) -> None:
    unsent = Unsent()
    peers = [Peer(unsent) for _ in answers]
    for peer, parts in zip(peers, answers, strict=True):
        peer.sends(*parts)
    assert unsent.total == total
    *others, last = peers
    for peer in others:
        peer.is_done()
    assert unsent.total == sum(
        len(whole) for whole in {id(w): w for w in map(unsent_module._whole, answers[-1])}.values()
    )
    last.is_done()
    assert unsent.total == 0


async def test_beyond_the_limit_the_client_that_has_read_nothing_for_longest_is_disconnected() -> None:
    clock = Clock()
    unsent = Unsent(limit=2500, now=clock)
    first, second = stalled(unsent, clock, 2, seconds=MIN_STALLED)
    first.sends(Y)
    second.sends(bytes(Y[:-1]))
    Peer(unsent).sends(X[:-1])
    assert (first.aborted, second.aborted) == (True, True)  # one is not enough
    Peer(unsent).sends(b"a" * 400)
    assert unsent.total == 1999 + 400


async def test_as_few_are_disconnected_as_possible() -> None:
    clock = Clock()
    unsent = Unsent(limit=2500, now=clock)
    first, second = stalled(unsent, clock, 2, seconds=MIN_STALLED)
    first.sends(Y)
    second.sends(X[:500])
    Peer(unsent).sends(X)
    assert (first.aborted, second.aborted) == (True, False)
    assert unsent.total == 2500


async def test_a_client_that_holds_nothing_is_not_disconnected() -> None:
    clock = Clock()
    unsent = Unsent(limit=1, now=clock)
    idle, holder = stalled(unsent, clock, 2, seconds=MIN_STALLED)
    holder.sends(X)
    assert (idle.aborted, holder.aborted) == (False, True)


async def test_bytes_that_another_client_shares_stay_counted() -> None:
    clock = Clock()
    unsent = Unsent(limit=2500, now=clock)
    [peer] = stalled(unsent, clock, 1, seconds=MIN_STALLED)
    peer.sends(X)
    Peer(unsent).sends(X)
    Peer(unsent).sends(Y)
    assert (peer.aborted, unsent.total) == (True, 3000)


async def test_the_limit_is_checked_again_once_however_many_answers_exceed_it() -> None:
    unsent = Unsent(limit=1)
    checks = set()
    for _ in range(3):
        Peer(unsent).sends(X)
        assert unsent._check is not None
        checks.add(unsent._check)
    assert sum(not check.cancelled() for check in checks) == 1


READING: list[tuple[str, str]] = [
    ("has read everything", "all"),
    ("has read something", "some"),
    ("stalls since a moment ago", "late"),
]


@pytest.mark.parametrize("how", [row[1] for row in READING], ids=[row[0] for row in READING])
async def test_a_client_is_not_disconnected_that(how: str) -> None:
    clock = Clock()
    unsent = Unsent(limit=1, now=clock)
    [peer] = stalled(unsent, clock, 1, seconds=MIN_STALLED * (0.9 if how == "late" else 1.1))
    if how == "all":
        unsent.reads(peer)
    elif how == "some":
        peer.size -= 1
    peer.sends(X)
    assert not peer.aborted
    assert not unsent.disconnect_stalled()


async def test_the_limit_is_checked_again_when_clients_have_stalled_for_long_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unsent_module, "MIN_STALLED", 0.01)
    unsent = Unsent(limit=1)
    peer = Peer(unsent)
    unsent.stalls(peer)
    peer.sends(X)
    await eventually_async(lambda: peer.aborted)
    assert unsent.total == 0
    peer.is_done()
    assert unsent.total == 0


def test_one_client_is_disconnected_in_favour_of_a_refused_request() -> None:
    clock = Clock()
    unsent = Unsent(now=clock)
    first, second = stalled(unsent, clock, 2, seconds=MIN_STALLED)
    assert unsent.disconnect_stalled()
    assert (first.aborted, second.aborted) == (True, False)
    assert unsent.disconnect_stalled()
    assert not unsent.disconnect_stalled()


def test_one_object_of_bytes_is_not_another(monkeypatch: pytest.MonkeyPatch) -> None:
    value: Any = bytearray(b"x")
    with pytest.raises(AssertionError):
        unsent_module._whole(memoryview(value))
