"""/openapi/v2 and /openapi/v3 (kube-openapi's handler and handler3): which document, in which form, and how long it keeps.

The index of v3 names every document with a hash of what it says. Asked for with that hash a document may be kept for
ever; with an older one the client is sent on to the newest. Big documents are built in a thread, one at a time.

Upstream answers 200 and nothing for a group version that does not exist; here it is 404.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Final

from noxu.apiserver.api import errors
from noxu.apiserver.discovery.openapi import INDEX, Document, Form, Key, Published
from noxu.apiserver.discovery.openapi_schemas import V2, V3
from noxu.apiserver.http import negotiation
from noxu.apiserver.http.answer import JSON, NOT_CACHED, Answer, Headers
from noxu.apiserver.http.request import Query, first
from noxu.apiserver.registry.catalog import Catalog

_Offers = tuple[tuple[str, Form, str], ...]


def _offers(version: str) -> _Offers:
    """(what may be asked for, in which form it is answered, and how that is called)."""
    protobuf = f"com.github.proto-openapi.spec.{version}"
    answered = f"application/{protobuf}.v1.0+protobuf"
    return (
        ("json", Form.JSON, JSON),
        (f"{protobuf}@v1.0+protobuf", Form.PROTOBUF, answered),
        (f"{protobuf}.v1.0+protobuf", Form.PROTOBUF, answered),
    )


_OFFERS: Final = {V2: _offers("v2"), V3: _offers("v3")}
_FOR_EVER: Final = timedelta(days=365)
_VARY: Final = (("Vary", "Accept"),)


class OpenAPI:
    """`catalog` gives the newest one."""

    def __init__(self, catalog: Callable[[], Catalog], now: Callable[[], datetime]) -> None:
        self._catalog = catalog
        self._now = now
        self._published = Published(now)
        self._building = asyncio.Lock()

    async def answer(self, parts: Sequence[str], query: Query, headers: Mapping[str, str]) -> Answer:
        """`parts` are those of the path. Raises ApiError NotFound."""
        catalog = self._catalog()
        match parts:
            case ["openapi", "v3"]:
                return _answer(await self._document(catalog, INDEX), headers, JSON, NOT_CACHED)
            case ["openapi", "v2"]:
                return await self._negotiated(catalog, Key(V2), query, headers)
            case ["openapi", "v3", *rest] if self._published.exists(catalog, "/".join(rest)):
                return await self._negotiated(catalog, Key(V3, "/".join(rest)), query, headers)
        raise errors.page_not_found()

    async def _document(self, catalog: Catalog, key: Key) -> Document:
        kept = self._published.kept(catalog, key)
        if kept is not None:
            return kept
        async with self._building:
            return await asyncio.to_thread(self._published.build, catalog, key)

    async def _negotiated(self, catalog: Catalog, key: Key, query: Query, headers: Mapping[str, str]) -> Answer:
        accepted = _negotiate(headers.get("Accept", ""), _OFFERS[key.style])
        if accepted is None:
            return Answer(b"", 406, headers=NOT_CACHED + _VARY)
        form, content_type = accepted
        document = await self._document(catalog, key._replace(form=form))
        asked = first(query, "hash") if key.path else ""
        if asked and asked != document.hash:
            moved = (("Location", document.url(key.path)), *_VARY, _etag(document))
            return Answer(b"", 301, content_type, NOT_CACHED + moved)
        caching = self._for_ever() if asked else NOT_CACHED
        return _answer(document, headers, content_type, caching + _VARY)

    def _for_ever(self) -> Headers:
        expires = format_datetime(self._now() + _FOR_EVER, usegmt=True)
        return (("Cache-Control", "public, immutable"), ("Expires", expires))


def _negotiate(accept: str, offers: _Offers) -> tuple[Form, str] | None:
    """None: the client takes nothing that there is."""
    for clause in negotiation.parse_accept(accept or "*/*"):
        for subtype, form, content_type in offers:
            if clause.type in ("application", "*") and clause.subtype in (subtype, "*"):
                return form, content_type
    return None


def _etag(document: Document) -> tuple[str, str]:
    return "ETag", f'"{document.hash}"'


def _answer(document: Document, headers: Mapping[str, str], content_type: str, more: Headers) -> Answer:
    """The document, or 304 if the client has it."""
    if _has_it(document, headers):
        return Answer(b"", 304, content_type, (*more, _etag(document)))
    modified = format_datetime(document.made, usegmt=True)
    return Answer(document.body, 200, content_type, (*more, _etag(document), ("Last-Modified", modified)))


def _has_it(document: Document, headers: Mapping[str, str]) -> bool:
    """If-None-Match, and where that is missing If-Modified-Since, which counts in seconds (RFC 9110)."""
    given = headers.get("If-None-Match")
    if given is not None:
        tags = (tag.strip().removeprefix("W/") for tag in given.split(","))
        return any(tag in ("*", _etag(document)[1]) for tag in tags)
    try:
        since = parsedate_to_datetime(headers.get("If-Modified-Since", ""))
        return document.made.replace(microsecond=0) <= since
    except (TypeError, ValueError):  # no date, or none with a zone
        return False
