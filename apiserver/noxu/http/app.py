"""The HTTP application: from a request through the filters to its handler, and from the answer to the client and the sinks.

Routing finds the resource of a path, and the handler of a verb and a subresource. Upstream serves custom resources with one
handler that interprets any path. Built-in groups are go-restful web services: they have a route for each path and method. A
request without a route is refused before any lookup, with messages of its own, and HEAD is not a GET.

Every failure becomes an answer: an ApiError its Status, a StoreError and a bug an InternalError, of which the log has the
rest. A bug in a filter's `leave` or in a sink is logged, and changes neither the answer nor what the others do.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import time as unix_time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from aiohttp.http import HttpVersion11

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.api.meta import GroupVersionKind
from noxu.config import DEFAULT_REQUESTS, Requests
from noxu.containment import log_bug
from noxu.http import auditing, documents, filters, handlers, sending, subresources, traces
from noxu.http.answer import Answer, Answered
from noxu.http.clients import Clients, Unsent
from noxu.http.exchange import Backend, Exchange, Sink
from noxu.http.filters import RequestFilter
from noxu.http.handlers import Handler
from noxu.http.negotiation import warning_headers
from noxu.http.outgoing import date
from noxu.http.request import Received, RequestInfo
from noxu.http.responses import error_answer, too_late
from noxu.http.watch_requests import Watches
from noxu.identifiers import new_uuid
from noxu.registry.access import ALLOWED
from noxu.registry.offload import imported, offload
from noxu.registry.reader import be_consistent
from noxu.registry.resource import Resource, prepared
from noxu.registry.served_resources import ServedResources
from noxu.security.audit import AuditLog
from noxu.security.authentication import Authenticator
from noxu_storage.types import StoreError

if TYPE_CHECKING:
    from noxu.control.running import Control

log: Final = logging.getLogger("noxu")

T = TypeVar("T")
CONTROL: Final = "/_noxu/"
"""How the paths begin that stand beside the Kubernetes API."""
_OWN: Final = CONTROL.rstrip("/")
"""How any path begins that is not upstream's; CONTROL itself may lack its slash."""


