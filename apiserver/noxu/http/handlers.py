"""The handlers: one function per verb. It makes a read or a WriteRequest of an exchange, and an answer of the result.

`routing` selects the handler of a request; `registry.write` runs a WriteRequest. The order in which a handler refuses
(Accept, Content-Type, options, name) is upstream's, and differs between verbs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from noxu.api import errors
from noxu.api.meta import GroupVersionKind
from noxu.go.structs import decode
from noxu.http import auditing, negotiation, options, responses
from noxu.http.answer import Answer
from noxu.http.exchange import Exchange
from noxu.http.negotiation import Accepted, Endpoint
from noxu.http.options import ListOptions
from noxu.http.received import read_body
from noxu.http.request import first
from noxu.kinds import options as option_kinds
from noxu.registry.bodies import decode_body, read_kind
from noxu.registry.delete_options import delete_body_from_object, delete_options
from noxu.registry.deletion import delete_keys
from noxu.registry.draft import (
    NO_BODY,
    NO_DELETE_OPTIONS,
    NO_OPTIONS,
    Action,
    Body,
    DeleteOptions,
    Options,
    WriteRequest,
    Written,
)
from noxu.registry.entry import (
    Entry,
    body_at,
    body_parts,
    check_path_name,
    is_readable,
    is_rendered,
    key_of,
    render,
)
from noxu.registry.listing import list_entries
from noxu.registry.offload import LOOP_LIMIT, offload, offload_briefly
from noxu.registry.patch_types import APPLY_CBOR, APPLY_PATCHES, BUILT_IN_PATCHES, CUSTOM_PATCHES
from noxu.registry.resource import CUSTOM, DEFINITION, Resource
from noxu.tables.table import include_object
from noxu.values import Object

Handler = Callable[[Exchange], Awaitable[Answer]]

SELECTOR_BYTES: Final = 4  # of a selector that are parsed while one byte of a body is decoded
SHARED_FROM: Final = 64 * 1024  # bytes of an object from which on answers share them; copying fewer is faster


# -- reading ----------------------------------------------------------------------------------------------------------


async def get(exchange: Exchange) -> Answer:
    """One object."""
    accepted = accept(exchange)
    return await entry_answer(exchange, await stored_entry(exchange), accepted)


async def stored_entry(exchange: Exchange) -> Entry:
    """The entry that a GET requests, no older than the resourceVersion in its query. Raises ApiError."""
    name, reader = exchange.info.name, exchange.backend.reader
    if options.boolean(exchange.query, "export"):
        raise errors.bad_request("the export parameter, deprecated since v1.14, is no longer supported")
    check_path_name(name)
    revision = options.parse_revision(first(exchange.query, "resourceVersion"), errors.plain_error)
    if revision:
        await reader.reached(revision)
    return await reader.get(exchange.resource, namespace_of(exchange), name)


async def list_(exchange: Exchange) -> Answer:
    """The objects of a collection, or a page of them."""
    accepted = accept(exchange)
    given = await list_options(exchange, watch=False)
    listing = await list_entries(exchange.backend.reader, given.selection, options.window(given))
    include = include_of(exchange, accepted)
    return await responses.list_answer(listing, exchange.resource, accepted, include=include, now=exchange.now())


async def list_options(exchange: Exchange, *, watch: bool) -> ListOptions:
    """Raises ApiError."""
    info, resource = exchange.info, exchange.resource
    # a resource may have the plural `namespaces`: then the path of a namespace is that of an object in it
    is_namespaced = info.in_namespace or (resource.namespaced and info.namespace)
    namespace = info.namespace if is_namespaced else None
    weight = len(exchange.request.raw_path) // SELECTOR_BYTES  # a selector may be long
    call = partial(options.list_options, resource, namespace, info.name, exchange.query, watch=watch)
    return await offload_briefly(weight, call)


# -- writing ----------------------------------------------------------------------------------------------------------


async def create(exchange: Exchange) -> Answer:
    """POST of an object."""
    accepted = accept(exchange)
    written = await write(exchange, Action.CREATE, *await _sent_object(exchange, "CreateOptions"))
    return await written_answer(exchange, written, accepted, 201)


async def review(exchange: Exchange) -> Answer:
    """POST of a review, which is answered and not stored."""
    accepted = accept(exchange)
    written = await write(exchange, Action.REVIEW, *await _sent_object(exchange, "CreateOptions"))
    return await written_answer(exchange, written, accepted, 201)


async def act(exchange: Exchange) -> Answer:
    """POST of a body that is not stored: it acts on an object, the one in the path or the one that it names."""
    accepted = accept(exchange)
    written = await write(exchange, Action.ACT, *await _sent_object(exchange, "CreateOptions"))
    return Answer(responses.encode(written.value or {}, accepted._replace(convert=None)), 201, accepted.content_type)


async def update(exchange: Exchange) -> Answer:
    """PUT of an object."""
    _require_name(exchange)
    accepted = accept(exchange)
    content = await receive_body(exchange)
    given = options.write_options(exchange.query, "UpdateOptions", exchange.request.headers.get("User-Agent", ""))
    body = Body(content, body_format(exchange))
    written = await write(exchange, Action.REPLACE, body, given)
    return await written_answer(exchange, written, accepted, 201 if written.created else 200)


async def patch(exchange: Exchange) -> Answer:
    """PATCH of an object: JSON, merge and strategic merge patch, or server-side apply."""
    media_type = patch_type(exchange)
    is_apply = media_type in APPLY_PATCHES
    _require_name(exchange)
    accepted = accept(exchange)
    content = await receive_body(exchange)
    given = options.write_options(
        exchange.query, "PatchOptions", exchange.request.headers.get("User-Agent", ""), apply=is_apply
    )
    written = await write(exchange, Action.APPLY if is_apply else Action.PATCH, Body(content, media_type), given)
    return await written_answer(exchange, written, accepted, 201 if written.created else 200)


def patch_type(exchange: Exchange) -> str:
    """The type of the patch in the body. Raises ApiError UnsupportedMediaType."""
    is_built_in = not exchange.resource.is_custom
    patches: tuple[str, ...] = BUILT_IN_PATCHES if is_built_in else CUSTOM_PATCHES
    if exchange.backend.features.cbor:
        patches += (APPLY_CBOR,)
    content_type = exchange.request.headers.get("Content-Type", "")
    return negotiation.patch_format(content_type, patches, built_in=is_built_in)


async def _sent_object(exchange: Exchange, kind: str) -> tuple[Body, Options]:
    media_type = body_format(exchange)
    content = await receive_body(exchange)
    return Body(content, media_type), options.write_options(
        exchange.query, kind, exchange.request.headers.get("User-Agent", "")
    )


def write(exchange: Exchange, action: Action, body: Body, given: Options) -> Awaitable[Written]:
    """Run the write that the client requests. Raises ApiError."""
    request = _write_request(exchange, action, body, given)
    return exchange.backend.writer.write(request, exchange.outcome, exchange.trace)


def _write_request(
    exchange: Exchange,
    action: Action,
    body: Body = NO_BODY,
    given: Options = NO_OPTIONS,
    delete_options: DeleteOptions = NO_DELETE_OPTIONS,
    options_sent: Object | None = None,
) -> WriteRequest:
    resource, info = exchange.resource, exchange.info
    if options_sent is None:
        options_sent = options.as_sent(exchange.query) if exchange.query else {}
    body_resource = resource.bodies.get(info.subresource)
    return WriteRequest(
        action,
        body_resource or resource,
        info.namespace if resource.namespaced else "",
        info.name,
        info.subresource,
        body,
        given,
        delete_options,
        options_sent,
        exchange.user,
        exchange.backend.features,
        exchange.deadline,
        exchange.weight,
        authorize=exchange.backend.authorize,
        parent=None if body_resource is None else resource,
    )


# -- deleting ---------------------------------------------------------------------------------------------------------


async def delete(exchange: Exchange) -> Answer:
    """DELETE of one object."""
    accepted = accept(exchange)
    resource, name = exchange.resource, exchange.info.name
    given, options_sent = await _delete_options(exchange)
    if given.corrupt_too and await _delete_corrupt(exchange, given):
        return _deleted({"name": name, "kind": resource.kind}, accepted, code=200)
    request = _write_request(exchange, Action.DELETE, delete_options=given, options_sent=options_sent)
    written = await exchange.backend.writer.write(request, exchange.outcome, exchange.trace)
    entry = written.entry
    assert entry is not None
    if not written.deleted or (resource.table is not None and resource.table.returns_deleted):
        # Upstream: 202 only for clients that cascade with orphanDependents=false; others expect 200.
        status = 202 if not written.deleted and options_sent.get("orphanDependents") is False else 200
        return await entry_answer(exchange, entry, accepted, status)
    details = {"name": entry.key.name, "group": resource.group, "kind": resource.plural, "uid": written.uid}
    return _deleted(details, accepted)


async def _delete_corrupt(exchange: Exchange, given: DeleteOptions) -> bool:
    """Delete an object if it cannot be read, or not decoded; return whether it was so.

    Admission is not called, since it could not read the object either.
    """
    backend, resource = exchange.backend, exchange.resource
    key = key_of(resource, namespace_of(exchange), exchange.info.name)
    collection = await backend.reader.collection(resource)
    revision = collection.corrupt.get(key)
    entry = collection.entries.get(key)
    if entry is not None and not await offload(len(entry.stored), is_readable, entry, resource.versions):
        revision = entry.revision
    if revision is not None and not given.dry_run:
        await backend.persistence.remove_corrupt(key, revision)
    return revision is not None


async def delete_collection(exchange: Exchange) -> Answer:
    """DELETE of the objects of a collection that the selectors match."""
    accepted = accept(exchange)
    listed = await list_options(exchange, watch=bool(options.boolean(exchange.query, "watch")))
    given, options_sent = await _delete_options(exchange)
    paged = (options.integer(exchange.query, "limit") or 0) >= 0  # upstream keeps a negative limit, which is none
    listing = await list_entries(exchange.backend.reader, listed.selection, options.window(listed, paged=paged))
    keys = [entry.key for entry in listing.entries]
    request = _write_request(exchange, Action.DELETE, delete_options=given, options_sent=options_sent)
    await delete_keys(exchange.backend.writer, request, keys, exchange.outcome)
    include = include_of(exchange, accepted)
    return await responses.list_answer(listing, exchange.resource, accepted, include=include, now=exchange.now())


async def _delete_options(exchange: Exchange) -> tuple[DeleteOptions, Object]:
    """The options of a delete, from the body or, without one, from the query; and the options as sent. Raises ApiError."""
    body = await receive_body(exchange)
    if not body and not exchange.query:
        return NO_DELETE_OPTIONS, {}
    if not body:
        from_query = options.delete_body_from_query(exchange.query)
        return delete_options(from_query), options.delete_body_as_sent(from_query)
    media_type = sent_format(exchange)
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
    found: Object = decoded.value or {}  # null is DeleteOptions without fields
    return found


_DELETE_OPTIONS: Final = GroupVersionKind("meta.k8s.io", "v1", "DeleteOptions")


def _deleted(details: Object, accepted: Accepted, **more: int) -> Answer:
    """The answer about an object that no longer exists. Upstream sends a code only if it could not read the object."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    status["details"] = {name: value for name, value in details.items() if value}
    return Answer(responses.encode(status | more, accepted._replace(convert=None)), 200, accepted.content_type)


