"""Connections to etcd: calls, and streams of watches.

Calls and watches have connections of their own: the events after an interruption must not delay writes. A connection is to
one of the servers; after a failure the next one is used. How a call fails is described in errors.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from random import uniform
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError

from noxu_storage.etcd.channel import NO_TLS, Channel, MessageStream, Metadata, TlsFiles, credentials
from noxu_storage.etcd.errors import CallLost, CallRefused
from noxu_storage.etcd.messages import AUTHENTICATE, STATUS, WATCH, Message, Method
from noxu_storage.types import Revision

CALL_WITHIN: Final = 10.0  # seconds
CONNECT_WITHIN: Final = 5.0  # seconds in which what has not been sent waits for a connection
ANSWER_WITHIN: Final = 5.0  # seconds for the answer to an attempt of a read or a write, which is then repeated once
ASK_WITHIN: Final = CONNECT_WITHIN  # seconds in which what may be sent again is repeated
VERSION_WITHIN: Final = 2.0  # seconds
FIRST_DELAY, LAST_DELAY = 0.05, 1.0  # seconds before another attempt
EVENTS_AT_ONCE: Final = 128
MAX_REQUEST: Final = 2 * 1024 * 1024  # bytes of a message; the limit of etcd's own client, and of etcd's servers
_OLD_TOKEN: Final = ("etcdserver: invalid auth token", "etcdserver: revision of auth store is old")


async def pause(delay: float) -> float:
    """Wait before another attempt, not at the same time as others. Returns the next delay, after FIRST_DELAY."""
    await asyncio.sleep(delay * uniform(0.5, 1))  # noqa: S311 - not a secret
    return min(2 * delay, LAST_DELAY)


class ServerUrl(NamedTuple):
    """Of a server of etcd, or of a proxy in front of it. `secure`: it speaks TLS."""

    host: str
    port: int
    secure: bool


def server_url(url: str) -> ServerUrl:
    """The parts of a URL: of `http://127.0.0.1:2379` they are ("127.0.0.1", 2379, False). Raises ValueError."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port or 2379
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https") or parts.path.strip("/") or parts.query:
        raise ValueError(f"{url!r} is not a URL of etcd, like http://127.0.0.1:2379")
    if parts.username is not None:
        raise ValueError("a URL of etcd has no user: give --etcd-username and --etcd-password-file")
    return ServerUrl(host, port, parts.scheme == "https")


class EtcdUser(NamedTuple):
    """A user of etcd."""

    name: str
    password: str


