"""A watch of the handle: an iterator of events, in a coroutine an asynchronous one.

It begins with the call, and sees all later changes. It ends with the `with` block, with `close`, with the server, or
when the server ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Literal, NamedTuple, Self

import aiohttp

from noxu.api import codec
from noxu.testing import calls
from noxu.testing.client import UserClient, error_from_status
from noxu.testing.errors import Stopped, WaitTimeout, hidden
from noxu.testing.session import Runner
from noxu.values import Object

__tracebackhide__ = hidden


class WatchEvent(NamedTuple):
    """An event of a watch: `for kind, widget in noxu.watch("widgets")`."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: Object


class Watch:
    """An iterator of `WatchEvent`. In a coroutine: `async with`, `async for`.

    An iteration waits for at most `timeout` seconds for an event, and then raises `WaitTimeout`. A refusal and an ERROR
    event raise `ApiError`.
    """

    def __init__(
        self,
        runner: Runner,
        client: UserClient,
        path: str,
        query: Mapping[str, str],
        timeout: float | None,
        subject: str,
    ) -> None:
        self._runner = runner
        self._client = client
        self._path = path
        self._query = {"watch": "true", **query}
        self._timeout = timeout
        self._subject = subject
        self._rest = b""
        self._answer: aiohttp.ClientResponse | None = None
        self._opening: Future[None] = runner.submit(self._open())
        if not calls.in_coroutine():
            calls.blocking(self._opening)

    # -- in the caller's thread

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> WatchEvent:
        if calls.in_coroutine():
            raise RuntimeError("a coroutine must not block: use `async for` and `async with`")
        event = calls.blocking(self._runner.submit(self.next(self._timeout)))
        if event is None:
            raise StopIteration
        return event

    def close(self) -> None:
        """End the watch. It may be called twice, and does not wait."""
        with contextlib.suppress(Stopped):  # its server has ended it
            self._runner.submit(self._close())

    def __del__(self) -> None:
        self.close()

    # -- in a coroutine of the caller

    async def __aenter__(self) -> Self:
        await asyncio.wrap_future(self._opening)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        event = await calls.awaited(self._runner, self.next(self._timeout))
        if event is None:
            raise StopAsyncIteration
        return event

    # -- in the loop of the server

    async def next(self, timeout: float | None) -> WatchEvent | None:  # noqa: ASYNC109 - for one event
        """The next event, None at the end. In the loop of the server. Raises ApiError, WaitTimeout."""
        try:
            async with asyncio.timeout(timeout):
                line = await self._line()
        except TimeoutError:
            raise WaitTimeout(f"no event of {self._subject} within {timeout:g} s") from None
        if line is None:
            return None
        event = codec.decode_stored(line)
        if event["type"] == "ERROR":
            raise error_from_status(event["object"])
        return WatchEvent(event["type"], event["object"])

    async def _open(self) -> None:
        self._answer = await self._client.stream(self._path, self._query)

    async def _line(self) -> bytes | None:
        """The next line of the stream; bytes after it are kept."""
        await asyncio.shield(asyncio.wrap_future(self._opening))
        answer = self._answer
        assert answer is not None
        while True:
            line, end, rest = self._rest.partition(b"\n")
            if end:
                self._rest = rest
                return line
            try:
                chunk = await answer.content.readany()
            except (aiohttp.ClientError, ConnectionError):  # the server stops, or `close` was called
                return None
            if not chunk:
                return None
            self._rest += chunk

    async def _close(self) -> None:
        self._opening.cancel()
        if self._answer is not None:
            self._answer.close()
