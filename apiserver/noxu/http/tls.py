"""TLS in front of a connection: the handshake, and what the connection reads and writes, decrypted and encrypted.

A client that does not complete the handshake within `head_deadline` is disconnected; beyond MAX_HANDSHAKES so is the one
that began first. Until then `OpenConnections` counts it as idle, and `Incoming` counts what it sends. Handshakes cost more
than most requests, so many at once are made in slices (`Handshakes`). Failed ones are logged, one a second at most.

HTTP without TLS gets the answer of Go's net/http.

The TLS transports of asyncio and uvloop have buffers of their own. Their size leaves out what the transport below has not
sent, and their limits delay `pause_writing`. Here Python's `ssl.SSLObject` encrypts in memory, and all that is written is
passed on at once: so all limits of `connection` hold as they do without TLS.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from noxu.http.clients import Clients
from noxu.http.outgoing import reset
from noxu.instruments import Counter

HANDSHAKE: Final = 0x16  # the first byte of TLS: the content type of its first record
LIKE_HTTP: Final = frozenset(
    (b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO")
)  # net/http's tlsRecordHeaderLooksLikeHTTP
ANSWER_TO_HTTP: Final = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
RECORD: Final = 16 * 1024  # bytes; of no record there is more to read. For 256 KiB the memory costs more than the rest
MAX_HANDSHAKES: Final = 1000  # incomplete ones, of 50 KB each; an honest client completes its within milliseconds
SLICE: Final = 0.01  # seconds of the event loop for handshakes, before others have their turn
LOGGED_EVERY: Final = 1.0  # seconds

log = logging.getLogger("noxu")


class Handshakes:
    """The handshakes of one server: their steps, a few at a time, and the log of those that fail."""

    def __init__(self, errors: Counter | None = None) -> None:
        self._errors = errors
        self._waiting: deque[Callable[[], None]] = deque()
        self._connections: dict[TlsConnection, None] = {}  # those that began first, first
        self._logged = -LOGGED_EVERY
        self._not_logged = 0

    def begin(self, client: TlsConnection) -> None:
        """Add a handshake, and end the first one if there are too many."""
        self._connections[client] = None
        if len(self._connections) > MAX_HANDSHAKES:
            first = next(iter(self._connections))
            self.end(first)
            first.abort()

    def end(self, client: TlsConnection) -> None:
        """The handshake is complete, or the client is gone."""
        self._connections.pop(client, None)

    def abort(self) -> None:
        """Disconnect all clients whose handshakes are incomplete."""
        for client in list(self._connections):
            client.abort()

    def soon(self, step: Callable[[], None]) -> None:
        """Take a step when those before it have been taken."""
        self._waiting.append(step)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        end = time.perf_counter() + SLICE
        try:
            while self._waiting and time.perf_counter() < end:
                self._waiting[0]()
                self._waiting.popleft()
        except BaseException:
            self._waiting.popleft()
            raise
        finally:
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._run)

    def failed(self, client: object, reason: str) -> None:
        """Count a failure, and log it unless another one has just been logged."""
        if self._errors is not None:
            self._errors.add(())
        now = time.monotonic()
        if now - self._logged < LOGGED_EVERY:
            self._not_logged += 1
            return
        more = f" ({self._not_logged} more before this one)" if self._not_logged else ""
        log.info("http: TLS handshake error from %s: %s%s", client, reason, more)
        self._logged, self._not_logged = now, 0


class TlsTransport(asyncio.Transport):
    """What a connection writes to: encrypts, and passes on to the transport of the socket."""

    def __init__(
        self, below: asyncio.Transport, tls: ssl.SSLObject, outgoing: ssl.MemoryBIO, above: asyncio.BaseProtocol
    ) -> None:
        super().__init__()
        self._below = below
        self._tls = tls
        self._outgoing = outgoing
        self._above = above
        self._is_closing = False
        self._client_chain: tuple[bytes, ...] | None = None

    @property
    def client_chain(self) -> tuple[bytes, ...]:
        """The verified certificate of the client, and those of its issuers, in DER; empty without one."""
        if self._client_chain is None:
            self._client_chain = _verified_chain(self._tls)
        return self._client_chain

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if data and not (self._is_closing or self._below.is_closing()):
            self._tls.write(data)
            self._below.write(self._outgoing.read())

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        self.write(b"".join(list_of_data))  # one record, and one packet, for head and body

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        """Close when everything is sent. The last record says so: an end without it could be an attacker's."""
        if self.is_closing():
            return
        self._is_closing = True
        with contextlib.suppress(ssl.SSLError):  # the client's last record has not arrived, which does not matter
            self._tls.unwrap()
        self._below.write(self._outgoing.read())
        self._below.close()

    def abort(self) -> None:
        self._is_closing = True
        self._below.abort()

    def is_closing(self) -> bool:
        return self._is_closing or self._below.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """`ssl_object` has the client's certificate; `socket` and the rest are those of the socket's transport."""
        if name == "ssl_object":
            return self._tls
        if name == "sslcontext":
            return self._tls.context
        return self._below.get_extra_info(name, default)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._above

    def is_reading(self) -> bool:
        return self._below.is_reading()

    def pause_reading(self) -> None:
        self._below.pause_reading()

    def resume_reading(self) -> None:
        self._below.resume_reading()

    def get_write_buffer_size(self) -> int:
        return self._below.get_write_buffer_size()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._below.get_write_buffer_limits()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._below.set_write_buffer_limits(high, low)


