"""The application is made by the first request, without garbage collections in a process of its own."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from noxu.http.late_app import LateApp


@pytest.fixture(autouse=True)
def _unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


async def answered(*, own_process: bool) -> list[bool]:
    """Whether garbage is collected while the application is made and while it answers."""
    found = []

    async def handle(request: Any) -> str:
        found.append(gc.isenabled())
        return f"answer to {request}"

    def make() -> Any:
        found.append(gc.isenabled())
        return SimpleNamespace(handle=handle)

    late: Any = LateApp(make, own_process=own_process)
    assert await late.handle("the first") == "answer to the first"
    assert await late.handle("the second") == "answer to the second"
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

    late: Any = LateApp(fail, own_process=True)
    with pytest.raises(RuntimeError, match="no application"):
        await late.handle("the first")
    assert gc.isenabled()
