"""Conversion by a review that is sent: to the webhook of a definition, or to a function in this process.

Each read sends a new review, as in upstream, because the webhook may have changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from noxu.api import codec, errors
from noxu.identifiers import Identifiers
from noxu.registry.conversion import review
from noxu.registry.conversion.metrics import ConversionMetrics
from noxu.registry.conversion.review import ConversionFailed
from noxu.registry.offload import offload
from noxu.registry.resource import Converted
from noxu.values import Object, copy
from noxu.webhook.client import Caller, CallFailed, Reply, endpoint_of, read_review


class ReviewReply(NamedTuple):
    """The reply to a review. `version` is the version of the ConversionReview."""

    reply: Reply
    version: str


SendReview = Callable[[Object, int], Awaitable[ReviewReply]]
"""Sends a review: (its `request`, the size of its objects in bytes) → the reply. Raises CallFailed or ConversionFailed."""


class ReviewConverter:
    """Converts the objects of one definition by sending reviews. `timeout` is in seconds."""

    def __init__(
        self,
        send: SendReview,
        identifiers: Identifiers,
        timeout: int,
        definition: str,
        metrics: ConversionMetrics,
    ) -> None:
        self._definition = definition
        self._metrics = metrics
        self._send = send
        self._identifiers = identifiers
        self.timeout = timeout

    async def convert(self, values: Sequence[Object], api_version: str, weight: int) -> Converted:
        """Convert objects, all of one version, to another version. `weight` is their size in bytes.

        The given objects are not changed, the results are not pruned. Raises ApiError.
        """
        request = review.new_request(self._identifiers.new_uid(), api_version, values)
        source = values[0]["apiVersion"].rpartition("/")[2]
        labels = (self._definition, source, api_version.rpartition("/")[2])
        try:
            with self._metrics.conversion(*labels) as state:
                reply, version = await self._send(request, weight)
                state.answered()
                converted = await offload(len(reply.body), _read, reply, version, request)
            return Converted(converted, max(weight, len(reply.body)))
        except ConversionFailed as failed:
            raise errors.plain_error(str(failed)) from None
        except CallFailed as failed:
            raise errors.plain_error(f"{review.source_of(values[0])} failed: {failed.text}") from None


def _read(reply: Reply, version: str, request: Object) -> list[Object]:
    """Raises ConversionFailed or CallFailed."""
    decoded = read_review(reply, review.REVIEWS[version])
    return review.read(reply.body, decoded, version, request)


def send_to(webhook: Object, call: Caller, timeout: Callable[[], int]) -> SendReview:
    """Sends reviews to a webhook, as the definition describes it. `timeout` returns seconds."""

    async def send(request: Object, weight: int) -> ReviewReply:
        version = review.version_of(webhook["conversionReviewVersions"])
        body = await offload(weight, review.encode, version, request)
        return ReviewReply(await call(endpoint_of(webhook["clientConfig"]), body, timeout=timeout()), version)

    return send


def send_in_process(
    name: str, converter: Callable[[str, Object], Awaitable[Object]], timeout: Callable[[], int]
) -> SendReview:
    """Calls the function of a definition with a copy; its response is checked like one that came over the network."""

    async def send(request: Object, weight: int) -> ReviewReply:
        own = await offload(weight, copy, request)
        try:
            async with asyncio.timeout(timeout()):
                response = await converter(name, own)
        except TimeoutError:
            raise CallFailed("context deadline exceeded") from None
        gvk = review.REVIEWS["v1"].gvk
        body = {"kind": gvk.kind, "apiVersion": gvk.api_version, "response": response}
        return ReviewReply(Reply(200, "application/json", codec.encode(body, sort_keys=False)), "v1")

    return send
