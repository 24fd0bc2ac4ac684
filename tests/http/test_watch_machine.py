"""R8: any sequence of writes, watches, compactions and pauses: every stream keeps the nine promises, or ends with 410.

NOXU_INTERLEAVINGS is the number of sequences.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from noxu.api import selectors
from noxu.http import watch
from noxu.http.exchange import ListOptions
from noxu.registry import cache
from noxu.registry.reader import Selection
from noxu_storage import log
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Key
from tests.control_planes import assemble
from tests.http.streams import Seen, Step, Watched, history_of, judge, seen
from tests.timing import hang_guard

pytestmark = pytest.mark.slow

T = TypeVar("T")
INTERLEAVINGS = int(os.environ.get("NOXU_INTERLEAVINGS", "40"))
MAPS = "/configmaps"
PLACES = [("default/", "a"), ("default/", "b"), ("other/", "a")]


class Tap:
    """A client that takes everything, or with `closed` nothing for the time being."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.open = asyncio.Event()
        self.open.set()

    def framed(self, events: Sequence[bytes]) -> Sequence[bytes]:
        return events

    def write(self, pieces: Sequence[bytes]) -> int:
        self.data.append(b"".join(pieces))
        return 0 if self.open.is_set() else 1 << 20

    async def drain(self) -> None:
        await self.open.wait()

    @property
    def events(self) -> list[Seen]:
        return [seen(line) for line in b"".join(self.data).splitlines()]


def selected(namespace: str | None, color: str | None) -> Any:
    def selects(place: tuple[str, str], value: Any) -> bool:
        return (namespace is None or place[0] == namespace) and (
            color is None or value["metadata"].get("labels", {}).get("color") == color
        )

    return selects


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.steps: list[Step] = []  # history, also of what has been compacted
        self.known: dict[tuple[str, str], tuple[int, Any]] = {}
        self.watches: list[tuple[Tap, int, Any, asyncio.Task[None], bool]] = []

    def run(self, call: Awaitable[T]) -> T:
        async def within() -> T:
            async with hang_guard():
                return await call

        return self.runner.run(within())

    @initialize()
    def start(self) -> None:
        async def begin() -> None:
            self.store = MemoryStore()
            self.plane = assemble(self.store)
            self.following = asyncio.create_task(self.plane.cache.follow())
            found = self.plane.served_resources.current.find("", "v1", "configmaps")
            assert found is not None
            self.resource = found
            await self.plane.reader.collection(found)

        self.run(begin())

    @rule(place=st.sampled_from(PLACES), color=st.sampled_from(["red", "green"]), gone=st.booleans())
    def write(self, place: tuple[str, str], color: str, gone: bool) -> None:
        partition, name = place
        key, (expected, old) = Key(MAPS, partition, name), self.known.get(place, (0, None))
        metadata = {"name": name, "namespace": partition[:-1], "uid": f"{partition}{name}", "labels": {"color": color}}
        new = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
        if gone and old is not None:
            revision = self.run(self.store.delete(key, expected=expected))
            del self.known[place]
            new = {}
        else:
            revision = self.run(self.store.put(key, json.dumps(new).encode(), expected=expected))
            self.known[place] = (revision, new)
        self.steps.append(Step(revision, (partition[:-1], name), old, new or None))

    @rule(
        back=st.integers(0, 12),
        namespace=st.sampled_from([None, "default"]),
        color=st.sampled_from([None, "red"]),
        initial=st.booleans(),
        bookmarks=st.booleans(),
    )
    def watch(self, back: int, namespace: str | None, color: str | None, initial: bool, bookmarks: bool) -> None:
        async def begin() -> None:
            labels = selectors.parse_labels(f"color={color}") if color else None
            selection = Selection(self.resource, namespace, labels)
            tap = Tap()
            stream = watch.Stream(self.plane.reader, selection, watch.Representation(self.resource), tap)
            after = 0 if initial else max(self.store.revision - back, 1)
            stream.after = after
            asked = ListOptions(selection, str(after), bookmarks=bookmarks or initial, initial_events=initial or None)
            running = asyncio.create_task(stream.run(asked, 3600.0))
            self.watches.append((tap, after, selected(namespace, color), running, initial))

        self.run(begin())

    @rule(number=st.integers(0, 20))
    def stall_or_go_on(self, number: int) -> None:
        if self.watches:
            tap = self.watches[number % len(self.watches)][0]
            tap.open.clear() if tap.open.is_set() else tap.open.set()

    @rule(back=st.integers(0, 6))
    def compact(self, back: int) -> None:
        revision = self.store.revision - back
        if revision > self.store.compacted:
            self.run(self.store.compact(revision))

    @rule(turns=st.integers(1, 6))
    def wait(self, turns: int) -> None:
        async def some_turns() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self.run(some_turns())

    def teardown(self) -> None:
        async def end() -> None:
            for tap, *_ in self.watches:
                tap.open.set()
            for _ in range(60):
                await asyncio.sleep(0)
            for *_, running, _ in self.watches:
                running.cancel()
            await asyncio.gather(*(running for *_, running, _ in self.watches), return_exceptions=True)
            await self.store.close()
            await self.following

        if hasattr(self, "store"):
            self.run(end())
            for tap, after, selects, _, initial in self.watches:
                self.judge(tap.events, after, selects, initial)
        self.runner.close()

    def judge(self, events: list[Seen], after: int, selects: Any, initial: bool) -> None:
        expired = bool(events) and events[-1].type == "ERROR"
        if expired:
            assert events[-1].object["code"] == 410
            events = events[:-1]
        upto = 0 if expired else self.store.revision
        if initial:
            ends = [n for n, event in enumerate(events) if event.object["metadata"].get("annotations")]
            if not ends:
                assert expired
                return
            judge(Watched(events[ends[0]].revision, events[ends[0] :], events[: ends[0]], selects, upto), self.steps)
        else:
            judge(Watched(after, events, (), selects, upto), self.steps)


def test_r8_whatever_happens_streams_keep_their_promises(monkeypatch: Any, record_property: Any) -> None:
    """Short memories of the cache and the log, and short steps, so that everything that can be overtaken is."""
    record_property("sequences", INTERLEAVINGS)
    monkeypatch.setattr(cache, "MAX_RECENT", 3)
    monkeypatch.setattr(cache, "STEP", 1)
    monkeypatch.setattr(log, "TAIL_EVENTS", 4)
    monkeypatch.setattr(watch, "BOOKMARK_EVERY", 0.0005)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=INTERLEAVINGS, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


def test_history_is_read_from_the_log() -> None:
    """The validators' history and the machine's are the same thing."""
    machine = Machine()
    machine.start()
    for n in range(6):
        machine.write(PLACES[n % 3], "red", n == 5)
    assert machine.run(history_of(machine.store, MAPS)) == machine.steps
    machine.teardown()
