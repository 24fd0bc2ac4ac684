"""The details of the newest writes, while a viewer looks: what was sent and answered, and the trace of what happened on the way.

A trace costs more than a write: of those that follow each other fast only some are traced, at most BURST at once, and RATE in a
second. Of the others, what is known without one is kept: the calls of webhooks, unknown fields, rules that have failed.

At most MAX_KEPT writes are kept, and MAX_BYTES of what they had; the bytes are those of the request and of its answer, not copies.
"""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Final

from noxu.api.codec import JSON
from noxu.containment import Contained
from noxu.control.recorded_requests import RequestDetail
from noxu.http.answer import Answer
from noxu.http.auditing import decoder_of
from noxu.http.exchange import Exchange
from noxu.http.filters import RequestFilter

MAX_KEPT: Final = 2_000
MAX_BYTES: Final = 16 * 1024 * 1024
MAX_BODY: Final = 256 * 1024  # bytes of one that is kept
RATE: Final = 10.0  # traces a second
BURST: Final = 100.0
_WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class DetailRecorder(RequestFilter):
    """Keeps the details of one server's writes while it is a filter of it."""

    def __init__(self) -> None:
        self._kept: dict[str, RequestDetail] = {}  # in the order of their answers
        self._bytes = 0
        self._left = BURST  # traces that may begin now
        self._since = 0.0  # when that was so

    def enter(self, exchange: Exchange) -> None:
        if exchange.info.verb not in _WRITES or not exchange.info.is_resource:
            return
        exchange.see_answer(self._answered)
        exchange.outcome.calls = []
        if self._takes_trace(exchange.received):
            exchange.trace = []  # the stages of the write append to it

    def of(self, request_id: str) -> RequestDetail | None:
        """Those of the request with an Audit-Id; None: they are not kept."""
        return self._kept.get(request_id)

    def clear(self) -> None:
        """Forget them all."""
        self._kept.clear()
        self._bytes = 0

    def _takes_trace(self, now: float) -> bool:
        self._left = min(self._left + (now - self._since) * RATE, BURST)
        self._since = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    def _answered(self, exchange: Exchange, answer: Answer) -> Answer:
        with Contained(f"the details of {exchange}"):  # it is answered, whatever is wrong with them
            self._keep(exchange, answer)
        return answer

    def _keep(self, exchange: Exchange, answer: Answer) -> None:
        body = answer.body
        parts = () if isinstance(body, AsyncIterable) else (body,) if isinstance(body, bytes) else tuple(body)
        is_short = not isinstance(body, AsyncIterable) and sum(map(len, parts)) <= MAX_BODY
        sent_type = exchange.request.headers.get("Content-Type") or JSON
        detail = RequestDetail(
            exchange.request.method,
            exchange.request.raw_path,
            exchange.info.resource,
            exchange.code,
            exchange.body if len(exchange.body) <= MAX_BODY else None,
            b"".join(parts) if is_short else None,
            decoder_of(exchange, sent_type),
            decoder_of(exchange, answer.content_type),
            exchange.resource if exchange.is_routed else None,
            exchange.outcome.calls or (),
            None if exchange.error is None else exchange.outcome,  # hundreds of them are work for the garbage collector
            exchange.trace or None,
            exchange.error,
        )
        self._kept[exchange.id] = detail
        self._bytes += _size(detail)
        while len(self._kept) > MAX_KEPT or self._bytes > MAX_BYTES:
            oldest = self._kept.pop(next(iter(self._kept)))
            self._bytes -= _size(oldest)


def _size(detail: RequestDetail) -> int:
    """About as much as it has in memory: a trace and what has failed have parts of what was sent."""
    times = 2 if detail.trace or detail.error else 1
    return len(detail.sent or b"") * times + len(detail.answered or b"")
