"""Who wrote a revision: clients over HTTP, controllers, the start; and what a client had been shown before it wrote."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from noxu.clock import SystemClock
from noxu.control import history as module
from noxu.control.history import WriteHistory
from noxu.control.recorded_writes import RecordedWrite
from noxu.registry import authors
from noxu.registry.authors import Author, Journal, Watching, WatchScope, of_controller
from noxu.testing.handle import Noxu
from noxu_storage.memory import MemoryStore
from noxu_storage.notes import RevisionNote
from noxu_storage.sqlite import SqliteStore
from noxu_storage.types import Key
from tests.http.exchanges import MAPS, Reply, ServedApp, serving_app
from tests.rows import rows
from tests.timing import eventually_async

A = Key("/configmaps", "default/", "a")
B = Key("/configmaps", "default/", "b")
ALL = WatchScope("/configmaps", "default/")


# -- requests ----------------------------------------------------------------------------------------------------------


class Remembered(NamedTuple):
    served: ServedApp
    history: WriteHistory

    async def send(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        reply = await self.served.send(method, path, body, **{"X-User": "alice", "User-Agent": "test/1.0", **headers})
        assert reply.code < 300, reply.text
        return reply

    @property
    def newest(self) -> int:
        return self.served.app.backend.reader.cache.revision

    async def author(self) -> Author:
        """Of the newest revision."""
        found = await self.history.of(self.newest)
        assert found is not None
        return found.author


@pytest.fixture
async def remembered() -> AsyncIterator[Remembered]:
    async with serving_app() as served:
        persistence = served.app.backend.persistence
        persistence.journal = journal = Journal()
        yield Remembered(served, WriteHistory(served.app.backend.reader.store, journal))


MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "expected"),
    [
        ("POST", MAPS, {"metadata": {"name": "b"}}, {}, ("create", "test")),
        ("POST", f"{MAPS}?fieldManager=me", {"metadata": {"name": "b"}}, {}, ("create", "me")),
        ("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "2"}}, {}, ("update", "test")),
        ("PATCH", f"{MAPS}/a", {"data": {"k": "2"}}, MERGE, ("patch", "test")),
        (
            "PATCH",
            f"{MAPS}/a?fieldManager=me",
            {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"l": "2"}},
            APPLY,
            ("apply", "me"),
        ),
        ("DELETE", f"{MAPS}/a", None, {}, ("delete", "")),
        ("DELETE", MAPS, None, {}, ("deletecollection", "")),
    ],
)
async def test_who_wrote_a_revision(
    remembered: Remembered,
    method: str,
    path: str,
    body: object,
    headers: dict[str, str],
    expected: tuple[str, str],
) -> None:
    await remembered.send("POST", MAPS, {"metadata": {"name": "a"}})
    more = {"Audit-Id": "id-1", "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    await remembered.send(method, path, body, **headers, **more)
    author = await remembered.author()
    assert (author.verb, author.manager) == expected
    assert (author.user, author.agent) == ("alice", "test/1.0")
    assert (author.request_id, author.traceparent, author.controller) == (
        "id-1",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "",
    )


async def test_a_request_that_is_refused_or_changes_nothing_is_no_write(remembered: Remembered) -> None:
    await remembered.send("POST", MAPS, {"metadata": {"name": "a"}})
    before = await remembered.history.of(remembered.newest)
    await remembered.served.send("POST", MAPS, {"metadata": {"name": "a"}}, **{"X-User": "bob"})
    await remembered.send("PATCH", f"{MAPS}/a", {}, **MERGE, **{"X-User": "bob"})
    await remembered.send("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "b"}}, **{"X-User": "bob"})
    assert [await remembered.history.of(remembered.newest)] == [before]
    assert await remembered.history.of(remembered.newest + 1) is None


async def test_writes_on_one_connection_have_their_own_authors(remembered: Remembered) -> None:
    for user in ("alice", "bob"):
        await remembered.send("POST", MAPS, {"metadata": {"name": user}}, **{"X-User": user})
    newest = remembered.newest
    found = await remembered.history.between(newest - 2, newest)
    assert [write.author.user for write in found] == ["alice", "bob"]


async def test_what_a_client_had_read_is_kept_with_its_next_write(remembered: Remembered) -> None:
    await remembered.send("POST", MAPS, {"metadata": {"name": "a"}})
    first = remembered.newest
    await remembered.send("GET", f"{MAPS}/a")
    await remembered.send("GET", f"{MAPS}?labelSelector=x%3Dy")
    await remembered.send("GET", f"{MAPS}/a", **{"User-Agent": "another"})
    for name in ("b", "c"):
        await remembered.send("POST", MAPS, {"metadata": {"name": name}})
    found = await remembered.history.between(first, remembered.newest)
    assert [write.reads for write in found] == [
        ((A, first), (ALL._replace(labels="x=y"), first)),
        (),
    ]


async def test_how_far_the_watches_of_a_client_had_come_is_kept_with_its_write(remembered: Remembered) -> None:
    journal = remembered.history.journal
    await remembered.send("POST", MAPS, {"metadata": {"name": "a"}})
    first = remembered.newest
    identity = {"X-User": "alice", "User-Agent": "watcher"}
    session, url = remembered.served.session, remembered.served.url
    async with session.get(f"{url}{MAPS}?watch=1&resourceVersion={first}", headers=identity):
        await eventually_async(lambda: journal.watches.get(("alice", "watcher")))
        await remembered.send("POST", MAPS, {"metadata": {"name": "b"}})
        second = remembered.newest
        await eventually_async(lambda: journal.watches["alice", "watcher"].streams[0].after >= second)
        await remembered.send("POST", MAPS, {"metadata": {"name": "c"}}, **identity)
    author = await remembered.author()
    assert [(followed.scope, followed.since, followed.upto) for followed in author.followed] == [(ALL, first, second)]
    other = await remembered.history.of(second)
    assert other is not None
    assert other.author.followed == [], "it is another client's watch"


# -- watches of a client -----------------------------------------------------------------------------------------------


class Stream:
    def __init__(self, after: int) -> None:
        self.after = after


def followed(watching: Watching) -> list[tuple[str, int, int]]:
    author = Author(watching=watching.scopes, shown=tuple(stream.after for stream in watching.streams))
    return [(scope.collection, since, upto) for scope, since, upto in author.followed]


def test_a_watch_that_ends_is_remembered_until_it_begins_again() -> None:
    watching, first = Watching(), Stream(3)
    watching.add(first, WatchScope("a", None))
    first.after = 7
    assert followed(watching) == [("a", 3, 7)]
    watching.end(first)
    first.after = 9
    assert (followed(watching), watching.is_open) == ([("a", 3, 7)], False)
    watching.add(Stream(7), WatchScope("b", None))
    watching.add(Stream(8), WatchScope("a", None))
    assert followed(watching) == [("b", 7, 7), ("a", 8, 8)]


def test_the_oldest_watches_that_have_ended_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authors, "MAX_ENDED", 2)
    watching = Watching()
    for name in "abcd":
        stream = Stream(1)
        watching.add(stream, WatchScope(name, None))
        if name != "a":
            watching.end(stream)
    assert [name for name, *_ in followed(watching)] == ["a", "c", "d"]


def test_the_oldest_clients_without_a_watch_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authors, "MAX_CLIENTS", 2)
    journal = Journal()
    for name in "abcd":
        stream = Stream(1)
        journal.begin_watch((name, ""), stream, WatchScope("c", None))
        if name != "a":
            journal.end_watch((name, ""), stream)
    assert [user for user, _ in journal.watches] == ["a", "d"]


# -- notes -------------------------------------------------------------------------------------------------------------


def history_of(writes: Sequence[authors.Write], reads: Sequence[authors.Read] = ()) -> WriteHistory:
    journal = Journal()
    journal.writes.extend(writes)
    journal.reads.extend(reads)
    return WriteHistory(MemoryStore(), journal)


def by(user: str, arrived: float) -> Author:
    return Author("update", user=user, arrived=arrived)


async def test_reads_belong_to_the_next_write_of_their_client() -> None:
    found = history_of(
        [(4, 0.0, by("x", 3.0)), (3, 0.0, by("y", 2.0)), (5, 0.0, by("x", 9.0))],
        [(1.0, "x", "", A, 1), (2.5, "y", "", A, 2), (2.6, "x", "", B, 2), (3.0, "x", "", A, 2)],
    )
    reads = {write.revision: write.reads for write in await found.between(0, 5)}
    assert reads == {3: (), 4: ((B, 2), (A, 2)), 5: ()}


async def test_a_controller_reads_nothing_over_http() -> None:
    found = history_of([(4, 0.0, of_controller("gc"))], [(-1.0, "", "", A, 1)])
    assert await found.between(0, 4) == [RecordedWrite(4, 0.0, of_controller("gc"))]


class StartedAt(SystemClock):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._seconds, UTC)


@rows(
    "seconds, revision",
    [(8.9, 0), (9.0, 1), (9.9, 1), (10.0, 3), (15.0, 3), (20.0, 4), (100.0, 6)],
)
async def test_the_newest_revision_at_a_time(seconds: float, revision: int) -> None:
    """The history begins at 9.0, with an empty store, which is at revision 1."""
    journal = Journal(StartedAt(9.0))
    journal.writes.extend([(3, 10.0, by("x", 1.0)), (4, 20.0, by("x", 2.0)), (6, 40.0, by("x", 3.0))])
    assert await WriteHistory(MemoryStore(), journal).revision_at(seconds) == revision


class OwnClock:
    """A clock of a program, which has what `Clock` asks for and no more."""

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def test_the_time_of_a_clock_that_a_program_has_given() -> None:
    with Noxu(clock=OwnClock()) as noxu:
        noxu.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        assert [str(write.time) for write in noxu.log("configmaps", "a")] == ["2030-01-01 00:00:00+00:00"]


async def test_the_author_of_what_was_there_before() -> None:
    store = MemoryStore()
    await store.put(A, b"", expected=0)
    journal = Journal(StartedAt(9.0))
    found = WriteHistory(store, journal, earlier=authors.TEMPLATE)
    await store.put(B, b"", expected=0)
    assert await found.of(2) == RecordedWrite(2, 9.0, authors.TEMPLATE)
    assert await found.of(3) is None


async def test_the_newest_writes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WRITES", 3)
    monkeypatch.setattr(module, "PORTION", 2)
    found = history_of([(revision, 0.0, by("x", revision)) for revision in range(1, 8)])
    assert [write.revision for write in await found.between(0, 99)] == [5, 6, 7]


async def test_many_reads_are_taken_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PORTION", 2)
    monkeypatch.setattr(module, "MAX_READS_OF_CLIENT", 3)
    found = history_of([], [(float(n), "x", "", Key("c", "", str(n)), n) for n in range(9)])
    found.journal.many_reads()
    await asyncio.sleep(0.01)
    assert len(found.journal.reads) <= 2
    found.journal.writes.append((20, 0.0, by("x", 99.0)))
    [write] = await found.between(0, 20)
    assert [revision for _, revision in write.reads] == [6, 7, 8]


async def test_a_restarted_server_goes_on_with_the_history_of_its_store() -> None:
    before = history_of([(3, 0.0, by("x", 1.0))])
    await before.take()
    after = WriteHistory(MemoryStore(), Journal(), before)
    assert [write.revision for write in await after.between(0, 9)] == [3]


async def test_the_floor_is_the_oldest_state_that_can_be_read() -> None:
    store = MemoryStore()
    found = WriteHistory(store, Journal())
    assert found.floor == 1
    for _ in range(3):
        current = await store.get(A)
        await store.put(A, b"", expected=current.revision if current else 0)
    await store.compact(3)
    assert found.floor == 3


# -- the file ----------------------------------------------------------------------------------------------------------


async def test_who_wrote_is_kept_in_the_file_of_a_store(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "noxu.db")
    journal = Journal(StartedAt(9.0))
    history = WriteHistory(store, journal)
    journal.reads.append((0.5, "x", "", A, 1))
    for revision in (2, 3, 4):
        await store.put(A, b"", expected=0 if revision == 2 else revision - 1)
        journal.writes.append((revision, revision * 10.0, by("x", revision)))
    await history.save()
    written = await history.between(0, 9)
    journal.writes.append((5, 50.0, by("y", 5.0)))
    assert [write.revision for write in await history.between(2, 9)] == [3, 4, 5]
    await store.close()

    reopened = await SqliteStore.open(tmp_path / "noxu.db")
    later = WriteHistory(reopened, Journal(StartedAt(60.0)))
    found = await later.between(0, 9)
    assert [write.author.user for write in found] == ["x", "x", "x"], "5 was not saved"
    assert [write._replace(author=write.author._replace(arrived=0.0)) for write in written] == found
    assert await later.of(3) == found[1]
    assert await later.of(5) is None
    assert [await later.revision_at(seconds) for seconds in (19.0, 20.0, 39.0, 59.0, 60.0)] == [0, 2, 3, 4, 4]
    await reopened.close()


async def test_what_cannot_be_saved_is_saved_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(tmp_path / "noxu.db")
    history = WriteHistory(store, Journal())
    history.journal.writes.extend((revision, 0.0, by("x", revision)) for revision in range(2, 9))
    monkeypatch.setattr(module, "SAVED_AT_ONCE", 3)
    with monkeypatch.context() as full:
        full.setattr(store, "_only_deletes", "the disk is full")
        await history.save()
    assert await store.notes.between(0, 99, 99) == []
    await history.save()
    assert [note.revision for note in await store.notes.between(0, 99, 99)] == list(range(2, 9))
    await store.close()


async def test_a_note_that_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "noxu.db")
    for text in (b"", b"{", b"[]", b"[1,2,3,4,5,6,7,8,[],[],0]", b'["","","","","","","","",[[]],[],0]'):
        await store.notes.add([RevisionNote(2, 1.0, text)])
        assert await WriteHistory(store, Journal()).of(2) is None
    await store.close()
