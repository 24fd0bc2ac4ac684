"""/scale: a custom resource's replicas, read and written as an autoscaling/v1 Scale."""

from __future__ import annotations

from apiserver.api import codec, errors, meta
from apiserver.api.gotime import format_time
from apiserver.api.structs import decode
from apiserver.api.types import Object
from apiserver.api.values import copy
from apiserver.apply import manager
from apiserver.apply.scale import to_parent, to_scale
from apiserver.http import negotiation, options, responses, table
from apiserver.http.answer import Answer
from apiserver.http.handlers import Call
from apiserver.http.negotiation import Accepted
from apiserver.http.patches import APPLY_PATCH, CUSTOM_PATCHES, Change, read_configuration
from apiserver.http.request import check_name
from apiserver.registry import ownership, scale
from apiserver.registry.entry import object_at
from apiserver.registry.kinds.autoscaling import SCALE
from apiserver.registry.pipeline import Draft, Options, invalid_patch
from apiserver.registry.store import Preconditions, Revise, Written

_EXPECTED = meta.GroupVersionKind("autoscaling", "v1", "Scale")


def _answer(call: Call, value: Object, accepted: Accepted) -> Answer:
    shown = scale.scale_of(value, call.resource)
    return responses.value_answer(
        shown, table.scale_columns(), accepted, include=call.include(accepted), now=call.now()
    )


async def get(call: Call) -> Answer:
    accepted = call.accepted()
    check_name(call.info.name)
    entry = await call.registry.get(call.resource, call.namespace, call.info.name)
    return _answer(call, object_at(entry, call.resource), accepted)


async def update(call: Call) -> Answer:
    accepted = call.accepted()
    body = await call.body()
    given = options.write_options(call.query, "UpdateOptions", call.user_agent)
    media_type = negotiation.request_format(call.request.headers.get("Content-Type", ""))
    new = await call.work(_read, body, media_type)

    async def revise(old: Object) -> Draft:
        return _draft(call, old, copy(new), given)

    written = await _write(call, revise, Preconditions(uid=new["metadata"].get("uid") or None))
    return _answer(call, written, accepted)


def _read(body: bytes, media_type: str) -> Object:
    """A Scale in a request's body. Raises ApiError."""
    value = codec.read_object(body, media_type, _EXPECTED, typed=True).value
    if value.get("kind", "Scale") != "Scale" or value.get("apiVersion", "autoscaling/v1") != "autoscaling/v1":
        raise errors.bad_request('no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"')
    decoded = decode(SCALE, value)
    if decoded.error:
        raise codec.cannot_be_handled(_EXPECTED, "Scale", decoded.error)
    found: Object = decoded.value
    return found


async def patch(call: Call) -> Answer:
    kind = negotiation.patch_format(call.request.headers.get("Content-Type", ""), CUSTOM_PATCHES)
    accepted = call.accepted()
    body = await call.body()
    given = options.write_options(call.query, "PatchOptions", call.user_agent, apply=kind == APPLY_PATCH)
    if kind == APPLY_PATCH:
        return _answer(call, await _write(call, await _applying(call, body, given), Preconditions()), accepted)
    change = Change(kind, body, SCALE, field_validation=given.field_validation)

    async def revise(old: Object) -> Draft:
        shown = _owned_scale(old, call)
        decoded = decode(SCALE, change(shown).value)
        if decoded.error:
            raise invalid_patch(change.text(shown), decoded.error)
        return _draft(call, old, decoded.value, given)

    return _answer(call, await _write(call, revise, Preconditions()), accepted)


async def _applying(call: Call, body: bytes, given: Options) -> Revise:
    """Server-side apply of a Scale (upstream's fails when it is forced; ours works)."""
    config = await call.work(read_configuration, body, field_validation=given.field_validation)

    async def revise(old: Object) -> Draft:
        live = _owned_scale(old, call)
        now = format_time(call.now())
        new = manager.apply(
            live, config.value, ownership.SCALE, manager=given.field_manager, force=given.force, now=now
        )
        return _draft(call, old, new, given, owners=new["metadata"].get("managedFields"))

    return revise


def _owned_scale(value: Object, call: Call) -> Object:
    """The Scale of an object with the owners of its replicas: for writing only, answers do not tell them."""
    shown = scale.scale_of(value, call.resource, missing=scale.UNSET)
    owners = to_scale(value["metadata"].get("managedFields"), ownership.replicas_paths(call.resource))
    if owners:
        shown["metadata"]["managedFields"] = owners
    return shown


def _draft(call: Call, old: Object, new_scale: Object, given: Options, *, owners: list[Object] | None = None) -> Draft:
    """The draft of a custom resource with the replicas of a Scale. `owners`: who owns it now, if that is known.

    Raises ApiError.
    """
    metadata = new_scale["metadata"]
    if metadata.get("name") and metadata["name"] != call.info.name:
        raise errors.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({call.info.name})"
        )
    replicas = new_scale["spec"].get("replicas", 0)
    if replicas == scale.UNSET:
        path = call.resource.scale.spec_replicas if call.resource.scale else ""
        raise errors.bad_request(f'the spec replicas field "{path}" cannot be empty')
    if owners is None:
        live = _owned_scale(old, call)
        tracked = manager.update(
            live, new_scale, ownership.SCALE, manager=given.field_manager, now=format_time(call.now())
        )
        owners = tracked["metadata"].get("managedFields")
    paths = ownership.replicas_paths(call.resource)
    old["metadata"]["managedFields"] = to_parent(
        old["metadata"].get("managedFields"), owners, call.resource.api_version, paths
    )
    scale.set_replicas(old, call.resource, replicas)
    if metadata.get("resourceVersion"):
        old["metadata"]["resourceVersion"] = metadata["resourceVersion"]
    draft = call.draft("UPDATE", codec.Decoded(old), given)
    draft.arrived = draft.owned = True  # it was read from the store
    return draft


async def _write(call: Call, revise: Revise, preconditions: Preconditions) -> Object:
    written: Written = await call.registry.update(call.resource, call.namespace, call.info.name, revise, preconditions)
    if written.entry is not None:
        return object_at(written.entry, call.resource)
    return written.value or {}
