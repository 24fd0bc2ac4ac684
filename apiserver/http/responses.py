"""Objects and lists in the representation that was asked for: JSON, YAML, Table, PartialObjectMetadata, protobuf.

Plain JSON is put together from stored bytes and never decoded. Long lists are made in chunks, so that who sends them
can let others work in between.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from typing import Final
from weakref import WeakKeyDictionary

from apiserver.api import codec, errors, protobuf
from apiserver.api.types import Json, Object
from apiserver.http import negotiation, table
from apiserver.http.answer import Answer
from apiserver.http.negotiation import PROTOBUF, YAML, Accepted
from apiserver.http.printers import built_in_columns
from apiserver.http.table import Columns
from apiserver.registry import kinds
from apiserver.registry.entry import Entry, body_at, is_read
from apiserver.registry.heavy import work
from apiserver.registry.listing import Listing
from apiserver.registry.resource import Resource

CHUNK: Final = 128  # objects
CHUNK_BYTES: Final = 512 * 1024

_columns: WeakKeyDictionary[Resource, Columns] = WeakKeyDictionary()


def columns_of(resource: Resource) -> Columns:
    """How a resource is shown in a table; made when first asked for."""
    found = _columns.get(resource)
    if found is None:
        sorted_keys = resource.behaviour.sorted_keys
        found = (
            table.custom_columns(resource.columns) if sorted_keys else built_in_columns(resource.group, resource.kind)
        )
        _columns[resource] = found
    return found


def encode(value: Object, accepted: Accepted, *, sort_keys: bool = False) -> bytes:
    """An object that is not kept as bytes."""
    if accepted.media_type == YAML:
        return codec.to_yaml(value)
    if accepted.media_type == PROTOBUF:
        struct = kinds.struct_of(value.get("apiVersion") or "v1", value["kind"])
        if struct is None:
            raise errors.not_acceptable((negotiation.JSON, YAML))
        return protobuf.encode(struct, value)
    if accepted.pretty:
        return codec.pretty(value, sort_keys=sort_keys)
    return codec.encode(value, sort_keys=sort_keys) + b"\n"


def is_plain(accepted: Accepted) -> bool:
    """Whether stored bytes are answered as they are."""
    return accepted.media_type == negotiation.JSON and not accepted.pretty and accepted.convert is None


def object_answer(
    body: bytes, resource: Resource, accepted: Accepted, *, include: str, now: datetime, status: int = 200
) -> Answer:
    """One object; `body` is its plain JSON."""
    if is_plain(accepted):
        return Answer(body + b"\n", status, accepted.content_type)
    value = codec.decode_stored(body)
    sort_keys = resource.behaviour.sorted_keys
    return value_answer(
        value, columns_of(resource), accepted, include=include, now=now, status=status, sort_keys=sort_keys
    )


def value_answer(
    value: Object,
    columns: Columns,
    accepted: Accepted,
    *,
    include: str,
    now: datetime,
    status: int = 200,
    sort_keys: bool = False,
) -> Answer:
    """One object that is not kept as bytes."""
    if accepted.convert is not None:
        value = table.convert(value, accepted.convert, columns, now, include=include)
        return Answer(encode(value, accepted), status, accepted.content_type)
    return Answer(encode(value, accepted, sort_keys=sort_keys), status, accepted.content_type)


async def list_answer(
    listing: Listing, resource: Resource, accepted: Accepted, *, include: str, now: datetime
) -> Answer:
    """A list of entries."""
    metadata, entries = _list_metadata(listing, custom=resource.behaviour.sorted_keys), listing.entries
    if not is_plain(accepted):
        weight = sum([len(entry.stored) for entry in entries])
        body = await work(weight, _converted_list, entries, metadata, resource, accepted, include, now)
        return Answer(body, 200, accepted.content_type)
    chunks = _plain_list(entries, resource, metadata)
    if len(entries) <= CHUNK and sum([len(entry.stored) for entry in entries]) <= CHUNK_BYTES:
        return Answer(b"".join([chunk async for chunk in chunks]), 200, accepted.content_type)
    return Answer(chunks, 200, accepted.content_type)


def _converted_list(
    entries: list[Entry], metadata: Object, resource: Resource, accepted: Accepted, include: str, now: datetime
) -> bytes:
    items = (codec.decode_stored(body_at(entry, resource)) for entry in entries)
    if accepted.convert is not None:
        value = table.convert_list(items, metadata, accepted.convert, columns_of(resource), now, include)
        return encode(value, accepted)
    return encode(_list_object(list(items), resource, metadata), accepted)


def _list_metadata(listing: Listing, *, custom: bool) -> Object:
    """Custom resources' lists always have `continue`, and sorted keys."""
    version = str(listing.revision)
    remaining: Object = {} if listing.remaining is None else {"remainingItemCount": listing.remaining}
    if custom:
        return {"continue": listing.token, **remaining, "resourceVersion": version}
    return {"resourceVersion": version, **({"continue": listing.token} if listing.token else {}), **remaining}


def _list_object(items: list[Json], resource: Resource, metadata: Object) -> Object:
    if resource.behaviour.sorted_keys:
        return {"apiVersion": resource.api_version, "items": items, "kind": resource.list_kind, "metadata": metadata}
    return {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata, "items": items}


async def _plain_list(entries: list[Entry], resource: Resource, metadata: Object) -> AsyncIterator[bytes]:
    shell = codec.encode(_list_object([], resource, metadata), sort_keys=False)
    at = (
        shell.rindex(b"[]") + 1
        if not resource.behaviour.sorted_keys
        else shell.index(b'"items":[]') + len(b'"items":[')
    )
    separator = shell[:at]
    for some in _portions(entries):
        unread = sum([len(entry.stored) for entry in some if not is_read(entry, resource)])
        yield separator + await work(unread, _joined, some, resource)
        separator = b","
    yield (b"" if entries else separator) + shell[at:] + b"\n"


def _portions(entries: list[Entry]) -> Iterator[list[Entry]]:
    """As many at a time as are written in a few milliseconds."""
    start = size = 0
    for n, entry in enumerate(entries):
        if n - start == CHUNK or size > CHUNK_BYTES:
            yield entries[start:n]
            start, size = n, 0
        size += len(entry.stored)
    if entries:
        yield entries[start:]


def _joined(entries: list[Entry], resource: Resource) -> bytes:
    return b",".join([body_at(entry, resource) for entry in entries])


def converter(
    resource: Resource, accepted: Accepted, include: str, now: Callable[[], datetime]
) -> Callable[[Object], bytes]:
    """For watches: makes each event's object what was asked for. Tables have their columns in the first event only."""
    convert, columns = accepted.convert, columns_of(resource)
    first = True

    def make(value: Object) -> bytes:
        nonlocal first
        if convert is not None:
            value = table.convert(value, convert, columns, now(), include=include, headers=first)
            first = False
        if accepted.media_type == PROTOBUF:
            return encode(value, accepted)
        return codec.encode(value, sort_keys=convert is None and resource.behaviour.sorted_keys)

    return make
