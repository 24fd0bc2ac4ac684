"""The subresource scale: reads and writes an object's replicas as an autoscaling/v1 Scale."""

from __future__ import annotations

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.http import options, responses
from noxu.http.answer import Answer
from noxu.http.exchange import Exchange
from noxu.http.handlers import (
    accept,
    include_of,
    patch_type,
    receive_body,
    sent_format,
    stored_entry,
    write,
)
from noxu.http.negotiation import Accepted
from noxu.registry import scale
from noxu.registry.draft import Action, Body, Written
from noxu.registry.patch_types import APPLY_PATCHES
from noxu.registry.stored_object import object_at
from noxu.values import Object


async def get(exchange: Exchange) -> Answer:
    """The Scale of an object."""
    accepted = accept(exchange)
    value = object_at(await stored_entry(exchange), exchange.resource)
    return _answer(exchange, scale.scale_of(value, exchange.resource), accepted)


async def update(exchange: Exchange) -> Answer:
    """Set the replicas of an object."""
    accepted = accept(exchange)
    content = await receive_body(exchange)
    given = options.write_options(exchange.query, "UpdateOptions", exchange.request.headers.get("User-Agent", ""))
    media_type = sent_format(exchange)
    written = await write(exchange, Action.REPLACE_SCALE, Body(content, media_type), given)
    return _answer(exchange, _written_scale(exchange, written), accepted)


async def patch(exchange: Exchange) -> Answer:
    """Patch or apply the Scale of an object."""
    media_type = patch_type(exchange)
    is_apply = media_type in APPLY_PATCHES
    accepted = accept(exchange)
    content = await receive_body(exchange)
    given = options.write_options(
        exchange.query, "PatchOptions", exchange.request.headers.get("User-Agent", ""), apply=is_apply
    )
    action = Action.APPLY_SCALE if is_apply else Action.PATCH_SCALE
    written = await write(exchange, action, Body(content, media_type), given)
    return _answer(exchange, _written_scale(exchange, written), accepted)


def _written_scale(exchange: Exchange, written: Written) -> Object:
    """The Scale of a written object. The schema may have pruned the replicas, or made the object unreadable as a Scale."""
    value = (written.value or {}) if written.entry is None else object_at(written.entry, exchange.resource)
    try:
        return scale.scale_of(value, exchange.resource, missing=0)
    except ApiError as error:
        raise errors.bad_request(error.message) from None


def _answer(exchange: Exchange, shown: Object, accepted: Accepted) -> Answer:
    include = include_of(exchange, accepted)
    columns = responses.scale_columns_of(exchange.resource)
    return responses.value_answer(shown, columns, accepted, include=include, now=exchange.now())
