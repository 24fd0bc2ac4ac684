"""The environment of requests without a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from noxu.registry.draft import WriteEnvironment
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Key
from tests.admission.cluster import Cluster
from tests.admission.requests import environment


@pytest.fixture
async def registry() -> WriteEnvironment:
    """With a namespace `default` that has the label `team: red`."""
    store = MemoryStore()
    namespace = (
        b'{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"default","uid":"u","labels":{"team":"red"}}}'
    )
    await store.put(Key("/namespaces", "", "default"), namespace, expected=0)
    return environment(store)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """With a watch cache that follows the store."""
    made = Cluster()
    following = asyncio.create_task(made.environment.reader.cache.follow())
    yield made
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