class App:
    """Answers requests. `handle` is the handler of connections."""

    def __init__(
        self,
        backend: Backend,
        documents_: documents.Documents,
        own_names: Iterable[str] = (),
        traces_: traces.Traces | None = None,
        sinks: Sequence[Sink] = (),
        authenticator: Authenticator | None = None,
        audit_log: AuditLog | None = None,
        *,
        any_host: bool = False,
        limits: Requests = DEFAULT_REQUESTS,
        observer: RequestFilter | None = None,
        last: Sequence[RequestFilter] = (),
        clients: Clients | None = None,
        control: Callable[[], Control] | None = None,
    ) -> None:
        """`own_names` are names of this server besides loopback; with `any_host` every name is. `traces_` None disables tracing.

        Without an `authenticator` every client is anonymous. `observer` is entered before all other filters, those in `last`
        after them. `control` returns what `/_noxu/` is about; None: there is no such path.

        Each sink is called with every exchange, after its answer.
        """
        self.backend = backend
        self.documents = documents_
        self.traces = traces_
        self.control = control
        self.watches = Watches(limits.min_timeout)
        clients = clients or Clients()
        self.connections = clients.connections
        self.unsent = clients.unsent
        self.handshake_errors = clients.handshake_errors
        self.deadlines = Deadlines()
        self.audit_log = audit_log
        self.filters = filters.chain(
            own_names=frozenset(own_names),
            any_host=any_host,
            authenticator=authenticator,
            authorize=backend.authorize,
            traces=traces_,
            unsent=self.unsent,
            audit_log=audit_log,
            limits=limits,
            shares_store=backend.reader.store.shared,
            observer=observer,
            last=last,
        )
        self._last = tuple(last)
        self._answering: tuple[RequestFilter, ...] = ()
        self._enter = [filter_.enter for filter_ in self.filters]
        self.sinks = (*sinks, auditing.sink(audit_log)) if audit_log else tuple(sinks)

    def enter_last(self, last: Sequence[RequestFilter]) -> None:
        """Have other filters in `last`, from the next request on."""
        kept = [filter_ for filter_ in self.filters if filter_ not in (*self._last, *self._answering)]
        self._last = tuple(last)
        self._enter_filters((*kept, *self._last, *self._answering))

    def answer_after_filters(self, filter_: RequestFilter) -> None:
        """Enter a further filter after those in `last`: it answers requests that no handler could."""
        self._answering = (*self._answering, filter_)
        self._enter_filters((*self.filters, filter_))

    def _enter_filters(self, entered: Sequence[RequestFilter]) -> None:
        self.filters = tuple(entered)
        self._enter = [filter_.enter for filter_ in self.filters]  # a new list: requests under way go on with theirs

    def observe(self, observer: RequestFilter, *sinks: Sink) -> None:
        """Enter a further filter when the target of a request is parsed, and call further sinks, from the next request on."""
        at = next(n for n, filter_ in enumerate(self.filters, 1) if isinstance(filter_, filters.ParseTarget))
        self._enter_filters((*self.filters[:at], observer, *self.filters[at:]))
        self.sinks = (*self.sinks, *sinks)

    def observe_no_longer(self, observer: RequestFilter) -> None:
        """Requests under way are observed to their ends."""
        self._enter_filters([filter_ for filter_ in self.filters if filter_ is not observer])

    def end_watches(self) -> None:
        self.watches.end()

    async def handle(self, request: Received) -> None:
        """Answer one request. Raises ConnectionError if the client is gone."""
        time = request.connection.loop.time  # to ask which loop runs is a system call, before Python 3.12
        exchange = Exchange(request, self.backend, request.headers.get("Audit-Id") or new_uuid(), time())
        try:
            answer = await self._filtered(exchange, time)
            if answer is None:
                return
            if request.connection.has_answered:  # a stream that has failed on its way: only its end can say so
                raise ConnectionResetError("the answer has begun")
            if exchange.record is not None:
                answer = auditing.observed(exchange, exchange.record, answer)
            # a recording has the answer before the client, as it has a write before its event
            if exchange.answer_seen is not None:
                answer = exchange.answer_seen(exchange, answer)
            waits = send(exchange, answer, self.unsent)
            if waits is not None:
                await waits
        finally:
            if exchange.limit is not None:  # also if the client is gone, or it was cancelled
                exchange.limit.running -= 1
            exchange.answered = time()
            if self.sinks:
                call_all("a sink for %s", self.sinks, exchange)

    async def _filtered(self, exchange: Exchange, time: Callable[[], float]) -> Answer | None:
        """Enter the filters, make the answer, and leave those that were entered. None: it has been sent, as by a watch."""
        answer: Answer | None = None
        try:
            try:
                for enter in self._enter:
                    waiting = enter(exchange)
                    if waiting is not None:
                        await waiting
                if exchange.decision is None:  # then it is not asked for: everything is allowed
                    exchange.decision = ALLOWED
                answer = await self._route(exchange)
            except Answered as answered:
                answer = answered.answer
            except ApiError as error:
                exchange.error = error.with_traceback(None)  # whose frames refer to the exchange: a cycle
            except StoreError as failure:
                log.error("%s: %s", exchange, failure)  # noqa: TRY400 - not a bug
                exchange.error = errors.internal_error(f"the storage failed: {failure}")
            except ConnectionError:  # the client is gone
                raise
            except Exception as bug:  # noqa: BLE001 - the only place where a bug becomes an answer
                log_bug(exchange, bug)
                exchange.panicked = True
                exchange.error = errors.internal_error("this is a bug in the server; its log says more")
            if exchange.error is not None:
                size = len(exchange.error.message)
                cbor = self.backend.features.cbor and exchange.is_routed
                answer = await offload(size, error_answer, exchange.error, exchange.request, cbor=cbor)
            if answer is not None:
                exchange.code = answer.status
            return answer
        finally:
            exchange.handled = time()
            if exchange.room:
                self.backend.large_requests.leave(exchange.room)
            if exchange.leaving:
                call_all("%s", reversed(exchange.leaving), exchange)
            if exchange.noted is not None and exchange.noted.warnings:
                exchange.headers += [("Warning", text) for text in warning_headers(exchange.noted.warnings)]

    async def _route(self, exchange: Exchange) -> Answer | None:
        """Find the handler and call it. Raises ApiError."""
        info, method, path = exchange.info, exchange.request.method, exchange.path
        if exchange.moment:
            await self._enter_past(exchange)
        served_resources = exchange.backend.served_resources.current
        if not info.is_resource:
            check_route(served_resources, method, path, info)
            if exchange.moment or path.startswith(_OWN):
                return await self._own_document(exchange)
            # discovery, OpenAPI, health: any method will do
            return await self.documents.answer(path, exchange.query, exchange.request.headers)
        try:
            resource = find_resource(served_resources, method, path, info)
        except ApiError:
            if not self.backend.reader.store.shared or exchange.moment:
                raise
            # a read from a resourceVersion has not waited for a definition that another server has just answered
            environment = self.backend.writer.environment
            name = f"{info.resource}.{info.group}"
            await be_consistent(environment.reader, environment.followers, filters.DEFINITIONS, name)
            resource = find_resource(self.backend.served_resources.current, method, path, info)
        exchange.resource = resource  # of one snapshot of what is served: it stays, whatever changes meanwhile
        if resource.deprecation_text:  # also if the version has no such subresource or verb
            exchange.outcome.warnings.append(resource.deprecation_text)
        is_watch = info.verb == "watch" and not info.subresource and "watch" in resource.verbs
        handler = None if is_watch else handler_of(resource, info)
        exchange.is_routed = True
        if handler is None:
            if not resource.versions.is_prepared:
                await prepared(resource.versions)
            return await self.watches.handle(exchange)
        deadline = self.deadlines.until(exchange.deadline, exchange.request.connection.task)
        try:
            with deadline:
                if not resource.versions.is_prepared:
                    await prepared(resource.versions)
                return await handler(exchange)
        except TimeoutError:
            if not deadline.expired:  # of something else, which should have handled it
                raise
            raise too_late() from None

    async def _enter_past(self, exchange: Exchange) -> None:
        """Give a request the backend of the moment that it reads. Raises ApiError."""
        if self.control is None:
            raise errors.page_not_found()
        enter = (await imported("noxu.http.past")).enter  # with the first such request
        await enter(exchange, self.control(), self.documents)

    async def _own_document(self, exchange: Exchange) -> Answer | None:
        """Answer a request for a document of the past, a trace, or a call of /_noxu/. Raises ApiError. None: it has been sent."""
        if exchange.moment:
            return await (await imported("noxu.http.past")).document(exchange)  # type: ignore[no-any-return]
        if self.traces is not None and exchange.path.startswith(traces.PATH):
            return self.traces.answer(exchange.request.method, exchange.path)
        if self.control is not None and f"{exchange.path}/".startswith(CONTROL):
            answer = (await imported("noxu.http.control")).answer  # with the first such request
            return await answer(exchange, self.control())  # type: ignore[no-any-return]
        return await self.documents.answer(exchange.path, exchange.query, exchange.request.headers)


