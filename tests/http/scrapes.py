"""A server in this process, and a client that reads its metrics as Prometheus does."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families as parse

from noxu.config import Config
from noxu.process.server import Server

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Client:
    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str, str]:
        """(code, Content-Type, body)."""
        async with self.session.request(method, self.server.url + path, json=body, headers=headers) as answer:
            return answer.status, answer.headers["Content-Type"], await answer.text()

    async def scrape(self, path: str = "/metrics") -> Samples:
        code, content_type, text = await self.send("GET", path)
        assert (code, content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in parse(text)
            for sample in family.samples
        }

    async def value(self, name: str, /, **labels: str) -> float:
        """The sum of all samples of that name with these labels."""
        found = await self.scrape()
        return sum(
            value for (one, given), value in found.items() if one == name and labels.items() <= dict(given).items()
        )


@contextlib.asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[Client]:
    async with Server(Config(port=0, **options)) as server, aiohttp.ClientSession() as session:
        yield Client(server, session)


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
