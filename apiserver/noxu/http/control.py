"""`/_noxu/` over HTTP: from an exchange to the call of a route, and from what it returns to the answer.

It stands beside the Kubernetes API, behind the same filters, and in none of its documents. A user needs the verb of the
method (`get`, `post`, `delete`) on the nonResourceURL; with RBAC only system:masters have it, and who is granted `/_noxu/*`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.control import arguments
from noxu.control.calls import ControlCall, Created, Download, Lines, Result
from noxu.control.routes import ROOT, ROUTES, NotAllowed, find
from noxu.control.running import Control, Held
from noxu.http.answer import JSON, NOT_CACHED, Answer
from noxu.http.exchange import Exchange
from noxu.http.sending import begin_chunks, end_chunks, headers_of
from noxu.registry.authors import AUTHOR, Author
from noxu.registry.offload import imported, offload
from noxu.values import Object

BEAT: Final = 60.0
"""Seconds between two lines of a held answer."""
ITEM: Final = 512
"""Bytes of an item of an answer, about: the encoding of large ones is left to a thread."""
CONSOLE: Final = tuple(
    f"noxu.console.{name}" for name in ("page_files", "changes", "details", "session", "stored_kinds", "stream")
)
"""What has the routes of the console: imported with its first request."""
OPENING: Final[Mapping[str, Sequence[str]]] = {"/_noxu/console/open": ("noxu.exploration.opened_files",)}
"""The same of what reads a recording, which few pages ask for."""
SESSION: Final = "noxu.console.session"
CONSOLE_PATH: Final = "/_noxu/console/"
_STOPPING: Final = "the server stops"


async def answer(exchange: Exchange, control: Control) -> Answer | None:
    """Answer a request. None: a held answer has been sent. Raises ApiError, ConnectionError."""
    if control.is_closed:
        raise ApiError(503, _STOPPING, "ServiceUnavailable", {"retryAfterSeconds": 1})
    path = exchange.path
    method, headers = exchange.request.method, exchange.request.headers
    if "Origin" in headers or "Sec-Fetch-Site" in headers:  # a browser's: few servers have a browser for a client
        (await imported(SESSION)).check(control, method, path, headers, exchange.user)
    is_of_console = path.startswith(CONSOLE_PATH) or (
        path.rstrip("/") == ROOT.rstrip("/") and "text/html" in headers.get("Accept", "")
    )
    try:
        routes = (
            [route for name in OPENING.get(path, CONSOLE) for route in (await imported(name)).ROUTES]
            if is_of_console
            else ROUTES
        )
        route, values = find(method, path, routes)
    except NotAllowed as refusal:
        exchange.headers.append(("Allow", ", ".join(refusal.methods)))
        raise
    query = arguments.from_query(exchange.query, route.query, path)
    body = await exchange.offload(arguments.from_body, await exchange.read_body(), route.body, path)
    user, agent = exchange.client
    # of what it writes
    AUTHOR.set(Author("", "", user, agent, "", exchange.id, exchange.traceparent, "", exchange.received))
    result = await route.answer(ControlCall(values, query, body, exchange.user, control, headers))
    if isinstance(result, Held):
        await _hold(exchange, result, control)
        return None
    if isinstance(result, Lines):
        await _send_lines(exchange, result)
        return None
    return await _answer_of(result)


async def _answer_of(result: Result) -> Answer:
    if isinstance(result, Download):
        return Answer(result.body, 200, result.content_type, result.headers)
    assert not isinstance(result, Held | Lines)
    value, status = (result.value, 201) if isinstance(result, Created) else (result, 200)
    return Answer(await offload(_weight(value), partial(codec.encode, sort_keys=False), value) + b"\n", status)


def _weight(value: Object) -> int:
    """About how many bytes of JSON an answer is: the items of its lists are the most of a large one."""
    return ITEM * sum(len(each) for each in value.values() if isinstance(each, list | dict))


async def _hold(exchange: Exchange, held: Held, control: Control) -> None:
    """Send the first line, and keep the answer open until it is over. Raises ConnectionError.

    An empty line every BEAT seconds shows clients and proxies between that it lasts: Node's fetch gives up after five minutes
    without any. It is never compressed: a compressor would keep the line back. The connection ends with it, so that its end is the one
    sign for everything that can happen to the client.
    """
    task = asyncio.current_task()
    assert task is not None
    control.hold(held, task)  # first: whatever fails below, `held.ended` is called
    request = exchange.request
    is_framed = await _begin_lines(exchange, held.status)
    line = codec.encode(held.first, sort_keys=False) + b"\n"
    while True:
        request.connection.write_pieces((b"%x\r\n" % len(line), line, b"\r\n") if is_framed else (line,))
        line = b"\n"  # of all that follow
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEAT):
                await held.over.wait()  # cancelled if the client is gone
            break
    await end_chunks(request.connection, is_framed=is_framed)


async def _begin_lines(exchange: Exchange, status: int) -> bool:
    """Send the head of an answer that stays open; return whether its lines are framed. The connection ends with it."""
    exchange.request.keep_alive = False
    if exchange.limit is not None:
        # shared by all requests: what stays open is not in flight, or some hundreds would be all there may be
        exchange.limit.running -= 1
        exchange.limit = None
    exchange.code = status
    headers = headers_of(exchange, JSON)
    headers.extend(NOT_CACHED)
    return await begin_chunks(exchange, headers, status)


async def _send_lines(exchange: Exchange, answer: Lines) -> None:
    """Send lines when they are there. Raises ConnectionError; cancelled if the client is gone, which ends the iterator."""
    connection = exchange.request.connection
    is_framed = await _begin_lines(exchange, 200)
    async with contextlib.aclosing(answer.lines) as lines:  # at once, wherever the client is lost
        async for line in lines:
            connection.write_pieces((b"%x\r\n" % len(line), line, b"\r\n") if is_framed else (line,))
            if connection.writing_paused:
                await connection.drain()
    await end_chunks(connection, is_framed=is_framed)
