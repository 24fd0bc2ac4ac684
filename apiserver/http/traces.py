"""Traces of writes, for whoever asked for one: `X-Noxu-Trace: 1` on the request, and the same header on the answer names
the trace, which is at `/_noxu/traces/NAME` for a while. Nothing else in an answer changes.

They show objects, so a server offers them on loopback only. The newest are kept, up to a number and a size.
"""

from __future__ import annotations

import uuid
from collections import deque
from typing import Final, NamedTuple

from noxu.apiserver.api import codec, errors
from noxu.apiserver.http.answer import Answer
from noxu.apiserver.registry.trace import Trace, as_json
from noxu.apiserver.values import Json, Object

HEADER: Final = "X-Noxu-Trace"
FOLDER: Final = "/_noxu/traces"
MOST: Final = 256
MOST_BYTES: Final = 16 * 1024 * 1024


class _Kept(NamedTuple):
    name: str
    body: bytes


class Traces:
    """The newest traces of one server."""

    def __init__(self) -> None:
        self._kept: deque[_Kept] = deque()
        self._bytes = 0

    def keep(self, request: Object, trace: Trace, error: errors.ApiError | None) -> str:
        """Keep a finished trace under a new name."""
        name = uuid.uuid4().hex[:16]
        told: Object = {"trace": name, "request": request, "path": "readable", "steps": as_json(trace)}
        if error is not None:
            told["error"] = {"code": error.code, "reason": error.reason, "message": error.message}
        body = codec.encode(told, sort_keys=False)
        if len(body) > MOST_BYTES // 4:
            told["steps"] = as_json([step._replace(patch=()) for step in trace])
            told["leftOut"] = "the trace is too big to be kept: it is told without its patches"
            body = codec.encode(told, sort_keys=False)
        self._kept.append(_Kept(name, body))
        self._bytes += len(body)
        while len(self._kept) > MOST or (self._bytes > MOST_BYTES and len(self._kept) > 1):
            self._bytes -= len(self._kept.popleft().body)
        return name

    def answer(self, method: str, path: str) -> Answer:
        """The trace at a path, or the names of all, the newest first. Raises ApiError."""
        if method not in ("GET", "HEAD"):
            raise errors.page_not_found()
        if path == FOLDER:
            names: Json = {"traces": [kept.name for kept in reversed(self._kept)]}
            return Answer(codec.encode(names, sort_keys=False))
        for kept in self._kept:
            if path == f"{FOLDER}/{kept.name}":
                return Answer(kept.body)
        raise errors.page_not_found()


def is_requested(given: str | None) -> bool:
    """Whether a request asks to be traced. Raises ApiError."""
    if given not in (None, "1"):
        raise errors.bad_request(f"{HEADER}: {given!r} is not supported: send 1 to have the write traced")
    return given == "1"