# -- requests and answers ---------------------------------------------------------------------------------------------


def namespace_of(exchange: Exchange) -> str:
    """The namespace of the objects; "" for cluster-scoped resources."""
    return exchange.info.namespace if exchange.resource.namespaced else ""


def _require_name(exchange: Exchange) -> None:
    """Raises ApiError if the path is that of a collection."""
    if not exchange.info.name:
        raise errors.bad_request("name must be provided")


def accept(exchange: Exchange, endpoint: Endpoint | None = None) -> Accepted:
    """The representation to answer with. Raises ApiError NotAcceptable."""
    headers, query = exchange.request.headers, exchange.query
    endpoint = endpoint or _endpoint(exchange)
    if exchange.backend.features.cbor:
        endpoint = negotiation.with_cbor(endpoint)
    return negotiation.negotiate(
        headers.get("Accept", ""),
        endpoint,
        pretty=first(query, "pretty") if query else "",
        user_agent=headers.get("User-Agent", ""),
    )


def _endpoint(exchange: Exchange) -> Endpoint:
    resource_type = exchange.resource.type
    if resource_type is CUSTOM:
        return negotiation.CUSTOM_RESOURCE
    if resource_type is DEFINITION and exchange.info.subresource:
        return negotiation.DEFINITION_STATUS
    return negotiation.BUILT_IN_LIST if exchange.info.verb in ("list", "watch") else negotiation.BUILT_IN


