"""Connections to simulated pods: their logs, and the streams of exec and attach; portforward is refused with the reason.

What a command answers is known before its streams are there (`kubelet.commands`): all of it is sent at once, and what the
client sends, its stdin, is dropped. Protocols, as kubelets' (k8s.io/kubelet/pkg/cri/streaming/remotecommand):

    WebSocket v5, v4.channel.k8s.io    messages of a byte and data: 1 stdout, 2 stderr, 3 the Status; what the client sends is not read
    SPDY/3.1, v5 and v4                streams by their header streamtype: the answer begins when all that were asked for are open

The Status says the exit code: reason NonZeroExitCode, and a cause ExitCode.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Final

from aiohttp.http import WSCloseCode, WSMsgType
from multidict import CIMultiDict

from noxu.api import errors
from noxu.http import auditing, spdy, websocket
from noxu.http.answer import Answer, text_answer
from noxu.http.connection import Connection
from noxu.http.exchange import Exchange
from noxu.http.sending import head_of, headers_of
from noxu.http.spdy import BrokenSpdy, Pinged, ServerSpdy
from noxu.registry.subresources.connections import LogOptions
from noxu.values import Object
from noxu.workloads.kubelet import logs
from noxu.workloads.kubelet.commands import CommandResult, Commands

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STREAM_CREATION_TIMEOUT: Final = 30.0  # seconds; the kubelet's
AT_ONCE: Final = 1024 * 1024
"""Bytes of a client's stdin that may arrive at once: they are dropped."""
PIECE: Final = 16 * 1024
QUIET: Final = 0.02  # seconds
MAX_QUIET: Final = 50
_OPENED: Final = ("stdin", "stdout", "stderr")
NOTHING_RUNS: Final = "nothing runs in simulated pods: "


def log(pod: Object, options: LogOptions, *, previous: bool) -> bytes:
    """The log of a container. Raises ApiError: it has none yet."""
    if why := logs.missing(pod, options.container, previous=previous):
        raise errors.bad_request(why)
    return logs.shown(logs.text_of(pod, options.container), options.tail_lines, options.limit_bytes)


async def stream(exchange: Exchange, pod: Object, options: Object, commands: Commands) -> Answer | None:
    """exec, attach or portforward. None: it has been answered. Raises ApiError, ConnectionError."""
    result = _result(exchange, pod, options, commands)
    asked = [name for name in _OPENED if options.get(name)]
    is_terminal = bool(options.get("tty"))
    if is_terminal and "stderr" in asked:
        asked.remove("stderr")  # as the kubelet: a terminal has one output
    if not asked:
        return text_answer("you must specify at least 1 of stdin, stdout, stderr", 400)
    sent = outputs(asked, result, options.get("command") or (), is_terminal=is_terminal)
    if websocket.is_upgrade(exchange.request):
        return await _over_websocket(exchange, sent, has_stdin="stdin" in asked)
    if exchange.request.headers.get("Upgrade", "").lower() == "spdy/3.1":
        return await _over_spdy(exchange, {"error", *asked, *(["resize"] if is_terminal else [])}, sent)
    raise errors.bad_request("the streams of a command need an upgrade to a WebSocket or to SPDY/3.1")


