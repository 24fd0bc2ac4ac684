"""What is recorded of a request: who asked for what, when, and how it was answered.

    operator/v1 (linux)   system:anonymous   PUT /apis/example.com/v1/namespaces/default/widgets/a   409 Conflict

`noxu.http.recent_requests` records, from an exchange. The handle of a test lists these (`noxu.requests()`), reports about the
manners of clients are made of them (`control.manners`), and the least roles (`control.least_roles`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias
from urllib.parse import parse_qsl

from noxu.api.selectors import selected_name
from noxu.values import Json

if TYPE_CHECKING:
    from noxu.api.errors import ApiError
    from noxu.registry.draft import Outcome
    from noxu.registry.resource import Resource
    from noxu.registry.trace import HookCall, Trace

MAX_TARGET: Final = 1000  # characters of a path with its query; what is longer is cut


@dataclass(slots=True, unsafe_hash=True)  # frozen, it would take six times as long to make: one for each request
class RecordedRequest:
    """A request of a client and its answer.

    `verb` is the API's (get, list, watch, create, update, patch, delete, deletecollection), or "" for a path that is not of
    a resource. `resource` is like `widgets.example.com`. `code` is 0 for a watch that has not begun. `reason` and `message`
    are those of a refusal. `seconds` is the time until the answer, for a watch until its end (0 before). `by_handle`: the
    test itself asked, through the handle.
    """

    number: int
    method: str
    path: str
    """With the query."""
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    user: str
    user_agent: str
    code: int
    reason: str = ""
    message: str = ""
    seconds: float = 0.0
    by_handle: bool = False
    id: str = field(default="", repr=False)
    """The Audit-Id."""
    at: float = field(default=0.0, repr=False)
    """When it arrived: seconds since 1970, whatever the clock of the server shows."""
    version: str = field(default="", repr=False)
    """Of the API: `v1`."""
    retry_after: int = field(default=0, repr=False)
    """Seconds that the answer asked to wait."""
    objects: int = field(default=0, repr=False)
    """How many objects there were to list, whatever was selected; 0: a few hundred at most."""
    dry_run: bool = field(default=False, repr=False)
    is_unconditional: bool = field(default=False, repr=False)
    """A PUT without a resourceVersion, which replaces whatever is there."""
    unknown: tuple[str, ...] = field(default=(), repr=False)
    """The fields that no schema knows, as warnings name them."""
    deprecation: str = field(default="", repr=False)
    """The warning that the version is deprecated."""
    traceparent: str = field(default="", repr=False)
    """The header with which the client has said what trace the request belongs to, if it was valid."""
    revision: int = field(default=0, repr=False)
    """The newest one of the server when it answered; of a watch, when it ended."""

    @property
    def named(self) -> str:
        """The name that authorization sees: that of the path, or the only one that a field selector selects; "" for none."""
        if self.verb == "create" and not self.subresource:  # its name is in its body
            return ""
        path, _, query = self.path.partition("?")
        if self.name or self.verb not in ("list", "watch") or "/watch/" in path or len(self.path) >= MAX_TARGET:
            return self.name
        return selected_name(dict(parse_qsl(query)).get("fieldSelector", ""))

    def __str__(self) -> str:
        why = f"  {self.reason}: {self.message}" if self.message else ""
        agent = "the test" if self.by_handle else self.user_agent.partition(" ")[0] or "?"
        user = "" if self.user == "system:anonymous" else f", {self.user}"
        path = self.path.partition("?")[0] if self.by_handle else self.path
        return f"{self.code or '...'}  {self.method} {path}  ({agent}{user}){why}"


Answered: TypeAlias = tuple[str, int, int, str, str, float, tuple[Any, ...]]
"""An answered request as it is noted, without a call of a function: its `id`, `number`, `code`, `method`, `path` and `seconds`.
Of the rest, `RequestRecord.recorded` makes a `RecordedRequest`, which of most is never asked for."""


class RequestDetail(NamedTuple):
    """What a write had besides: what was sent and answered, and what became of it on the way. It is made for the console.

    `trace` None: it was not traced. `outcome` is that of a refused one. `sent` and `answered` are None if they are too long to be kept; `decode_sent` and
    `decode_answered` raise ValueError and ApiError for what cannot be read.
    """

    method: str
    path: str
    resource: str
    """Without its group."""
    code: int
    sent: bytes | None
    answered: bytes | None
    decode_sent: Callable[[bytes], Json]
    decode_answered: Callable[[bytes], Json]
    kind: Resource | None
    calls: Sequence[HookCall]
    outcome: Outcome | None
    trace: Trace | None
    error: ApiError | None


class RequestDetails(Protocol):
    """The details of the newest writes: `noxu.http.request_details`."""

    @property
    def calls(self) -> Mapping[str, Sequence[HookCall]]:
        """The calls of webhooks that a request had, by its Audit-Id, as far as they are kept."""

    def of(self, request_id: str) -> RequestDetail | None:
        """Those of the request with an Audit-Id; None: they are not kept."""
        ...

    def clear(self) -> None:
        """Forget them all."""


class RequestRecord(Protocol):
    """The newest requests of a server: `noxu.http.recent_requests`."""

    began: float
    """Since when all requests are recorded, in seconds since 1970."""
    misses_before: float
    """What was asked before this time may be missing, as it was not recorded; 0: nothing is."""
    limit: int
    """How many are kept."""

    @property
    def last(self) -> int:
        """The number of the newest request."""

    @property
    def answered(self) -> int:
        """How many have been answered."""

    def newest(self, count: int) -> Sequence[Answered]:
        """The requests that were answered last, in the order of their answers."""
        ...

    def recorded(self, answered: Answered) -> RecordedRequest:
        """What is recorded of one of these."""
        ...

    def watches(self) -> Sequence[RecordedRequest]:
        """The watches that are open."""
        ...

    def since(self, number: int = 0) -> Sequence[RecordedRequest]:
        """The requests after the one with this number, in the order of their arrival, with the watches that are open."""
        ...
