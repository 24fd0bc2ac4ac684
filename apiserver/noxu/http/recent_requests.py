"""The newest requests of a server: what clients asked, and how they were answered. That of a test records them from its start.

A request is recorded before its answer is sent: a client that has its answer finds its request here. A watch is listed
from its beginning, with the code 0 until its stream has begun. The filter comes first, so it sees what later ones refuse.

Functions in the place of webhooks add their exceptions to `hook_errors` of the request that they are called for, so that
an error in this process can have them as its cause.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Final

from noxu.control.recorded_requests import MAX_TARGET, Answered, RecordedRequest
from noxu.http.exchange import Exchange
from noxu.http.filters import RequestFilter
from noxu.registry import explain
from noxu.registry.draft import Outcome
from noxu.registry.resource import Resource
from noxu.registry.trace import Note

MAX_REQUESTS: Final = 10_000  # the newest are kept
MAX_EXPLAINED: Final = 100  # refused writes whose draft is kept, which has the object
FEW: Final = 500
"""Objects that are not counted: a list of them is a small one."""
MAX_UNKNOWN: Final = 10  # unknown fields of a request

hook_errors: ContextVar[list[Exception] | None] = ContextVar("hook_errors", default=None)
"""The exceptions of functions that were called for the current request; None outside of requests that are recorded."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a write was refused: what is known about it besides the error."""

    request: RecordedRequest
    resource: Resource | None
    outcome: Outcome

    def notes(self) -> list[Note]:
        """What was pruned, with the field that was probably meant; which rule failed, with which values."""
        return list(explain.refusal(self.resource, self.outcome))


class RecentRequests(RequestFilter):
    """Records requests. `own_agent` is the User-Agent of the handle."""

    def __init__(self, own_agent: str = "", limit: int = MAX_REQUESTS) -> None:
        self._own_agent = own_agent
        self.limit = limit
        self.began = time.time()
        """Since when, in seconds since 1970."""
        self.misses_before = 0.0
        """What was asked before this time may be missing, as it was not recorded; 0: nothing is."""
        self._epoch = self.began - time.monotonic()  # of the event loop's time, so that differences stay what they were
        self.last = 0
        """The number of the newest request."""
        self.answered = 0
        """How many have been answered."""
        self._open: dict[Exchange, int] = {}
        self._answered: deque[Answered] = deque(maxlen=limit)
        self._refused: deque[Refusal] = deque(maxlen=MAX_EXPLAINED)
        self._causes: dict[str, Exception] = {}

    def enter(self, exchange: Exchange) -> None:
        self.last += 1
        self._open[exchange] = self.last  # until its answer is made; a watch all its life
        if exchange.request.method != "GET":  # its target may not be parsed yet
            outcome = exchange.noted = exchange.noted or Outcome()  # without a call, as each request comes here
            if outcome.sent is None:
                outcome.sent = {}  # the name of a new object is in its body
        if self._own_agent:  # else no error in this process waits for its cause
            hook_errors.set([])  # a list of this task: functions that it calls append to it
        # the first to be added, so called when all others have completed the answer
        exchange.leaving.append(self._add)

    def _add(self, exchange: Exchange) -> None:
        number = self._open.pop(exchange)  # moves to the answered ones in the same turn of the loop
        answered = _noted(exchange, number, exchange.handled - exchange.received)
        self._answered.append(answered)
        self.answered += 1
        if exchange.error is None:
            return
        recorded = self.recorded(answered)
        if exchange.info.is_resource and exchange.info.verb not in ("get", "list", "watch"):
            resource = exchange.resource if exchange.is_routed else None
            self._refused.append(Refusal(recorded, resource, exchange.outcome))
        raised = hook_errors.get()
        if raised and recorded.by_handle:
            self._causes[exchange.id] = raised[0]

    def recorded(self, answered: Answered) -> RecordedRequest:
        """What is recorded of an answered request."""
        id_, number, code, method, path, seconds, noted = answered
        info, user, agent, received, name, version, dry_run, objects, unknown, deprecation, traceparent, *last = noted
        error, revision = last
        reason, message, retry_after = error or ("", "", 0)
        verb = info.verb
        return RecordedRequest(
            number,
            method,
            path,
            verb,
            f"{info.resource}.{info.group}" if info.group else info.resource,
            info.subresource,
            info.namespace,
            info.name or name,
            user,
            agent,
            code,
            reason,
            message,
            seconds,
            bool(self._own_agent) and agent == self._own_agent,
            id_,
            self._epoch + received,
            info.version,
            retry_after,
            objects,
            verb in _WRITES and bool(dry_run),
            verb == "update" and not version,
            unknown if verb in _WRITES else (),
            deprecation,
            traceparent,
            revision,
        )

    def begin_again(self) -> None:
        """Forget what was recorded before an interruption: what follows is complete."""
        self._answered.clear()
        self.began = self.misses_before = time.time()

    def since(self, number: int = 0) -> list[RecordedRequest]:
        """The requests after the one with this number, in the order of their arrival, with the watches that are open."""
        # copied: another thread asks while the loop adds
        found = [*map(self.recorded, [each for each in tuple(self._answered) if each[1] > number])]
        found += [watch for watch in self.watches() if watch.number > number]
        return sorted(found, key=attrgetter("number"))

    def watches(self) -> list[RecordedRequest]:
        """The watches that are open."""
        watches = [(exchange, n) for exchange, n in tuple(self._open.items()) if exchange.info.verb == "watch"]
        return [self.recorded(_noted(exchange, n, 0.0)) for exchange, n in watches]

    def newest(self, count: int) -> list[Answered]:
        """The requests that were answered last, in the order of their answers."""
        return [*islice(reversed(self._answered), count)][::-1]

    def refused(self, number: int = 0) -> list[Refusal]:
        """The refused writes after the request with this number."""
        return [refusal for refusal in tuple(self._refused) if refusal.request.number > number]

    def cause(self, request_id: str) -> Exception | None:
        """The exception of a function that refused the handle's request with this Audit-Id. It can be asked for once."""
        return self._causes.pop(request_id, None)


