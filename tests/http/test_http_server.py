"""The application is made by the first request, without garbage collections in a process of its own."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from noxu.http.clients import Clients
from noxu.http.http_server import HttpServer


@pytest.fixture(autouse=True)
def _unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


async def answered(*, own_process: bool) -> list[bool]:
    """Whether garbage is collected while the application is made and while it answers."""
    found, answered = [], []

    async def handle(request: Any) -> None:
        found.append(gc.isenabled())
        answered.append(request)

    def make() -> Any:
        found.append(gc.isenabled())
        return SimpleNamespace(handle=handle)

    server: Any = HttpServer(make, Clients(), own_process=own_process)
    await server.handle("the first")
    await server.handle("the second")
    assert answered == ["the first", "the second"]
    return found


async def test_garbage_is_not_collected_while_the_application_is_made() -> None:
    assert await answered(own_process=True) == [False, True, True]
    assert gc.get_freeze_count() > 0


async def test_the_garbage_of_other_programs_is_collected_as_ever() -> None:
    before = gc.get_freeze_count()
    assert await answered(own_process=False) == [True, True, True]
    assert gc.get_freeze_count() == before


async def test_an_application_that_cannot_be_made_leaves_collections_enabled() -> None:
    def fail() -> Any:
        raise RuntimeError("no application")

    server: Any = HttpServer(fail, Clients(), own_process=True)
    with pytest.raises(RuntimeError, match="no application"):
        await server.handle("the first")
    assert gc.isenabled()