class EtcdClient:
    """The calls of one store. Created on a running event loop."""

    def __init__(self, servers: Sequence[str], tls: TlsFiles = NO_TLS, user: EtcdUser | None = None) -> None:
        """Raises ValueError for a bad URL, OSError for a file of `tls` that cannot be read."""
        self.servers = [server_url(url) for url in servers]
        for path in filter(None, tls):
            path.read_bytes()  # errors of TLS do not name their file
        self._tls = credentials(tls) if any(server.secure for server in self.servers) else None
        self._calls = self._channel(0)
        self._watches = self._channel(0)
        self._used = [0, 0]
        self._retired: list[Channel] = []
        self._user = user
        self._token: Metadata = ()  # as metadata of calls; the user is authenticated when it is empty
        self._authenticating = asyncio.Lock()

    def _channel(self, number: int) -> Channel:
        host, port, secure = self.servers[number % len(self.servers)]
        return Channel(host, port, self._tls if secure else None)

    def _retire(self, channel: Channel) -> None:
        """Its calls end as they would."""
        channel.retire()
        self._keep(channel)

    def _keep(self, channel: Channel) -> None:
        """Wait for it in `close`, unless it is gone before."""
        self._retired = [*(retired for retired in self._retired if not retired.is_gone()), channel]

    async def call(self, method: Method, request: Any, within: float = CALL_WITHIN) -> Any:
        """`request` is a message, or the bytes of one. Raises CallRefused, CallLost."""
        if self._user is None:
            return await self._call(method, request, within, ())
        token = await self._authenticated()
        try:
            return await self._call(method, request, within, token)
        except CallRefused as refused:
            if str(refused) not in _OLD_TOKEN:
                raise
        self._forget(token)
        return await self._call(method, request, within, await self._authenticated())

    async def ask(self, method: Method, request: Any, within: float = CALL_WITHIN) -> Any:
        """As `call`, for what may happen twice: it is repeated for ASK_WITHIN seconds if there is no answer, and at least once.

        The first question is lost, too, if this process was stopped meanwhile.
        """
        time, delay = asyncio.get_running_loop().time, FIRST_DELAY
        begin = time()
        for attempt in count():
            try:
                return await self.call(method, request, within)
            except CallLost:
                if attempt and time() - begin > ASK_WITHIN:
                    raise
            delay = await pause(delay)
        raise AssertionError  # not reached

    async def _authenticated(self) -> Metadata:
        """The token of the user, a new one if there is none. Calls that need one at once share it. Raises CallRefused, CallLost."""
        if self._user is None:
            return ()
        async with self._authenticating:
            if not self._token:
                request = Message[AUTHENTICATE.request](name=self._user.name, password=self._user.password)
                self._token = (("token", (await self._call(AUTHENTICATE, request, CALL_WITHIN, ())).token),)
            return self._token

    def _forget(self, token: Metadata) -> None:
        """Get another token for further calls, if none has got one since."""
        if self._token is token:
            self._token = ()

    async def _call(self, method: Method, request: Any, within: float, token: Metadata) -> Any:
        """Raises CallRefused, CallLost."""
        channel = self._calls
        try:
            return await _answer(channel, method, request, within, token)
        except CallLost:
            if len(self.servers) > 1 and channel is self._calls:
                self._used[0] += 1
                self._calls = self._channel(self._used[0])
                self._retire(channel)
            raise

    @asynccontextmanager
    async def watch(self, **options: Any) -> AsyncIterator[WatchStream]:
        """A watch, with the fields of a WatchCreateRequest. Entering and reading raise CallRefused, CallLost."""
        token = await self._authenticated()
        channel = self._watches
        stream: MessageStream | None = None
        try:
            # Without a leader a server has no news: the stream ends, and another server is tried.
            stream = await channel.stream(WATCH.path, CALL_WITHIN, (*token, ("hasleader", "true")))
            create = Message["WatchCreateRequest"](fragment=True, **options)
            stream.write(Message["WatchRequest"](create_request=create).SerializeToString())
            yield WatchStream(stream)
        except CallRefused:
            self._forget(token)
            raise
        except CallLost:
            self._forget(token)  # it may be the reason
            if len(self.servers) > 1 and channel is self._watches:
                self._used[1] += 1
                self._watches = self._channel(self._used[1])
                self._retire(channel)
            raise
        finally:
            if stream is not None:
                stream.cancel()

    async def versions(self) -> list[str]:
        """The version of each server; empty for one that does not answer."""
        answers = await self.ask_each(STATUS, Message[STATUS.request](), VERSION_WITHIN)
        return ["" if isinstance(answer, Exception) else str(answer.version) for answer in answers]

    async def ask_each(self, method: Method, request: Any, within: float = CALL_WITHIN) -> list[Any]:
        """The answer of each server, over a connection of its own: a response, CallRefused or CallLost."""

        async def ask(number: int) -> Any:
            channel = self._channel(number)
            self._keep(channel)  # the caller may be cancelled
            try:
                return await _answer(channel, method, request, within, self._token)
            except (CallRefused, CallLost) as error:
                return error
            finally:
                await channel.close()

        return await asyncio.gather(*map(ask, range(len(self.servers))))

    async def close(self) -> None:
        await asyncio.gather(*(channel.close() for channel in (self._calls, self._watches, *self._retired)))


async def _answer(channel: Channel, method: Method, request: Any, within: float, token: Metadata) -> Any:
    """Raises CallRefused, CallLost."""
    message = request if type(request) is bytes else request.SerializeToString()
    answer = await channel.unary(method.path, message, within, token)
    try:
        return Message[method.response].FromString(answer)
    except DecodeError as error:
        raise CallLost(f"the answer cannot be decoded: {error}", sent=True) from None


class WatchStream:
    """The responses of one watch."""

    def __init__(self, stream: MessageStream) -> None:
        self._stream = stream
        self._next: Any = None  # a response that was read too early

    async def read(self, expected: Callable[[], Revision] = lambda: 0) -> tuple[Sequence[Any], Any]:
        """(Events, the last of their responses), or (nothing, a response without events). Raises CallRefused, CallLost.

        A response is complete only with all of its fragments. Events up to a revision that is `expected` to have one, of which
        there may be more while this waits, are returned together, if there are no more than EVENTS_AT_ONCE. If that is 3, of
        the responses `1 2`, `3`, `4` and `progress` the first call returns the events 1, 2, 3, the second one 4, the third
        one the progress. It saves 64 writers a fifth of the processor time (docs/decisions/8-http2-for-etcd.md).
        """
        response = await self._read_response() if self._next is None else self._next
        self._next, events = None, response.events
        while response.fragment or (
            events and len(events) < EVENTS_AT_ONCE and events[-1].kv.mod_revision < expected()
        ):
            following = await self._read_response()
            if not response.fragment and not following.events:
                self._next = following
                break
            response, events = following, [*events, *following.events]
        return events, response

    async def _read_response(self) -> Any:
        message = await self._stream.read()
        try:
            return Message[WATCH.response].FromString(message)
        except DecodeError as error:
            raise CallLost(f"an event cannot be decoded: {error}", sent=False) from None

    def request_progress(self) -> None:
        """If the watch has ended, reading tells."""
        self._stream.write(
            Message["WatchRequest"](progress_request=Message["WatchProgressRequest"]()).SerializeToString()
        )
