from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.registry.world import World, world_of


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with world_of() as world:
        yield world