def _result(exchange: Exchange, pod: Object, options: Object, commands: Commands) -> CommandResult:
    """What is answered. Raises ApiError."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    if exchange.info.subresource == "portforward":
        raise errors.bad_request(f"{NOTHING_RUNS}no port of pod {name} is open")
    container = options.get("container") or pod["spec"]["containers"][0]["name"]
    if "running" not in ((logs.status_of(pod, container) or {}).get("state") or {}):
        raise errors.internal_error(f'unable to upgrade connection: container not found ("{container}")')
    if exchange.info.subresource == "attach":
        return CommandResult(logs.text_of(pod, container))
    command: Sequence[str] = options.get("command") or ()
    if not command:
        raise errors.bad_request("you must specify a command")
    result = commands.result(namespace, name, command)
    if result is None:
        raise errors.bad_request(
            f"{NOTHING_RUNS}{' '.join(command)!r} is not executed in pod {name}; say what a command answers with `exec:` "
            "rules, or start with --exec succeed"
        )
    return result


def outputs(
    asked: Sequence[str], result: CommandResult, command: Sequence[str], *, is_terminal: bool
) -> dict[str, bytes]:
    """What each stream gets, in the order in which it is sent. A terminal shows what is written to stderr, too."""
    texts = {"stdout": result.stdout + (result.stderr if is_terminal else ""), "stderr": result.stderr}
    sent = {name: text.encode() for name, text in texts.items() if name in asked}
    return {**sent, "error": status_of(result, command)}


def status_of(result: CommandResult, command: Sequence[str]) -> bytes:
    """The Status at the end of the streams."""
    if not result.code:
        return b'{"metadata":{},"status":"Success"}'
    why = f"error executing command [{' '.join(command)}], exit code {result.code}"
    status = {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {why}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(result.code)}]},
    }
    return json.dumps(status).encode()


# -- WebSockets -------------------------------------------------------------------------------------------------------

_CHANNELS: Final = {"stdout": 1, "stderr": 2, "error": 3}


async def _over_websocket(exchange: Exchange, sent: dict[str, bytes], *, has_stdin: bool) -> Answer | None:
    request = exchange.request
    if (malformed := websocket.malformed_handshake(request)) is not None:
        return malformed
    protocol = next((name for name in websocket.offered(request) if name in PROTOCOLS), None)
    if protocol is None:
        return text_answer(f"the WebSocket of a command has one of the protocols {', '.join(PROTOCOLS)}", 400)
    connection = _switch(exchange, websocket.accept(request, protocol))
    stdin = _Dropped()
    # Nothing depends on what the client sends: it is not even parsed. The close of the client ends the connection.
    connection.upgrade(stdin.receive, AT_ONCE)
    await _send(connection, messages(sent))
    if has_stdin:
        await stdin.quiet()
    close = WSCloseCode.OK.to_bytes(2, "big")
    await _send(connection, [websocket.frame_header(WSMsgType.CLOSE, len(close)) + close])
    await _closed(connection)
    return None


class _Dropped:
    """The stdin of a command that does not run. client-go logs an error if it is still sending it after the close."""

    def __init__(self) -> None:
        self._has_come = True

    def receive(self, data: bytes) -> None:
        self._has_come = bool(data)

    async def quiet(self) -> None:
        """Return when nothing has come for a while; at the latest when a command would take long."""
        for _ in range(MAX_QUIET):
            if not self._has_come:
                return
            self._has_come = False
            await asyncio.sleep(QUIET)


def messages(sent: dict[str, bytes]) -> Iterator[bytes]:
    """An empty message, by which the client knows that it is connected, and all outputs in pieces."""
    yield _message(_CHANNELS[next(iter(sent))], b"")
    for name, data in sent.items():
        for at in range(0, len(data), PIECE):
            yield _message(_CHANNELS[name], data[at : at + PIECE])


def _message(channel: int, data: bytes) -> bytes:
    return websocket.frame_header(WSMsgType.BINARY, 1 + len(data)) + bytes([channel]) + data


# -- SPDY -------------------------------------------------------------------------------------------------------------


async def _over_spdy(exchange: Exchange, needed: set[str], sent: dict[str, bytes]) -> Answer | None:
    offered = [
        name.strip()
        for header in exchange.request.headers.getall("X-Stream-Protocol-Version", ())
        for name in header.split(",")
    ]
    protocol = next((name for name in offered if name in PROTOCOLS), None)
    if protocol is None:
        return text_answer(
            "unable to upgrade: unable to negotiate protocol: "
            f"client supports [{' '.join(offered)}], server accepts [{' '.join(PROTOCOLS)}]",
            403,
        )
    headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": protocol}
    connection = _switch(exchange, CIMultiDict(headers))
    streams = _Streams(connection, needed)
    connection.upgrade(streams.receive, AT_ONCE)
    try:
        async with asyncio.timeout(STREAM_CREATION_TIMEOUT):
            await streams.opened
    except (TimeoutError, BrokenSpdy):  # what has broken the protocol is refused already
        connection.force_close()
        return None
    for name, data in sent.items():
        await _send(connection, spdy.data_frames(streams.ids[name], data))
    await _closed(connection)
    return None


class _Streams:
    """The streams that a client opens, until those that are needed are there."""

    def __init__(self, connection: Connection, needed: set[str]) -> None:
        self.ids: dict[str, int] = {}
        self.opened: asyncio.Future[None] = connection.loop.create_future()
        self._needed = needed
        self._connection = connection
        self._spdy = ServerSpdy()

    def receive(self, data: bytes) -> None:
        connection = self._connection
        if connection.is_lost or (self.opened.done() and self.opened.exception() is not None):
            return
        try:
            for event in self._spdy.feed(data):
                if isinstance(event, Pinged):
                    connection.write(spdy.pong(event.id))
                    continue
                self.ids.setdefault(event.fields.get("streamtype", ""), event.id)
                connection.write(self._spdy.reply(event.id))
        except BrokenSpdy as broken:
            connection.write(self._spdy.goaway())
            if self.opened.done():
                connection.force_close()
            else:
                self.opened.set_exception(broken)
            return
        if self._needed <= self.ids.keys() and not self.opened.done():
            self.opened.set_result(None)


# -- both -------------------------------------------------------------------------------------------------------------


def _switch(exchange: Exchange, protocol: CIMultiDict[str]) -> Connection:
    """Answer with 101. Raises ConnectionError."""
    headers = headers_of(exchange, "")
    headers.update(protocol)
    exchange.code = 101
    connection = exchange.request.connection
    connection.answer(head_of(exchange, 101, headers))
    if exchange.record is not None:
        auditing.observe_start(exchange, exchange.record)
    return connection


async def _send(connection: Connection, frames: Iterator[bytes] | Sequence[bytes]) -> None:
    """Raises ConnectionError."""
    for frame in frames:
        if (waits := connection.write(frame)) is not None:
            await waits


async def _closed(connection: Connection) -> None:
    """Wait for the client to close: its stdin, which still arrives, would otherwise reset what it has not read yet."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(websocket.CLOSE_WITHIN):
            await connection.loop.create_future()  # cancelled with the connection
