"""Conversion of custom resources between the versions of their definition.

With strategy None only the apiVersion changes. With strategy Webhook a review is sent (`review_converter`), to the webhook of
the definition or to a function in this process. Objects are pruned and defaulted at their stored version, converted directly
to the requested version, and pruned by its schema; its defaults are not filled in, and the result is not validated
(upstream's versioning codec).

An object that has the requested version is not sent. The events of a watch are converted once for all watches (`changes`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from noxu.identifiers import SYSTEM_IDENTIFIERS, Identifiers
from noxu.registry.conversion.metrics import ConversionMetrics
from noxu.registry.resource import Converted, Resource
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.registry.conversion.review_converter import ReviewConverter, SendReview
    from noxu.webhook.client import Caller

TIMEOUT: Final = 30  # seconds; upstream's, which no definition can change

InProcess = Callable[[str, Object], Awaitable[Object]]
"""A converter in this process: (name of the definition, `request` of a ConversionReview) → its `response`."""


@dataclass
class Conversions:
    """The converters of all definitions.

    `timeout` is in seconds. `in_process` has converters by the name of the definition, which override its own strategy.
    Without a caller webhooks are ignored: for commands that only validate.
    """

    call: Caller | None = None
    timeout: int = TIMEOUT
    identifiers: Identifiers = SYSTEM_IDENTIFIERS
    in_process: dict[str, InProcess] = field(default_factory=dict)
    metrics: ConversionMetrics = field(default_factory=ConversionMetrics)
    _webhooks: dict[str, ReviewConverter | None] = field(default_factory=dict, repr=False)

    def define(self, name: str, spec: Object) -> ReviewConverter | None:
        """Register a definition before it is served; its converter, None if it needs no webhook."""
        conversion = spec.get("conversion") or {}
        self._webhooks[name] = None
        if conversion.get("strategy") == "Webhook" and self.call is not None:
            from noxu.registry.conversion.review_converter import send_to  # few definitions have one

            self._webhooks[name] = self._converter(name, send_to(conversion["webhook"], self.call, self._seconds))
        return self.of(name)

    def _converter(self, name: str, send: SendReview) -> ReviewConverter:
        from noxu.registry.conversion.review_converter import ReviewConverter

        return ReviewConverter(send, self.identifiers, self.timeout, name, self.metrics)

    def _seconds(self) -> int:
        return self.timeout

    def of(self, name: str) -> ReviewConverter | None:
        """The converter of a registered definition, None if it needs no webhook."""
        if name in self.in_process:
            from noxu.registry.conversion.review_converter import send_in_process

            return self._converter(name, send_in_process(name, self.in_process[name], self._seconds))
        return self._webhooks.get(name)


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
