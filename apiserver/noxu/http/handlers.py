"""The handlers: one function per verb. It makes a read or a WriteRequest of an exchange, and an answer of the result.

`routing` selects the handler of a request; `registry.write` runs a WriteRequest. The order in which a handler refuses
(Accept, Content-Type, options, name) is upstream's, and differs between verbs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from noxu.api import errors
from noxu.api.meta import GroupVersionKind
from noxu.go.structs import decode
from noxu.http import negotiation, responses
from noxu.http.answer import Answer
from noxu.http.exchange import Exchange, delete_body_as_sent, delete_body_from_query, window
from noxu.http.negotiation import PLAIN, Accepted
from noxu.http.request import boolean, integer
from noxu.kinds import meta as option_kinds
from noxu.registry.bodies import decode_body, read_kind
from noxu.registry.deletion import delete_body_from_object, delete_keys, delete_options
from noxu.registry.draft import (
    NO_DELETE_OPTIONS,
    Action,
    Body,
    DeleteOptions,
    Written,
)
from noxu.registry.offload import offload
from noxu.registry.reader import list_entries
from noxu.registry.resource import APPLY_PATCHES, Resource
from noxu.registry.stored_object import StoredObject, body_at, body_parts, is_readable, is_rendered, key_of, render
from noxu.values import Object

Handler = Callable[[Exchange], Awaitable[Answer | None]]

SHARED_FROM: Final = 64 * 1024  # bytes of an object from which on answers share them; copying fewer is faster


# -- reading ----------------------------------------------------------------------------------------------------------


async def get(exchange: Exchange) -> Answer:
    """One object."""
    accepted = exchange.accept()
    return await entry_answer(exchange, await exchange.stored_entry(), accepted)


async def list_(exchange: Exchange) -> Answer:
    """The objects of a collection, or a page of them."""
    accepted = exchange.accept()
    listed = await exchange.list_options(watch=False)
    journal = exchange.backend.persistence.journal
    asked = None if journal is None else (exchange.received, *exchange.client, exchange.scope())
    listing = await list_entries(exchange.backend.reader, listed.selection, window(listed))
    if journal is not None and asked is not None:
        journal.reads.append((*asked, listing.revision))
    if accepted == PLAIN:
        return await responses.plain_list(listing, exchange.resource)
    include = exchange.include(accepted)
    return await responses.list_answer(listing, exchange.resource, accepted, include=include, now=exchange.now())


# -- writing ----------------------------------------------------------------------------------------------------------


async def create(exchange: Exchange) -> Answer:
    """POST of an object."""
    accepted = exchange.accept()
    written = await exchange.write(Action.CREATE, *await exchange.sent_object("CreateOptions"))
    return await written_answer(exchange, written, accepted, 201)


async def review(exchange: Exchange) -> Answer:
    """POST of a review, which is answered and not stored."""
    accepted = exchange.accept()
    written = await exchange.write(Action.REVIEW, *await exchange.sent_object("CreateOptions"))
    return await written_answer(exchange, written, accepted, 201)


async def act(exchange: Exchange) -> Answer:
    """POST of a body that is not stored: it acts on an object, the one in the path or the one that it names."""
    accepted = exchange.accept()
    written = await exchange.write(Action.ACT, *await exchange.sent_object("CreateOptions"))
    return Answer(responses.encode(written.value or {}, accepted._replace(convert=None)), 201, accepted.content_type)


async def update(exchange: Exchange) -> Answer:
    """PUT of an object."""
    _require_name(exchange)
    accepted = exchange.accept()
    content = await exchange.read_body()
    chosen = exchange.write_options("UpdateOptions")
    body = Body(content, exchange.body_format())
    written = await exchange.write(Action.REPLACE, body, chosen)
    return await written_answer(exchange, written, accepted, 201 if written.created else 200)


async def patch(exchange: Exchange) -> Answer:
    """PATCH of an object: JSON, merge and strategic merge patch, or server-side apply."""
    media_type = exchange.patch_type()
    is_apply = media_type in APPLY_PATCHES
    _require_name(exchange)
    accepted = exchange.accept()
    content = await exchange.read_body()
    chosen = exchange.write_options("PatchOptions", apply=is_apply)
    written = await exchange.write(Action.APPLY if is_apply else Action.PATCH, Body(content, media_type), chosen)
    return await written_answer(exchange, written, accepted, 201 if written.created else 200)


# -- deleting ---------------------------------------------------------------------------------------------------------


async def delete(exchange: Exchange) -> Answer:
    """DELETE of one object."""
    accepted = exchange.accept()
    resource, name = exchange.resource, exchange.info.name
    chosen, options_sent = await _delete_options(exchange)
    request = exchange.write_request(Action.DELETE, delete_options=chosen, options_sent=options_sent)
    if chosen.corrupt_too and await _delete_corrupt(exchange, chosen):
        return _deleted({"name": name, "kind": resource.kind}, accepted, code=200)
    written = await exchange.backend.writer.write(request, exchange.outcome, exchange.trace)
    entry = written.entry
    assert entry is not None
    if not written.deleted or (resource.table is not None and resource.table.returns_deleted):
        # Upstream: 202 only for clients that cascade with orphanDependents=false; others expect 200.
        status = 202 if not written.deleted and options_sent.get("orphanDependents") is False else 200
        return await entry_answer(exchange, entry, accepted, status)
    details = {"name": entry.key.name, "group": resource.group, "kind": resource.plural, "uid": written.uid}
    return _deleted(details, accepted)


async def _delete_corrupt(exchange: Exchange, chosen: DeleteOptions) -> bool:
    """Delete an object if it cannot be read, or not decoded; return whether it was so.

    Admission is not called, since it could not read the object either.
    """
    backend, resource = exchange.backend, exchange.resource
    key = key_of(resource, exchange.namespace, exchange.info.name)
    collection = await backend.reader.collection(resource)
    revision = collection.corrupt.get(key)
    entry = collection.entries.get(key)
    if entry is not None and not await offload(len(entry.stored), is_readable, entry, resource.versions):
        revision = entry.revision
    if revision is not None and not chosen.dry_run:
        await backend.persistence.remove_corrupt(key, revision)  # only if it is still that revision
    return revision is not None


async def delete_collection(exchange: Exchange) -> Answer:
    """DELETE of the objects of a collection that the selectors match."""
    accepted = exchange.accept()
    listed = await exchange.list_options(watch=bool(boolean(exchange.query, "watch")))
    chosen, options_sent = await _delete_options(exchange)
    paged = (integer(exchange.query, "limit") or 0) >= 0  # upstream keeps a negative limit, which is none
    listing = await list_entries(exchange.backend.reader, listed.selection, window(listed, paged=paged))
    keys = [entry.key for entry in listing.entries]  # the answer is the list as it was before
    request = exchange.write_request(Action.DELETE, delete_options=chosen, options_sent=options_sent)
    await delete_keys(exchange.backend.writer, request, keys, exchange.outcome)
    include = exchange.include(accepted)
    return await responses.list_answer(listing, exchange.resource, accepted, include=include, now=exchange.now())


async def _delete_options(exchange: Exchange) -> tuple[DeleteOptions, Object]:
    """The options of a delete, from the body or, without one, from the query; and the options as sent. Raises ApiError."""
    body = await exchange.read_body()
    if not body and not exchange.query:  # what most clients but kubectl send
        return NO_DELETE_OPTIONS, {}
    if not body:
        from_query = delete_body_from_query(exchange.query)
        return delete_options(from_query), delete_body_as_sent(from_query)
    media_type = exchange.body_format(any_format=True)
    sent = await exchange.offload(_read_delete_options, exchange.resource, body, media_type)
    as_sent = {name: value for name, value in sent.items() if name not in ("kind", "apiVersion")}
    return delete_options(delete_body_from_object(sent)), as_sent


def _read_delete_options(resource: Resource, body: bytes, media_type: str) -> Object:
    """Decode DeleteOptions, which exist in every group and may lack kind and apiVersion. Raises ApiError."""
    if media_type == negotiation.PROTOBUF:
        sent: Object = decode_body(body, media_type, resource.gvk, strict=False, typed=True).value
        return sent
    try:
        sent_kind, value = read_kind(body, media_type, _DELETE_OPTIONS, option_kinds.DELETE_OPTIONS)
    except ValueError as error:
        raise errors.bad_request(str(error)) from None
    if sent_kind.kind != _DELETE_OPTIONS.kind:
        raise errors.bad_request(option_kinds.not_delete_options(sent_kind.kind, sent_kind.api_version))
    decoded = decode(option_kinds.DELETE_OPTIONS, value)
    if decoded.error:
        raise errors.bad_request(decoded.error)
    content: Object = decoded.value or {}  # null is DeleteOptions without fields
    return content


_DELETE_OPTIONS: Final = GroupVersionKind("meta.k8s.io", "v1", "DeleteOptions")


def _deleted(details: Object, accepted: Accepted, **more: int) -> Answer:
    """The answer about an object that no longer exists. Upstream sends a code only if it could not read the object."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    status["details"] = {name: value for name, value in details.items() if value}  # in upstream's order of fields
    return Answer(responses.encode(status | more, accepted._replace(convert=None)), 200, accepted.content_type)