def call_all(activity: str, functions: Iterable[Callable[[T], object]], argument: T) -> None:
    """Call each function with the argument, all of them even if some fail. Costs less than a `Contained` for each.

    `activity` is the subject of the log message, in which %s is the argument: a text that is rarely needed.
    """
    for function in functions:
        try:
            function(argument)
        except Exception as bug:  # noqa: BLE001
            log_bug(activity.replace("%s", str(argument)), bug)


def send(exchange: Exchange, answer: Answer, unsent: Unsent) -> Awaitable[None] | None:
    """Send an answer. None if the kernel has taken all of it, else what to await.

    Raises ConnectionError, and so does the awaitable. A GET takes a seventh more processor time if `sending.send` answers it.
    """
    request, body, id_ = exchange.request, answer.body, exchange.id
    connection = request.connection
    if (
        not isinstance(body, bytes)
        or not 0 < len(body) <= sending.PIECE
        or exchange.headers
        or connection.closes
        or request.version != HttpVersion11
        or request.method == "HEAD"
        or not request.keep_alive
        or not (id_.isascii() and id_.isprintable())
        or (head := sending.usual_head(answer.status, answer.content_type, answer.headers)) is None
    ):
        return sending.send(exchange, answer, unsent)
    exchange.sent_bytes = size = len(body)
    # one object of bytes, and one system call: a head of its own would be a packet of its own
    now = date(int(unix_time()))
    return connection.answer(b"%b%b%b%d\r\nDate: %b\r\n\r\n%b" % (head[0], id_.encode(), head[1], size, now, body))


