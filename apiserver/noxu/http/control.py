"""`/_noxu/` over HTTP: from an exchange to the call of a route, and from what it returns to the answer.

It stands beside the Kubernetes API, behind the same filters, and in none of its documents. A user needs the verb of the
method (`get`, `post`, `delete`) on the nonResourceURL; with RBAC only system:masters have it, and who is granted `/_noxu/*`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.control import arguments
from noxu.control.calls import ControlCall, Created, Download, Result
from noxu.control.routes import ROUTES, NotAllowed, find
from noxu.control.running import Control, Held
from noxu.http.answer import JSON, NOT_CACHED, Answer
from noxu.http.exchange import Exchange
from noxu.http.sending import begin_chunks, end_chunks, headers_of
from noxu.registry.authors import AUTHOR, Author

BEAT: Final = 60.0
"""Seconds between two lines of a held answer."""
_STOPPING: Final = "the server stops"


async def answer(exchange: Exchange, control: Control) -> Answer | None:
    """Answer a request. None: a held answer has been sent. Raises ApiError, ConnectionError."""
    if control.is_closed:
        raise ApiError(503, _STOPPING, "ServiceUnavailable", {"retryAfterSeconds": 1})
    path = exchange.path
    try:
        route, values = find(exchange.request.method, path, ROUTES)
    except NotAllowed as refusal:
        exchange.headers.append(("Allow", ", ".join(refusal.methods)))
        raise
    query = arguments.from_query(exchange.query, route.query, path)
    body = await exchange.offload(arguments.from_body, await exchange.read_body(), route.body, path)
    user, agent = exchange.client
    # of what it writes
    AUTHOR.set(Author("", "", user, agent, "", exchange.id, exchange.traceparent, "", exchange.received))
    result = await route.answer(ControlCall(values, query, body, exchange.user, control))
    if isinstance(result, Held):
        await _hold(exchange, result, control)
        return None
    return _answer_of(result)


def _answer_of(result: Result) -> Answer:
    if isinstance(result, Download):
        return Answer(result.body, 200, result.content_type)
    assert not isinstance(result, Held)
    value, status = (result.value, 201) if isinstance(result, Created) else (result, 200)
    return Answer(codec.encode(value, sort_keys=False) + b"\n", status)


async def _hold(exchange: Exchange, held: Held, control: Control) -> None:
    """Send the first line, and keep the answer open until it is over. Raises ConnectionError.

    An empty line every BEAT seconds shows clients and proxies between that it lasts: Node's fetch gives up after five minutes
    without any. It is never compressed: a compressor would keep the line back. The connection ends with it, so that its end is the one
    sign for everything that can happen to the client.
    """
    task = asyncio.current_task()
    assert task is not None
    control.hold(held, task)  # first: whatever fails below, `held.ended` is called
    request, limit = exchange.request, exchange.limit
    request.keep_alive = False
    if limit is not None:
        limit.running -= (
            1  # shared by all requests: what is held is not in flight, or some hundreds would be all there may be
        )
        exchange.limit = None
    exchange.code = held.status
    headers = headers_of(exchange, JSON)
    headers.extend(NOT_CACHED)
    is_framed = await begin_chunks(exchange, headers, held.status)
    line = codec.encode(held.first, sort_keys=False) + b"\n"
    while True:
        request.connection.write_pieces((b"%x\r\n" % len(line), line, b"\r\n") if is_framed else (line,))
        line = b"\n"  # of all that follow
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEAT):
                await held.over.wait()  # cancelled if the client is gone
            break
    await end_chunks(request.connection, is_framed=is_framed)
