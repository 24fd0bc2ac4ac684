"""How calls of gRPC fail, by the status with which an answer ends.

A call fails in one of two ways. `Refused`: the server answered with an error. `Lost`: there is no answer; unless the request
was not sent, the server may have done what was requested.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

OK: Final = b"0"
CODES: Final = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
_LOST: Final = frozenset(
    {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "INTERNAL", "UNKNOWN", "ABORTED", "DATA_LOSS"}
)
_OF_HTTP: Final = {"400": "INTERNAL", "401": "UNAUTHENTICATED", "403": "PERMISSION_DENIED", "404": "UNIMPLEMENTED"}
"""The codes of answers that are not gRPC's, by their status; others are no answer."""


class Refused(Exception):
    """The server answered with an error. `code` is the name of gRPC's status code.

    It may have executed the request all the same (see `etcd_writes`).
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Lost(Exception):
    """There is no answer. `sent`: the request may have reached the server."""

    def __init__(self, text: str, *, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


class Unprocessed(Lost):
    """The server says that it has done nothing with the request."""

    def __init__(self, text: str) -> None:
        super().__init__(text, sent=False)


def failure(code: bytes, message: bytes) -> Refused | Lost:
    """Of a status of gRPC, whose message is percent-encoded."""
    number = int(code) if code.isdigit() and len(code) <= 2 else 2
    name = CODES[number] if number < len(CODES) else "UNKNOWN"
    text = unquote(message.decode("utf-8", "replace"), errors="replace") or name
    return Lost(text, sent=True) if name in _LOST else Refused(name, text)


def http_failure(status: bytes | None) -> Refused | Lost:
    """Of a response without gRPC's status."""
    number = (status or b"").decode("ascii", "replace")
    if number in ("", "200"):
        return Lost("the answer has no status", sent=True)
    name = _OF_HTTP.get(number, "UNKNOWN")
    text = f"the answer is not gRPC, and has the HTTP status {number}"
    return Lost(text, sent=True) if name in _LOST else Refused(name, text)
