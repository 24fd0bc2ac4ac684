"""Bearer tokens in headers: `Authorization`, and a subprotocol of WebSockets, which browsers cannot send headers with.

Upstream's pkg/authentication/request/bearertoken and websocket. A header without a bearer token is ignored, with a warning.
"""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from typing import Final

from multidict import MultiMapping

from noxu.expressions import expression
from noxu.go.text import trim_space
from noxu.security.credentials import Rejected, Token

PROTOCOL_PREFIX: Final = "base64url.bearer.authorization.k8s.io."
EXTRA_SPACE: Final = "the provided Authorization header contains extra space before the bearer token, and is ignored"
NOT_A_TOKEN: Final = "the provided Authorization header has no bearer token, and is ignored"  # noqa: S105 - a warning
_USUAL: Final = "Bearer "
_TOKENS: Final = expression(rf"(?:^|,)\s*{re.escape(PROTOCOL_PREFIX)}([^,]*)")
"""Tokens among subprotocols, found without splitting the header: a client may send half a million of them."""
_BASE64: Final = expression("[A-Za-z0-9_-]*")


def in_authorization(headers: MultiMapping[str], warnings: list[str]) -> Token | None:
    """The token of the header Authorization, None without one."""
    header = headers.get("Authorization", "")
    if header.startswith(_USUAL) and header.count(" ") == 1 and header.isascii() and header.strip() == header:
        return Token(header[len(_USUAL) :])
    header = trim_space(header)
    if not header:
        return None
    scheme, *rest = header.split(" ", 2)
    if scheme.lower() != "bearer" or not rest:
        warnings.append(NOT_A_TOKEN)
        return None
    if not rest[0]:
        warnings.append(EXTRA_SPACE)
        return None
    return Token(rest[0])


def in_subprotocol(headers: MultiMapping[str]) -> Token | None:
    """The token among the subprotocols of a WebSocket, None without one. Raises Rejected."""
    if "Sec-WebSocket-Protocol" not in headers:
        return None
    if "Sec-WebSocket-Protocol" not in headers or not _is_websocket(headers):
        return None
    given = headers.getall("Sec-WebSocket-Protocol")
    encoded = [found[1].strip() for header in given if PROTOCOL_PREFIX in header for found in _TOKENS.finditer(header)]
    if not encoded:
        return None
    if len(encoded) > 1:
        raise Rejected("multiple base64.bearer.authorization tokens specified")
    if not _BASE64.fullmatch(encoded[0]):
        raise Rejected("invalid base64.bearer.authorization token encoding")
    try:
        text = urlsafe_b64decode(encoded[0] + "=" * (-len(encoded[0]) % 4)).decode()
    except (binascii.Error, ValueError) as error:
        is_encoding = not isinstance(error, UnicodeDecodeError)
        raise Rejected(f"invalid base64.bearer.authorization token{' encoding' if is_encoding else ''}") from None
    if not text:
        return None
    if len(given) == 1 and "," not in given[0]:
        raise Rejected("missing additional subprotocol")
    return Token(text)


def subprotocols(headers: MultiMapping[str]) -> Iterator[str]:
    """The names of subprotocols that a client offers."""
    for header in headers.getall("Sec-WebSocket-Protocol", []):
        yield from (name.strip() for name in header.split(","))


def _is_websocket(headers: MultiMapping[str]) -> bool:
    connection = headers.get("Connection", "").lower()
    return headers.get("Upgrade", "").lower() == "websocket" and "upgrade" in connection
