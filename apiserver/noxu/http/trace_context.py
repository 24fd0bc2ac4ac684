"""The trace that a request belongs to, as its client says: W3C Trace Context, `traceparent` and `tracestate`.

    traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01     version, trace, parent, flags
    tracestate: vendor=value,tenant@other=value

It is kept with the request (`Exchange.trace_context`) and sent with the calls of webhooks that the request causes
(`TRACE_CONTEXT`). A header that the specification calls invalid is ignored, as if it were not there: no request fails
because of it. Source: https://www.w3.org/TR/trace-context/, sections 3.2 and 3.3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Final, NamedTuple

from multidict import CIMultiDictProxy, istr

from noxu.expressions import expression

TRACEPARENT: Final = istr("Traceparent")  # looked up with every request: half the time of a plain string
TRACESTATE: Final = istr("Tracestate")

MAX_TRACESTATE: Final = 512
"""Characters of a `tracestate` that are handed on; the specification asks for as many."""
MAX_TRACESTATE_MEMBERS: Final = 32
"""Members of a `tracestate`; one with more is invalid."""
_LONG_MEMBER: Final = 128
"""Characters from which on a member is left out first, when a `tracestate` is too long."""

_VERSION_0: Final = 55  # characters of a `traceparent` of this version, and of the part that later ones share with it
_TRACEPARENT: Final = expression(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")
_KNOWN_FLAGS: Final = 0b11  # sampled, and random (level 2): others are sent as zero
_MEMBER: Final = expression(
    r"[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]", re.ASCII
)


class TraceContext(NamedTuple):
    """What is sent to others. `traceparent` has version 00; `tracestate` is "" if there is none."""

    traceparent: str
    tracestate: str = ""

    @property
    def headers(self) -> dict[str, str]:
        named = {"traceparent": self.traceparent}
        return {**named, "tracestate": self.tracestate} if self.tracestate else named


TRACE_CONTEXT: Final[ContextVar[TraceContext | None]] = ContextVar("trace_context", default=None)
"""What the calls of webhooks by the current task are part of."""


def received(headers: CIMultiDictProxy[str]) -> TraceContext | None:
    """The context in the headers of a request; None if there is none that is valid."""
    traceparent = parse_traceparent(headers.getall(TRACEPARENT, ()))
    if not traceparent:
        return None  # without it a `tracestate` means nothing
    return TraceContext(traceparent, parse_tracestate(headers.getall(TRACESTATE, ())))


def parse_traceparent(values: Sequence[str]) -> str:
    """The value of the only such header, as version 00 writes it; "" if it is invalid, or not the only one."""
    if len(values) != 1:
        return ""
    value = values[0]
    match = _TRACEPARENT.fullmatch(value[:_VERSION_0])
    if match is None:
        return ""
    version, trace, parent, flags = match.groups()
    # what later versions append is unknown here, and begins with a dash
    if len(value) > _VERSION_0 and (version == "00" or value[_VERSION_0] != "-"):
        return ""
    return f"00-{trace}-{parent}-{int(flags, 16) & _KNOWN_FLAGS:02x}"


def parse_tracestate(values: Sequence[str]) -> str:
    """The values of such headers as one; "" if one is invalid.

    It is unchanged up to MAX_TRACESTATE characters. Of a longer one long members are left out first, then the last ones.
    """
    whole = ",".join(values)
    members = [member.strip(" \t") for member in whole.split(",", MAX_TRACESTATE_MEMBERS * 2)]
    members = [member for member in members if member]  # empty ones are allowed
    keys = {member.partition("=")[0] for member in members}
    if len(members) > MAX_TRACESTATE_MEMBERS or len(keys) < len(members):
        return ""
    if not all(map(_MEMBER.fullmatch, members)):
        return ""
    if len(whole) <= MAX_TRACESTATE:
        return whole
    kept = [member for member in members if len(member) <= _LONG_MEMBER]
    while len(",".join(kept)) > MAX_TRACESTATE:
        kept.pop()
    return ",".join(kept)
