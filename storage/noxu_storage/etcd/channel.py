"""Calls of gRPC to one server, over a connection that is made again when it is lost: grpcio's asyncio client.

This is the only module that knows grpcio. It takes 50 ms to import, so it is imported when a store of etcd is opened.

**What was sent.** A write without an answer may have happened, unless it was never sent (see writes.py). grpcio does
not tell which. So a call begins when the connection is made, or when the attempt to make it has failed: then it fails
at once, with a text that is recognized. A call that fails otherwise may have been sent. If a server goes away and says
that it has not processed a call, grpcio itself repeats it.

    no connection before the deadline           the call does not begin                     not sent
    refused, no TLS, another protocol           "failed to connect to all addresses; …"     not sent
    reset, cut off, not answered in time        any other text                              perhaps sent

**Connections.** An attempt that fails is followed by another one after FIRST_DELAY to LAST_DELAY; until then calls fail at once.
While calls are open, pings find a server that does not answer: the connection is cut after about ten seconds. A channel
shares its connection with no other one, and uses no proxy.

**Event loops.** A channel belongs to the loop that runs when it is made. One thread of grpcio serves the channels of all
loops of a process; it ends with the last channel.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakSet

from noxu_storage.etcd.errors import CallLost, CallRefused

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # read at the import: grpcio also prints the errors that it raises

import grpc
from grpc import ChannelConnectivity
from grpc.aio import EOF, AioRpcError

CONNECT_WITHIN: Final = 5.0  # seconds until the first settings of the server
FIRST_DELAY, LAST_DELAY = 0.1, 1.0  # seconds before another attempt to connect
WINDOW: Final = 4 * 1024 * 1024  # bytes of a stream that the server may send before they are read
CLOSE_WITHIN: Final = 1.0  # seconds in which grpcio tells about the end of the calls
PING_AFTER: Final = 6.0  # seconds of silence; etcd permits a ping every five
PING_WITHIN: Final = 4.0  # seconds for anything to arrive after a ping
MAX_MESSAGE: Final = 1024 * 1024 * 1024  # bytes of a message of the server; a page of 500 values exceeds grpcio's 4 MiB

_CLOSED: Final = "the connection was closed"
_NOT_CONNECTED: Final = re.compile(
    r"failed to connect to all addresses; last error: [A-Z_]+: (?:ipv[46]:\S+?: )?(?:Failed to connect to remote host: )?"
    r"|(?=errors resolving |DNS resolution failed)"
)
"""How the details of a call begin that no connection could take: before the reason."""
_REASONS: Final = (
    (r"Handshake read failed.*", "the server has closed the connection during the handshake of TLS"),
    (r"(Socket closed|.*reset by peer)", "the server has closed the connection"),
    (r".*(Failed parsing HTTP/2|ALPN|ALERT_NO_APPLICATION_PROTOCOL).*", "the server does not speak HTTP/2"),
    (r".*WRONG_VERSION_NUMBER.*", "the server does not speak TLS"),
    (r".*timed out before receiving SETTINGS.*", "no answer"),
    (r".*CERTIFICATE_VERIFY_FAILED: (.*?)(: OK)?", r"certificate verify failed: \1"),
    (r".*Hostname Verification Check failed.*", "certificate verify failed: Hostname mismatch"),
)
"""What grpcio's reasons mean."""
_LOST: Final = frozenset(
    {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "INTERNAL", "UNKNOWN", "ABORTED", "DATA_LOSS"}
)
"""The codes after which it is not known whether the server has done what was requested."""

Metadata: TypeAlias = tuple[tuple[str, str], ...]


