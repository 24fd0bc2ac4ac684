"""Conversion of custom resources between the versions of their definition.

With strategy None only the apiVersion changes. Otherwise somebody is asked: the webhook that the definition names, or
a function in this process, with the same review either way (`conversion_review`). Objects are pruned and defaulted at
the version that they are stored in, converted from there to the version asked for in one step, and pruned there;
defaults of that version are not filled in, nothing is validated (upstream's versioning codec).

Nobody is asked for an object that is at the wanted version already. Each read asks anew, as upstream's do: a webhook
may have been replaced since. The events of a watch are converted once for all watches (`conversion_changes`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from apiserver.api import codec, errors
from apiserver.api.types import Object
from apiserver.api.values import copy
from apiserver.registry import conversion_review as review
from apiserver.registry.conversion_review import Failed
from apiserver.registry.heavy import work
from apiserver.registry.resource import Resource
from apiserver.registry.sources import Sources
from apiserver.webhook.client import Caller, CallFailed, Reply, endpoint_of, no_caller, read_review

TIMEOUT: Final = 30  # seconds; upstream's, which no definition can change

InProcess = Callable[[str, Object], Awaitable[Object]]
"""Converts without a network: (name of the definition, `request` of a ConversionReview) → its `response`."""


class Answer(NamedTuple):
    """What was answered to a review. `version` is that of the review."""

    reply: Reply
    version: str


class Converted(NamedTuple):
    """Converted objects. `weight` is how many bytes there are to be worked on from now on: an answer may be long."""

    values: list[Object]
    weight: int


Ask = Callable[[Object, int], Awaitable[Answer]]
"""Sends the `request` of a review, whose objects have so many bytes. Raises CallFailed or Failed."""


class Converter:
    """Converts the objects of one definition by asking. `timeout` is in seconds."""

    def __init__(self, ask: Ask, sources: Sources, timeout: int) -> None:
        self._ask = ask
        self._sources = sources
        self.timeout = timeout

    async def convert(self, values: Sequence[Object], api_version: str, weight: int) -> Converted:
        """Objects, which are all of one other version, at this version; `weight` is how many bytes they have.

        They stay as they are, and nothing is pruned. Raises ApiError.
        """
        request = review.question(self._sources.new_uid(), api_version, values)
        try:
            reply, version = await self._ask(request, weight)
            found = await work(len(reply.body), _read, reply, version, request)
            return Converted(found, max(weight, len(reply.body)))
        except Failed as failed:
            raise errors.plain_error(str(failed)) from None
        except CallFailed as failed:
            raise errors.plain_error(f"{review.source_of(values[0])} failed: {failed.text}") from None


def _read(reply: Reply, version: str, request: Object) -> list[Object]:
    """Raises Failed or CallFailed."""
    answer = read_review(reply, review.REVIEWS[version])
    return review.converted(reply.body, answer, version, request)


@dataclass
class Conversions:
    """Who converts the objects of which definition.

    `timeout` is in seconds; `in_process`, by the names of definitions, goes before what these say themselves. Without a
    network there is nobody to ask: then webhooks are passed over, for those who only want to know what is valid.
    """

    call: Caller = no_caller
    timeout: int = TIMEOUT
    sources: Sources = Sources()
    in_process: dict[str, InProcess] = field(default_factory=dict)
    _webhooks: dict[str, Converter | None] = field(default_factory=dict, repr=False)

    def define(self, name: str, spec: Object) -> Converter | None:
        """The converter of a definition that is to be served; None if there is nobody to ask."""
        conversion = spec.get("conversion") or {}
        asks = conversion.get("strategy") == "Webhook" and self.call is not no_caller
        webhook = conversion["webhook"] if asks else None
        self._webhooks[name] = webhook and Converter(self._asking(webhook), self.sources, self.timeout)
        return self.of(name)

    def of(self, name: str) -> Converter | None:
        """The converter of a definition that is served."""
        if name in self.in_process:
            return Converter(self._asking_here(name, self.in_process[name]), self.sources, self.timeout)
        return self._webhooks.get(name)

    def _asking(self, webhook: Object) -> Ask:
        async def ask(request: Object, weight: int) -> Answer:
            version = review.version_of(webhook["conversionReviewVersions"])
            body = await work(weight, review.written, version, request)
            return Answer(await self.call(endpoint_of(webhook["clientConfig"]), body, timeout=self.timeout), version)

        return ask

    def _asking_here(self, name: str, do: InProcess) -> Ask:
        """What a function gets is its own, and what it gives is read as if it had come from afar."""

        async def ask(request: Object, weight: int) -> Answer:
            own = await work(weight, copy, request)
            try:
                async with asyncio.timeout(self.timeout):
                    response = await do(name, own)
            except TimeoutError:
                raise CallFailed("context deadline exceeded") from None
            gvk = review.REVIEWS["v1"].gvk
            answer = {"kind": gvk.kind, "apiVersion": gvk.api_version, "response": response}
            return Answer(Reply(200, "application/json", codec.encode(answer, sort_keys=False)), "v1")

        return ask


# -- objects ----------------------------------------------------------------------------------------------------------


async def convert(value: Object, resource: Resource, weight: int = 0) -> Object:
    """An object at this version of its resource, not pruned; the object itself stays as it is.

    `weight` is roughly how many bytes it has. Raises ApiError.
    """
    return (await convert_one(value, resource, weight)).values[0]


async def convert_one(value: Object, resource: Resource, weight: int) -> Converted:
    """Like `convert`, for who goes on to work on the object."""
    if value.get("apiVersion") == resource.api_version:
        return Converted([value], weight)
    converter = resource.versions.converter
    if converter is None or value.keys() == {"apiVersion", "kind"}:  # upstream does not ask about an empty object
        return Converted([{**value, "apiVersion": resource.api_version}], weight)
    return await converter.convert([value], resource.api_version, weight)
