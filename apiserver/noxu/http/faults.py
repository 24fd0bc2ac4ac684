"""Faults that hit requests: the last filter, while there are rules (`noxu.control.faults`).

It comes after authorization: who may not ask does not meet a fault. Of several rules that hit a request, each does what it
does, in the order in which they were added; one that answers or breaks the connection is the last.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Final

from noxu.api.errors import ApiError
from noxu.clock import Clock
from noxu.control.faults import streams
from noxu.control.faults.armed import Armed, Asked, ClientView, Hit
from noxu.control.faults.partial import PartialReader
from noxu.control.faults.store import STORE_FAULT
from noxu.control.faults.streams import StreamFaults
from noxu.control.running import ProgramsUnderTest, ProgramUnderTest
from noxu.http.exchange import Exchange
from noxu.http.filters import RequestFilter
from noxu.http.request import first
from noxu.http.watch import too_old
from noxu.registry.reader import BLOCK_TIMEOUT, too_large
from noxu_storage.types import FIRST, Revision


class InjectFaults(RequestFilter):
    """Let the rules hit requests for resources; those below /_noxu/ and for documents are never hit."""

    def __init__(self, armed: Armed, clock: Clock, programs: ProgramsUnderTest) -> None:
        self.armed = armed
        self._programs = programs
        self._clock = clock
        self._hanging: dict[asyncio.Future[None], str] = {}  # by the rule that has hit it

    def enter(self, exchange: Exchange) -> Awaitable[None] | None:
        info = exchange.info
        if not info.is_resource or exchange.moment:
            return None
        asked, now = _asked(exchange), self._clock.now()
        if info.verb == "watch":
            exchange.stream_faults = self.of_stream(exchange)
            after = first(exchange.query, "resourceVersion")
            if after.isdecimal() and (floor := self.armed.floor(asked, int(after))):
                raise too_old(int(after), floor)
        elif info.verb == "list" and (views := self.armed.views(asked, now)):
            shown = _shown(views)
            wanted = first(exchange.query, "resourceVersion")
            if shown and wanted.isdecimal() and int(wanted) > shown:
                return self._wait_for(exchange, asked, int(wanted))
            if shown:
                _show(exchange, str(shown))
            elif hidden := streams.hidden_of(views):
                reader = PartialReader(exchange.backend.reader, hidden)
                # a new backend: that of the app is shared by all requests
                exchange.backend = dataclasses.replace(exchange.backend, reader=reader)
        if self.armed.has_rules(asked, "answer") or self.armed.has_rules(asked, "program answer"):
            exchange.leaving.append(partial(self._answer, asked))
        hits = self.armed.hits(asked, now)
        if (
            self.armed.has_rules(asked, "program") and self._program(exchange) is not None
        ):  # the lookup costs a millisecond
            hits += self.armed.hits(asked, now, "program")
        return self._strike(exchange, hits) if hits else None

    async def _wait_for(self, exchange: Exchange, asked: Asked, wanted: Revision) -> None:
        """Wait for a revision as a server does that lags behind. Raises ApiError Timeout."""
        await asyncio.sleep(BLOCK_TIMEOUT)
        shown = _shown(self.armed.views(asked, self._clock.now()))  # the view may be over
        if shown and shown < wanted:
            raise too_large(wanted, shown)
        if shown:
            _show(exchange, str(shown))

    def of_stream(self, exchange: Exchange) -> StreamFaults | None:
        """What hits the stream of a watch; None: nothing."""
        return streams.of(self.armed, _asked(exchange), self._clock.now)

    def release(self, kept: Collection[str]) -> None:
        """Break the connections that hang, but for those that rules of these names have hit."""
        for hanging, rule in self._hanging.items():
            if rule not in kept and not hanging.done():
                hanging.set_result(None)

    async def _strike(self, exchange: Exchange, hits: Sequence[Hit]) -> None:
        for hit in hits:
            await _STRIKES[hit.rule.effect.kind](self, exchange, hit)

    def _answer(self, asked: Asked, exchange: Exchange) -> None:
        """What the handler has done is committed, and the answer is not sent yet."""
        if exchange.code >= HTTPStatus.BAD_REQUEST or not _has_changed(exchange):
            return
        now = self._clock.now()
        breaks = bool(self.armed.hits(asked, now, "answer"))  # they are counted here, and not when they arrive
        if self.armed.has_rules(asked, "program answer") and (program := self._program(exchange)) is not None:
            for _ in self.armed.hits(asked, now, "program answer"):
                self._programs.strike("kill", 0.0, program)
                breaks = True  # the connection of what is killed
        if breaks:
            _break(exchange)

    def _program(self, exchange: Exchange) -> ProgramUnderTest | None:
        """The program that has sent the request."""
        connection = exchange.request.connection
        # a Unix socket has no addresses, and a connection that is lost no transport
        local = None if connection.transport is None else connection.transport.get_extra_info("sockname")
        return self._programs.asking(connection.peername, local)

    # -- effects

    async def error(self, exchange: Exchange, hit: Hit) -> None:
        wanted, asked = hit.rule.effect.parameters, hit.asked
        message = wanted["message"]
        for name, value in (("resource", asked.resource), ("name", asked.name), ("verb", asked.verb.upper())):
            message = message.replace(f"{{{name}}}", value)
        details = {"name": asked.name, "group": exchange.info.group, "kind": exchange.info.resource}
        if wanted["retry_after"]:
            details["retryAfterSeconds"] = wanted["retry_after"]
        raise ApiError(
            wanted["code"], message, wanted["reason"], {name: value for name, value in details.items() if value}
        )

    async def delay(self, exchange: Exchange, hit: Hit) -> None:
        await asyncio.sleep(self.armed.delay(hit))

    async def hang(self, exchange: Exchange, hit: Hit) -> None:
        hanging = asyncio.get_running_loop().create_future()
        self._hanging[hanging] = hit.rule.name
        try:
            await hanging  # cancelled if the client is gone
        finally:
            del self._hanging[hanging]
        _break(exchange)
        raise ConnectionResetError("a fault was injected: hang")

    async def reset(self, exchange: Exchange, _hit: Hit) -> None:
        _break(exchange)
        raise ConnectionResetError("a fault was injected: reset before")

    async def restart(self, exchange: Exchange, hit: Hit) -> None:
        _break(exchange)
        raise ConnectionResetError("a fault was injected: restart")

    async def process(self, exchange: Exchange, hit: Hit) -> None:
        wanted, program = hit.rule.effect.parameters, self._program(exchange)
        # what is stopped has its answer waiting in the socket, as of a process that the kernel does not run
        self._programs.strike(wanted["what"], wanted["seconds"], program)
        if wanted["what"] == "kill":
            _break(exchange)
            raise ConnectionResetError("a fault was injected: the program is killed")

    async def stale(self, exchange: Exchange, hit: Hit) -> None:
        wanted = hit.rule.effect.parameters
        if not wanted["all"] and first(exchange.query, "resourceVersion") != "0":
            return
        store = exchange.backend.reader.store
        if wanted["revisions"] is None:
            _show(exchange, f"-{wanted['by']}")
        else:
            _show(exchange, str(max(store.revision - wanted["revisions"], store.compacted, FIRST)))

    async def store(self, exchange: Exchange, hit: Hit) -> None:
        STORE_FAULT.set(hit.rule.effect.parameters["what"])
        exchange.leaving.append(_end_store_fault)  # the task of a connection handles further requests


def _has_changed(exchange: Exchange) -> bool:
    """Whether a request that may change nothing, though it succeeds, has changed something, as far as that is noted."""
    journal = exchange.backend.persistence.journal
    if journal is None or exchange.info.verb not in _MAY_CHANGE_NOTHING:
        return True
    newest = islice(reversed(journal.writes), _NEWEST)
    return any(author.request_id == exchange.id for _revision, _time, author in newest)


_MAY_CHANGE_NOTHING: Final = frozenset({"update", "patch", "delete"})
_NEWEST: Final = 1_000  # notes of writes, which others have made since


def _show(exchange: Exchange, moment: str) -> None:
    """The moment of the past that is the present for its client."""
    exchange.moment, exchange.takes_past_for_present = moment, True


def _shown(views: Sequence[ClientView]) -> Revision:
    """The revision at which a client is shown everything; 0: the present."""
    return min((view.revision for view in views if view.is_whole), default=0)


def _asked(exchange: Exchange) -> Asked:
    """What rules see of a request for a resource."""
    info = exchange.info
    resource = f"{info.resource}.{info.group}" if info.group else info.resource
    agent = exchange.request.headers.get("User-Agent", "")
    return Asked(
        info.verb, resource, info.subresource, info.namespace, info.name, exchange.user.name, agent, exchange.id
    )


def _end_store_fault(_exchange: Exchange) -> None:
    STORE_FAULT.set("")


def _break(exchange: Exchange) -> None:
    """Break the connection as a process that is killed does."""
    exchange.request.connection.abort()


_STRIKES: Final[Mapping[str, Callable[[InjectFaults, Exchange, Hit], Awaitable[None]]]] = {
    "error": InjectFaults.error,
    "lease": InjectFaults.error,
    "delay": InjectFaults.delay,
    "hang": InjectFaults.hang,
    "reset": InjectFaults.reset,
    "store": InjectFaults.store,
    "stale": InjectFaults.stale,
    "restart": InjectFaults.restart,
    "process": InjectFaults.process,
}