class TlsFiles(NamedTuple):
    """Files in PEM: the CA of the servers, and the client's certificate and key. None: the system's, and none."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


NO_TLS: Final = TlsFiles()


def credentials(tls: TlsFiles) -> grpc.ChannelCredentials:
    """Of channels that speak TLS. Raises OSError (also ssl.SSLError) for a file that is not what it has to be."""
    context = ssl.create_default_context(cafile=None if tls.ca is None else str(tls.ca))
    key = chain = None
    if tls.certificate is not None:
        context.load_cert_chain(tls.certificate, tls.key)  # grpcio says of no file what is wrong with it
        key, chain = (tls.key or tls.certificate).read_bytes(), tls.certificate.read_bytes()
    return grpc.ssl_channel_credentials(_system_roots(context) if tls.ca is None else tls.ca.read_bytes(), key, chain)


def _system_roots(context: ssl.SSLContext) -> bytes:
    """The CAs of the system in PEM: grpcio brings others. OpenSSL reads a directory of them file by file, when it needs one."""
    directory = ssl.get_default_verify_paths().capath
    for path in Path(directory).glob("*.[0-9]") if directory else ():
        with suppress(OSError):
            context.load_verify_locations(path)
    return "".join(map(ssl.DER_cert_to_PEM_cert, context.get_ca_certs(binary_form=True))).encode()


class Channel:
    """The connection to one server. Created on a running event loop."""

    def __init__(self, host: str, port: int, tls: grpc.ChannelCredentials | None = None) -> None:
        self._authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._loop = asyncio.get_running_loop()
        target, options = f"dns:///{self._authority}", _options()
        self._channel: Any = (
            grpc.aio.insecure_channel(target, options) if tls is None else grpc.aio.secure_channel(target, tls, options)
        )  # None: it was closed
        self._secure = tls is not None
        self._methods: dict[str, Any] = {}  # by path: making one takes longer than to find it
        self._streams: WeakSet[MessageStream] = WeakSet()
        self._open = 0  # calls that have not ended
        self._connecting: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._retired = False

    async def unary(self, path: str, message: bytes, within: float, metadata: Metadata = ()) -> bytes:
        """The answer to a message. Raises CallRefused, CallLost."""
        deadline = self._loop.time() + within
        self._open += 1
        try:
            await self._connected(deadline)
            if path not in self._methods:
                self._methods[path] = self._channel.unary_unary(path)
            timeout = max(deadline - self._loop.time(), 0.0)
            answer: bytes = await self._result(self._methods[path](message, timeout=timeout, metadata=metadata))
            return answer
        finally:
            self._ended()

    async def stream(self, path: str, within: float, metadata: Metadata = ()) -> MessageStream:
        """Open a stream. `within` is for the connection: a stream has no deadline. Raises CallLost."""
        await self._connected(self._loop.time() + within)
        self._open += 1
        stream = MessageStream(self._channel.stream_stream(path), metadata, self._result, self._ended)
        self._streams.add(stream)
        return stream

    async def _result(self, call: Awaitable[Any]) -> Any:
        """What grpcio gives, or CallRefused and CallLost instead of its errors.

        A connection stays open as long as a call is referenced. So no frame of an error's traceback has one, nor its context.
        """
        failure: BaseException
        try:
            return await call
        except AioRpcError as error:
            failure = self._failure(error)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            is_own = task is not None and task.cancelling()  # else the call was cancelled: with its channel
            failure = asyncio.CancelledError(*error.args) if is_own else CallLost(_CLOSED, sent=True)
        finally:
            del call
        raise failure

    def _ended(self) -> None:
        """A call has ended."""
        self._open -= 1
        if self._retired and not self._open:
            self._close()

    async def _connected(self, deadline: float) -> None:
        """Wait until the connection is made, or the attempt has failed. Raises CallLost."""
        if self._retired or self._closing is not None:
            raise CallLost(_CLOSED, sent=False)
        state = self._channel.get_state(try_to_connect=True)
        if state is ChannelConnectivity.READY or state is ChannelConnectivity.TRANSIENT_FAILURE:
            return
        if self._connecting is None:
            self._connecting = self._loop.create_task(self._connect())
        ended, _ = await asyncio.wait([self._connecting], timeout=max(deadline - self._loop.time(), 0.0))
        if not ended:
            raise CallLost("Deadline Exceeded", sent=False)
        if self._closing is not None:
            raise CallLost(_CLOSED, sent=False)

    async def _connect(self) -> None:
        channel = self._channel
        try:
            while (state := channel.get_state(try_to_connect=True)) in _UNDECIDED:
                await channel.wait_for_state_change(state)
        finally:
            self._connecting = None

    def _failure(self, error: AioRpcError) -> CallRefused | CallLost:
        name, text = error.code().name, error.details() or error.code().name
        if (beginning := _NOT_CONNECTED.match(text)) is not None:
            reason = _reason(text[beginning.end() :], secure=self._secure)
            return CallLost(f"cannot connect to {self._authority}: {reason}", sent=False)
        return CallLost(text, sent=True) if name in _LOST else CallRefused(name, text)

    def retire(self) -> None:
        """Take no further calls. Those that are open end as they would."""
        self._retired = True
        if not self._open:
            self._close()

    def is_gone(self) -> bool:
        """Whether nothing is left of a channel that was retired."""
        return self._closing is not None and self._closing.done()

    async def close(self) -> None:
        """End all calls."""
        await asyncio.shield(self._close())

    def _close(self) -> asyncio.Task[None]:
        if self._closing is None:
            self._closing = self._loop.create_task(self._end())
        return self._closing

    async def _end(self) -> None:
        """Close the connection, and wait until grpcio has delivered the ends of all calls: its thread must not call a closed loop.

        Its thread ends when nothing refers to a channel any more.
        """
        channel, self._channel = self._channel, None
        self._methods.clear()
        for stream in list(self._streams):
            stream.cancel()
        delivered = self._loop.create_task(channel.wait_for_state_change(channel.get_state()))
        await asyncio.sleep(0)  # it waits now
        await channel.close()
        await asyncio.wait([delivered, *filter(None, [self._connecting])], timeout=CLOSE_WITHIN)


def _reason(text: str, *, secure: bool) -> str:
    if (
        secure and text == "Socket closed"
    ):  # with TLS 1.3 a server refuses a certificate after the handshake of the client
        return "the server has closed the connection after the handshake of TLS"
    for pattern, meaning in _REASONS:
        if (match := re.fullmatch(pattern, text)) is not None:
            return match.expand(meaning)
    return text


_UNDECIDED: Final = (ChannelConnectivity.IDLE, ChannelConnectivity.CONNECTING)


def _options() -> list[tuple[str, int | str]]:
    """Of a channel, by grpcio's names for them (grpc_types.h); times are in milliseconds."""
    return [
        ("grpc.primary_user_agent", "noxu"),
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", MAX_MESSAGE),
        ("grpc.min_reconnect_backoff_ms", int(CONNECT_WITHIN * 1000)),  # the time for an attempt
        ("grpc.initial_reconnect_backoff_ms", int(FIRST_DELAY * 1000)),
        ("grpc.max_reconnect_backoff_ms", int(LAST_DELAY * 1000)),
        ("grpc.keepalive_time_ms", int(PING_AFTER * 1000)),
        ("grpc.keepalive_timeout_ms", int(PING_WITHIN * 1000)),
        ("grpc.http2.ping_timeout_ms", int(PING_WITHIN * 1000)),
        ("grpc.http2.max_pings_without_data", 0),  # no limit: a watch may be silent for hours
        ("grpc.http2.bdp_probe", 0),  # no other pings, of which etcd permits few: so the window does not grow
        ("grpc.http2.lookahead_bytes", WINDOW),
    ]


class MessageStream:
    """The messages of a call in both directions, until `cancel`. One task may read."""

    def __init__(
        self,
        method: Callable[..., Any],
        metadata: Metadata,
        result: Callable[[Awaitable[Any]], Awaitable[Any]],
        ended: Callable[[], None],
    ) -> None:
        """`result` translates the errors of grpcio. `ended` is called when the stream is cancelled."""
        self._requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        # An iterator sends them: grpcio's `write` ends the call when the task that writes is cancelled.
        self._call = method(self._sent(), metadata=metadata)
        self._result = result
        self._ended = ended

    async def _sent(self) -> AsyncIterator[bytes]:
        while (message := await self._requests.get()) is not None:
            yield message

    async def read(self) -> bytes:
        """The next message. Raises CallRefused, CallLost: also at the end."""
        if self._call is None:
            raise CallLost(_CLOSED, sent=False)
        message = await self._result(self._call.read())
        if message is EOF:
            raise CallLost("the stream has ended", sent=False)
        return bytes(message)

    def write(self, message: bytes) -> None:
        """Send a message. If the call has ended, reading tells."""
        self._requests.put_nowait(message)

    def cancel(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None
            self._requests.put_nowait(None)
            self._ended()
