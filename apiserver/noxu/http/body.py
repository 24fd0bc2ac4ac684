"""Request bodies, with limits on their size and on the time that they take to arrive."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web_request

from noxu.api.codec import MAX_BODY
from noxu.api.errors import ApiError, timeout, too_large

BODY_DEADLINE: Final = 60.0  # seconds for a body to arrive; upstream's RequestTimeout


async def read_body(request: web_request.BaseRequest) -> bytes:
    """The whole body. Raises ApiError RequestEntityTooLarge after at most MAX_BODY bytes."""
    length = request.content_length
    if length is not None and length > MAX_BODY:
        raise _too_large(request)
    if not request.can_read_body:
        return b""
    if request.content.is_eof():  # it came with the head, like most bodies
        body = request.content.read_nowait()
        if len(body) > MAX_BODY:
            raise _too_large(request)
        return body
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_DEADLINE):
            while chunk := await request.content.readany():
                size += len(chunk)
                if size > MAX_BODY:
                    raise _too_large(request)
                chunks.append(chunk)
    except TimeoutError:
        request.protocol.close()
        raise timeout("request did not complete within the allotted timeout", 0) from None
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(request: web_request.BaseRequest) -> ApiError:
    request.protocol.close()  # do not read the rest
    return too_large(f"limit is {MAX_BODY}")
