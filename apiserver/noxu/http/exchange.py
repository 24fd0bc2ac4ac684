"""One HTTP request and what the server knows about it, from its arrival until it is answered.

Filters and handlers fill it in on the way: the user, the RequestInfo and the resource, warnings and annotations for the
audit log (`outcome`), the code or the error, and the times. Metrics, an audit log and an access log are sinks:
functions that `App` calls with each exchange after its answer, also if the request was refused, timed out, failed because
of a bug, or the client is gone (then without an error, and without a code unless the answer had started).

Its methods read the request for a handler: the representation to answer with, the body, the options, the stored object. A
handler refuses first what it asks for first: that order is upstream's, and differs between verbs.

The options are CreateOptions, UpdateOptions, PatchOptions, DeleteOptions, ListOptions. Upstream first converts the
parameters of the query (an invalid number is a 400 with strconv's message), then validates the options (422, with their kind
in group meta.k8s.io). A parameter that upstream knows and we do not support is refused.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, ParamSpec, TypeVar

from noxu.api import errors, field, meta, selectors
from noxu.api.errors import ApiError, Qualified
from noxu.api.field import FieldError
from noxu.api.names import check_path_name
from noxu.clock import Clock
from noxu.features import Features
from noxu.go.text import parse_uint, quote
from noxu.http import negotiation
from noxu.http.answer import Answer
from noxu.http.negotiation import Accepted, Representations
from noxu.http.request import (
    NO_RESOURCE,
    Query,
    Received,
    RequestInfo,
    boolean,
    first,
    integer,
    read_body,
)
from noxu.http.trace_context import TraceContext
from noxu.registry.access import ANONYMOUS, AccessAttributes, Authorize, Decision, User, allow_everything
from noxu.registry.authors import AUTHOR, MAX_READS, MAX_SELECTOR, MAX_TEXT, Author, ClientId, Journal, WatchScope
from noxu.registry.deletion import CORRUPT_TOO, DeleteBody, dry_run_errors
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
from noxu.registry.reader import Reader, Selection, Window, decode_token
from noxu.registry.resource import APPLY_CBOR, BUILT_IN_PATCHES, CUSTOM, CUSTOM_PATCHES, DEFINITION, Resource
from noxu.registry.served_resources import LiveResources
from noxu.registry.stored_object import StoredObject
from noxu.registry.trace import Trace
from noxu.security.audit import Record
from noxu.security.tokens import Tokens
from noxu.tables.table import include_object
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.control.faults.streams import StreamFaults
    from noxu.workloads.kubelet.commands import Commands

P = ParamSpec("P")
T = TypeVar("T")

SELECTOR_BYTES: Final = 4  # of a selector that are parsed while one byte of a body is decoded


@dataclasses.dataclass(frozen=True, slots=True)
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
    commands: Commands | None = None
    """What commands in simulated pods answer; None: there are no nodes."""


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


@dataclasses.dataclass(slots=True, eq=False)
class Exchange:
    """See the module. Times are the event loop's, in seconds."""

    request: Received
    backend: Backend
    id: str
    """Audit-Id: the client's, or a new one."""
    received: float
    path: str = ""
    """The decoded path, "" if the target is malformed. That of the API, if `moment` is not ""."""
    moment: str = ""
    """The moment of the past that it reads, see `Target`."""
    takes_past_for_present: bool = False
    """A fault shows it the past: what its client reads is what that goes by when it writes."""
    stream_faults: StreamFaults | None = None
    """What hits the stream of a watch."""
    trace_context: TraceContext | None = None
    """The trace that it belongs to, if its client has said so."""
    query: Query = dataclasses.field(default_factory=dict)
    host: str = ""
    """The client's name for this server, with a port if there is one: the Host header, or that of an absolute URL."""
    info: RequestInfo = NO_RESOURCE
    is_long_running: bool = False
    """It may last as long as its client likes."""
    resource: Resource = dataclasses.field(init=False)
    """Set by routing, see `is_routed`; requests for documents have none."""
    is_routed: bool = False
    """The resource is known, and has what is asked for."""
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
    noted: Outcome | None = None
    """The `outcome`, if there is anything to note; most reads have none."""
    trace: Trace | None = None
    """The steps of the write until now; None disables tracing."""
    error: ApiError | None = None
    """Why it was refused or failed; None if it was not."""
    code: int = 0
    """The status of the answer, 0 until there is one."""
    headers: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    """Headers that filters add to the answer, also if it is an error."""
    received_bytes: int | None = None
    """Bytes of the body; None if it was not read."""
    sent_bytes: int = 0
    """Bytes of the answer's body, as sent: compressed, perhaps. 0 for a watch."""
    weight: int = 0
    """Bytes of the body and of the stored object; large requests are processed in a thread."""
    keeps_body: bool = False
    """Whether a recording or the console wants the body."""
    body: bytes = b""
    """The body, if they or the audit log want it."""
    answer_seen: Callable[[Exchange, Answer], Answer] | None = None
    """Is called with the answer before it is sent, and returns it: see `http.recording`."""
    events_seen: Callable[[Exchange], Callable[[Sequence[bytes]], None]] | None = None
    """Is called when the stream of a watch begins, and returns what is called with its events."""
    limit: InFlightLimit | None = None
    """In which limit of requests in flight it counts, until it is answered; None: in none."""
    leaving: list[Callable[[Exchange], None]] = dataclasses.field(default_factory=list)
    """What `App` calls before it sends the answer, the last one first: filters have added it. These raise nothing."""
    room: int = 0
    """The weight for which it holds room among the large requests; 0: none."""
    handled: float = 0.0
    """When there was an answer or an error."""
    answered: float = 0.0
    """When the answer was sent: the kernel has it."""

    def __str__(self) -> str:
        """Method and target, for the log."""
        return f"{self.request.method} {self.request.raw_path[:1000]}"

    def now(self) -> datetime:
        return self.backend.clock.now()

    async def offload(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function whose work grows with the weight of the request: in the loop, or in a thread."""
        return await offload(self.weight, function, *args, **kwargs)

    def see_answer(self, see: Callable[[Exchange, Answer], Answer]) -> None:
        """Let a further function see the answer before it is sent, after those that do already; the body is kept for it."""
        self.keeps_body = True
        before = self.answer_seen
        self.answer_seen = see if before is None else lambda exchange, answer: see(exchange, before(exchange, answer))

    @property
    def outcome(self) -> Outcome:
        """The errors, warnings and annotations. It is made when something is noted first: a tenth of a GET is saved.

        See `benchmarks.http`, `get`.
        """
        if self.noted is None:
            self.noted = Outcome()
        return self.noted

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
        if query and boolean(query, "export"):
            raise errors.bad_request("the export parameter, deprecated since v1.14, is no longer supported")
        check_path_name(self.info.name)  # before anything is looked up, as upstream
        if query and (revision := parse_revision(first(query, "resourceVersion"), errors.plain_error)):
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
            return parse_list_options(resource, namespace, info.name, self.query, watch=watch)
        weight = len(self.request.raw_path) // SELECTOR_BYTES  # a selector may be long
        call = partial(parse_list_options, resource, namespace, info.name, self.query, watch=watch)
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
        if self.keeps_body or (self.record is not None and self.record.with_request):
            self.body = body  # shared with the write, which does not change it
        if info.name:
            self.weight += backend.reader.size(self.resource, self.namespace, info.name)
        if self.weight > LOOP_LIMIT and not self.room:
            await backend.large_requests.enter(self.weight)  # may wait for other large requests to be answered
            self.room = self.weight  # given back by `App`, whatever follows
        return body

    def write_options(self, kind: str, *, apply: bool = False) -> Options:
        """`kind` is CreateOptions, UpdateOptions or PatchOptions. Raises ApiError."""
        return parse_write_options(self.query, kind, self.request.headers.get("User-Agent", ""), apply=apply)

    async def sent_object(self, kind: str) -> tuple[Body, Options]:
        """The body of a POST, and its options of this kind. Raises ApiError."""
        media_type = self.body_format()
        body = Body(await self.read_body(), media_type)
        return body, self.write_options(kind)

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
            options_sent = as_sent(self.query) if self.query else {}
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
            self.traceparent,
            "",
            self.received,
            () if watches is None else watches.scopes,
            () if watches is None else tuple([stream.after for stream in watches.streams]),
        )

    @property
    def traceparent(self) -> str:
        """The header that the client has sent, "" if it has sent none that is valid."""
        return "" if self.trace_context is None else self.trace_context.traceparent

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
            name = selectors.selected_name(fields)  # so that RBAC may grant it by the name
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


# -- options of writes ------------------------------------------------------------------------------------------------


_FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")


def parse_write_options(query: Query, kind: str, user_agent: str, *, apply: bool = False) -> Options:
    """`kind` is CreateOptions, UpdateOptions or PatchOptions. Raises ApiError."""
    if not query and not apply:
        return Options(field_manager=manager_from_user_agent(user_agent))
    manager, validation, dry_run = (
        first(query, "fieldManager"),
        first(query, "fieldValidation"),
        query.get("dryRun", []),
    )
    force = boolean(query, "force") if kind == "PatchOptions" else None
    wrong: list[FieldError] = []
    if apply and not manager:
        wrong.append(field.required("fieldManager", "is required for apply patch"))
    if force is not None and not apply:
        wrong.append(field.forbidden("force", "may not be specified for non-apply patch"))
    wrong += meta.validate_field_manager(manager, "fieldManager") + dry_run_errors(dry_run)
    if validation not in _FIELD_VALIDATION:
        wrong.append(field.not_supported("fieldValidation", validation, list(_FIELD_VALIDATION)))
    _invalid(kind, wrong)
    return Options(
        dry_run=bool(dry_run),
        field_manager=manager or manager_from_user_agent(user_agent),
        field_validation=validation or "Warn",  # type: ignore[arg-type]  # checked above
        force=bool(force),
    )


def _invalid(kind: str, wrong: list[FieldError]) -> None:
    """Raises ApiError Invalid if anything is wrong with the options."""
    if wrong:
        raise errors.invalid(Qualified("meta.k8s.io", kind), "", wrong)


def as_sent(query: Query) -> Object:
    """CreateOptions, UpdateOptions or PatchOptions as an object, with the fields that the query has, except `force`."""
    if not query:
        return {}
    sent: Object = {"dryRun": query["dryRun"]} if query.get("dryRun") else {}
    return sent | {name: first(query, name) for name in ("fieldManager", "fieldValidation") if first(query, name)}


def manager_from_user_agent(user_agent: str) -> str:
    """The default field manager: the printable characters of the user agent up to the first slash, at most MAX_MANAGER bytes."""
    prefix = user_agent.partition("/")[0]
    # nearly all: the loop below goes rune by rune
    if prefix.isascii() and prefix.isprintable() and len(prefix) <= meta.MAX_MANAGER:
        return prefix or "unknown"
    kept = ""
    for char in prefix:
        if not char.isprintable():
            continue
        # the limit is in bytes, and no rune is cut
        if len((kept + char).encode(errors="surrogateescape")) > meta.MAX_MANAGER:
            break
        kept += char
    return kept or "unknown"


def delete_body_from_query(query: Query) -> DeleteBody:
    """DeleteOptions in a query, where `uid` and `resourceVersion` are preconditions. Raises ApiError."""
    return DeleteBody(
        query.get("dryRun", []),
        first(query, "propagationPolicy") if "propagationPolicy" in query else None,
        boolean(query, "orphanDependents"),
        integer(query, "gracePeriodSeconds"),
        first(query, "uid") or None,  # an empty one is no precondition
        first(query, "resourceVersion") or None,
        boolean(query, CORRUPT_TOO),
    )


def delete_body_as_sent(body: DeleteBody) -> Object:
    """DeleteOptions from a query, as an object."""
    sent: Object = {"gracePeriodSeconds": body.grace, "orphanDependents": body.orphan}
    sent |= {"propagationPolicy": body.propagation, "dryRun": body.dry_run or None, CORRUPT_TOO: body.corrupt_too}
    sent["preconditions"] = _without_none({"uid": body.uid, "resourceVersion": body.resource_version}) or None
    return _without_none(sent)


def _without_none(value: Object) -> Object:
    return {name: item for name, item in value.items() if item is not None}


# -- options of lists and watches -------------------------------------------------------------------------------------


class ListOptions(NamedTuple):
    """ListOptions of a list or a watch, validated except for the resourceVersion."""

    selection: Selection
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    token: str = ""
    timeout: int | None = None
    bookmarks: bool = False
    initial_events: bool | None = None


def parse_list_options(
    resource: Resource, namespace: str | None, name: str, query: Query, *, watch: bool
) -> ListOptions:
    """The options of a list or a watch. `namespace` None: all namespaces. `name`: of a watch of one object. Raises ApiError."""
    if not query and not watch and not name:
        return ListOptions(Selection(resource, namespace))  # what most informers ask first
    timeout, limit = integer(query, "timeoutSeconds"), integer(query, "limit") or 0  # in upstream's order
    # Go takes the first of several values
    value_of = {parameter: values[0] for parameter, values in query.items() if values}.get
    labels_text, fields_text = value_of("labelSelector", ""), value_of("fieldSelector", "")
    for selector, text in (("labelSelector", labels_text), ("fieldSelector", fields_text)):
        if len(text) > selectors.MAX_LENGTH:
            raise errors.bad_request(f"{selector}: too long: may not be more than {selectors.MAX_LENGTH} characters")
    try:
        labels = selectors.parse_labels(labels_text) if labels_text else None
        fields = selectors.parse_fields(fields_text) if fields_text else None
    except ValueError as error:
        raise errors.bad_request(str(error)) from None
    options = ListOptions(
        Selection(
            resource,
            namespace,
            None if labels is None or labels.empty else labels,
            None if fields is None or fields.empty else fields,
        ),
        value_of("resourceVersion", ""),
        value_of("resourceVersionMatch", ""),
        max(limit, 0),
        value_of("continue", ""),
        timeout,
        bool(boolean(query, "allowWatchBookmarks")),
        boolean(query, "sendInitialEvents"),
    )
    if watch and options.initial_events is None and not options.match and options.resource_version in ("", "0"):
        # a watch from no revision begins with the state
        options = options._replace(initial_events=True, match="NotOlderThan")
    _invalid("ListOptions", _watch_errors(options) if watch else _list_errors(options))
    if fields is not None:
        _check_fields(resource, fields)
    if name:
        options = _named(options, name, fields)
    return options


def _list_errors(options: ListOptions) -> list[FieldError]:
    path, match = "resourceVersionMatch", options.match
    wrong: list[FieldError] = []
    if match:
        if not options.resource_version:
            wrong.append(field.forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.token:
            wrong.append(field.forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            wrong.append(field.not_supported(path, field.as_json(match), ["Exact", "NotOlderThan", ""]))
        if match == "Exact" and options.resource_version == "0":
            wrong.append(field.forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.initial_events is not None:
        wrong.append(field.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return wrong


def _watch_errors(options: ListOptions) -> list[FieldError]:
    path, match = "resourceVersionMatch", options.match
    wrong: list[FieldError] = []
    if options.initial_events is not None and match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        wrong.append(field.forbidden(path, text))
    if match:
        if options.initial_events is None:
            text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            wrong.append(field.forbidden(path, text))
        if match != "NotOlderThan":
            wrong.append(field.not_supported(path, field.as_json(match), ["NotOlderThan"]))
        if options.token:
            wrong.append(field.forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
    return wrong


def _check_fields(resource: Resource, selector: selectors.FieldSelector) -> None:
    supported = {*resource.metadata_labels, *resource.selectable_fields}
    for term in selector.terms:
        if term.field not in supported:
            raise errors.bad_request(resource.codec.unknown_field_label(term.field))


def _named(options: ListOptions, name: str, fields: selectors.FieldSelector | None) -> ListOptions:
    """The options of a watch of one object: its name becomes the field selector. Raises ApiError."""
    if fields is None or fields.empty:
        exact = selectors.parse_fields(f"metadata.name={name}")
        return options._replace(selection=options.selection._replace(fields=exact))
    if fields.exact("metadata.name") != name:
        raise errors.bad_request("fieldSelector metadata.name doesn't match requested name")
    return options


def parse_revision(text: str, refuse: Callable[[str], ApiError]) -> int:
    """A resourceVersion as a revision; "" is 0. `refuse` creates the error, which differs between lists and gets."""
    if not text:
        return 0
    try:
        return parse_uint(text)
    except ValueError as error:
        raise refuse(f"resourceVersion: Invalid value: {quote(text)}: {error}") from None


def window(options: ListOptions, *, paged: bool = False) -> Window:
    """The state and the page that a list requests. Raises ApiError.

    `paged`: the server lists in pages anyway, to delete the objects. A page is exactly at its resourceVersion, unless the
    list can have a single object only (upstream's ShouldDelegateList).
    """
    version = options.resource_version
    if options.token:
        decode_token(options.token, options.selection)  # refuses a token of another collection
        if version not in ("", "0"):
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        return Window(None, limit=0 if version == "0" else options.limit, token=options.token)
    revision = parse_revision(version, lambda text: errors.bad_request(f"invalid resource version: {text}"))
    if version == "0":
        return Window(None, limit=options.limit)
    is_page = revision > 0 and (options.limit > 0 or paged) and not options.match
    is_exact = options.match == "Exact"
    if not (is_exact or is_page):
        return Window(revision, limit=options.limit)
    is_single = options.selection.single is not None
    return Window(revision, is_exact or not is_single, options.limit, waits=not is_single)
