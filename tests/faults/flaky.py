"""A store with planned failures, and a server that uses it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from noxu.config import Config
from noxu.process import server as server_module
from noxu.process.server import Server
from noxu_storage.memory import MemoryStore
from noxu_storage.store import Store
from noxu_storage.types import EVERYTHING, Batch, Key, Page, Prefix, Revision, StoreError, Unavailable

Matches = Callable[[Key], bool]


class FlakyStore(MemoryStore):
    """Each planned failure is raised once, by the first call of its method whose key it matches.

    Methods: `create` (a put of a new key), `put`, `delete`, and `list`, whose key consists of the prefix.
    """

    def __init__(self) -> None:
        super().__init__()
        self.planned: list[tuple[str, Matches, StoreError]] = []
        self.failures = 0
        self.watch_fails: Exception | None = None
        """Raised by the running watch instead of its next batch."""

    def fail(self, method: str, matches: Matches, times: int = 1, error: StoreError | None = None) -> None:
        self.planned += [(method, matches, error or Unavailable("planned"))] * times

    def _fail_as_planned(self, method: str, key: Key) -> None:
        for failure in self.planned:
            planned_method, matches, error = failure
            if planned_method == method and matches(key):
                self.planned.remove(failure)
                self.failures += 1
                raise error

    async def watch(self, prefix: Prefix = EVERYTHING, *, after: Revision) -> AsyncIterator[Batch]:  # type: ignore[override]
        async for batch in super().watch(prefix, after=after):
            if self.watch_fails is not None:
                error, self.watch_fails = self.watch_fails, None
                self.failures += 1
                raise error
            yield batch

    async def list(self, prefix: Prefix, *, revision: Revision = 0, limit: int = 0, after: Key | None = None) -> Page:
        self._fail_as_planned("list", Key(prefix.collection or "", prefix.partition or "", ""))
        return await super().list(prefix, revision=revision, limit=limit, after=after)

    async def put(self, key: Key, value: bytes, *, expected: Revision, replaced: bytes | None = None) -> Revision:
        self._fail_as_planned("put" if expected else "create", key)
        return await super().put(key, value, expected=expected, replaced=replaced)

    async def delete(self, key: Key, *, expected: Revision, replaced: bytes | None = None) -> Revision:
        self._fail_as_planned("delete", key)
        return await super().delete(key, expected=expected, replaced=replaced)


class Served:
    """A running server, its store, and a client."""

    def __init__(self, server: Server, store: FlakyStore, session: aiohttp.ClientSession) -> None:
        self.server, self.store, self.session = server, store, session

    async def ask(self, method: str, path: str, value: Any = None) -> tuple[int, Any]:
        async with self.session.request(method, self.server.url + path, json=value) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, await answer.json() if is_json else await answer.text()


@contextlib.asynccontextmanager
async def serving(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """A server over a FlakyStore."""
    store = FlakyStore()

    async def open_store(_: Config, before: Store | None = None) -> FlakyStore:
        return store

    monkeypatch.setattr(server_module, "open_store", open_store)
    async with Server(Config(port=0)) as server, aiohttp.ClientSession() as session:
        yield Served(server, store, session)
