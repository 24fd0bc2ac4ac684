"""Connections to etcd: calls, and streams of watches.

Calls and watches have connections of their own: the events after an interruption must not delay writes. A connection is to
one of the servers; after a failure the next one is used. Pings find a server that does not answer: the connection is cut
after about ten seconds (etcd permits a ping every five).

A call fails in one of two ways. `Refused`: etcd answered, and did nothing. `Lost`: there is no answer; unless the request
was not sent, etcd may have done what was requested.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import grpc
from grpc import aio

from noxu.storage.etcd_messages import AUTHENTICATE, STATUS, WATCH, Call, Message

CALL_WITHIN: Final = 10.0  # seconds
VERSION_WITHIN: Final = 2.0  # seconds
MAX_REQUEST: Final = 2 * 1024 * 1024  # bytes of a message; the limit of etcd's own client, and of etcd's servers
OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),  # MAX_REQUEST is checked before
    ("grpc.keepalive_time_ms", 6_000),
    ("grpc.keepalive_timeout_ms", 4_000),
    ("grpc.keepalive_permit_without_calls", 0),  # etcd closes a connection with pings and no calls
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.use_local_subchannel_pool", 1),  # else channels to the same server share a connection
    ("grpc.enable_http_proxy", 0),
)
_LOST: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.DATA_LOSS,
    }
)
_OLD_TOKEN: Final = ("etcdserver: invalid auth token", "etcdserver: revision of auth store is old")
_NOT_SENT: Final = ("failed to connect to all addresses", "DNS resolution failed", "Name resolution failure")


class Refused(Exception):
    """etcd answered with an error, and did nothing. `code` is the name of gRPC's status code."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Lost(Exception):
    """There is no answer. `sent`: the request may have reached etcd."""

    def __init__(self, text: str, *, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


class Tls(NamedTuple):
    """Files in PEM: the CA of the servers, and the client's certificate and key. None: the system's, and none."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


def target(url: str) -> tuple[str, bool]:
    """(The address of a server for gRPC, whether it speaks TLS). Raises ValueError.

    `http://127.0.0.1:2379` is ("127.0.0.1:2379", False).
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError(f"{url!r} is not a URL of etcd, like http://127.0.0.1:2379")
    if parts.username is not None:
        raise ValueError("a URL of etcd has no user: give --etcd-username and --etcd-password-file")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{parts.port or 2379}", parts.scheme == "https"


NO_TLS: Final = Tls()


class User(NamedTuple):
    """A user of etcd."""

    name: str
    password: str


class Client:
    """The calls of one store. Created on a running event loop."""

    def __init__(self, servers: Sequence[str], tls: Tls = NO_TLS, user: User | None = None) -> None:
        """Raises ValueError for a bad URL, OSError for a file of `tls` that cannot be read."""
        self.servers = [target(server) for server in servers]
        read = [None if path is None else path.read_bytes() for path in (tls.ca, tls.key, tls.certificate)]
        self._credentials = grpc.ssl_channel_credentials(*read) if any(secure for _, secure in self.servers) else None
        self._calls = self._channel(0)
        self._watches = self._channel(0)
        self._used = [0, 0]
        self._user = user
        self._token: tuple[
            tuple[str, str], ...
        ] = ()  # as metadata of calls; the user is authenticated when it is empty
        self._methods: dict[str, Any] = {}

    def _channel(self, number: int) -> Any:
        address, secure = self.servers[number % len(self.servers)]
        if secure:
            return aio.secure_channel(address, self._credentials, options=OPTIONS)
        return aio.insecure_channel(address, options=OPTIONS)

    async def call(self, call: Call, request: Any, within: float = CALL_WITHIN) -> Any:
        """`request` is a message, or the bytes of one. Raises Refused, Lost."""
        if self._user is None:
            return await self._call(call, request, within)
        await self._authenticate()
        try:
            return await self._call(call, request, within)
        except Refused as refused:
            if str(refused) not in _OLD_TOKEN:
                raise
        self._token = ()
        await self._authenticate()
        return await self._call(call, request, within)

    async def _authenticate(self) -> None:
        """Get a token, if it is needed. Raises Refused, Lost."""
        if self._user is not None and not self._token:
            request = Message[AUTHENTICATE.request](name=self._user.name, password=self._user.password)
            self._token = (("token", (await self._call(AUTHENTICATE, request, CALL_WITHIN)).token),)

    async def _call(self, call: Call, request: Any, within: float) -> Any:
        """Raises Refused, Lost."""
        method = self._methods.get(call.path)
        if method is None:
            method = self._methods[call.path] = self._calls.unary_unary(
                call.path, _serialized, Message[call.response].FromString
            )
        channel = self._calls
        try:
            return await method(request, timeout=within, metadata=self._token)
        except aio.AioRpcError as error:
            failure = _failure(error)
        except aio.UsageError:  # the channel was replaced, or closed, meanwhile
            failure = Lost("the connection was closed", sent=True)
        if isinstance(failure, Lost) and len(self.servers) > 1 and channel is self._calls:
            self._used[0] += 1
            self._calls, self._methods = self._channel(self._used[0]), {}
            await channel.close(grace=CALL_WITHIN)
        raise failure

    @asynccontextmanager
    async def watch(self, **options: Any) -> AsyncIterator[WatchStream]:
        """A watch, with the fields of a WatchCreateRequest. Entering and reading raise Refused, Lost."""
        await self._authenticate()
        channel = self._watches
        start = channel.stream_stream(
            WATCH.path, Message[WATCH.request].SerializeToString, Message[WATCH.response].FromString
        )
        # Without a leader a server has no news: the stream ends, and another server is tried.
        stream = start(metadata=(*self._token, ("hasleader", "true")), wait_for_ready=False)
        try:
            await _translated(
                stream.write(
                    Message["WatchRequest"](create_request=Message["WatchCreateRequest"](fragment=True, **options))
                )
            )
            yield WatchStream(stream)
        except Refused:
            self._token = ()
            raise
        except Lost:
            self._token = ()  # of a user: it may be the reason
            if len(self.servers) > 1 and channel is self._watches:
                self._used[1] += 1
                self._watches = self._channel(self._used[1])
                await channel.close()
            raise
        finally:
            stream.cancel()

    async def versions(self) -> list[str]:
        """The version of each server; empty for one that does not answer."""
        answers = await self.ask_each(STATUS, Message[STATUS.request](), VERSION_WITHIN)
        return ["" if isinstance(answer, Exception) else str(answer.version) for answer in answers]

    async def ask_each(self, call: Call, request: Any, within: float = CALL_WITHIN) -> list[Any]:
        """The answer of each server, over a connection of its own: a response, Refused or Lost."""

        async def ask(number: int) -> Any:
            async with self._channel(number) as channel:
                method = channel.unary_unary(
                    call.path, Message[call.request].SerializeToString, Message[call.response].FromString
                )
                try:
                    return await method(request, timeout=within, metadata=self._token)
                except aio.AioRpcError as error:
                    return _failure(error)

        return await asyncio.gather(*map(ask, range(len(self.servers))))

    async def close(self) -> None:
        await asyncio.gather(self._calls.close(), self._watches.close())


class WatchStream:
    """The responses of one watch."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def read(self) -> tuple[Sequence[Any], Any]:
        """(Events, the last fragment of their response): a response is complete only with all of its fragments."""
        events: list[Any] = []
        while True:
            try:
                response = await self._stream.read()
            except _BROKEN as error:
                raise _translation(error) from None
            if response is aio.EOF:
                raise Lost("the stream has ended", sent=False)
            if not response.fragment:
                return (events + list(response.events) if events else response.events), response
            events += response.events

    async def request_progress(self) -> None:
        await _translated(
            self._stream.write(Message["WatchRequest"](progress_request=Message["WatchProgressRequest"]()))
        )


def _serialized(request: Any) -> bytes:
    return request if type(request) is bytes else bytes(request.SerializeToString())


_BROKEN: Final = (aio.AioRpcError, aio.UsageError, asyncio.InvalidStateError)


async def _translated(call: Any) -> Any:
    try:
        return await call
    except _BROKEN as error:
        raise _translation(error) from None


def _translation(error: Exception) -> Refused | Lost:
    return _failure(error) if isinstance(error, aio.AioRpcError) else Lost(str(error), sent=False)


def _failure(error: Any) -> Refused | Lost:
    code, text = error.code(), error.details() or ""
    if code in _LOST:
        return Lost(text or code.name, sent=not text.startswith(_NOT_SENT))
    return Refused(code.name, text)
