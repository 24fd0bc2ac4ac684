"""Conversion of custom resources between the versions of their definition.

With strategy None only the apiVersion changes. With strategy Webhook a review is sent (`review`), to the webhook of the
definition or to a function in this process. Objects are pruned and defaulted at their stored version, converted directly
to the requested version, and pruned by its schema; its defaults are not filled in, and the result is not validated
(upstream's versioning codec).

An object that has the requested version is not sent. Each read sends a new review, as in upstream, because the webhook
may have changed. The events of a watch are converted once for all watches (`changes`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Final

from noxu.apiserver.api import codec, errors
from noxu.apiserver.identifiers import SYSTEM_IDENTIFIERS, Identifiers
from noxu.apiserver.records import NamedTuple, record
from noxu.apiserver.registry.conversion import review
from noxu.apiserver.registry.conversion.metrics import ConversionMetrics
from noxu.apiserver.registry.conversion.review import ConversionFailed
from noxu.apiserver.registry.offload import offload
from noxu.apiserver.registry.resource import Converted, Resource
from noxu.apiserver.values import Object, copy
from noxu.apiserver.webhook.client import Caller, CallFailed, Reply, endpoint_of, no_caller, read_review

TIMEOUT: Final = 30  # seconds; upstream's, which no definition can change

InProcess = Callable[[str, Object], Awaitable[Object]]
"""A converter in this process: (name of the definition, `request` of a ConversionReview) → its `response`."""


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


@record
class Conversions:
    """The converters of all definitions.

    `timeout` is in seconds. `in_process` has converters by the name of the definition, which override its own strategy.
    Without a caller (`no_caller`) webhooks are ignored: for commands that only validate.
    """

    call: Caller = no_caller
    timeout: int = TIMEOUT
    identifiers: Identifiers = SYSTEM_IDENTIFIERS
    in_process: dict[str, InProcess] = field(default_factory=dict)
    metrics: ConversionMetrics = field(default_factory=ConversionMetrics)
    _webhooks: dict[str, ReviewConverter | None] = field(default_factory=dict, repr=False)

    def define(self, name: str, spec: Object) -> ReviewConverter | None:
        """Register a definition before it is served; its converter, None if it needs no webhook."""
        conversion = spec.get("conversion") or {}
        has_webhook = conversion.get("strategy") == "Webhook" and self.call is not no_caller
        webhook = conversion["webhook"] if has_webhook else None
        self._webhooks[name] = webhook and self._converter(name, self._send_to(webhook))
        return self.of(name)

    def _converter(self, name: str, send: SendReview) -> ReviewConverter:
        return ReviewConverter(send, self.identifiers, self.timeout, name, self.metrics)

    def of(self, name: str) -> ReviewConverter | None:
        """The converter of a registered definition, None if it needs no webhook."""
        if name in self.in_process:
            return self._converter(name, self._send_in_process(name, self.in_process[name]))
        return self._webhooks.get(name)

    def _send_to(self, webhook: Object) -> SendReview:
        async def send(request: Object, weight: int) -> ReviewReply:
            version = review.version_of(webhook["conversionReviewVersions"])
            body = await offload(weight, review.encode, version, request)
            return ReviewReply(
                await self.call(endpoint_of(webhook["clientConfig"]), body, timeout=self.timeout), version
            )

        return send

    def _send_in_process(self, name: str, converter: InProcess) -> SendReview:
        """The function gets a copy; its response is checked like one that came over the network."""

        async def send(request: Object, weight: int) -> ReviewReply:
            own = await offload(weight, copy, request)
            try:
                async with asyncio.timeout(self.timeout):
                    response = await converter(name, own)
            except TimeoutError:
                raise CallFailed("context deadline exceeded") from None
            gvk = review.REVIEWS["v1"].gvk
            body = {"kind": gvk.kind, "apiVersion": gvk.api_version, "response": response}
            return ReviewReply(Reply(200, "application/json", codec.encode(body, sort_keys=False)), "v1")

        return send


# -- objects ----------------------------------------------------------------------------------------------------------


async def convert(value: Object, resource: Resource, weight: int = 0) -> Object:
    """Convert an object to a version of its resource. The result is not pruned; the given object is not changed.

    `weight` is its approximate size in bytes. Raises ApiError.
    """
    return (await convert_one(value, resource, weight)).values[0]


async def convert_one(value: Object, resource: Resource, weight: int) -> Converted:
    """Like `convert`, with the weight of further work on the result. Raises ApiError."""
    if value.get("apiVersion") == resource.api_version:
        return Converted([value], weight)
    converter = resource.versions.converter
    if converter is None or value.keys() == {"apiVersion", "kind"}:  # upstream does not send an empty object
        return Converted([{**value, "apiVersion": resource.api_version}], weight)
    return await converter.convert([value], resource.api_version, weight)
