"""One HTTP request and what the server knows about it, from its arrival until it is answered.

Filters and handlers fill it in on the way: the user, the RequestInfo and the resource, warnings and annotations for the
audit log (`outcome`), the code or the error, and the times. Metrics, an audit log and an access log are sinks:
functions that `App` calls with each exchange after its answer, also if the request was refused, timed out, failed because
of a bug, or the client is gone (then without an error, and without a code unless the answer had started).

Its methods read the request for a handler: the representation to answer with, the body, the options, the stored object. A
handler refuses first what it asks for first: that order is upstream's, and differs between verbs.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, ParamSpec, TypeVar

from noxu.api import errors
from noxu.api.names import check_path_name
from noxu.clock import Clock
from noxu.features import Features
from noxu.http import negotiation, options
from noxu.http.negotiation import Accepted, Representations
from noxu.http.options import ListOptions
from noxu.http.request import NO_RESOURCE, Query, Received, RequestInfo, first, read_body, selected_name
from noxu.registry.access import ANONYMOUS, AccessAttributes, Authorize, Decision, User, allow_everything
from noxu.registry.authors import AUTHOR, MAX_READS, MAX_SELECTOR, MAX_TEXT, Author, ClientId, Journal, WatchScope
from noxu.registry.draft import (
    NO_BODY,
    NO_DELETE_OPTIONS,
    NO_OPTIONS,
    Action,
    Body,
    DeleteOptions,
    Options,
    Outcome,
    Writer,
    WriteRequest,
    Written,
)
from noxu.registry.offload import LOOP_LIMIT, LargeRequests, offload, offload_briefly
from noxu.registry.persistence import Persistence
from noxu.registry.reader import Reader
from noxu.registry.resource import APPLY_CBOR, BUILT_IN_PATCHES, CUSTOM, CUSTOM_PATCHES, DEFINITION, Resource
from noxu.registry.served_resources import LiveResources
from noxu.registry.stored_object import StoredObject
from noxu.registry.trace import Trace
from noxu.security.audit import Record
from noxu.security.tokens import Tokens
from noxu.tables.table import include_object
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.api.errors import ApiError

P = ParamSpec("P")
T = TypeVar("T")

SELECTOR_BYTES: Final = 4  # of a selector that are parsed while one byte of a body is decoded


@dataclass(frozen=True, slots=True)
class Backend:
    """The parts of the server that handlers use."""

    reader: Reader
    writer: Writer
    persistence: Persistence
    served_resources: LiveResources
    clock: Clock
    features: Features
    tokens: Tokens
    large_requests: LargeRequests
    authorize: Authorize = allow_everything


class InFlightLimit:
    """A limit on the requests that are handled or answered at the same time, and their number."""

    __slots__ = ("highest", "highest_before", "maximum", "running")

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.running = 0
        self.highest = 0
        """The highest number in this second."""
        self.highest_before = 0
        """That in the second before."""


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
    is_long_running: bool = False
    """It may last as long as its client likes."""
    resource: Resource = field(init=False)
    """Set by routing, when `times` has "routed"; requests for documents have none."""
    user: User = ANONYMOUS
    impersonator: User | None = None
    """Whose credentials it has, if `user` is another one, whom this one impersonates."""
    constraint: str = ""
    """The verb that has allowed the impersonation, "" if it was `impersonate`."""
    authentication: Literal["", "success", "failure", "error"] = ""
    """Whether the user was found; `failure`: no credentials that count, `error`: bad ones. "": it was not asked."""
    authentication_seconds: float = 0.0
    """How long that took."""
    decision: Decision | None = None
    """The answer whether the user may do it; None if it was refused before that was asked."""
    authorization_seconds: float = 0.0
    """How long that took."""
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
    body: bytes = b""
    """The body, if the audit log wants it."""
    limit: InFlightLimit | None = None
    """In which limit of requests in flight it counts, until it is answered; None: in none."""
    leaving: list[Callable[[Exchange], None]] = field(default_factory=list)
    """What `App` calls before it sends the answer, the last one first: filters have added it. These raise nothing."""
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

    # -- the request, for handlers

    @property
    def namespace(self) -> str:
        """The namespace of the objects; "" for cluster-scoped resources."""
        return self.info.namespace if self.resource.namespaced else ""

    def accept(self, endpoint: Representations | None = None) -> Accepted:
        """The representation to answer with. Raises ApiError NotAcceptable."""
        headers, query = self.request.headers, self.query
        if endpoint is None:
            type_ = self.resource.type
            if type_ is CUSTOM:
                endpoint = negotiation.CUSTOM_RESOURCE
            elif type_ is DEFINITION and self.info.subresource:
                endpoint = negotiation.DEFINITION_STATUS
            else:
                endpoint = negotiation.BUILT_IN_LIST if self.info.verb in _LISTING else negotiation.BUILT_IN
        if self.backend.features.cbor:
            endpoint = negotiation.with_cbor(endpoint)
        accept, agent = headers.get("Accept", ""), headers.get("User-Agent", "")
        if query or len(accept) + len(agent) > negotiation.MAX_CACHED_BYTES:
            return negotiation.negotiate(accept, endpoint, pretty=first(query, "pretty"), user_agent=agent)
        return negotiation.negotiate_short(accept, endpoint, "", agent)

    def include(self, accepted: Accepted) -> str:
        """The `includeObject` of a table: what its rows contain besides the cells. Raises ApiError."""
        is_table = accepted.convert is not None and accepted.convert.kind == "Table"
        return include_object(first(self.query, "includeObject")) if is_table else ""

    async def stored_entry(self) -> StoredObject:
        """The entry that a GET requests, no older than the resourceVersion in its query. Raises ApiError."""
        query, reader, namespace = self.query, self.backend.reader, self.namespace
        if query and options.boolean(query, "export"):
            raise errors.bad_request("the export parameter, deprecated since v1.14, is no longer supported")
        check_path_name(self.info.name)  # before anything is looked up, as upstream
        if query and (revision := options.parse_revision(first(query, "resourceVersion"), errors.plain_error)):
            await reader.reached(revision)
        entry = await reader.get(self.resource, namespace, self.info.name)
        if (journal := self.backend.persistence.journal) is not None:  # without a call: a GET takes 45 µs
            agent = self.request.headers.get("User-Agent", "")[:MAX_TEXT]
            journal.reads.append((self.received, self.user.name, agent, entry.key, entry.revision))
        return entry

    async def list_options(self, *, watch: bool) -> ListOptions:
        """Raises ApiError."""
        info, resource = self.info, self.resource
        # a resource may have the plural `namespaces`: then the path of a namespace is that of an object in it
        is_namespaced = info.in_namespace or (resource.namespaced and info.namespace)
        namespace = info.namespace if is_namespaced else None
        if not self.query:
            return options.list_options(resource, namespace, info.name, self.query, watch=watch)
        weight = len(self.request.raw_path) // SELECTOR_BYTES  # a selector may be long
        call = partial(options.list_options, resource, namespace, info.name, self.query, watch=watch)
        return await offload_briefly(weight, call)

    def body_format(self, *, any_format: bool = False) -> str:
        """The media type of the body. Custom resources have no protobuf, unless the body may have `any_format`.

        Raises ApiError UnsupportedMediaType.
        """
        content_type = self.request.headers.get("Content-Type", "")
        if content_type == negotiation.JSON:
            return content_type
        formats = negotiation.MEDIA_TYPES_WITH_CBOR if self.backend.features.cbor else negotiation.MEDIA_TYPES
        media_type = negotiation.request_format(content_type, formats)
        # upstream: custom resources have none
        if media_type == negotiation.PROTOBUF and self.resource.is_custom and not any_format:
            raise errors.unsupported_media_type(formats)
        return media_type

    def patch_type(self) -> str:
        """The type of the patch in the body. Raises ApiError UnsupportedMediaType."""
        is_built_in = not self.resource.is_custom
        patches: tuple[str, ...] = BUILT_IN_PATCHES if is_built_in else CUSTOM_PATCHES
        if self.backend.features.cbor:
            patches += (APPLY_CBOR,)
        return negotiation.patch_format(self.request.headers.get("Content-Type", ""), patches, built_in=is_built_in)

    async def read_body(self) -> bytes:
        """The body. A large request waits for room here and keeps it until it is answered. Raises ApiError."""
        body = await read_body(self.request)
        info, backend = self.info, self.backend
        self.weight = self.received_bytes = len(body)  # grows below, once; offload reads it
        if self.record is not None and self.record.with_request:
            self.body = body  # shared with the write, which does not change it
        if info.name:
            self.weight += backend.reader.size(self.resource, self.namespace, info.name)
        if self.weight > LOOP_LIMIT and not self.room:
            await backend.large_requests.enter(self.weight)  # may wait for other large requests to be answered
            self.room = self.weight  # given back by `App`, whatever follows
        return body

    def write_options(self, kind: str, *, apply: bool = False) -> Options:
        """`kind` is CreateOptions, UpdateOptions or PatchOptions. Raises ApiError."""
        return options.write_options(self.query, kind, self.request.headers.get("User-Agent", ""), apply=apply)

    async def sent_object(self, kind: str) -> tuple[Body, Options]:
        """The body of a POST, and its options of this kind. Raises ApiError."""
        media_type = self.body_format()
        body = Body(await self.read_body(), media_type)
        return body, options.write_options(self.query, kind, self.request.headers.get("User-Agent", ""))

    def write_request(
        self,
        action: Action,
        body: Body = NO_BODY,
        chosen: Options = NO_OPTIONS,
        delete_options: DeleteOptions = NO_DELETE_OPTIONS,
        options_sent: Object | None = None,
    ) -> WriteRequest:
        """The write that the client requests. `options_sent` are its options as an object, by default those in the query."""
        resource, info = self.resource, self.info
        if (journal := self.backend.persistence.journal) is not None:
            AUTHOR.set(self._author(journal, action, chosen.field_manager))  # in the context of this task
        if options_sent is None:
            options_sent = options.as_sent(self.query) if self.query else {}
        body_resource = resource.bodies.get(info.subresource)  # of an action: /binding, /eviction
        return WriteRequest(
            action,
            body_resource or resource,
            info.namespace if resource.namespaced else "",
            info.name,
            info.subresource,
            body,
            chosen,
            delete_options,
            options_sent,
            self.user,
            self.backend.features,
            self.deadline,
            self.weight,
            authorize=self.backend.authorize,
            parent=None if body_resource is None else resource,
        )

    def _author(self, journal: Journal, action: Action, manager: str) -> Author:
        """Who wants to write, and how far the watches of this client have come."""
        info, client = self.info, self.client
        watches = journal.watches.get(client)
        if len(journal.reads) > MAX_READS // 2:
            journal.many_reads()  # they are connected with the writes that follow them, in the background
        return Author(
            "apply" if action in _APPLYING else info.verb,
            info.subresource,
            *client,
            manager,
            self.id,
            self.request.headers.get("Traceparent", "")[:MAX_TEXT],
            "",
            self.received,
            () if watches is None else watches.scopes,
            () if watches is None else tuple([stream.after for stream in watches.streams]),
        )

    @property
    def client(self) -> ClientId:
        """Whose watches, reads and writes belong together."""
        return self.user.name, self.request.headers.get("User-Agent", "")[:MAX_TEXT]

    def scope(self) -> WatchScope:
        """The objects that a list or a watch shows."""
        info, query = self.info, self.query
        partition = f"{info.namespace}/" if info.namespace and self.resource.namespaced else None
        labels, fields = query.get("labelSelector", _NO_TEXT)[0], query.get("fieldSelector", _NO_TEXT)[0]
        return WatchScope(self.resource.collection, partition, info.name, labels[:MAX_SELECTOR], fields[:MAX_SELECTOR])

    def write(self, action: Action, body: Body, chosen: Options) -> Awaitable[Written]:
        """Run the write that the client requests. Raises ApiError."""
        # the write adds to `outcome` and `trace` in place
        return self.backend.writer.write(self.write_request(action, body, chosen), self.outcome, self.trace)


_LISTING: Final = frozenset({"list", "watch"})
_NO_TEXT: Final = ("",)
_APPLYING: Final = frozenset({Action.APPLY, Action.APPLY_SCALE})


def attributes_of(exchange: Exchange) -> AccessAttributes:
    """What the user of a request asks to do."""
    info = exchange.info
    if not info.is_resource:
        return AccessAttributes(exchange.user, exchange.request.method.lower(), path=exchange.path)
    name, fields, labels = info.name, "", ""
    if exchange.query and info.verb in _OF_COLLECTIONS:
        fields, labels = first(exchange.query, "fieldSelector"), first(exchange.query, "labelSelector")
        if not name and not info.watching and info.verb != "deletecollection":
            name = selected_name(fields)  # so that RBAC may grant it by the name
    return AccessAttributes(
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
