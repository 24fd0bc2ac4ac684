"""Objects and lists in the representation that was asked for: JSON, YAML, Table, PartialObjectMetadata, protobuf.

Plain JSON is put together from stored bytes and never decoded. Long lists are made in chunks, so that who sends them
can let others work in between.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from noxu.apiserver.api import codec, errors, protobuf
from noxu.apiserver.http import negotiation
from noxu.apiserver.http.answer import Answer
from noxu.apiserver.http.negotiation import PROTOBUF, YAML, Accepted
from noxu.apiserver.kinds import scheme
from noxu.apiserver.registry.entry import Entry, body_at, is_rendered
from noxu.apiserver.registry.listing import Listing
from noxu.apiserver.registry.offload import offload
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.tables import table
from noxu.apiserver.tables.printers import built_in_columns
from noxu.apiserver.tables.table import Columns
from noxu.apiserver.values import Json, Object

CHUNK: Final = 128  # objects
CHUNK_BYTES: Final = 512 * 1024

_columns: WeakKeyDictionary[Resource, Columns] = WeakKeyDictionary()


def columns_of(resource: Resource) -> Columns:
    """How a resource is shown in a table; made when first asked for."""
    found = _columns.get(resource)
    if found is None:
        if resource.is_custom:
            found = table.custom_columns(resource.columns)
        else:
            found = built_in_columns(resource.group, resource.kind)
        _columns[resource] = found
    return found


def encode(value: Object, accepted: Accepted, *, sort_keys: bool = False) -> bytes:
    """An object that is not kept as bytes."""
    if accepted.media_type == YAML:
        return codec.to_yaml(value)
    if accepted.media_type == PROTOBUF:
        struct = scheme.struct_of(value.get("apiVersion") or "v1", value["kind"])
        if struct is None:
            raise errors.not_acceptable((negotiation.JSON, YAML))
        return protobuf.encode(struct, value)
    if accepted.pretty:
        return codec.pretty(value, sort_keys=sort_keys)
    return codec.encode(value, sort_keys=sort_keys) + b"\n"


def object_answer(
    body: bytes, resource: Resource, accepted: Accepted, *, include: str, now: datetime, status: int = 200
) -> Answer:
    """One object; `body` is its plain JSON."""
    if accepted.is_plain:
        return Answer(body + b"\n", status, accepted.content_type)
    value = codec.decode_stored(body)
    sort_keys = resource.sorted_keys
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
    metadata, entries = _list_metadata(listing, custom=resource.is_custom), listing.entries
    short = len(entries) <= CHUNK and sum([len(entry.stored) for entry in entries]) <= CHUNK_BYTES
    if accepted.is_plain:
        chunks = _plain_list(entries, resource, metadata)
        if not short:
            return Answer(chunks, 200, accepted.content_type)
        return Answer(b"".join([chunk async for chunk in chunks]), 200, accepted.content_type)

    def convert(some: list[Entry]) -> Object:
        if accepted.convert is None:
            return _list_object([codec.decode_stored(_item(entry, resource)) for entry in some], resource, metadata)
        items = (codec.decode_stored(body_at(entry, resource)) for entry in some)
        return table.convert_list(items, metadata, accepted.convert, columns_of(resource), now, include)

    if short or accepted.media_type == PROTOBUF:
        weight = sum([len(entry.stored) for entry in entries])
        return Answer(await offload(weight, lambda: encode(convert(entries), accepted)), 200, accepted.content_type)
    key = "rows" if accepted.convert is not None and accepted.convert.kind == "Table" else "items"
    shell = encode({**convert([]), key: []}, accepted)
    return Answer(_converted_list(entries, shell, key, convert, accepted), 200, accepted.content_type)


class Form(NamedTuple):
    """How the list in a list is written: what it is when it is empty, and what stands around and between portions."""

    empty: bytes
    start: bytes
    between: bytes
    end: bytes
    write: Callable[[list[Json]], bytes]


def _form(key: str, accepted: Accepted) -> Form:
    name = key.encode()
    if accepted.media_type == YAML:
        return Form(b"\n%b: []\n" % name, b"\n%b:\n" % name, b"", b"", codec.to_yaml)
    if accepted.pretty:
        return Form(b'"%b": []' % name, b'"%b": [' % name, b",", b"\n  ]", _pretty_items)
    return Form(
        b'"%b":[]' % name, b'"%b":[' % name, b",", b"]", lambda items: codec.encode(items, sort_keys=False)[1:-1]
    )


def _pretty_items(items: list[Json]) -> bytes:
    """One level deeper, without the brackets. Texts in JSON have no line ends of their own."""
    return codec.pretty(items, sort_keys=False)[1:-2].replace(b"\n", b"\n  ")


async def _converted_list(
    entries: list[Entry], shell: bytes, key: str, convert: Callable[[list[Entry]], Object], accepted: Accepted
) -> AsyncIterator[bytes]:
    """The shell, which is the list without entries, with the entries made portion by portion."""
    form = _form(key, accepted)
    before, _, behind = shell.rpartition(form.empty)
    separator = before + form.start
    for some in _portions(entries):
        weight = sum([len(entry.stored) for entry in some])
        yield separator + await offload(weight, lambda some=some: form.write(convert(some)[key]))  # type: ignore[misc]
        separator = form.between
    yield form.end + behind


def _list_metadata(listing: Listing, *, custom: bool) -> Object:
    """Custom resources' lists always have `continue`, and sorted keys."""
    version = str(listing.revision)
    remaining: Object = {} if listing.remaining is None else {"remainingItemCount": listing.remaining}
    if custom:
        return {"continue": listing.token, **remaining, "resourceVersion": version}
    return {"resourceVersion": version, **({"continue": listing.token} if listing.token else {}), **remaining}


def _list_object(items: list[Json], resource: Resource, metadata: Object) -> Object:
    if resource.is_custom:
        return {"apiVersion": resource.api_version, "items": items, "kind": resource.list_kind, "metadata": metadata}
    return {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata, "items": items}


async def _plain_list(entries: list[Entry], resource: Resource, metadata: Object) -> AsyncIterator[bytes]:
    shell = codec.encode(_list_object([], resource, metadata), sort_keys=False)
    at = shell.rindex(b"[]") + 1 if not resource.is_custom else shell.index(b'"items":[]') + len(b'"items":[')
    separator = shell[:at]
    for some in _portions(entries):
        unread = sum([len(entry.stored) for entry in some if not is_rendered(entry, resource)])
        yield separator + await offload(unread, _joined, some, resource)
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
    return b",".join([_item(entry, resource) for entry in entries])


def _item(entry: Entry, resource: Resource) -> bytes:
    """An object in a list. In a list of a built-in kind the items do not say what they are, as in Go's typed lists."""
    body = body_at(entry, resource)
    if resource.is_custom:
        return body
    head = b'{"kind":"%b","apiVersion":"%b",' % (resource.kind.encode(), resource.api_version.encode())
    return b"{" + body[len(head) :] if body.startswith(head) else body


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
        return codec.encode(value, sort_keys=convert is None and resource.sorted_keys)

    return make
