"""Methods that the HTTP parser does not know.

Go accepts any token as a method, and upstream answers an unknown one like OPTIONS: 405 of the resource. aiohttp's parser
refuses it as malformed. So before the parser reads a head whose method is unknown, the method is replaced by one that has no
meaning of its own, and the parsed message gets it back:

    FOO /version HTTP/1.1  →  TRACE /version HTTP/1.1  →  a message with the method FOO

A method that arrives in pieces, or behind another request in the same piece, is refused by the parser.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any, Final

from noxu.apiserver.expressions import expression

_KNOWN: Final = frozenset(
    {b"GET", b"PUT", b"POST", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS", b"CONNECT", b"TRACE", b"PRI"}
)
KNOWN_BEGINNINGS: Final = tuple(method + b" " for method in sorted(_KNOWN))
"""Of heads that need no replacement: for `bytes.startswith`."""
_TOKEN: Final = expression(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110
_STAND_IN: Final = b"TRACE"


def replace(data: bytes) -> tuple[str, bytes]:
    """Replace an unknown method at the beginning of a head: (the method or "", the data for the parser)."""
    end = data.find(b" ")
    method = data[: max(end, 0)]
    if method in _KNOWN or not _TOKEN.fullmatch(method):
        return "", data
    return method.decode("ascii"), _STAND_IN + data[end:]


def restore(messages: MutableSequence[Any], index: int, method: str) -> None:
    """Give a parsed message its method back. Messages are aiohttp's: pairs of a head, or of an error, and a body."""
    head, body = messages[index]
    if hasattr(head, "method"):
        messages[index] = (head._replace(method=method), body)