def include_of(exchange: Exchange, accepted: Accepted) -> str:
    """The `includeObject` of a table: what its rows contain besides the cells. Raises ApiError."""
    is_table = accepted.convert is not None and accepted.convert.kind == "Table"
    return include_object(first(exchange.query, "includeObject")) if is_table else ""


def body_format(exchange: Exchange) -> str:
    """The media type of the body. Raises ApiError UnsupportedMediaType."""
    content_type = exchange.request.headers.get("Content-Type", "")
    if content_type == negotiation.JSON:
        return content_type
    media_type = sent_format(exchange)
    if media_type == negotiation.PROTOBUF and exchange.resource.is_custom:
        raise errors.unsupported_media_type(_media_types(exchange))
    return media_type


def sent_format(exchange: Exchange) -> str:
    """The media type of a body that may have any. Raises ApiError UnsupportedMediaType."""
    return negotiation.request_format(exchange.request.headers.get("Content-Type", ""), _media_types(exchange))


def _media_types(exchange: Exchange) -> tuple[str, ...]:
    return negotiation.MEDIA_TYPES_WITH_CBOR if exchange.backend.features.cbor else negotiation.MEDIA_TYPES


async def receive_body(exchange: Exchange) -> bytes:
    """The body. A large request waits for room here and keeps it until it is answered. Raises ApiError."""
    body = await read_body(exchange.request)
    backend, name = exchange.backend, exchange.info.name
    exchange.weight = exchange.received_bytes = len(body)
    if exchange.record is not None and body:
        auditing.observe_body(exchange, exchange.record, body)
    if name:
        exchange.weight += backend.reader.size(exchange.resource, namespace_of(exchange), name)
    if exchange.weight > LOOP_LIMIT and not exchange.room:
        await backend.large_requests.enter(exchange.weight)
        exchange.room = exchange.weight
    return body


