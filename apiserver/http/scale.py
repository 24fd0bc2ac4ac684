"""/scale: a custom resource's replicas, read and written as an autoscaling/v1 Scale."""

from __future__ import annotations

from typing import Final

from apiserver.api import codec, errors, meta
from apiserver.api.gotime import format_time
from apiserver.api.structs import decode
from apiserver.api.types import Object
from apiserver.api.values import copy
from apiserver.apply import manager
from apiserver.apply.scale import to_parent
from apiserver.http import negotiation, options, responses, table
from apiserver.http.answer import Answer
from apiserver.http.handlers import Call, entry_of
from apiserver.http.negotiation import Accepted
from apiserver.http.patches import APPLY_PATCH, CUSTOM_PATCHES, Change, read_configuration
from apiserver.registry import ownership, pipeline, scale
from apiserver.registry.entry import object_at
from apiserver.registry.kinds.autoscaling import SCALE
from apiserver.registry.pipeline import Draft, Options, invalid_patch
from apiserver.registry.store import Preconditions, Revise, Written

_EXPECTED: Final = meta.GroupVersionKind("autoscaling", "v1", "Scale")
_API_VERSION: Final = "autoscaling/v1"


def _answer(call: Call, value: Object, accepted: Accepted) -> Answer:
    shown = scale.scale_of(value, call.resource)
    return responses.value_answer(
        shown, table.scale_columns(), accepted, include=call.include(accepted), now=call.now()
    )


async def get(call: Call) -> Answer:
    accepted = call.accepted()
    return _answer(call, object_at(await entry_of(call), call.resource), accepted)


async def update(call: Call) -> Answer:
    accepted = call.accepted()
    body = await call.body()
    given = options.write_options(call.query, "UpdateOptions", call.user_agent)
    media_type = negotiation.request_format(call.request.headers.get("Content-Type", ""))
    sent = await call.work(_read, body, media_type, given)
    new = sent.value
    call.warnings += sent.duplicates

    async def revise(old: Object) -> Draft:
        return _draft(call, old, copy(new), given)

    written = await _write(call, revise, Preconditions(uid=new["metadata"].get("uid") or None))
    return _answer(call, written, accepted)


_UNREADABLE: Final = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
"""Upstream tries to say what is wrong with a body, and fails at that: its custom resources do not know Scale."""


def _read(body: bytes, media_type: str, given: Options) -> codec.Decoded:
    """A Scale in a request's body, and what is to be warned of. Raises ApiError."""
    codec.check_size(body)
    try:
        sent = codec.read_object(body, media_type, _EXPECTED, typed=True)
    except errors.ApiError:
        raise errors.bad_request(_UNREADABLE) from None
    if sent.value.get("kind", "Scale") != "Scale" or sent.value.get("apiVersion", _API_VERSION) != _API_VERSION:
        raise errors.bad_request(_UNREADABLE)
    decoded = decode(SCALE, sent.value)
    complaints = _complaints(sent, decoded.unknown, given)
    if decoded.error or (complaints and given.field_validation == "Strict"):
        raise errors.bad_request(_UNREADABLE)
    return codec.Decoded(decoded.value, complaints)


def _complaints(sent: codec.Decoded, unknown: list[str], given: Options) -> list[str]:
    """Repeated and unknown fields, as far as fieldValidation cares."""
    repeated = {"Strict": sent.strict, "Warn": sent.duplicates}.get(given.field_validation)
    return [] if repeated is None else [*repeated, *(f'unknown field "{path}"' for path in unknown)]


async def patch(call: Call) -> Answer:
    kind = negotiation.patch_format(call.request.headers.get("Content-Type", ""), CUSTOM_PATCHES)
    accepted = call.accepted()
    body = await call.body()
    given = options.write_options(call.query, "PatchOptions", call.user_agent, apply=kind == APPLY_PATCH)
    if kind == APPLY_PATCH:
        return _answer(call, await _write(call, await _applying(call, body, given), Preconditions()), accepted)
    change = Change(kind, body, SCALE, field_validation=given.field_validation)

    async def revise(old: Object) -> Draft:
        shown = ownership.owned_scale(old, call.resource)
        changed = change(shown)
        kind, api_version = changed.value.get("kind") or "Scale", changed.value.get("apiVersion") or _API_VERSION
        if (kind, api_version) != ("Scale", _API_VERSION):
            raise invalid_patch(change.text(shown), errors.no_kind_registered(kind, api_version))
        decoded = decode(SCALE, changed.value)
        complaints = _complaints(changed, decoded.unknown, given)
        if decoded.error:
            raise invalid_patch(change.text(shown), decoded.error)
        if complaints and given.field_validation == "Strict":
            raise invalid_patch(change.text(shown), codec.strict_decoding_error(complaints))
        call.warnings += complaints
        return _draft(call, old, decoded.value, given)

    return _answer(call, await _write(call, revise, Preconditions()), accepted)


async def _applying(call: Call, body: bytes, given: Options) -> Revise:
    """Server-side apply of a Scale (upstream's fails when it is forced; ours works)."""
    config = await call.work(read_configuration, body, field_validation=given.field_validation)

    async def revise(old: Object) -> Draft:
        live = ownership.owned_scale(old, call.resource)
        now = format_time(call.now())
        new = manager.apply(
            live, config.value, ownership.SCALE, manager=given.field_manager, force=given.force, now=now
        )
        return _draft(call, old, new, given, owners=new["metadata"].get("managedFields"))

    return revise


def _draft(call: Call, old: Object, new_scale: Object, given: Options, *, owners: list[Object] | None = None) -> Draft:
    """The draft of a custom resource with the replicas of a Scale. `owners`: who owns it now, if that is known.

    Raises ApiError.
    """
    metadata = new_scale["metadata"]
    pipeline.check_namespace(metadata, call.namespace)
    if call.namespace:
        metadata["namespace"] = call.namespace
    pipeline.check_name(metadata, call.info.name)
    if owners is None:
        live = ownership.owned_scale(old, call.resource)
        tracked = manager.update(
            live, new_scale, ownership.SCALE, manager=given.field_manager, now=format_time(call.now())
        )
        owners = tracked["metadata"].get("managedFields")
    paths = ownership.replicas_paths(call.resource)
    old["metadata"]["managedFields"] = to_parent(
        old["metadata"].get("managedFields"), owners, call.resource.api_version, paths
    )
    scale.put(old, call.resource, new_scale)
    draft = call.draft("UPDATE", codec.Decoded(old), given)
    draft.arrived = draft.owned = True  # it was read from the store
    draft.scale = {**new_scale, "metadata": {**metadata, "managedFields": owners}} if owners else new_scale
    return draft


async def _write(call: Call, revise: Revise, preconditions: Preconditions) -> Object:
    written: Written = await call.registry.update(call.resource, call.namespace, call.info.name, revise, preconditions)
    if written.entry is not None:
        return object_at(written.entry, call.resource)
    return written.value or {}
