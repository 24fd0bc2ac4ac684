"""A server: it listens, answers requests with a control plane, and stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from noxu.clock import SYSTEM_CLOCK, Clock
from noxu.config import COMPACT_EVERY, Audit, Config, StartError, own_version
from noxu.control.history import WriteHistory
from noxu.control.retention import Retention
from noxu.control.running import Control
from noxu.control_plane import ControlPlane, Seams, assemble, dismantle, in_background, modes_of, resource_of, running
from noxu.crd.types import GROUP, RESOURCE
from noxu.features import ALWAYS_ALLOW
from noxu.go.structs import raise_recursion_limit
from noxu.http.clients import Clients
from noxu.http.http_server import HttpServer
from noxu.http.tls import Handshakes, TlsConnection
from noxu.http.webhooks import WebhookClient
from noxu.identifiers import SYSTEM_IDENTIFIERS, Identifiers
from noxu.process import configured, listeners, tenancy
from noxu.process.certificates import Secured
from noxu.process.configured import reachable
from noxu.process.limits import sentence
from noxu.process.listeners import Listeners
from noxu.process.stores import open_store
from noxu.registry.authors import BOOTSTRAP, FILES, TEMPLATE, Journal, writing_as
from noxu.security import settings
from noxu.security.credentials import ADMINISTRATOR
from noxu.security.kubeconfig import Access
from noxu.webhook.client import Caller, Service
from noxu_storage.memory import Base, MemoryStore
from noxu_storage.store import Store
from noxu_storage.types import Prefix, Progress, Unavailable

if TYPE_CHECKING:
    from noxu.control.templates import Template
    from noxu.crd.known_definitions import KnownDefinitions
    from noxu.http.app import App
    from noxu.http.exchange import Sink
    from noxu.http.filters import RequestFilter
    from noxu.http.interventions import Interventions
    from noxu.manifests.documents import Document, Read
    from noxu.manifests.served_files import Loaded
    from noxu.manifests.watch import FileWatch
    from noxu.process.tracing import ServerTracing
    from noxu.registry.access import User
    from noxu.security.audit import AuditLog

STOP_WITHIN: Final = 5.0  # seconds for requests in flight to finish
ACCEPTED_AT_ONCE: Final = (
    32  # connections; each takes 80 µs of the event loop, and its first request five times as long
)
SHOWN_AFTER: Final = 0.5  # seconds of a start without progress
SHOWN_EVERY: Final = 0.1  # seconds

INTERVENTIONS: Final = "noxu.http.interventions"
DETERMINISM: Final = "noxu.control.determinism"
FAULTS: Final = "noxu.control.fault_routes"
TRACING: Final = "noxu.process.tracing"
RECORDER: Final = "noxu.process.recorder"
"""Modules that few servers need."""

log = logging.getLogger("noxu")

Shown: TypeAlias = Callable[[], contextlib.AbstractContextManager[Progress]]
"""Shows how far a work is while the context is open."""


class Server:
    """An async context manager: the server runs inside it. `documents` are loaded first. Raises StartError.

    `claimed` is called at the start, when the address and the data directory are this server's. `observer` is a filter
    that is entered before all others. `compiling` shows how many of the stored definitions are served, while a start
    takes long. `watch` applies what changes in the files. `definitions` is what is known of the definitions in
    `documents`: it saves work, and is added to. `own_process`: the process does nothing else, so the garbage collector
    is the server's. `after`: the stopped server that this one is a restart of, whose keys, certificates, tokens and
    functions it has, and its objects if they were in memory. `template`: what it begins with instead of documents.
    `base`: the objects that a store in memory begins with.
    `parent`: the running server whose tenant this one is, see `tenancy`.
    """

    plane: ControlPlane
    listeners: Listeners
    outgoing: WebhookClient
    caller: Caller
    """It calls webhooks by `outgoing`, with spans if there are any."""
    clock: Clock
    identifiers: Identifiers

    def __init__(
        self,
        config: Config,
        documents: Iterable[Document] = (),
        clock: Clock = SYSTEM_CLOCK,
        identifiers: Identifiers = SYSTEM_IDENTIFIERS,
        claimed: Callable[[], object] = lambda: None,
        observer: RequestFilter | None = None,
        compiling: Shown | None = None,
        definitions: KnownDefinitions | None = None,
        watch: FileWatch | None = None,
        *,
        own_process: bool = False,
        after: Server | None = None,
        template: Template | None = None,
        base: Base | None = None,
        parent: Server | None = None,
    ) -> None:
        self.config = config
        self.documents = documents
        self.given: Sequence[Document] | None = None
        """The documents that it was started with, for its tenants; None: those of its files, which can be read again."""
        self.read: Read | None = None
        """How those are read, by default as `manifests.documents.contents_of`."""
        self.clock = configured.clock(config, clock) if after is None else after.clock
        self.identifiers = configured.identifiers(config, identifiers) if after is None else after.identifiers
        self.claimed = claimed
        self.observer = observer
        self.compiling = compiling
        self.definitions = definitions
        self.watch = watch
        self.own_process = own_process
        self.url = ""
        self.secured: Secured | None = None
        self.parent: Server | None = parent
        self.clients: Clients = Clients() if parent is None else parent.clients.of_tenant()
        self.retention = Retention(self.config.history or COMPACT_EVERY)
        self.history: WriteHistory | None = None
        """Who has written; None: that is not kept."""
        self.is_stopping = False
        self.sinks: list[Sink] = []
        self.tracing: ServerTracing | None = None
        self._handshakes: Handshakes | None = None
        self._http: HttpServer
        self._after = after
        self.is_restart = after is not None
        self.template = template
        self._base = base
        self.token = ""  # of the administrator, random
        self.authentication: settings.Settings  # without that of certificates
        self._interventions: Interventions | None = None
        self.control = Control(self)
        """What `/_noxu/` keeps about it."""
        self._closing = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException as error:
            await self._closing.aclose()
            if said := sentence(error):
                raise StartError(said) from error
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._closing.aclose()
        if self.parent is not None:
            self._dismantle()

    def _dismantle(self) -> None:
        """Cut the cycles among the parts of a stopped server, whose memory is free at once then.

        A server collects garbage seldom (`garbage.OF_A_SERVER`): a thousand tenants that have ended would be a quarter of a
        gigabyte until the next time.
        """
        dismantle(self.plane)
        self._http.dismantle()
        if self.history is not None:
            vars(self.history).clear()  # its journal refers to it
        vars(self).clear()

    async def _start(self) -> None:
        configured.check_controllers(self.config)
        if self.parent is not None:  # its socket needs a file
            self._closing.enter_context(self.parent.clients.connections.reserved(1))
        self.listeners = self._closing.enter_context(
            listeners.opened(self.config, None if self.parent is None else self.config.tenant_ports)
        )
        self.config = configured.protected(self.config, on_loopback=self.listeners.on_loopback)
        configured.check_names(self.config)
        after, self._after = self._after, None
        if after is not None:
            self.token, self.authentication = after.token, after.authentication
        elif self.parent is not None:
            self.authentication = tenancy.authentication_of(self.parent.authentication)
        else:
            self.authentication = configured.authentication_of(self.config)
        raise_recursion_limit()  # for stored schemas, which may be deep
        services = {Service(*name): address for name, address in self.config.webhook_services}
        self.tracing = await self._tracing()
        self.outgoing = WebhookClient(services)
        self._closing.push_async_callback(self.outgoing.close)
        self.caller = self.outgoing if self.tracing is None else self.tracing.calls(self.outgoing)
        plane = await self._assemble(self.caller, after)
        if self.tracing is not None:
            self.tracing.observe_writes(plane, _system(self.config))
        async with _compiled(plane, self.compiling):
            with writing_as(BOOTSTRAP):
                self.plane = await self._closing.enter_async_context(running(plane))
        if self.config.deterministic is not None:
            await import_module(DETERMINISM).begin(plane)
        with writing_as(FILES):
            loaded = await self._load()
        await in_background(self._closing, compact_periodically(plane.store, retention=self.retention), "compaction")
        if self.history is not None and self.history.has_file:
            self._closing.push_async_callback(self.history.save)
            await in_background(self._closing, self.history.save_periodically(), "history")
        await self._serve()
        await self._begin_interventions()
        if self.watch is not None and loaded is not None:
            with writing_as(FILES):
                await in_background(self._closing, self.watch.run(plane, loaded), "watch of files")

    async def _tracing(self) -> ServerTracing | None:
        """None: its requests have no spans. Raises StartError."""
        if self.parent is not None:
            return self.parent.tracing
        if self.config.tracing_config_file is None:
            return None
        module = import_module(TRACING)  # few servers have it
        opened: contextlib.AbstractAsyncContextManager[ServerTracing] = module.opened(
            self.config.tracing_config_file, own_version()
        )
        return await self._closing.enter_async_context(opened)  # before all others, so that it is closed last

    async def _assemble(self, caller: Caller, after: Server | None) -> ControlPlane:
        """The control plane over the store of the configuration, which `running` closes. Raises StartError."""
        if self.template is not None and after is None:
            self.claimed()
            self.secured = self._certificates(after)
            plane = self.template.begin(self.config, self._seams(caller))
        else:
            plane = await self._assemble_whole(caller, after)
        if self.config.history:
            plane.persistence.journal = journal = Journal(self.clock)
            is_same = after is not None and after.plane.store is plane.store  # it was in memory, and still is
            before = after.history if after is not None and is_same else None
            earlier = TEMPLATE if self.template is not None and after is None else None
            self.history = WriteHistory(plane.store, journal, before, earlier)
        return plane

    async def _assemble_whole(self, caller: Caller, after: Server | None) -> ControlPlane:
        """The same without a template. Raises StartError."""
        store = await self._store(after)
        try:
            self.claimed()
            self.secured = self._certificates(after)
            seams = self._seams(caller)
        except BaseException:
            await store.close()
            raise
        plane = assemble(self.config, store, seams)
        if after is not None:
            plane.inherit(after.plane)
        return plane

    async def _store(self, after: Server | None) -> Store:
        """Raises StartError."""
        if self._base is not None and after is None:
            return MemoryStore(self._base)
        return await open_store(self.config, None if after is None else after.plane.store)

    def _certificates(self, after: Server | None) -> Secured | None:
        """None: there is no TLS. Raises StartError."""
        if after is not None:
            return after.secured
        if self.parent is not None:
            return tenancy.secured_of(self.parent.secured)
        return configured.secured(self.config, on_loopback=self.listeners.on_loopback)

    @property
    def interventions(self) -> Interventions:
        """Faults, and what observes clients; they are made at the first use."""
        if self._interventions is None:
            module = import_module(INTERVENTIONS)  # few servers have any
            self._interventions = module.Interventions(lambda: self._http, self.clock, self.outgoing)
        return self._interventions

    async def _begin_interventions(self) -> None:
        """What the configuration wants: requests that begin one after the other; faults; a record of requests; a recording. Raises StartError."""
        if self.config.deterministic is not None:
            self.interventions.await_turn(partial(import_module(DETERMINISM).until_settled, self.plane))
        if self.config.begins_with_faults:
            import_module(FAULTS).begin(self.control)
        if self.config.record_requests:
            self.interventions.requests().misses_before = 0.0  # no client has asked yet
        if self.config.record is not None and self.parent is None:
            await import_module(RECORDER).begin(self, self._closing)

    def _seams(self, caller: Caller) -> Seams:
        authentication, root_ca = self.authentication, ""
        if self.secured is not None:
            certificates = self.secured.authenticators(self.config.authentication)
            authentication = authentication._replace(certificates=certificates)
            root_ca = self.secured.certificate_authority.decode()
        foreign = []
        if self.config.kinds:
            from noxu.manifests.served_files import foreign_kinds  # it knows YAML

            foreign = foreign_kinds(self.config.kinds)
        return Seams(
            self.clock,
            self.identifiers,
            caller,
            configured.facts(self.config, self.listeners, self.identifiers.new_uid()),
            authentication,
            root_ca,
            configured.signing_ca(self.config, self.secured),
            foreign,
        )

    async def _load(self) -> Loaded | None:
        """Load the documents. None: there are no files. Raises StartError."""
        if not (self.documents or self.config.files or self.config.kustomizations):
            return None
        from noxu.manifests import served_files  # it knows YAML

        reads_stdin = served_files.reads_stdin(self.config)
        if not (self.config.files or self.config.kustomizations):
            self.documents = self.given = tuple(self.documents)
        collects = self.watch is not None or reads_stdin
        loaded = await served_files.load(self.plane, self.config, self.documents, self.definitions, collects=collects)
        if reads_stdin:
            self.given = loaded.documents
        self.documents = ()
        served_files.check_loaded(self.config, loaded.errors)
        return loaded

    async def _serve(self) -> None:
        address = reachable(self.listeners.address)
        scheme = "http" if self.secured is None else "https"
        self.url = f"{scheme}://{configured.authority(self.config, self.listeners, address)}"
        self.sinks, audit_log = await self._sinks(), await self._audit_log()
        advertised = configured.authority(self.config, self.listeners, self.config.advertise_address or address)
        on_loopback = self.listeners.on_loopback  # not with the first request: a closed listener has no address
        make = partial(self._application, scheme, advertised, on_loopback, self.sinks, audit_log)
        self._http = HttpServer(make, self.clients, own_process=self.own_process)
        servers = await self._listen(self._http)
        self._closing.push_async_callback(self._stop, servers)

    def _application(
        self, scheme: str, authority: str, on_loopback: bool, sinks: list[Sink], audit_log: AuditLog | None
    ) -> App:
        from noxu.http.application import application  # with the first request

        app = application(
            self.plane,
            self.config,
            self.clients,
            scheme=scheme,
            authority=authority,
            own_version=own_version,
            is_stopping=lambda: self.is_stopping,
            on_loopback=on_loopback,
            sinks=sinks,
            audit_log=audit_log,
            observer=self.observer,
            last=() if self._interventions is None else self._interventions.last,
            control=lambda: self.control,
        )
        app.documents.notes = self._notes
        if self.tracing is not None:
            self.tracing.observe_requests(app)
        return app

    def _notes(self) -> list[str]:
        """What a verbose report about the health of the server says besides."""
        return [] if self._interventions is None else self._interventions.notes()

    async def _listen(self, http: HttpServer) -> list[asyncio.Server]:
        loop = asyncio.get_running_loop()
        # asyncio's own loop accepts `backlog` connections at once, and without descriptors reports as many errors at once.
        at_once = 1 if isinstance(loop, asyncio.SelectorEventLoop) else ACCEPTED_AT_ONCE
        accept = http.connection if self.secured is None else await self._tls_connection(self.secured, http.connection)
        servers = []
        for listener in (self.listeners.main, *self.listeners.others):
            if listeners.is_unix(listener):  # without TLS: only its owner can connect
                servers.append(await loop.create_unix_server(http.connection, sock=listener, backlog=at_once))
            else:
                servers.append(await loop.create_server(accept, sock=listener, backlog=at_once))
            listener.listen(listeners.BACKLOG)  # asyncio has one number for both
        return servers

    async def _stop(self, servers: list[asyncio.Server]) -> None:
        self.is_stopping = True
        await self.plane.bootstrap.withdraw()  # as upstream, before connections are refused
        for server in servers:
            server.close()
        self.clients.connections.close()  # the event loop may find more that the kernel has accepted
        await self.control.close()  # what is held ends, and with it the answers that would not end by themselves
        if self._handshakes is not None:
            self._handshakes.abort()
        if self._http.made is not None:
            self._http.made.end_watches()
        while self.parent is None and self.clients.unsent.disconnect_stalled():
            pass
        within = STOP_WITHIN if self.config.stop_within is None else self.config.stop_within
        await self._http.shutdown(within)
        if self.parent is not None:  # the process goes on, and those that read nothing would keep its files open
            self._http.abort_unsent()

    @property
    def tenants_config(self) -> Config:
        """The configuration of its tenants."""
        return tenancy.config_of(self.config, self.listeners)

    def tenant(
        self, template: Template | None = None, documents: Iterable[Document] = (), base: Base | None = None
    ) -> Server:
        """A tenant of this server, which is not started yet: see `tenancy`.

        It begins with the template or the stored objects, if there are any, and loads the documents.
        """
        return Server(self.tenants_config, documents, template=template, base=base, parent=self)

    @property
    def app(self) -> App:
        """The application, which exists from the first request on, or the first use of this property."""
        return self._http.app

    async def _sinks(self) -> list[Sink]:
        """The access log, if there is one."""
        if self.parent is not None:
            return self.parent.sinks
        if not self.config.log.requests:
            return []
        from noxu.http.metrics import access_log  # 10 ms, and few servers have one
        from noxu.observability.line_writer import LineWriter
        from noxu.observability.log_files import STDERR, StandardOutput

        writer = LineWriter(StandardOutput(STDERR), "the log of requests")
        self._closing.push_async_callback(writer.close)
        return [access_log(writer, self.config.log.format)]

    async def _audit_log(self) -> AuditLog | None:
        """Open the audit log, which is closed after the last request. Raises StartError."""
        config = self.config.audit
        if config == Audit():
            return None
        from noxu.observability.audit_output import audit_log  # few servers have one

        try:
            return await self._closing.enter_async_context(audit_log(config))
        except ValueError as error:
            raise StartError(f"--audit-policy-file: {error}") from None
        except OSError as error:
            raise StartError(f"cannot write the audit log {config.log_path}: {error.strerror or error}") from None

    async def _tls_connection(
        self, secured: Secured, connection: Callable[[], asyncio.Protocol]
    ) -> Callable[[], asyncio.Protocol]:
        """The factory of connections that begin with a handshake."""
        await in_background(self._closing, secured.tls.reload_periodically(), "certificates")
        clients = self.clients
        self._handshakes = handshakes = Handshakes(clients.handshake_errors)
        return partial(TlsConnection, connection, secured.tls.context, handshakes, clients)

    def access(self) -> Access:
        """What its administrator needs to use the server, for a kubeconfig."""
        if self.secured is not None:
            return self.secured.access(self.url)
        if self.plane.authenticator.allows_anonymous and ALWAYS_ALLOW in modes_of(self.config):
            return Access(self.url)
        if not self.token:
            self.token = self.plane.static_tokens.issue(ADMINISTRATOR)
            if self.parent is None:
                log.warning(
                    "kubectl and other clients in Go send no credentials without TLS, so they are anonymous: use --tls"
                )
        return Access(self.url, token=self.token)

    def access_of(self, user: User) -> Access:
        """What a user needs, with new credentials: over HTTP a token, over TLS a client certificate.

        Raises ValueError for what no certificate can have: a uid, a name that is empty or too long.
        """
        if self.secured is None:
            return Access(self.url, token=self.plane.static_tokens.issue(user))
        if user.uid:
            raise ValueError("the certificates of users have no uid")
        identity = self.secured.own().authority.issue_client(user.name, user.groups)
        return Access(self.url, self.secured.certificate_authority, identity.certificate, identity.key)


def _system(config: Config) -> str:
    """The kind of store, as the conventions of OpenTelemetry name it."""
    if config.etcd is not None:
        return "etcd"
    return "memory" if config.data is None else "sqlite"


@contextlib.asynccontextmanager
async def _compiled(plane: ControlPlane, show: Shown | None) -> AsyncIterator[None]:
    """Show how many of the stored definitions are served, while that takes longer than SHOWN_AFTER."""
    if show is None:
        yield
        return
    task = asyncio.create_task(_show_compiled(plane, show))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _show_compiled(plane: ControlPlane, show: Shown) -> None:
    await asyncio.sleep(SHOWN_AFTER)
    total = await plane.store.count(Prefix(resource_of(plane.served_resources, GROUP, RESOURCE).collection))
    with show() as report:
        while True:
            report(len(plane.served_resources.current.defined), total)
            await asyncio.sleep(SHOWN_EVERY)


async def compact_periodically(store: Store, clock: Clock = SYSTEM_CLOCK, retention: Retention | None = None) -> None:
    """Every COMPACT_EVERY seconds, remove the history that is not needed, by default that before the previous round.

    A failure is logged.
    """
    retention = retention or Retention()
    retention.end_round(store.revision)
    while True:
        await clock.sleep(COMPACT_EVERY)
        old = retention.oldest_needed()
        if old > store.compacted:
            try:
                await store.compact_in_turn(old)
            except Unavailable as error:
                log.warning("the history is not compacted: %s; the next attempt is in %g s", error, COMPACT_EVERY)
        retention.end_round(store.revision)