async def written_answer(exchange: Exchange, written: Written, accepted: Accepted, status: int) -> Answer:
    """The answer with the result of a write."""
    if written.entry is not None and written.unstored_version is None:
        return await entry_answer(exchange, written.entry, accepted, status)
    weight = max(exchange.weight, len(written.entry.stored) if written.entry else 0)
    body = await offload(weight, written.body, exchange.resource)
    return await _object_answer(exchange, body, accepted, status)


async def entry_answer(exchange: Exchange, entry: Entry, accepted: Accepted, status: int = 200) -> Answer:
    """The answer with a stored object."""
    resource = exchange.resource
    is_plain = accepted.is_plain
    if is_plain and not is_rendered(entry, resource):
        await offload(max(exchange.weight, len(entry.stored)), render, entry, resource.versions)
    if is_plain and is_rendered(entry, resource):
        if len(entry.stored) > SHARED_FROM:
            return Answer((*body_parts(entry, resource), b"\n"), status, accepted.content_type)
        return Answer(body_at(entry, resource) + b"\n", status, accepted.content_type)
    body = await offload(max(exchange.weight, len(entry.stored)), body_at, entry, resource)
    return await _object_answer(exchange, body, accepted, status)


async def _object_answer(exchange: Exchange, body: bytes, accepted: Accepted, status: int) -> Answer:
    include, now = include_of(exchange, accepted), exchange.now()
    weight = max(exchange.weight, responses.weight_of(len(body), exchange.resource, accepted))
    return await offload(
        weight, responses.object_answer, body, exchange.resource, accepted, include=include, now=now, status=status
    )
