"""What is kept about a server, and answers that are held: they end with their connection, or with the server."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from noxu.control.running import Control, Held, Running


@pytest.fixture
def control() -> Control:
    return Control(cast("Running", None))


class Part:
    def __init__(self, control: Control) -> None:
        self.control = control


def test_a_part_is_made_once_for_a_server(control: Control) -> None:
    assert control.part(Part) is control.part(Part)
    assert control.part(Part) is not Control(control.server).part(Part)
    assert control.part(Part).control is control


def held(ended: list[str], name: str = "a") -> Held:
    async def end() -> None:
        ended.append(name)
        await asyncio.sleep(0)
        ended.append(f"{name} completely")

    return Held({}, end)


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_what_is_held_ends_once_with_its_connection(control: Control) -> None:
    ended: list[str] = []
    connection = asyncio.create_task(asyncio.Event().wait())
    answer = held(ended)
    control.hold(answer, connection)
    await asyncio.sleep(0)
    assert ended == []
    await cancelled(connection)
    await control.close()
    assert ended == ["a", "a completely"]
    assert answer.over.is_set()


async def test_all_that_is_held_ends_with_the_server_before_its_parts(control: Control) -> None:
    ended: list[str] = []
    connections = [asyncio.create_task(asyncio.Event().wait()) for _ in "ab"]
    for name, connection in zip("ab", connections, strict=True):
        control.hold(held(ended, name), connection)
    control.closing.callback(ended.append, "the parts")
    await control.close()
    assert ended == ["a", "b", "a completely", "b completely", "the parts"]
    for connection in connections:
        await cancelled(connection)
    await control.close()
    assert len(ended) == 5


async def test_a_failure_at_the_end_is_logged(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise RuntimeError("it is broken")

    connection = asyncio.create_task(asyncio.Event().wait())
    control.hold(Held({}, fail), connection)
    await control.close()
    assert "what ends with a connection failed" in caplog.text
    await cancelled(connection)
