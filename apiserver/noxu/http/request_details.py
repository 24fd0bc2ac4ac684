"""The details of the newest writes, while a viewer looks: what was sent and answered, and the trace of what happened on the way.

A trace costs more than a write: of those that follow each other fast only some are traced, at most TRACES.burst at once, then
TRACES.rate in a second. Of the others, what is known without one is kept: the calls of webhooks, unknown fields, rules that
have failed. Of thousands of writes only some are kept, and all that were refused or reviewed by a webhook: a viewer opens few
of them, and what is kept for seconds is memory that no cache has any more. Of such a flood none is traced.

At most MAX_KEPT writes are kept, and MAX_BYTES of what they had; the bytes are those of the request and of its answer, not copies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from noxu.api.codec import JSON
from noxu.api.errors import ApiError
from noxu.containment import Contained
from noxu.control.recorded_requests import RequestDetail
from noxu.http.answer import Answer
from noxu.http.auditing import decoder
from noxu.http.clients import Part
from noxu.http.exchange import Exchange
from noxu.http.filters import RequestFilter
from noxu.registry.draft import Outcome
from noxu.registry.resource import Resource
from noxu.registry.trace import HookCall, Trace

MAX_KEPT: Final = 2_000
MAX_BYTES: Final = 16 * 1024 * 1024
MAX_BODY: Final = 256 * 1024  # bytes of one that is kept
_WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class Allowance(NamedTuple):
    """How many there may be: at most `burst` at once, then `rate` in a second."""

    burst: float
    rate: float


TRACES: Final = Allowance(burst=100, rate=10)
"""Of up to ten writes a second all are traced."""
KEPT: Final = Allowance(burst=2_000, rate=100)
"""Writes that are kept whatever becomes of them. Others are kept if there is something to explain."""


class Bucket:
    """What is left of an allowance."""

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self.left = allowance.burst
        self._since = 0.0  # when that was so
        self.empty_until = 0.0
        """Before this time nothing is left, and `takes` need not be called."""

    def takes(self, now: float) -> bool:
        """Whether one more may be had now; it is then. Times are in seconds."""
        burst, rate = self.allowance
        left = min(self.left + (now - self._since) * rate, burst)
        self._since = now
        if left < 1.0:
            self.left = left
            # at least until then: an allowance grows no faster
            self.empty_until = now + (1.0 - left) / rate if rate else math.inf
            return False
        self.left = left - 1.0
        return True

    @property
    def is_half_full(self) -> bool:
        return self.left >= self.allowance.burst / 2


class _Kept(NamedTuple):
    """What a write had, as it was: it becomes a `RequestDetail` if it is asked for, which few are."""

    method: str
    path: str
    resource_name: str
    code: int
    sent: bytes | None
    sent_type: str
    answered: tuple[Part, ...] | None
    answered_type: str
    resource: Resource | None
    calls: Sequence[HookCall]
    outcome: Outcome | None
    trace: Trace | None
    error: ApiError | None
    bytes: int
    """About as many as it has in memory."""


class DetailRecorder(RequestFilter):
    """Keeps the details of one server's writes while it is a filter of it."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}  # in the order of their answers
        self._bytes = 0
        self.traces, self.kept = Bucket(TRACES), Bucket(KEPT)
        self.calls: dict[str, Sequence[HookCall]] = {}
        """The calls of webhooks that a request had, by its Audit-Id, as far as they are kept."""

    def enter(self, exchange: Exchange) -> None:
        info = exchange.info
        if info.verb not in _WRITES or not info.is_resource:
            return
        exchange.noted = exchange.noted or Outcome()
        exchange.noted.calls = []
        if exchange.received < self.kept.empty_until or not self.kept.takes(exchange.received):
            exchange.keeps_body = True  # what becomes of it may be worth it
            exchange.leaving.append(self._leave)
            return
        exchange.see_answer(self._answered)
        if self.kept.is_half_full and self.traces.takes(exchange.received):
            exchange.trace = []  # the stages of the write append to it

    def of(self, request_id: str) -> RequestDetail | None:
        """Those of the request with an Audit-Id; None: they are not kept."""
        kept = self._kept.get(request_id)
        if kept is None:
            return None
        return RequestDetail(
            kept.method,
            kept.path,
            kept.resource_name,
            kept.code,
            kept.sent,
            None if kept.answered is None else b"".join(kept.answered),
            decoder(kept.resource, kept.sent_type),
            decoder(kept.resource, kept.answered_type),
            kept.resource,
            kept.calls,
            kept.outcome,
            kept.trace,
            kept.error,
        )

    def clear(self) -> None:
        """Forget them all."""
        self._kept.clear()
        self.calls.clear()
        self._bytes = 0

    def _leave(self, exchange: Exchange) -> None:
        if exchange.error is not None or (exchange.noted and exchange.noted.calls):
            exchange.see_answer(self._answered)

    def _answered(self, exchange: Exchange, answer: Answer) -> Answer:
        with Contained("keeping the details of a write"):  # it is answered, whatever is wrong with them
            self._keep(exchange, answer)
        return answer

    def _keep(self, exchange: Exchange, answer: Answer) -> None:
        """Keep it as it is: nothing is copied or decoded for what is hardly ever asked for."""
        sent, body, request = exchange.body, answer.body, exchange.request
        parts = body if isinstance(body, tuple) else (body,) if isinstance(body, bytes) else None
        sent_size, size = len(sent), 0 if parts is None else sum(map(len, parts))
        is_kept, is_answer_kept = sent_size <= MAX_BODY, size <= MAX_BODY
        failed, trace = exchange.error is not None, exchange.trace
        # a trace, and what has failed, have parts of what was sent
        in_memory = sent_size * is_kept * (2 if trace or failed else 1) + size * is_answer_kept
        outcome = exchange.outcome
        self._kept[exchange.id] = _Kept(
            request.method,
            request.raw_path,
            exchange.info.resource,
            exchange.code,
            sent if is_kept else None,
            request.headers.get("Content-Type") or JSON,
            parts if is_answer_kept else None,
            answer.content_type,
            exchange.resource if exchange.is_routed else None,
            outcome.calls or (),
            outcome if failed else None,  # hundreds of them are work for the garbage collector
            trace or None,
            exchange.error,
            in_memory,
        )
        if outcome.calls:
            self.calls[exchange.id] = outcome.calls
        self._bytes += in_memory
        while len(self._kept) > MAX_KEPT or self._bytes > MAX_BYTES:
            oldest = next(iter(self._kept))
            self._bytes -= self._kept.pop(oldest).bytes
            self.calls.pop(oldest, None)
