"""One HTTP request and what is known about it, from before routing until its answer has left.

Filters and handlers fill it in on the way: who asks (`user`), what is asked (`info`, `resource`), what is said besides the
answer (`outcome`: warnings, annotations for the audit log), how it ended (`code`), and when (`times`). Metrics, audit log,
access log and traces are sinks of it: functions that are called with the finished exchange.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from aiohttp import web_request

from noxu.apiserver.clock import Clock
from noxu.apiserver.features import Features
from noxu.apiserver.http.request import NO_RESOURCE, Query, RequestInfo
from noxu.apiserver.registry.catalog import LiveCatalog
from noxu.apiserver.registry.draft import ANONYMOUS, Outcome, User
from noxu.apiserver.registry.offload import LargeRequests, offload
from noxu.apiserver.registry.persistence import Persistence
from noxu.apiserver.registry.reader import Reader
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.registry.trace import Trace
from noxu.apiserver.registry.write import Writer
from noxu.apiserver.security.tokens import Tokens

if TYPE_CHECKING:
    from noxu.apiserver.api.errors import ApiError

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Backend:
    """What handlers work on."""

    reader: Reader
    writer: Writer
    persistence: Persistence
    catalog: LiveCatalog
    clock: Clock
    features: Features
    tokens: Tokens
    large_requests: LargeRequests


@dataclass(slots=True, eq=False)
class Exchange:
    """See the module. Times are the event loop's."""

    request: web_request.BaseRequest
    backend: Backend
    id: str
    """Audit-Id: the client's, or a new one."""
    received: float
    path: str = ""
    """Decoded."""
    query: Query = field(default_factory=dict)
    host: str = ""
    """As the client names this server."""
    info: RequestInfo = NO_RESOURCE
    resource: Resource = field(init=False)
    """Set by routing, once `times` says so; documents have none."""
    user: User = ANONYMOUS
    deadline: float = math.inf
    """When it must be answered."""
    outcome: Outcome = field(default_factory=Outcome)
    trace: Trace | None = None
    """What the write did so far; None disables tracing."""
    error: ApiError | None = None
    """Why it was refused, if it was."""
    code: int = 0
    """The status of the answer, 0 until there is one."""
    headers: list[tuple[str, str]] = field(default_factory=list)
    """Headers of the answer, whatever it is."""
    weight: int = 0
    """Bytes of the body and of the stored object: large ones are not worked on in the event loop."""
    has_slot: bool = False
    """It holds one of the slots for large requests."""
    times: dict[str, float] = field(default_factory=dict)
    """When a part of the way was done: routed, handled, answered."""

    def __str__(self) -> str:
        """As the log shows it."""
        return f"{self.request.method} {self.request.raw_path[:1000]}"

    def now(self) -> datetime:
        return self.backend.clock.now()

    async def offload(self, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what takes as long as the request is large."""
        return await offload(self.weight, do, *args, **kwargs)
