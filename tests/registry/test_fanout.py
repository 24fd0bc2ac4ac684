"""Fan-out: which streams receive which changes in which round, and what happens to those that fail or fall behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from noxu.registry.cache import STEP, Change, Fanout
from noxu_storage.types import Key, Revision
from tests.timing import loop_turns


class History:
    """One change for each revision; those up to `floor` are no longer kept."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.changed: Revision = 0
        self.floor = 0

    def write(self, partition: str) -> None:
        self.changed += 1
        self.changes.append(Change(Key("/things", partition, "x"), self.changed, None, None))

    def since(self, revision: Revision) -> list[Change] | None:
        return None if revision < self.floor else self.changes[revision:]


class Recorder:
    """A stream that records what it receives, falls behind after `capacity` deliveries, and fails if that is negative."""

    def __init__(self, partition: str | None = None, capacity: int = 1_000) -> None:
        self.partition, self.capacity = partition, capacity
        self.received: list[tuple[list[Revision], Revision]] = []
        self.signals: list[str] = []

    def deliver(self, changes: Sequence[Change], revision: Revision) -> bool:
        if self.capacity < 0:
            raise RuntimeError("broken")
        self.received.append(([change.revision for change in changes], revision))
        self.capacity -= 1
        return self.capacity > 0

    def fall_behind(self) -> None:
        self.signals.append("behind")

    def end(self) -> None:
        self.signals.append("end")


def following(history: History, *streams: Recorder) -> Fanout:
    fanout = Fanout(history)
    for stream in streams:
        fanout.add(stream)
        fanout.follow(stream)
    return fanout


async def test_a_stream_receives_the_changes_of_its_partition() -> None:
    history, everything, a, b = History(), Recorder(), Recorder("a/"), Recorder("b/")
    fanout = following(history, everything, a, b)
    history.write("a/")
    history.write("b/")
    fanout.publish()
    history.write("a/")
    fanout.publish()
    assert everything.received == [([1, 2], 2), ([3], 3)]
    assert a.received == [([1], 2), ([3], 3)]
    assert b.received == [([2], 2)]


async def test_a_round_takes_several_iterations_and_changes_meanwhile_belong_to_the_next_round() -> None:
    history, streams = History(), [Recorder() for _ in range(3 * STEP)]
    fanout = following(history, *streams)
    history.write("a/")
    fanout.publish()
    assert [len(stream.received) for stream in streams] == [1] * STEP + [0] * 2 * STEP
    assert fanout.delivered(now=7) == 0  # some streams do not have the first change
    for _ in range(2):
        history.write("a/")
        fanout.publish()
    await loop_turns()
    assert {str(stream.received) for stream in streams} == {"[([1], 1), ([2, 3], 3)]"}
    assert fanout.delivered(now=7) == 7


async def test_a_stream_that_falls_behind_receives_nothing_until_it_follows_again() -> None:
    history, slow, other = History(), Recorder(capacity=1), Recorder()
    fanout = following(history, slow, other)
    for _ in range(3):
        history.write("a/")
        fanout.publish()
    assert (len(slow.received), len(other.received)) == (1, 3)
    slow.capacity = 9
    fanout.follow(slow)
    history.write("a/")
    fanout.publish()
    assert slow.received == [([1], 1), ([4], 4)]


async def test_a_new_follower_does_not_receive_past_changes() -> None:
    history = History()
    history.write("a/")
    history.floor = 1
    fanout = following(history, stream := Recorder())
    history.write("a/")
    fanout.publish()
    assert (stream.received, stream.signals) == ([([2], 2)], [])


async def test_all_streams_fall_behind_if_changes_since_the_last_round_are_no_longer_kept() -> None:
    history, streams = History(), [Recorder() for _ in range(STEP + 1)]
    fanout = following(history, *streams)
    history.write("a/")
    fanout.publish()
    history.write("a/")
    history.write("a/")
    history.floor = 2
    await loop_turns()
    assert {str(stream.signals) for stream in streams} == {"['behind']"}
    assert fanout.delivered(now=3) == 3
    history.write("a/")
    fanout.publish()
    assert all(len(stream.received) == 1 for stream in streams)


async def test_the_end_follows_the_last_change_and_reaches_streams_that_fell_behind() -> None:
    history, behind, streams = History(), Recorder(), [Recorder() for _ in range(2 * STEP)]
    fanout = following(history, *streams)
    fanout.add(behind)
    history.write("a/")
    fanout.publish()
    history.write("a/")
    fanout.end()
    assert {str(stream.received) for stream in streams} == {"[([1], 1), ([2], 2)]"}
    assert {str(stream.signals) for stream in [behind, *streams]} == {"['end']"}
    await asyncio.sleep(0)  # the scheduled step finds nothing to do


async def test_a_removed_stream_receives_nothing_more() -> None:
    history, streams = History(), [Recorder() for _ in range(STEP + 2)]
    fanout = following(history, *streams)
    history.write("a/")
    fanout.publish()
    fanout.remove(streams[-1])
    fanout.end()
    assert (streams[-1].received, streams[-1].signals) == ([], [])
    assert streams[-2].received == [([1], 1)]


async def test_a_stream_that_fails_is_ended_and_the_others_are_served(caplog: pytest.LogCaptureFixture) -> None:
    history, broken, other = History(), Recorder(capacity=-1), Recorder()
    fanout = following(history, broken, other)
    for _ in range(2):
        history.write("a/")
        fanout.publish()
    assert broken.signals == ["end"]
    assert len(other.received) == 2
    assert [record.message for record in caplog.records] == ["a watch failed"]
