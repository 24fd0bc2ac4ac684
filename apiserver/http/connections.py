"""The subresources that connect to a Pod, a Service or a node: log, exec, attach, portforward and proxy.

Whatever a client asks for, another protocol included, it gets the answer of a server whose connection fails: nothing is
dialled, and nothing is upgraded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from noxu.apiserver.api import errors
from noxu.apiserver.go.time import parse_time
from noxu.apiserver.http.answer import Answer
from noxu.apiserver.http.exchange import Exchange
from noxu.apiserver.http.handlers import namespace_of
from noxu.apiserver.http.options import integer
from noxu.apiserver.http.request import first
from noxu.apiserver.registry.subresources import connections
from noxu.apiserver.registry.subresources.connections import LogOptions, Place


def _place(exchange: Exchange) -> Place:
    return Place(exchange.backend.reader, exchange.backend.catalog, namespace_of(exchange))


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


async def stream(exchange: Exchange) -> Answer:
    """exec and attach."""
    container = first(exchange.query, "container")
    await connections.stream(_place(exchange), exchange.info.name, container, upgrade=is_upgrade(exchange))


async def forward(exchange: Exchange) -> Answer:
    """portforward."""
    await connections.stream(_place(exchange), exchange.info.name, None, upgrade=is_upgrade(exchange))


async def proxy(exchange: Exchange) -> Answer:
    """proxy."""
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
