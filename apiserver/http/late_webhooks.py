"""The client for webhooks, which is imported and made for the first call: most servers have no webhooks.

A thread imports it and aiohttp's client, which takes more than a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from noxu.apiserver.registry.offload import imported
from noxu.apiserver.webhook.client import MAX_ANSWER, USER_AGENT, Endpoint, Reply, Service

if TYPE_CHECKING:
    from noxu.apiserver.http.webhook_client import WebhookClient

MODULES: Final = ("aiohttp.client", "noxu.apiserver.http.webhook_client")


class LateWebhooks:
    """The server's `Caller`: see `WebhookClient`."""

    def __init__(self, services: Mapping[Service, str] | None = None) -> None:
        self._services = services
        self._made: WebhookClient | None = None

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()

    async def __call__(
        self,
        endpoint: Endpoint,
        body: bytes,
        *,
        timeout: int,  # noqa: ASYNC109 - sent to the webhook, too
        user_agent: str = USER_AGENT,
        limit: int = MAX_ANSWER,
    ) -> Reply:
        """POST a review. Raises CallFailed."""
        client = self._made or await self._first()
        return await client(endpoint, body, timeout=timeout, user_agent=user_agent, limit=limit)

    async def _first(self) -> WebhookClient:
        """The client, which is made now unless another call has made it meanwhile."""
        for name in MODULES:
            await imported(name)
        from noxu.apiserver.http.webhook_client import WebhookClient

        if self._made is None:
            self._made = WebhookClient(self._services)
        return self._made