def _verified_chain(tls: ssl.SSLObject) -> tuple[bytes, ...]:
    """The chain, which OpenSSL does not keep for sessions that are resumed: then the client's certificate only."""
    leaf = tls.getpeercert(binary_form=True)
    if leaf is None:
        return ()
    if sys.version_info >= (3, 13):
        return (leaf, *tls.get_verified_chain()[1:])
    chain = tls._sslobj.get_verified_chain() or ()  # type: ignore[attr-defined]  # noqa: SLF001 - public since 3.13
    return (leaf, *(ssl.PEM_cert_to_DER_cert(certificate.public_bytes()) for certificate in chain[1:]))


class TlsConnection(asyncio.Protocol):
    """A client's socket. `make` makes the connection above TLS, when the handshake is complete."""

    def __init__(
        self,
        make: Callable[[], asyncio.Protocol],
        context: Callable[[str], ssl.SSLContext],
        handshakes: Handshakes,
        clients: Clients,
    ) -> None:
        self._make = make
        self._context = context
        self._handshakes = handshakes
        self._clients = clients
        self._counted = clients.incoming
        self._loop = asyncio.get_running_loop()
        self._begin = b""
        """The first bytes, until they say whether this is TLS."""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._above: asyncio.Protocol | None = None
        self._transport: asyncio.Transport | None = None
        self._above_transport: TlsTransport
        self._timer: asyncio.TimerHandle | None = None
        self._has_half_a_record = False
        self.was_used = False  # no request arrives before the end of the handshake

    # -- the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._timer = self._loop.call_later(self._clients.limits.head_deadline, self.abort)
        self._handshakes.begin(self)
        self._clients.connections.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._end_handshake()  # if it is not complete; if it is, nothing is left of it but perhaps half a record
        if self._above is not None:
            self._above.connection_lost(exc)

    def pause_writing(self) -> None:
        if self._above is not None:
            self._above.pause_writing()

    def resume_writing(self) -> None:
        if self._above is not None:
            self._above.resume_writing()

    def eof_received(self) -> bool | None:
        return None if self._above is None else self._above.eof_received()

    def data_received(self, data: bytes) -> None:
        if self._above is not None:
            self._incoming.write(data)
            self._receive(self._above)
            return
        if self._transport is None or self._transport.is_closing():
            return
        self._counted.add(self, len(data))
        if self._tls is None:
            self._begin = data = self._begin + data
            if data[0] != HANDSHAKE:
                self._refuse(self._transport)
                return
            self._tls = self._new_tls(self._transport)
        self._incoming.write(data)
        self._handshakes.soon(self._continue)

    # -- a client in the handshake, as the limits of all connections see it

    @property
    def is_idle(self) -> bool:
        return True

    def abort(self) -> None:
        """Disconnect the client."""
        if self._transport is not None:
            reset(self._transport)

    # -- the handshake

    def _new_tls(self, transport: asyncio.Transport) -> ssl.SSLObject:
        address = transport.get_extra_info("sockname")
        context = self._context(address[0] if isinstance(address, tuple) else "")
        return context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def _refuse(self, transport: asyncio.Transport) -> None:
        """Answer HTTP without TLS, as net/http does as soon as it has five bytes. Another protocol gets no answer."""
        if len(self._begin) < 5:
            return
        if self._begin[:5] in LIKE_HTTP:
            transport.write(ANSWER_TO_HTTP)
            self._fail("client sent an HTTP request to an HTTPS server")
        else:
            self._fail("first record does not look like a TLS handshake")

    def _continue(self) -> None:
        """The next step of the handshake."""
        if self._transport is None or self._transport.is_closing() or self._tls is None:
            return
        if self._above is not None:  # data of the request has followed the last step at once
            self._receive(self._above)
            return
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            self._flush()  # the alert, which says to the client what is wrong
            self._fail(reason_of(error))
            return
        self._flush()
        self._end_handshake()
        self._above = self._make()
        self._above_transport = TlsTransport(self._transport, self._tls, self._outgoing, self._above)
        self._above.connection_made(self._above_transport)
        self._receive(self._above)

    def _fail(self, reason: str) -> None:
        assert self._transport is not None
        self._handshakes.failed(_shown(self._transport.get_extra_info("peername")), reason)
        self._end_handshake()
        self._transport.close()

    def _end_handshake(self) -> None:
        self._begin = b""
        self._counted.end(self)
        self._handshakes.end(self)
        self._clients.connections.lost(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flush(self) -> None:
        if self._outgoing.pending and self._transport is not None:
            self._transport.write(self._outgoing.read())

    # -- data

    def _receive(self, above: asyncio.Protocol) -> None:
        """Pass on what has arrived. The bytes of an incomplete record count as incoming, also if they came with the handshake."""
        size = self._incoming.pending
        if not size:
            return
        if not self._decrypt(above):
            self._counted.add(self, size)
            self._has_half_a_record = True
        elif self._has_half_a_record:
            self._counted.end(self)
            self._has_half_a_record = False

    def _decrypt(self, above: asyncio.Protocol) -> bool:
        """Pass on what has arrived. Returns whether that was a complete record.

        A record is shorter decrypted, so it is read into memory of its encrypted size: memory for the longest record
        costs more than decryption. Only if its beginning arrived earlier, which OpenSSL keeps, it may be longer (`is_full`).
        """
        assert self._tls is not None
        records: list[bytes] = []
        is_full = has_ended = False
        try:
            while is_full or self._incoming.pending:  # what is left then is an incomplete record
                size = RECORD if is_full else min(self._incoming.pending, RECORD)
                record = self._tls.read(size)
                is_full = len(record) == size
                if not record:
                    has_ended = True
                    break
                records.append(record)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:  # a forged or damaged record
            self._flush()
            self.abort()
            return True
        if self._outgoing.pending:
            self._flush()
        if records:
            above.data_received(records[0] if len(records) == 1 else b"".join(records))
        if has_ended and self._transport is not None and not above.eof_received():
            self._above_transport.close()
        return bool(records)


def reason_of(error: ssl.SSLError) -> str:
    """Why a handshake has failed, in a few words that do not come from the client."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is refused: {error.verify_message}"
    return (error.reason or "it is malformed").replace("_", " ").lower()


def _shown(address: object) -> str:
    if not isinstance(address, tuple):
        return "a client"
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
