"""The client for webhooks, which is imported and made for the first call: most servers have no webhooks.

A thread imports it and aiohttp's client, which takes more than a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from noxu.config import ServiceName
from noxu.registry.offload import imported

if TYPE_CHECKING:
    from noxu.http.webhook_client import WebhookClient
    from noxu.webhook.client import Endpoint, Reply

MODULES: Final = ("aiohttp.client", "noxu.http.webhook_client")


class LateWebhooks:
    """The server's `Caller`: see `WebhookClient`. `services` has the addresses of services."""

    def __init__(self, services: Iterable[tuple[ServiceName, str]] = ()) -> None:
        self._services = services
        self._made: WebhookClient | None = None

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()

    async def __call__(self, endpoint: Endpoint, body: bytes, **options: Any) -> Reply:
        """POST a review, with the options of a `Caller`. Raises CallFailed."""
        client = self._made or await self._first()
        return await client(endpoint, body, **options)

    async def _first(self) -> WebhookClient:
        """The client, which is made now unless another call has made it meanwhile."""
        for name in MODULES:
            await imported(name)
        from noxu.http.webhook_client import WebhookClient
        from noxu.webhook.client import Service

        if self._made is None:
            self._made = WebhookClient({Service(*name): address for name, address in self._services})
        return self._made
