"""A store whose revisions are shown as if it were new, so that one etcd serves many tests.

The first revision of a test is shown as 1. With the store at 40 when the test begins, 41 is shown as 2.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from noxu_storage.store import Store
from noxu_storage.transactions import Decide, StagedWrite
from noxu_storage.types import (
    EVERYTHING,
    FIRST,
    Batch,
    Compacted,
    Conflict,
    Event,
    FutureRevision,
    Key,
    KeyValue,
    Page,
    Prefix,
    Revision,
    Status,
)


async def open_rebased(url: str) -> RebasedStore:
    """Open a store under a new prefix of an etcd. Its first revision is later than what others have compacted."""
    from noxu_storage.etcd.layout import PlainLayout
    from noxu_storage.etcd.store import EtcdStore

    store = await EtcdStore.open([url], PlainLayout(f"/tests/{uuid4()}/"))
    await store._waits.reach(await store._write_barrier())
    return RebasedStore(store)


class RebasedStore:
    shared = True
    groups_writes = True

    def __init__(self, store: Store, first: Revision = 0) -> None:
        self.store = store
        self._offset = (first or store.revision) - FIRST

    def _shown(self, revision: Revision) -> Revision:
        return max(revision - self._offset, 0)

    def _state(self, state: KeyValue | None) -> Any:
        return None if state is None else state._replace(revision=self._shown(state.revision))

    def _event(self, event: Event) -> Event:
        return Event(event.key, self._shown(event.revision), event.value, self._state(event.previous))

    @contextmanager
    def _translated(self) -> Any:
        try:
            yield
        except Conflict as error:
            raise Conflict(error.key, self._state(error.current)) from None
        except Compacted as error:
            raise Compacted(self._shown(error.revision)) from None
        except FutureRevision as error:
            raise FutureRevision(self._shown(error.current)) from None

    @property
    def revision(self) -> Revision:
        return self._shown(self.store.revision)

    @property
    def compacted(self) -> Revision:
        return self._shown(self.store.compacted)

    async def get(self, key: Key, *, revision: Revision = 0) -> KeyValue | None:
        with self._translated():
            return self._state(await self.store.get(key, revision=revision and revision + self._offset))  # type: ignore[no-any-return]

    async def list(self, prefix: Prefix, *, revision: Revision = 0, limit: int = 0, after: Key | None = None) -> Page:
        with self._translated():
            page = await self.store.list(
                prefix, revision=revision and revision + self._offset, limit=limit, after=after
            )
        return Page([self._state(item) for item in page.items], self._shown(page.revision), page.remaining)

    async def count(self, prefix: Prefix) -> int:
        return await self.store.count(prefix)

    async def scan(self, texts: Sequence[bytes]) -> AsyncIterator[Sequence[KeyValue]]:
        async for items in self.store.scan(texts):
            yield [self._state(item) for item in items]

    async def catch_up(self) -> None:
        await self.store.catch_up()

    async def put(self, key: Key, value: bytes, *, expected: Revision, replaced: bytes | None = None) -> Revision:
        with self._translated():
            expected = expected and expected + self._offset
            return self._shown(await self.store.put(key, value, expected=expected, replaced=replaced))

    async def delete(self, key: Key, *, expected: Revision, replaced: bytes | None = None) -> Revision:
        with self._translated():
            expected = expected and expected + self._offset
            return self._shown(await self.store.delete(key, expected=expected, replaced=replaced))

    async def transact(self, decide: Decide) -> Revision:
        async def translated() -> Sequence[StagedWrite]:
            return [
                write._replace(expected=write.expected and write.expected + self._offset) for write in await decide()
            ]

        with self._translated():
            return self._shown(await self.store.transact(translated))

    def watch(self, prefix: Prefix = EVERYTHING, *, after: Revision) -> AsyncIterator[Batch]:
        with self._translated():
            return _Watch(self, self.store.watch(prefix, after=after + self._offset if after else self._first()))

    def _first(self) -> Revision:
        """0 unless it has been compacted: there was nothing before the first revision."""
        return self._offset + FIRST if self.compacted == 0 else self._offset

    async def compact(self, revision: Revision) -> None:
        with self._translated():
            await self.store.compact(revision + self._offset)

    async def compact_in_turn(self, revision: Revision) -> None:
        await self.store.compact_in_turn(revision + self._offset)

    async def status(self) -> Status:
        status = await self.store.status()
        return status._replace(revision=self._shown(status.revision), compacted=self._shown(status.compacted))

    async def close(self) -> None:
        await self.store.close()


class _Watch(AsyncIterator[Batch]):
    def __init__(self, store: RebasedStore, watch: AsyncIterator[Batch]) -> None:
        self._store = store
        self._watch = watch

    async def __anext__(self) -> Batch:
        with self._store._translated():
            batch = await anext(self._watch)
        return Batch([self._store._event(event) for event in batch.events], self._store._shown(batch.revision))