def _noted(exchange: Exchange, number: int, seconds: float) -> Answered:
    """What is kept of a request. Its client waits for that, and few requests are ever asked for."""
    request, error, outcome = exchange.request, exchange.error, exchange.noted
    sent = (outcome.sent if outcome else None) or _NOTHING_SENT
    trace_context = exchange.trace_context
    # in the order in which `recorded` takes it apart
    noted = (
        exchange.info,
        exchange.user.name,
        request.headers.get("User-Agent", "")[:MAX_TARGET],
        exchange.received,
        sent.get("name", ""),
        sent.get("resourceVersion"),
        exchange.query.get("dryRun"),
        _objects(exchange) if exchange.info.verb == "list" and error is None else 0,
        tuple(outcome.unknown[:MAX_UNKNOWN]) if outcome and outcome.unknown else (),
        exchange.resource.deprecation_text if exchange.is_routed else "",
        "" if trace_context is None else trace_context.traceparent,
        None if error is None else (error.reason, error.message, error.retry_after or 0),
        exchange.backend.reader.cache.revision,
    )
    return exchange.id, number, exchange.code, request.method, request.raw_path[:MAX_TARGET], seconds, noted


_NOTHING_SENT: Final[Mapping[str, str]] = {}
_WRITES: Final = frozenset({"create", "update", "patch"})


def _objects(exchange: Exchange) -> int:
    """How many objects there are where a list looks; 0: at most FEW, or that is not known."""
    if exchange.moment or not exchange.is_routed:
        return 0
    collection = exchange.backend.reader.cache.collections.get(exchange.resource.collection)
    if collection is None or len(collection.keys) <= FEW:
        return 0
    return collection.count(exchange.scope().partition)
