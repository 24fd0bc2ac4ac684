"""What servers in this process answer, and what they have stored."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp

from noxu.process.server import Server
from noxu_storage.types import EVERYTHING


async def ask(server: Server, path: str, method: str = "GET", body: Any = None, code: int = 200) -> Any:
    """The JSON of an answer. A PATCH is a merge patch."""
    headers = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
    data = None if body is None else json.dumps(body)
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, server.url + path, data=data, headers=headers) as answer,
    ):
        text = await answer.text()
        assert answer.status == code, text
        return json.loads(text)


async def objects(server: Server) -> dict[str, str]:
    """All stored objects, by "collection partition name"."""
    page = await server.plane.store.list(EVERYTHING)
    return {" ".join(item.key): item.value.decode() for item in page.items}


async def settled(server: Server) -> None:
    """Return when the controllers have nothing to do."""
    while not all(controller.is_idle for controller in server.plane.all_controllers):
        for controller in server.plane.all_controllers:
            await controller.caught_up()
        await asyncio.sleep(0)
