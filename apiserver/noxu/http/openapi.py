"""/openapi/v2 and /openapi/v3 (kube-openapi's handler and handler3): the document, its format, and its caching.

The index of v3 lists every document with a hash of its content. Requested with that hash, a document never expires;
requested with another hash, it is answered with a redirect to the current one. Documents are built in a thread, one at a
time.

Upstream answers 200 and nothing for a group version that does not exist; here it is 404.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Final

from noxu.api import errors
from noxu.discovery.openapi import INDEX, DocumentForm, DocumentKey, Published, PublishedDocument
from noxu.discovery.openapi_schemas import V2, V3
from noxu.http import negotiation
from noxu.http.answer import JSON, NOT_CACHED, Answer, Headers
from noxu.http.request import Query, first
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.served_resources import ServedResources
from noxu.releases import NEWEST

_Offers = tuple[tuple[str, DocumentForm, str], ...]


def _offers(version: str) -> _Offers:
    """(subtype in Accept, format of the document, Content-Type of the answer)."""
    protobuf = f"com.github.proto-openapi.spec.{version}"
    answered = f"application/{protobuf}.v1.0+protobuf"
    return (
        ("json", DocumentForm.JSON, JSON),
        (f"{protobuf}@v1.0+protobuf", DocumentForm.PROTOBUF, answered),
        (f"{protobuf}.v1.0+protobuf", DocumentForm.PROTOBUF, answered),
    )


_OFFERS: Final = {V2: _offers("v2"), V3: _offers("v3")}
_IMMUTABLE_LIFETIME: Final = timedelta(days=365)
_LONGEST_DATE: Final = 128  # characters of If-Modified-Since
_VARY: Final = (("Vary", "Accept"),)


class OpenAPI:
    """The endpoints of one server. `served_resources` returns the current served resources; `cbor` is CBORServingAndStorage."""

    def __init__(
        self,
        served_resources: Callable[[], ServedResources],
        now: Callable[[], datetime],
        *,
        cbor: bool = False,
        release: int = NEWEST,
    ) -> None:
        self._served_resources = served_resources
        self._now = now
        self._published = Published(now, cbor=cbor, release=release)
        self._building = asyncio.Lock()

    async def answer(self, parts: Sequence[str], query: Query, headers: Mapping[str, str]) -> Answer:
        """Answer a request. `parts` are the segments of the path. Raises ApiError NotFound."""
        served_resources = self._served_resources()
        match parts:
            case ["openapi", "v3"]:
                return _answer(await self._document(served_resources, INDEX), headers, JSON, NOT_CACHED)
            case ["openapi", "v2"]:
                return await self._negotiated(served_resources, DocumentKey(V2), query, headers)
            case ["openapi", "v3", *rest] if self._published.exists(served_resources, "/".join(rest)):
                return await self._negotiated(served_resources, DocumentKey(V3, "/".join(rest)), query, headers)
        raise errors.page_not_found()

    async def _document(self, served_resources: ServedResources, key: DocumentKey) -> PublishedDocument:
        kept = self._published.kept(served_resources, key)  # bytes that are shared with every answer
        if kept is not None:
            return kept
        # one at a time: two threads would only wait for each other
        async with self._building:
            return await offload(LOOP_LIMIT + 1, self._published.build, served_resources, key)

    async def _negotiated(
        self, served_resources: ServedResources, key: DocumentKey, query: Query, headers: Mapping[str, str]
    ) -> Answer:
        accepted = _negotiate(headers.get("Accept", ""), _OFFERS[key.style])
        if accepted is None:
            return Answer(b"", 406, headers=NOT_CACHED + _VARY)
        form, content_type = accepted
        document = await self._document(served_resources, key._replace(form=form))
        requested = first(query, "hash") if key.path else ""
        if requested and requested != document.hash:  # an index of older resources
            moved = (("Location", document.url(key.path)), *_VARY, _etag(document))
            return Answer(b"", 301, content_type, NOT_CACHED + moved)
        caching = self._immutable() if requested else NOT_CACHED  # a URL with a hash names one content for ever
        return _answer(document, headers, content_type, caching + _VARY)

    def _immutable(self) -> Headers:
        expires = format_datetime(self._now() + _IMMUTABLE_LIFETIME, usegmt=True)
        return (("Cache-Control", "public, immutable"), ("Expires", expires))


def _negotiate(accept: str, offers: _Offers) -> tuple[DocumentForm, str] | None:
    """The format and the Content-Type of the answer; None if the client accepts none of the offers."""
    for clause in negotiation.parse_accept(accept or "*/*"):
        for subtype, form, content_type in offers:
            if clause.type in ("application", "*") and clause.subtype in (subtype, "*"):
                return form, content_type
    return None


def _etag(document: PublishedDocument) -> tuple[str, str]:
    return "ETag", f'"{document.hash}"'


def _answer(document: PublishedDocument, headers: Mapping[str, str], content_type: str, more: Headers) -> Answer:
    """The document, or 304 if the client has it."""
    if _has_it(document, headers):
        return Answer(b"", 304, content_type, (*more, _etag(document)))
    modified = format_datetime(document.made, usegmt=True)
    fields = (*more, _etag(document), ("Last-Modified", modified))
    # not copied: the body belongs to the document
    return Answer(document.body, 200, content_type, fields, document.compress)


def _has_it(document: PublishedDocument, headers: Mapping[str, str]) -> bool:
    """Whether the client has the document: by If-None-Match, or without it by If-Modified-Since, in seconds (RFC 9110).

    A header that is longer than a client needs is no condition.
    """
    header = headers.get("If-None-Match")
    if header is not None:
        matching = ("*", _etag(document)[1])
        tags = header.split(",") if len(header) <= negotiation.MAX_NEGOTIATED else ()
        return any(tag.strip().removeprefix("W/") in matching for tag in tags)
    date = headers.get("If-Modified-Since", "")
    try:
        since = parsedate_to_datetime(date if len(date) <= _LONGEST_DATE else "")
        return document.made.replace(microsecond=0) <= since
    except (TypeError, ValueError):  # not a date, or a date without a zone
        return False