# -- requests and answers ---------------------------------------------------------------------------------------------


def _require_name(exchange: Exchange) -> None:
    """Raises ApiError if the path is that of a collection."""
    if not exchange.info.name:
        raise errors.bad_request("name must be provided")


async def written_answer(exchange: Exchange, written: Written, accepted: Accepted, status: int) -> Answer:
    """The answer with the result of a write."""
    if written.entry is not None and written.unstored_version is None:
        return await entry_answer(exchange, written.entry, accepted, status)
    weight = max(exchange.weight, len(written.entry.stored) if written.entry else 0)
    body = await offload(weight, written.body, exchange.resource)
    return await _object_answer(exchange, body, accepted, status)


async def entry_answer(exchange: Exchange, entry: StoredObject, accepted: Accepted, status: int = 200) -> Answer:
    """The answer with a stored object."""
    resource = exchange.resource
    is_plain = accepted == PLAIN
    is_ready = is_plain and is_rendered(entry, resource)
    if is_plain and not is_ready:
        # changes the entry, once for all who read it
        await offload(max(exchange.weight, len(entry.stored)), render, entry, resource.versions)
        is_ready = is_rendered(entry, resource)
    if is_ready:
        if len(entry.stored) > SHARED_FROM:
            # parts of the stored bytes, which are not copied
            return Answer((*body_parts(entry, resource), b"\n"), status, accepted.content_type)
        # a copy: the resourceVersion is inserted
        return Answer(body_at(entry, resource) + b"\n", status, accepted.content_type)
    body = await offload(max(exchange.weight, len(entry.stored)), body_at, entry, resource)
    return await _object_answer(exchange, body, accepted, status)


async def _object_answer(exchange: Exchange, body: bytes, accepted: Accepted, status: int) -> Answer:
    include, now = exchange.include(accepted), exchange.now()
    weight = max(exchange.weight, responses.weight_of(len(body), exchange.resource, accepted))
    return await offload(
        weight, responses.object_answer, body, exchange.resource, accepted, include=include, now=now, status=status
    )
