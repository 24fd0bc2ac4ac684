"""The access log: a sink that writes one line for each request when it has been answered, for a watch when it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable

from noxu.http.exchange import Exchange, Sink
from noxu.observability.line_writer import LineWriter
from noxu.observability.logs import REQUEST_LINES, Request


def sink(writer: LineWriter, format_: str, now: Callable[[], float] = time.time) -> Sink:
    """A sink that writes to `writer`."""
    line_of = REQUEST_LINES[format_]

    def write(exchange: Exchange) -> None:
        seconds = exchange.times["answered"] - exchange.received
        request, verb = exchange.request, exchange.info.verb
        about = Request(
            now(), exchange.user.name, verb or request.method, request.raw_path, exchange.code, seconds, exchange.id
        )
        line = line_of(about)
        writer.put(line, len(line))

    return write
