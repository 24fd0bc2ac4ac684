"""Rounds of changes: who is told of what, when, and what it costs the others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from apiserver.registry.change import Change
from apiserver.registry.fanout import STEP, Fanout
from storage.types import Key, Revision


class Past:
    """What happened: one change for each revision; those before `floor` are forgotten."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.floor = 0

    @property
    def changed(self) -> Revision:
        return len(self.changes)

    def happen(self, partition: str) -> None:
        self.changes.append(Change(Key("/things", partition, "x"), self.changed + 1, None, None))

    def since(self, revision: Revision) -> list[Change] | None:
        return None if revision < self.floor else self.changes[revision:]


class Peer:
    """Somebody who follows, as long as there is `room`."""

    def __init__(self, partition: str | None = None, room: int = 1_000) -> None:
        self.partition, self.room = partition, room
        self.told: list[tuple[list[Revision], Revision]] = []
        self.heard: list[str] = []

    def deliver(self, changes: Sequence[Change], revision: Revision) -> bool:
        if self.room < 0:
            raise RuntimeError("broken")
        self.told.append(([change.revision for change in changes], revision))
        self.room -= 1
        return self.room > 0

    def fall_behind(self) -> None:
        self.heard.append("behind")

    def end(self) -> None:
        self.heard.append("end")


def following(past: Past, *peers: Peer) -> Fanout:
    fanout = Fanout(past)
    for peer in peers:
        fanout.enter(peer)
        fanout.follow(peer)
    return fanout


async def test_a_stream_is_told_of_its_own_partition_only() -> None:
    past, everything, a, b = Past(), Peer(), Peer("a/"), Peer("b/")
    fanout = following(past, everything, a, b)
    past.happen("a/")
    past.happen("b/")
    fanout.tell()
    past.happen("a/")
    fanout.tell()
    assert everything.told == [([1, 2], 2), ([3], 3)]
    assert a.told == [([1], 2), ([3], 3)]
    assert b.told == [([2], 2)]


async def test_a_round_takes_several_turns_and_what_happens_meanwhile_is_the_next_round() -> None:
    past, peers = Past(), [Peer() for _ in range(3 * STEP)]
    fanout = following(past, *peers)
    past.happen("a/")
    fanout.tell()
    assert [len(peer.told) for peer in peers] == [1] * STEP + [0] * 2 * STEP
    assert fanout.settled(now=7) == 0  # not everybody knows of the first change
    for _ in range(2):
        past.happen("a/")
        fanout.tell()
    for _ in range(10):
        await asyncio.sleep(0)
    assert {str(peer.told) for peer in peers} == {"[([1], 1), ([2, 3], 3)]"}
    assert fanout.settled(now=7) == 7


async def test_who_falls_behind_is_told_nothing_until_it_follows_again() -> None:
    past, slow, other = Past(), Peer(room=1), Peer()
    fanout = following(past, slow, other)
    for _ in range(3):
        past.happen("a/")
        fanout.tell()
    assert (len(slow.told), len(other.told)) == (1, 3)
    slow.room = 9
    fanout.follow(slow)
    past.happen("a/")
    fanout.tell()
    assert slow.told == [([1], 1), ([4], 4)]


async def test_who_begins_to_follow_is_not_told_of_the_past() -> None:
    past = Past()
    past.happen("a/")
    past.floor = 1
    fanout = following(past, peer := Peer())
    past.happen("a/")
    fanout.tell()
    assert (peer.told, peer.heard) == ([([2], 2)], [])


async def test_when_too_much_has_happened_everybody_has_to_catch_up() -> None:
    past, peers = Past(), [Peer() for _ in range(STEP + 1)]
    fanout = following(past, *peers)
    past.happen("a/")
    fanout.tell()
    past.happen("a/")
    past.happen("a/")
    past.floor = 2
    for _ in range(4):
        await asyncio.sleep(0)
    assert {str(peer.heard) for peer in peers} == {"['behind']"}
    assert fanout.settled(now=3) == 3
    past.happen("a/")
    fanout.tell()
    assert all(len(peer.told) == 1 for peer in peers)


async def test_the_end_comes_after_everything_and_to_everybody() -> None:
    past, behind, peers = Past(), Peer(), [Peer() for _ in range(2 * STEP)]
    fanout = following(past, *peers)
    fanout.enter(behind)
    past.happen("a/")
    fanout.tell()
    past.happen("a/")
    fanout.end()
    assert {str(peer.told) for peer in peers} == {"[([1], 1), ([2], 2)]"}
    assert {str(peer.heard) for peer in [behind, *peers]} == {"['end']"}
    await asyncio.sleep(0)  # the step that was due finds nothing to do


async def test_who_leaves_hears_nothing_more() -> None:
    past, peers = Past(), [Peer() for _ in range(STEP + 2)]
    fanout = following(past, *peers)
    past.happen("a/")
    fanout.tell()
    fanout.leave(peers[-1])
    fanout.end()
    assert (peers[-1].told, peers[-1].heard) == ([], [])
    assert peers[-2].told == [([1], 1)]


async def test_one_stream_that_fails_ends_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    past, broken, other = Past(), Peer(room=-1), Peer()
    fanout = following(past, broken, other)
    for _ in range(2):
        past.happen("a/")
        fanout.tell()
    assert broken.heard == ["end"]
    assert len(other.told) == 2
    assert [record.message for record in caplog.records] == ["a watch fails, and ends"]
