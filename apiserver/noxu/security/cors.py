"""CORS: the web pages that may use this server, `--cors-allowed-origins` (apiserver's pkg/server/filters/cors.go).

Its values are regular expressions, which are searched in the header Origin of a request:
`^https://(.+\\.)?example\\.com$`. An answer to a page that one of them allows has the headers of CORS. A preflight, any
request with the method OPTIONS, is answered at once, because browsers send it without credentials. All other pages get
no such header, so browsers do not let them read an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from noxu.schema import patterns

MAX_ORIGIN: Final = 4096
"""Characters of an Origin that is compared: a scheme, a DNS name and a port are far shorter."""
HEADERS: Final = (
    ("Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE, PATCH"),
    (
        "Access-Control-Allow-Headers",
        "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
    ),
    ("Access-Control-Expose-Headers", "Date"),
    ("Access-Control-Allow-Credentials", "true"),
)
_INVALID: Final = "--cors-allowed-origins has an invalid regular expression"
_STARTS: Final = ("^", "//")
_ENDS: Final = ("$", ":")


def check(expressions: Sequence[str]) -> None:
    """Raises ValueError with upstream's text for expressions that it refuses.

    One that is not anchored at both ends of the host would allow hosts of others: `example.com` is part of
    `example.com.evil.test`.
    """
    faults = []
    for text in expressions:
        if not text:
            faults.append("empty value in --cors-allowed-origins")
            continue
        try:
            patterns.compile(text)
        except ValueError as error:
            faults.append(f"{_INVALID}: {error}")
            continue
        if not (any(start in text for start in _STARTS) and any(end in text for end in _ENDS)):
            faults.append(f"{_INVALID}: regular expression does not pin to start/end of host in the origin header")
    if faults:
        raise ValueError(faults[0] if len(faults) == 1 else f"[{', '.join(dict.fromkeys(faults))}]")


class AllowedOrigins:
    """The origins that these expressions match. Raises ValueError as `check`."""

    def __init__(self, expressions: Sequence[str]) -> None:
        check(expressions)
        self._patterns = [patterns.compile(text) for text in expressions]

    def __contains__(self, origin: str) -> bool:
        if len(origin) > MAX_ORIGIN or not origin.isascii():  # browsers send host names in ASCII (RFC 6454, 6.2)
            return False
        return any(pattern.search(origin) for pattern in self._patterns)
