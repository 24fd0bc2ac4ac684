"""Traces of writes. A client requests one with the header `X-Noxu-Trace: 1`; the same header of the answer has its name.

The trace is served at `/_noxu/traces/NAME`. The newest are kept, up to MAX_TRACES and MAX_BYTES. They contain objects, so
only a server on loopback offers them.
"""

from __future__ import annotations

import uuid
from collections import deque
from typing import Final, NamedTuple

from noxu.api import codec, errors
from noxu.http.answer import Answer
from noxu.http.exchange import Exchange
from noxu.registry.trace import Trace, as_json
from noxu.values import Json, Object

HEADER: Final = "X-Noxu-Trace"
PATH: Final = "/_noxu/traces"
MAX_TRACES: Final = 256
MAX_BYTES: Final = 16 * 1024 * 1024


class _Kept(NamedTuple):
    name: str
    body: bytes


class Traces:
    """The newest traces of a server."""

    def __init__(self) -> None:
        self._kept: deque[_Kept] = deque()
        self._bytes = 0

    def finished(self, exchange: Exchange) -> None:
        """Keep the trace of a request; a header of the answer has its name."""
        assert exchange.trace is not None
        request = exchange.request
        about: Object = {"method": request.method, "path": request.raw_path, "user": exchange.user.name}
        # also if the write was refused: that is what traces are for
        exchange.headers.append((HEADER, self.keep(about, exchange.trace, exchange.error)))

    def keep(self, request: Object, trace: Trace, error: errors.ApiError | None) -> str:
        """Keep a finished trace under a new name, and return the name."""
        name = uuid.uuid4().hex[:16]
        document: Object = {"trace": name, "request": request, "path": "readable", "steps": as_json(trace)}
        if error is not None:
            document["error"] = {"code": error.code, "reason": error.reason, "message": error.message}
        body = codec.encode(document, sort_keys=False)
        if len(body) > MAX_BYTES // 4:
            document["steps"] = as_json([step._replace(patch=()) for step in trace])
            # the readable part of a trace is worth more than none
            document["leftOut"] = "the trace is too big: its patches are left out"
            body = codec.encode(document, sort_keys=False)
        self._kept.append(_Kept(name, body))
        self._bytes += len(body)  # counted and dropped in one turn of the loop: no other task sees it in between
        while len(self._kept) > MAX_TRACES or (self._bytes > MAX_BYTES and len(self._kept) > 1):
            self._bytes -= len(self._kept.popleft().body)
        return name

    def answer(self, method: str, path: str) -> Answer:
        """Answer with the trace at a path, or at PATH with the names of all, newest first. Raises ApiError NotFound."""
        if method not in ("GET", "HEAD"):
            raise errors.page_not_found()
        if path == PATH:
            names: Json = {"traces": [kept.name for kept in reversed(self._kept)]}
            return Answer(codec.encode(names, sort_keys=False))
        for kept in self._kept:
            if path == f"{PATH}/{kept.name}":
                return Answer(kept.body)
        raise errors.page_not_found()


def is_requested(header: str | None) -> bool:
    """Whether the header requests a trace. Raises ApiError for any value but 1."""
    if header not in (None, "1"):
        raise errors.bad_request(f"{HEADER}: {header!r} is not supported: send 1 to have the write traced")
    return header == "1"