# -- routing -----------------------------------------------------------------------------------------------------------


OBJECTS: Final[dict[str, Handler]] = {
    "get": handlers.get,
    "list": handlers.list_,
    "create": handlers.create,
    "update": handlers.update,
    "patch": handlers.patch,
    "delete": handlers.delete,
    "deletecollection": handlers.delete_collection,
}
"""By verb, for objects and for subresources whose body is the whole object. `watch_requests` handles watches."""
SUBRESOURCES: Final[dict[tuple[str, str], Handler]] = {
    ("scale", "get"): subresources.get_scale,
    ("scale", "update"): subresources.update_scale,
    ("scale", "patch"): subresources.patch_scale,
    ("token", "create"): subresources.issue_token,
    ("log", "get"): subresources.read_log,
}
"""By subresource and verb, for other subresources; those that act on their object are `handlers.act`."""
_BINDING: Final = GroupVersionKind("", "v1", "Binding")

_GET: Final = frozenset({"GET"})
_NO_METHOD: Final[frozenset[str]] = frozenset()
_COLLECTION_METHODS: Final = {"list": "GET", "create": "POST", "deletecollection": "DELETE"}
_OBJECT_METHODS: Final = {"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_WITH_ROUTES: Final = ("/version", "/openid/", "/.well-known/", "/api")
_PROXIED: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_ON_STATUS: Final = ("get", "update", "patch")
"""The verbs of a definition's status."""


def find_resource(served_resources: ServedResources, method: str, path: str, info: RequestInfo) -> Resource:
    """The resource of a path. Raises ApiError NotFound, MethodNotAllowed.

    A path of the wrong scope is not found (CVE-2019-11247).
    """
    resource = served_resources.by_path.get((info.group, info.version, info.resource))
    if resource is None or not resource.is_custom:  # custom resources have no routes, whatever the method
        check_route(served_resources, method, path, info)
    if resource is None:
        raise not_served(served_resources, info.group, info.version)
    if info.in_namespace and not resource.namespaced:
        raise errors.page_not_found()
    # only lists go over all namespaces
    if resource.namespaced and not info.namespace and info.verb not in ("list", "watch"):
        raise errors.page_not_found()
    return resource


def is_elsewhere(served_resources: ServedResources, group: str, version: str) -> bool:
    """Whether an APIService asks for another server for a group version, and this one has no resources of it."""
    return (group, version) in served_resources.elsewhere and not served_resources.serves(group, version)


def not_served(served_resources: ServedResources, group: str, version: str) -> ApiError:
    """The error for a path of a group version that this server does not have."""
    if not is_elsewhere(served_resources, group, version):
        return errors.page_not_found()
    return errors.unavailable(
        f"noxu does not forward requests to other API servers, as the APIService {version}.{group} asks for; "
        "`noxu serve --kinds FILE` serves the kinds of an OpenAPI document"
    )


def handler_of(resource: Resource, info: RequestInfo) -> Handler:
    """Raises ApiError NotFound, MethodNotAllowed."""
    subresource, verb = info.subresource, info.verb
    if subresource and subresource not in resource.subresources:
        raise errors.not_found(resource.group_resource, info.name)
    handler = _of_subresource(resource, subresource, verb) if subresource else _of_object(resource, verb)
    if handler is None:
        raise errors.method_not_allowed(resource.group_resource, verb)
    return handler


def _of_object(resource: Resource, verb: str) -> Handler | None:
    if verb not in resource.verbs:
        return None
    if not resource.is_custom and not resource.is_stored:
        # the only kind that is posted to its collection and acts on another
        return handlers.act if resource.gvk == _BINDING else handlers.review
    return OBJECTS.get(verb)


def _of_subresource(resource: Resource, name: str, verb: str) -> Handler | None:
    part = resource.table.subresource(name) if resource.table is not None else None
    if part is not None and part.connect:
        return subresources.CONNECTIONS[name]  # for every method that its path has
    if part is not None and verb not in part.verbs:
        return None
    if (name, verb) in SUBRESOURCES:
        return SUBRESOURCES[name, verb]
    if name in resource.bodies:
        return handlers.act
    # of parts without a body of their own, status is the usual one
    is_whole_object = name == "status" or (part is not None and part.body is None)
    return OBJECTS[verb] if is_whole_object and verb in _ON_STATUS else None


# -- web services -----------------------------------------------------------------------------------------------------


def check_route(served_resources: ServedResources, method: str, path: str, info: RequestInfo) -> None:
    """Raises ApiError NotFound or MethodNotAllowed for a path that a web service has, but not with this method.

    Raises ApiError ServiceUnavailable for the discovery document of a group version that another server has.
    """
    if not info.is_resource and not path.startswith(_WITH_ROUTES):
        return  # no web service has it, as health checks
    if not info.is_resource and served_resources.elsewhere:
        match path.rstrip("/").split("/"):
            case ["", "apis", group, version] if is_elsewhere(served_resources, group, version):
                raise not_served(served_resources, group, version)
    methods = methods_of(served_resources, path, info)
    if methods is None or method in methods:
        return
    raise errors.no_route_with_method() if methods else errors.no_route()


def methods_of(served_resources: ServedResources, path: str, info: RequestInfo) -> frozenset[str] | None:
    """The methods of a path; None if it does not belong to a web service."""
    if not info.is_resource:
        return _of_document(served_resources, path)
    if info.group not in served_resources.built_in_groups:
        return None
    resource = served_resources.by_path.get((info.group, info.version, info.resource))
    if resource is None:
        return _NO_METHOD
    if resource.is_custom:
        return None  # a custom resource in a built-in group
    methods = _of_resource(resource, info)
    if info.watching:
        # the old paths of watches, which have no other method
        return methods & _GET if not info.subresource and "watch" in resource.verbs else _NO_METHOD
    return methods


def _of_document(served_resources: ServedResources, path: str) -> frozenset[str] | None:
    """/version, the documents of OpenID, and the discovery documents of built-in groups."""
    match path.rstrip("/").split("/"):
        case ["", "version", *rest]:
            return _NO_METHOD if rest else _GET
        case ["", "openid", "v1", "jwks"] | ["", ".well-known", "openid-configuration"]:
            return _GET
        case ["", "api", *rest]:
            group = ""
        case ["", "apis", group, *rest] if group:
            pass
        case _:
            return None
    if group not in served_resources.built_in_groups:
        return None
    return _GET if not rest or rest[0] in served_resources.groups[group] else _NO_METHOD


def _of_resource(resource: Resource, info: RequestInfo) -> frozenset[str]:
    part = resource.table.subresource(info.subresource) if resource.table is not None and info.subresource else None
    is_proxy = part is not None and part.connect and part.name == "proxy"
    if (info.more and not is_proxy) or (info.in_namespace and not resource.namespaced):
        return _NO_METHOD
    if resource.namespaced and not info.in_namespace:  # all namespaces, which can only be listed
        return _GET if not info.name and "list" in resource.verbs else _NO_METHOD
    if is_proxy:
        return _PROXIED
    if part is not None:
        return frozenset(_OBJECT_METHODS[verb] for verb in part.verbs)
    if info.subresource:
        return frozenset(_OBJECT_METHODS[verb] for verb in _ON_STATUS if info.subresource in resource.subresources)
    if info.name:
        return frozenset(
            _OBJECT_METHODS[verb] for verb in resource.verbs if verb in _OBJECT_METHODS and verb != "create"
        )
    # what remains is a collection
    return frozenset(_COLLECTION_METHODS[verb] for verb in resource.verbs if verb in _COLLECTION_METHODS)


# -- deadlines ----------------------------------------------------------------------------------------------------------


class Deadlines:
    """The deadlines of the requests that are being handled, with one timer for all of them.

    Nearly all requests are answered long before their deadline, so a timer for each (`asyncio.timeout_at`) would be set and
    cancelled in vain. Nearly all have the same time, too, so the deadline of a new request is rarely the earliest, and the timer
    stays as it is. It fires at the earliest deadline that it knew: then it ends the requests that are late, and is set for the
    earliest of the others. With requests that have 60 seconds:

        at 0    a begins: the timer is set for 60       at 61   c is handled, which began at 61: nothing changes
        at 1    a is answered: the timer stays          at 90   d begins, and has 5 seconds: the timer is set for 95
        at 60   the timer fires; b began at 30: set     at 95   the timer fires, d is late; set for 121, that of c
                for 90, and so on

    A late task is cancelled like by `asyncio.timeout_at`, and its body ends with TimeoutError.
    """

    def __init__(self) -> None:
        self.running: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = math.inf

    def until(self, when: float, task: asyncio.Task[Any] | None = None) -> Deadline:
        """A context manager whose body may run until `when`, in the event loop's time. It is used once.

        `task` is the current one: to find it, where it is not given, is a system call before Python 3.12.
        """
        if when < self._fires_at:  # the timer is never set for later: it fires in vain instead
            self._set_timer(when)
        return Deadline(self.running, when, task or _current_task())

    def close(self) -> None:
        """Forget the timer, which would keep what it knows until it fires."""
        self._set_timer(math.inf)

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires_at = when
        self._timer = None if when == math.inf else asyncio.get_running_loop().call_at(when, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        late = [deadline for deadline in self.running if deadline.when <= now]
        self.running.difference_update(late)  # before they are expired: each may end by itself in the same turn
        self._set_timer(min([deadline.when for deadline in self.running], default=math.inf))
        for deadline in late:
            deadline.expire()


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


class Deadline:
    """See `Deadlines.until`. `expired`: the body has been cancelled because it is late."""

    __slots__ = ("_cancellations", "_running", "_task", "expired", "when")

    def __init__(self, running: set[Deadline], when: float, task: asyncio.Task[Any]) -> None:
        self._running = running
        self._task = task
        self.when = when
        self.expired = False

    def __enter__(self) -> Self:
        self._cancellations = self._task.cancelling()  # those of others, which must not become a TimeoutError
        self._running.add(self)  # of all requests: `Deadlines` looks through it when its timer fires
        return self

    def expire(self) -> None:
        self.expired = True  # before the task goes on
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.discard(self)
        if self.expired and self._task.uncancel() <= self._cancellations and kind is asyncio.CancelledError:
            raise TimeoutError from error
