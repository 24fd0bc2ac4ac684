"""The subresources that connect to a Pod, a Service or a node: log, exec, attach, portforward and proxy.

Whatever a client asks for, another protocol included, it gets the answer of a server whose connection fails: nothing is
dialled, and nothing is upgraded. Before that, admission sees every connection but log, which upstream treats as a read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from noxu.api import errors
from noxu.go.structs import BOOL, INT32, STRING, List, Type
from noxu.go.text import parse_uint
from noxu.go.time import parse_time
from noxu.http.answer import Answer
from noxu.http.exchange import Exchange, attributes_of
from noxu.http.handlers import namespace_of, write
from noxu.http.options import boolean, integer
from noxu.http.request import Query, first
from noxu.registry.draft import NO_OPTIONS, Action, Body
from noxu.registry.subresources import connections
from noxu.registry.subresources.connections import LogOptions, Place
from noxu.security.authorization import refusal
from noxu.values import Json, Object


def _place(exchange: Exchange) -> Place:
    return Place(exchange.backend.reader, exchange.backend.served_resources, namespace_of(exchange))


def is_upgrade(exchange: Exchange) -> bool:
    """Whether the client asks for another protocol (apimachinery's httpstream.IsUpgradeRequest)."""
    return any("upgrade" in value.lower() for value in exchange.request.headers.getall("Connection", ()))


async def log(exchange: Exchange) -> Answer:
    """The log of a container; empty as long as the Pod is on no node."""
    query = exchange.query
    options = LogOptions(
        first(query, "container"),
        integer(query, "sinceSeconds"),
        _time(first(query, "sinceTime")) if "sinceTime" in query else None,
        integer(query, "tailLines"),
        integer(query, "limitBytes"),
    )
    await connections.log(_place(exchange), exchange.info.name, options)
    return Answer(b"", 200, "text/plain")


def _time(text: str) -> str | None:
    if not text:
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        raise errors.bad_request(str(error)) from None


async def _admitted(exchange: Exchange) -> Object:
    """The options of a connection in its query, after admission, whose operation is CONNECT. Raises ApiError."""
    struct = exchange.resource.bodies[exchange.info.subresource].codec.struct
    assert struct is not None
    given: Object = {}
    for name, field in struct.fields.items():
        if name == "path":
            given[name] = _path_below(exchange)
        elif name in exchange.query:
            given[name] = _CONVERSIONS[field.type](exchange.query, name)
    written = await write(exchange, Action.CONNECT, Body(given), NO_OPTIONS)
    return written.value or {}


def _ports(query: Query, name: str) -> list[int]:
    """Convert_Slice_string_To_Slice_int32. Raises ApiError."""
    if sum(map(len, query[name])) > _MAX_PORTS:
        raise errors.bad_request(f"cannot convert to []int32: more than {_MAX_PORTS} characters")
    try:
        return [parse_uint(text, bits=16) for value in query[name] for text in value.split(",")]
    except ValueError as error:
        raise errors.bad_request(f"cannot convert to []int32: {error}") from None


_MAX_PORTS: Final = 16 * 1024  # characters
_CONVERSIONS: Final[dict[Type, Callable[[Query, str], Json]]] = {
    STRING: first,
    BOOL: boolean,
    List(STRING): lambda query, name: list(query[name]),
    List(INT32): _ports,
}
"""From the query, by the type of the field."""


def _path_below(exchange: Exchange) -> str:
    """The path behind `proxy`, with its slashes."""
    _, _, below = exchange.path.partition(f"/{exchange.info.name}/proxy")
    return below


def _require_create(exchange: Exchange) -> None:
    """WebSockets begin with a GET. Who may only read must not run commands, so they need `create`, as a POST does.

    Upstream's AuthorizePodWebsocketUpgradeCreatePermission. Raises ApiError Forbidden.
    """
    asked = attributes_of(exchange)._replace(verb="create")
    if exchange.info.verb == asked.verb:
        return
    decision = exchange.backend.authorize(asked)
    if not decision.allowed:
        raise refusal(asked, decision, exchange.request.raw_path)


async def stream(exchange: Exchange) -> Answer:
    """exec and attach."""
    container = (await _admitted(exchange)).get("container", "")
    _require_create(exchange)
    await connections.stream(_place(exchange), exchange.info.name, container, upgrade=is_upgrade(exchange))


async def forward(exchange: Exchange) -> Answer:
    """portforward."""
    await _admitted(exchange)
    _require_create(exchange)
    await connections.stream(_place(exchange), exchange.info.name, None, upgrade=is_upgrade(exchange))


async def proxy(exchange: Exchange) -> Answer:
    """proxy."""
    await _admitted(exchange)
    await _PROXIES[exchange.resource.plural](_place(exchange), exchange.info.name)
    raise connections.no_kubelet() if is_upgrade(exchange) else connections.unreachable()


_PROXIES: Final[dict[str, Callable[[Place, str], Awaitable[None]]]] = {
    "pods": connections.proxy_pod,
    "services": connections.proxy_service,
    "nodes": connections.proxy_node,
}
HANDLERS: Final[dict[str, Callable[[Exchange], Awaitable[Answer]]]] = {
    "exec": stream,
    "attach": stream,
    "portforward": forward,
    "proxy": proxy,
}
"""By subresource."""
