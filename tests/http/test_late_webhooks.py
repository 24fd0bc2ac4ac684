"""The client for webhooks is imported for the first call, in a thread."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from noxu.config import ServiceName
from noxu.http import late_webhooks, webhook_client
from noxu.http.late_webhooks import LateWebhooks
from noxu.webhook.client import Endpoint, Reply, Service

SERVICES = [(ServiceName("default", "hook", 443), "127.0.0.1:1")]
ENDPOINT = Endpoint("https://hook.default.svc:443/", b"")


class Client:
    """Takes the place of `WebhookClient`."""

    made: list[Client]

    def __init__(self, services: Any) -> None:
        self.services = services
        self.calls: list[tuple[Any, ...]] = []
        self.is_closed = False
        Client.made.append(self)

    async def __call__(self, *values: object, **named: object) -> Reply:
        self.calls.append((*values, named))
        return Reply(200, "application/json", b"{}")

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture(autouse=True)
def _client(monkeypatch: pytest.MonkeyPatch) -> None:
    Client.made = []
    monkeypatch.setattr(webhook_client, "WebhookClient", Client)


async def test_calls_share_one_client() -> None:
    late = LateWebhooks(SERVICES)
    calls = (late(ENDPOINT, b"a", timeout=1), late(ENDPOINT, b"b", timeout=2, user_agent="me", limit=3))
    assert await asyncio.gather(*calls) == [Reply(200, "application/json", b"{}")] * 2
    await late.close()
    (client,) = Client.made
    assert (client.services, client.is_closed) == ({Service("default", "hook"): "127.0.0.1:1"}, True)
    assert client.calls[1] == (ENDPOINT, b"b", {"timeout": 2, "user_agent": "me", "limit": 3})


async def test_a_client_that_was_not_needed_is_not_made() -> None:
    await LateWebhooks().close()
    assert Client.made == []


async def test_the_client_is_imported_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    async def imported(name: str) -> None:
        found.append(name)

    monkeypatch.setattr(late_webhooks, "imported", imported)
    await LateWebhooks()(ENDPOINT, b"", timeout=1)
    assert found == list(late_webhooks.MODULES)
