"""One HTTP request and what the server knows about it, from its arrival until it is answered.

Filters and handlers fill it in on the way: the user, the RequestInfo and the resource, warnings and annotations for the
audit log (`outcome`), the code or the error, and the times. Metrics, an audit log and an access log are sinks:
functions that `App` calls with each exchange after its answer, also if the request was refused, timed out, failed because
of a bug, or the client is gone (then without an error, and without a code unless the answer had started).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from noxu.clock import Clock
from noxu.features import Features
from noxu.http.received import Received
from noxu.http.request import NO_RESOURCE, Query, RequestInfo, first, selected_name
from noxu.registry.access import ANONYMOUS, Attributes, Authorize, Decision, User, allow_everything
from noxu.registry.catalog import LiveCatalog
from noxu.registry.draft import Outcome
from noxu.registry.offload import LargeRequests, offload
from noxu.registry.persistence import Persistence
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.trace import Trace
from noxu.registry.writer import Writer
from noxu.security.audit_log import Record
from noxu.security.tokens import Tokens

if TYPE_CHECKING:
    from noxu.api.errors import ApiError

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Backend:
    """The parts of the server that handlers use."""

    reader: Reader
    writer: Writer
    persistence: Persistence
    catalog: LiveCatalog
    clock: Clock
    features: Features
    tokens: Tokens
    large_requests: LargeRequests
    authorize: Authorize = allow_everything


@dataclass(slots=True, eq=False)
class Exchange:
    """See the module. Times are the event loop's, in seconds."""

    request: Received
    backend: Backend
    id: str
    """Audit-Id: the client's, or a new one."""
    received: float
    path: str = ""
    """The decoded path, "" if the target is malformed."""
    query: Query = field(default_factory=dict)
    host: str = ""
    """The client's name for this server, with a port if there is one: the Host header, or that of an absolute URL."""
    info: RequestInfo = NO_RESOURCE
    resource: Resource = field(init=False)
    """Set by routing, when `times` has "routed"; requests for documents have none."""
    user: User = ANONYMOUS
    impersonator: User | None = None
    """Whose credentials it has, if `user` is another one, whom this one impersonates."""
    constraint: str = ""
    """The verb that has allowed the impersonation, "" if it was `impersonate`."""
    decision: Decision | None = None
    """The answer whether the user may do it; None if it was refused before that was asked."""
    deadline: float = math.inf
    """When it must be answered; infinite for watches and documents."""
    record: Record | None = None
    """What the audit log records of it; None: nothing."""
    is_judged: bool = False
    """The audit policy has been asked about it."""
    panicked: bool = False
    """A bug ended it."""
    outcome: Outcome = field(default_factory=Outcome)
    trace: Trace | None = None
    """The steps of the write until now; None disables tracing."""
    error: ApiError | None = None
    """Why it was refused or failed; None if it was not."""
    code: int = 0
    """The status of the answer, 0 until there is one."""
    headers: list[tuple[str, str]] = field(default_factory=list)
    """Headers that filters add to the answer, also if it is an error."""
    received_bytes: int | None = None
    """Bytes of the body; None if it was not read."""
    sent_bytes: int = 0
    """Bytes of the answer's body, as sent: compressed, perhaps. 0 for a watch."""
    weight: int = 0
    """Bytes of the body and of the stored object; large requests are processed in a thread."""
    limit: int | None = None
    """Which limit of requests in flight it counts in: 0 for those that only read, 1 for others; None: it does not count."""
    passed: int = 0
    """The number of filters that have let it pass."""
    room: int = 0
    """The weight for which it holds room among the large requests; 0: none."""
    times: dict[str, float] = field(default_factory=dict)
    """When a stage was completed. "routed": the resource is known. "handled": there is an answer or an error.
    "answered": the answer has been sent: the kernel has it."""

    def __str__(self) -> str:
        """Method and target, for the log."""
        return f"{self.request.method} {self.request.raw_path[:1000]}"

    def now(self) -> datetime:
        return self.backend.clock.now()

    async def offload(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function whose work grows with the weight of the request: in the loop, or in a thread."""
        return await offload(self.weight, function, *args, **kwargs)


def attributes_of(exchange: Exchange) -> Attributes:
    """What the user of a request asks to do."""
    info = exchange.info
    if not info.is_resource:
        return Attributes(exchange.user, exchange.request.method.lower(), path=exchange.path)
    name, fields, labels = info.name, "", ""
    if exchange.query and info.verb in _OF_COLLECTIONS:
        fields, labels = first(exchange.query, "fieldSelector"), first(exchange.query, "labelSelector")
        if not name and not info.watching and info.verb != "deletecollection":
            name = selected_name(fields)
    return Attributes(
        exchange.user,
        info.verb,
        info.group,
        info.version,
        info.resource,
        info.subresource,
        info.namespace,
        name,
        None,
        fields,
        labels,
    )


_OF_COLLECTIONS: Final = frozenset({"list", "watch", "deletecollection"})


Sink = Callable[[Exchange], None]
"""Observes exchanges: metrics, an audit log, an access log."""
