"""A server: assembled from its parts, started and stopped."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import gc
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from noxu.api.names import is_loopback
from noxu.authorization_modes import ALWAYS_ALLOW, RBAC
from noxu.clock import SYSTEM_CLOCK, Clock
from noxu.colours import coloured, shown_on
from noxu.config import PROTOBUF, Audit, Config, LeaderElection, NotLoadedError, Tls
from noxu.config import StartError as StartError
from noxu.control_plane import ControlPlane, assemble, in_background, resource_of, running
from noxu.controllers import manager
from noxu.controllers.bootstrap import Facts
from noxu.controllers.controller import Controller
from noxu.crd.types import GROUP, RESOURCE
from noxu.files import in_use, is_in_use
from noxu.go.structs import raise_recursion_limit
from noxu.http.clients import Clients
from noxu.http.connection import Connection
from noxu.http.late_app import LateApp
from noxu.http.open_connections import raise_file_limit
from noxu.http.webhooks import WebhookClient
from noxu.identifiers import SYSTEM_IDENTIFIERS, Identifiers
from noxu.observability import logs
from noxu.own_version import own_version
from noxu.process import free_memory, listeners, signals
from noxu.process import limits as process_limits
from noxu.process.kubeconfig import Access, is_own, write_kubeconfig
from noxu.process.listeners import Listeners
from noxu.process.stores import open_store
from noxu.secret_files import warn_if_shared
from noxu.security import settings
from noxu.security.credentials import ADMINISTRATOR
from noxu.values import Object
from noxu.webhook.client import Service
from noxu_storage.store import Store
from noxu_storage.types import Prefix, Progress, Revision, Unavailable

if TYPE_CHECKING:
    from noxu.controllers.certificate_issuing import SigningCA
    from noxu.crd.known_definitions import KnownDefinitions
    from noxu.http.app import App
    from noxu.http.exchange import Sink
    from noxu.http.filters import RequestFilter
    from noxu.http.tls import Handshakes
    from noxu.manifests.documents import Document, Read
    from noxu.manifests.served_files import Loaded
    from noxu.manifests.watch import FileWatch
    from noxu.process.certificates import Secured
    from noxu.process.merged_kubeconfig import UsersKubeconfig
    from noxu.security.audit_log import AuditLog

COMPACT_EVERY: Final = 300.0  # seconds; removes history that is older than one to two of these, as upstream
STOP_WITHIN: Final = 5.0  # seconds for requests in flight to finish
ACCEPTED_AT_ONCE: Final = (
    32  # connections; each takes 80 µs of the event loop, and its first request five times as long
)
MOST_WATCHED: Final = 3  # files that are named
SHOWN_AFTER: Final = 0.5  # seconds of a start without progress
SHOWN_EVERY: Final = 0.1  # seconds
GC_THRESHOLDS: Final = (20_000, 1, 100)
"""For gc.set_threshold. A decoded object consists of hundreds of containers, which are hardly ever part of a cycle.

A collection takes half a microsecond for each object that it visits, and stops the event loop: one of generation 1 visits
three times 20,000 at most. One of generation 2, which visits all, waits for four million new objects.
"""

log = logging.getLogger("noxu")


Shown: TypeAlias = Callable[[], contextlib.AbstractContextManager[Progress]]
"""Shows how far a work is while the context is open."""


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
    total = await plane.store.count(Prefix(resource_of(plane.catalog, GROUP, RESOURCE).collection))
    with show() as report:
        while True:
            report(len(plane.catalog.current.defined), total)
            await asyncio.sleep(SHOWN_EVERY)


class Server:
    """An async context manager: the server runs inside it. `documents` are loaded first. Raises StartError.

    `claimed` is called at the start, when the address and the data directory are this server's. `observer` is a filter
    that is entered before all others. `compiling` shows how many of the stored definitions are served, while a start takes
    long. `watch` applies what changes in the files. What is `known` of the definitions in `documents` is not found out
    again, and is added to. `own_process`: the process does nothing else, so the garbage collector is the server's. `after`:
    the stopped server that this one is a restart of, whose keys, certificates, tokens and functions it has, and its objects
    if they were in memory.
    """

    plane: ControlPlane
    listeners: Listeners

    def __init__(
        self,
        config: Config,
        documents: Iterable[Document] = (),
        clock: Clock = SYSTEM_CLOCK,
        identifiers: Identifiers = SYSTEM_IDENTIFIERS,
        claimed: Callable[[], object] = lambda: None,
        observer: RequestFilter | None = None,
        compiling: Shown | None = None,
        known: KnownDefinitions | None = None,
        watch: FileWatch | None = None,
        *,
        own_process: bool = False,
        after: Server | None = None,
    ) -> None:
        self.config = config
        self.documents = documents
        self.clock = clock
        self.identifiers = identifiers
        self.claimed = claimed
        self.observer = observer
        self.compiling = compiling
        self.known = known
        self.watch = watch
        self.own_process = own_process
        self.url = ""
        self.secured: Secured | None = None
        self.clients = Clients()
        self._handshakes: Handshakes | None = None
        self._late: LateApp
        self.is_stopping = False
        self._after = after
        self._token = ""  # of the administrator, random
        self._settings: settings.Settings
        self._closing = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException as error:
            await self._closing.aclose()
            if said := process_limits.sentence(error):
                raise StartError(said) from error
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._closing.aclose()

    async def _start(self) -> None:
        controllers = _controllers_of(self.config)
        self.listeners = self._closing.enter_context(listeners.opened(self.config))
        self.config = protected(self.config, on_loopback=self.listeners.on_loopback)
        _check_names(self.config)
        after, self._after = self._after, None
        if after is not None:
            self._token, self._settings = after._token, after._settings  # noqa: SLF001 - its own
        else:
            self._settings = _authentication_of(self.config)
        authentication = self._settings
        raise_recursion_limit()  # for stored schemas, which may be deep
        services = {Service(*name): address for name, address in self.config.webhook_services}
        outgoing = WebhookClient(services)
        self._closing.push_async_callback(outgoing.close)
        store = await open_store(*((self.config,) if after is None else (self.config, after.plane.store)))
        try:
            self.claimed()
        except BaseException:
            await store.close()
            raise
        self.secured = await self._secure(store) if after is None else after.secured
        if self.secured is not None:
            found = self.secured.authenticators(self.config.authentication)
            authentication = authentication._replace(certificates=found)
        plane = assemble(
            store,
            clock=self.clock,
            identifiers=self.identifiers,
            features=self.config.features,
            caller=outgoing,
            event_ttl=self.config.event_ttl if self.config.etcd is None else 0,  # etcd deletes Events itself
            controllers=controllers,
            facts=self._facts(),
            root_ca="" if self.secured is None else self.secured.certificate_authority.decode(),
            admission_plugins=self.config.admission_plugins,
            foreign=_foreign_kinds(self.config.kinds),
            signing_ca=_signing_ca(self.config, self.secured),
            disabled=self.config.disabled,
            node_ports=self.config.node_ports,
            modes=_modes_of(self.config),
            authentication=authentication,
            elected=elected(self.config),
            as_protobuf=self.config.etcd is not None and self.config.etcd.media_type == PROTOBUF,
        )
        if after is not None:
            plane.inherit(after.plane)
        if self.config.annotate_invalid:
            plane.controllers.append(_invalid_object_controller(plane))
        async with _compiled(plane, self.compiling):
            self.plane = await self._closing.enter_async_context(running(plane))
        loaded = await self._load()
        await in_background(self._closing, compact_periodically(store), "compaction")
        await self._serve()
        if self.watch is not None and loaded is not None:
            await in_background(self._closing, self.watch.run(plane, loaded), "watch of files")

    async def _load(self) -> Loaded | None:
        """Load the documents. None: there are no files. Raises StartError."""
        if not (self.documents or self.config.files or self.config.kustomizations):
            return None
        from noxu.manifests import served_files

        loaded = await served_files.load(
            self.plane, self.config, self.documents, self.known, collects=self.watch is not None
        )
        self.documents = ()
        _check_loaded(self.config, loaded.errors)
        return loaded

    async def _serve(self) -> None:
        scheme = "http" if self.secured is None else "https"
        self.url = f"{scheme}://{self._authority(reachable(self.listeners.address))}"
        authority = self._authority(self.config.advertise_address or reachable(self.listeners.address))
        plane, clients = self.plane, self.clients
        sinks, audit_log = await self._sinks(), await self._audit_log()

        def make() -> App:
            from noxu.http.application import application

            return application(
                plane,
                self.config,
                clients,
                scheme=scheme,
                authority=authority,
                own_version=own_version,
                is_stopping=lambda: self.is_stopping,
                on_loopback=self.listeners.on_loopback,
                sinks=sinks,
                audit_log=audit_log,
                observer=self.observer,
            )

        self._late = late = LateApp(make, own_process=self.own_process)
        requests = late.server
        loop = asyncio.get_running_loop()
        # asyncio's own loop accepts `backlog` connections at once, and without descriptors reports as many errors at once.
        at_once = 1 if isinstance(loop, asyncio.SelectorEventLoop) else ACCEPTED_AT_ONCE
        connection = partial(Connection, requests, loop, clients.unsent, clients.incoming, clients.connections)
        accept = connection if self.secured is None else await self._tls_connection(self.secured, connection)
        servers = []
        for listener in (self.listeners.main, *self.listeners.others):
            if listeners.is_unix(listener):  # without TLS: only its owner can connect
                servers.append(await loop.create_unix_server(connection, sock=listener, backlog=at_once))
            else:
                servers.append(await loop.create_server(accept, sock=listener, backlog=at_once))
            listener.listen(listeners.BACKLOG)  # asyncio has one number for both

        async def stop() -> None:
            self.is_stopping = True
            await plane.bootstrap.withdraw()  # as upstream, before connections are refused
            for server in servers:
                server.close()
            if self._handshakes is not None:
                self._handshakes.abort()
            if late.made is not None:
                late.made.end_watches()
            while clients.unsent.disconnect_stalled():
                pass
            await requests.shutdown(STOP_WITHIN if self.config.stop_within is None else self.config.stop_within)

        self._closing.push_async_callback(stop)

    @property
    def app(self) -> App:
        """The application, which exists from the first request on, or the first use of this property."""
        return self._late.app

    async def _sinks(self) -> list[Sink]:
        """The access log, if there is one."""
        if not self.config.log.requests:
            return []
        from noxu.http.metrics import access_log  # rarely used
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

    async def _secure(self, store: Store) -> Secured | None:
        """Make or read the certificates. Raises StartError."""
        if self.config.tls is None:
            return None
        from noxu.process import certificates as server_tls
        from noxu.security.certificates import TlsError

        try:
            return server_tls.secure(
                self.config, self.config.tls, [] if self.listeners.on_loopback else listeners.own_names()
            )
        except TlsError as error:
            await store.close()
            raise StartError(str(error)) from None

    async def _tls_connection(
        self, secured: Secured, connection: Callable[[], asyncio.Protocol]
    ) -> Callable[[], asyncio.Protocol]:
        """The factory of connections that begin with a handshake."""
        from noxu.http.tls import Handshakes, TlsConnection

        await in_background(self._closing, secured.tls.reload_periodically(), "certificates")
        clients = self.clients
        self._handshakes = handshakes = Handshakes(clients.handshake_errors)
        return partial(
            TlsConnection, connection, secured.tls.context, handshakes, clients.incoming, clients.connections
        )

    def _authority(self, address: str) -> str:
        """The host and port by which clients reach the server: its external name, or else the address."""
        host = self.config.external_hostname or address
        return f"{f'[{host}]' if ':' in host else host}:{self.listeners.port}"

    def _facts(self) -> Facts:
        """What the server knows about itself. Its address is the one on which it listens, unless --advertise-address says so."""
        advertised = self.config.advertise_address
        address = self.listeners.address
        if advertised:
            address = "" if is_loopback(advertised) else advertised
        elif is_loopback(address) or address != reachable(address) or ":" in address:
            address = listeners.host_address()
        return Facts(
            self.listeners.port, socket.gethostname(), self.identifiers.new_uid(), address, self.config.services
        )

    def access(self) -> Access:
        """What its administrator needs to use the server, for a kubeconfig."""
        if self.secured is not None:
            return self.secured.access(self.url)
        if self.plane.authenticator.allows_anonymous and ALWAYS_ALLOW in _modes_of(self.config):
            return Access(self.url)
        if not self._token:
            self._token = self.plane.static_tokens.issue(ADMINISTRATOR)
            log.warning(
                "kubectl and other clients in Go send no credentials without TLS, so they are anonymous: use --tls"
            )
        return Access(self.url, token=self._token)


def reachable(address: str) -> str:
    """An address by which this machine reaches a server that listens on `address`, which may mean all addresses."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)  # noqa: S104 - nothing is bound


def protected(config: Config, *, on_loopback: bool) -> Config:
    """The configuration with what others' access requires: TLS in the profile cluster and off loopback, RBAC off loopback."""
    if config.tls is None and (config.profile == "cluster" or not on_loopback):
        config = dataclasses.replace(config, tls=Tls())
    if config.authorization_modes is None and not on_loopback:
        config = dataclasses.replace(config, authorization_modes=(RBAC,))
    return config


def _controllers_of(config: Config) -> Sequence[str]:
    """The list of controllers. Raises StartError for what is not available."""
    try:
        manager.check_profile(config.profile)
        controllers = manager.PROFILES[config.profile] if config.controllers is None else config.controllers
        manager.check_controllers(controllers)
        manager.check_leader_election(config.leader_election)
    except ValueError as error:
        raise StartError(str(error)) from None
    return controllers


def elected(config: Config) -> LeaderElection | None:
    """How the server that runs the controllers is elected; None: this one runs them."""
    election = config.leader_election
    return election if election.enabled or (election.enabled is None and config.etcd is not None) else None


def _check_names(config: Config) -> None:
    """Check the names by which clients reach the server; TLS has checks of its own. Raises StartError."""
    if config.external_hostname and config.tls is None:
        from noxu.process.certificates import is_name  # rarely needed

        if not is_name(config.external_hostname):
            raise StartError(f"--external-hostname {config.external_hostname} is neither a DNS name nor an address")
    if ":" in config.advertise_address:  # endpoints have the family of addresses of their service
        raise StartError(
            f'service IP family "{config.services}" must match public address family "{config.advertise_address}"'
        )


def _modes_of(config: Config) -> Sequence[str]:
    """The modes of authorization."""
    if config.authorization_modes is not None:
        return config.authorization_modes
    return (RBAC,) if config.profile == "cluster" else (ALWAYS_ALLOW,)


def _authentication_of(config: Config) -> settings.Settings:
    """How users are identified. Raises StartError."""
    try:
        return settings.read(config, _modes_of(config))
    except ValueError as error:
        raise StartError(str(error)) from None


def _invalid_object_controller(plane: ControlPlane) -> Controller[Any]:
    from noxu.controllers.invalid_objects import InvalidObjectController  # rarely enabled

    definitions = resource_of(plane.catalog, GROUP, RESOURCE)
    follower = plane.writer.environment.followers[definitions.collection]
    return InvalidObjectController(plane.reader, plane.persistence, plane.catalog, follower, definitions, plane.clock)


async def compact_periodically(store: Store, clock: Clock = SYSTEM_CLOCK) -> None:
    """Every COMPACT_EVERY seconds, remove the history before the previous round. A failure is logged."""
    old: Revision = store.revision
    while True:
        await clock.sleep(COMPACT_EVERY)
        if old > store.compacted:
            try:
                await store.compact_in_turn(old)
            except Unavailable as error:
                log.warning("the history is not compacted: %s; the next attempt is in %g s", error, COMPACT_EVERY)
        old = store.revision


def _definitions_in(file: Path) -> Iterator[Object]:
    """The documents of a file in JSON or YAML. Raises ValueError."""
    from noxu.manifests import documents as manifests

    try:
        body = manifests.content(file)
    except manifests.LoadError as error:
        raise ValueError(str(error)) from None
    for part in manifests.split(body):
        if part.error:
            raise ValueError(part.error)
        if part.decoded is not None:
            yield part.decoded.value or {}


def _signing_ca(config: Config, secured: Secured | None) -> Callable[[], SigningCA] | None:
    """The CA that signs requests for certificates: of files, which may be renewed, or the server's. Raises StartError."""
    certificate, key = config.cluster_signing_cert_file, config.cluster_signing_key_file
    if certificate is None and key is None:
        return None if secured is None else partial(_own_signing_ca, secured)
    if certificate is None or key is None:
        raise StartError("--cluster-signing-cert-file and --cluster-signing-key-file need each other")
    from noxu.controllers.certificate_issuing import SigningCA, check_authority  # few servers need it

    def read() -> SigningCA:
        return SigningCA(certificate.read_bytes(), key.read_bytes())

    warn_if_shared(key, "--cluster-signing-key-file")
    try:
        check_authority(read())
    except OSError as error:
        raise StartError(f"cannot read {error.filename}: {error.strerror or error}") from None
    except ValueError as error:
        raise StartError(f"{certificate}, {key}: {error}") from None
    return read


def _own_signing_ca(secured: Secured) -> SigningCA:
    from noxu.controllers.certificate_issuing import SigningCA

    authority = secured.own().authority.identity
    return SigningCA(authority.certificate, authority.key)


def _foreign_kinds(paths: Sequence[Path]) -> list[Object]:
    """The definitions of the kinds in OpenAPI documents. Raises StartError."""
    if not paths:
        return []
    from noxu.crd import openapi_kinds  # few servers need it
    from noxu.manifests import documents as manifests

    file = paths[0]

    def documents() -> Iterator[Object]:
        nonlocal file
        for file in (file for path in paths for file in manifests.files(path)):
            yield from _definitions_in(file)

    try:
        return openapi_kinds.definitions(documents())
    except manifests.LoadError as error:
        raise StartError(f"--kinds {error}") from None
    except ValueError as error:
        raise StartError(f"--kinds {file}: {error}") from None


# -- the process ------------------------------------------------------------------------------------------------------


def run(
    config: Config,
    out: Callable[[str], object] = sys.stdout.write,
    each: Callable[[Sequence[Document]], Iterable[Document]] = iter,
    compiling: Shown | None = None,
    read: Read | None = None,
    known: KnownDefinitions | None = None,
) -> Server:
    """Serve until SIGINT or SIGTERM, and return the stopped server, which has all its objects. Raises StartError.

    `each` iterates over the documents of the configuration while they are loaded. `read` reads their files,
    None: as `manifests.contents_of`. `compiling` and `known`: see `Server`.
    """
    parent = os.getppid() if config.exit_with_parent else 0
    logs.configure(config.log.format, config.log.level)
    watch = _watch(config)  # before the files are read
    documents = _documents(config, read)
    loaded = each(documents) if documents else ()
    del documents  # when they are loaded, their memory is given back
    _raise_file_limit()
    with asyncio.Runner(loop_factory=new_loop_factory()) as runner:
        return runner.run(_main(config, loaded, out, parent, compiling, known, watch))


def _watch(config: Config) -> FileWatch | None:
    if not config.watch:
        return None
    from noxu.manifests.watch import FileWatch  # few servers need it

    return FileWatch(config.files, config.kustomizations, create_namespaces=config.create_namespaces)


def _raise_file_limit() -> None:
    """Raises StartError if even the highest limit is too low."""
    raise_file_limit()
    if too_few := process_limits.too_few_files():
        raise StartError(too_few)


def _documents(config: Config, read: Read | None) -> list[Document]:
    """The documents of the files and kustomizations, in the order in which they are to be loaded. Raises StartError."""
    if not config.files and not config.kustomizations:
        return []
    from noxu.manifests import documents as manifests
    from noxu.manifests import kustomizations, loading

    found = chain(
        manifests.read_paths(config.files, read or manifests.contents_of, "serve"),
        *map(kustomizations.build, config.kustomizations),
    )
    documents, errors = loading.readable(map(loading.packed, found))
    if errors and not config.keep_going and _is_new(config):
        errors += asyncio.run(_refusals(config, documents))
    _check_loaded(config, errors)
    return documents


def _is_new(config: Config) -> bool:
    """Whether the store is certain to be empty."""
    return config.etcd is None and (config.data is None or not (config.data / "noxu.db").exists())


async def _refusals(config: Config, documents: list[Document]) -> list[str]:
    """The errors with which a new server would refuse objects. Kinds that it does not have may be in unreadable files."""
    from noxu.manifests import loading
    from noxu_storage.memory import MemoryStore

    plane = assemble(MemoryStore(), features=config.features, admission_plugins=config.admission_plugins)
    async with running(plane):
        return await loading.load(plane, documents, skip_unknown=True, create_namespaces=True)


def _check_loaded(config: Config, errors: list[str]) -> None:
    """Log errors of manifests, if the server is to start nevertheless. Raises NotLoadedError if it is not."""
    if not errors:
        return
    if not config.keep_going:
        raise NotLoadedError(*errors)
    for error in errors:
        log.error("not loaded: %s", error)


def run_quietly(config: Config, ready: Callable[[str], object], parent: int = 0) -> Server:
    """Like `run`, without a kubeconfig. `ready` gets the URL. `parent`: see `_main`. Raises StartError."""
    logs.configure(config.log.format, config.log.level)
    _raise_file_limit()
    server = Server(config, own_process=True)
    with asyncio.Runner(loop_factory=new_loop_factory()) as runner:
        return runner.run(_until_stopped(server, lambda: ready(server.url), parent))


def new_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed: it halves the cost of the event loop. None: asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that no code handles. asyncio reports every second that it cannot accept connections: in one line."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        log.warning("connections wait, and are not accepted: %s", error.strerror)
    else:
        loop.default_exception_handler(context)


async def _main(
    config: Config,
    documents: Iterable[Document],
    out: Callable[[str], object],
    parent: int,
    compiling: Shown | None,
    known: KnownDefinitions | None,
    watch: FileWatch | None,
) -> Server:
    """`parent`: the process with which the server stops, 0 for none."""
    with contextlib.ExitStack() as stack:
        path = stack.enter_context(place_of_kubeconfig(config))
        users = _users_kubeconfig() if config.merged_context else None

        def claim() -> None:
            claim_kubeconfig(path)
            if users is not None:
                users.check(config.merged_context, path.resolve())

        server = Server(
            config,
            documents,
            claimed=claim,
            compiling=compiling,
            known=known,
            watch=watch,
            own_process=True,
        )

        def ready() -> None:
            if config.files or config.kustomizations:  # any other start leaves a few hundred objects as garbage
                gc.collect()
                free_memory.give_back()
            stack.enter_context(published(path, server.access()))
            context = ""
            if users is not None:
                is_current = stack.enter_context(users.merged(config.merged_context, path.resolve(), server.access()))
                context = f"{config.merged_context}{', the current one,' if is_current else ''} in {users.file}"
            out(banner(config, server.url, path, context, shows_colours=shown_on(sys.stdout)))
            sys.stdout.flush()

        return await _until_stopped(server, ready, parent)


async def _until_stopped(server: Server, ready: Callable[[], object], parent: int = 0) -> Server:
    """Run a server until a signal, and return it. `ready` is called when it has started. Raises Interrupted before that."""
    stop = asyncio.Event()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    is_ready, received = False, 0

    def react(number: int) -> None:
        nonlocal received
        received = received or number
        stop.set()
        if not is_ready:
            task.cancel()

    gc.freeze()  # modules; their garbage is small
    loop.set_exception_handler(_report)
    watching = asyncio.ensure_future(_stop_with(parent, react)) if parent else None
    signals.on_stop(loop, react)
    signals.end_if_stuck(loop)
    try:
        async with server:
            ready()
            is_ready = True
            gc.set_threshold(*GC_THRESHOLDS)
            gc.freeze()  # objects of the start live until the end: examining them in every collection takes long
            gc.enable()
            await stop.wait()
    except asyncio.CancelledError:
        if received:
            raise signals.Interrupted(received) from None
        raise
    if watching is not None:
        watching.cancel()
    return server


async def _stop_with(parent: int, react: Callable[[int], object]) -> None:
    from noxu.process.parent import ended

    await ended(parent)
    log.info("the server stops: the process that has started it has ended")
    react(signal.SIGTERM)


@contextlib.contextmanager
def place_of_kubeconfig(config: Config) -> Iterator[Path]:
    """The path of the kubeconfig. Raises StartError if the file exists and was not written by Noxu."""
    temporary = None
    path = config.kubeconfig
    if path is None and config.data is not None:
        path = config.data / "kubeconfig"
    if path is None:
        try:
            temporary = tempfile.mkdtemp(prefix="noxu-")
        except OSError as error:
            why = process_limits.sentence(error)
            raise StartError(f"there is no place for the kubeconfig: {why}; or choose one with --kubeconfig") from None
        path = Path(temporary) / "kubeconfig"
    try:
        with _naming_kubeconfig(path):
            if path.exists() and not is_own(path):
                raise StartError(
                    f"{path} exists and was not written by Noxu, so it is not overwritten; choose another --kubeconfig"
                )
        yield path
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)


def claim_kubeconfig(path: Path) -> None:
    """Remove a kubeconfig of an earlier server. Raises StartError if that server is running.

    Only a server that has its address and its data does so: one that cannot start leaves the file to the one that runs.
    """
    if is_in_use(path):
        raise StartError(f"{path} is the kubeconfig of a server that is running; choose another --kubeconfig")
    with _naming_kubeconfig(path):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def published(path: Path, access: Access) -> Iterator[None]:
    """Write the kubeconfig, and remove it at the end. Meanwhile other servers find it in use. Raises StartError."""
    with contextlib.ExitStack() as use:
        try:
            write_kubeconfig(path, access)
            use.enter_context(in_use(path))
        except OSError as error:
            raise StartError(
                f"cannot write the kubeconfig {path}: {error.strerror}; choose another --kubeconfig"
            ) from None
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                if is_own(path):  # another program may have replaced it
                    path.unlink()


@contextlib.contextmanager
def _naming_kubeconfig(path: Path) -> Iterator[None]:
    """Raises StartError for an OSError."""
    try:
        yield
    except NotADirectoryError:
        pass  # writing the kubeconfig reports it
    except OSError as error:
        raise StartError(f"cannot write the kubeconfig {path}: {error.strerror}; choose another --kubeconfig") from None


def _users_kubeconfig() -> UsersKubeconfig:
    """Raises StartError."""
    from noxu.process.merged_kubeconfig import users_kubeconfig  # few servers need it, and it knows YAML

    try:
        return users_kubeconfig(os.environ, Path.home())
    except RuntimeError as error:
        raise StartError(f"--merge-kubeconfig: {error}; set KUBECONFIG") from None


def _watched(config: Config) -> str:
    """The first of the files and kustomizations that are watched."""
    paths = [*map(str, config.files), *(f"-k {path}" for path in config.kustomizations)]
    return ", ".join(paths[:MOST_WATCHED]) + (
        f" and {len(paths) - MOST_WATCHED} more" if len(paths) > MOST_WATCHED else ""
    )


def banner(config: Config, url: str, path: Path, context: str = "", *, shows_colours: bool = False) -> str:
    """What `noxu serve` prints when the server is ready. `context` is a context of another kubeconfig."""

    def bold(text: str) -> str:
        return coloured(text, "bold", shown=shows_colours)

    location = (
        f"etcd at {', '.join(config.etcd.servers)} under {config.etcd.prefix}"
        if config.etcd
        else f"{config.data / 'noxu.db'} ({config.durability} durability)"
        if config.data
        else "in memory, discarded when the server stops"
    )
    commands = (
        [f"kubectl --context {config.merged_context} api-resources"]
        if context
        else [f"export KUBECONFIG={path.resolve()}", "kubectl api-resources"]
    )
    return (
        f"Noxu serves the Kubernetes API at {bold(url)}\n"
        f"{''.join(f'  also at     {place}{chr(10)}' for place in config.listen)}"
        f"  data        {location}\n"
        f"  kubeconfig  {path}\n"
        f"{f'  context     {context}{chr(10)}' if context else ''}"
        f"{f'  watching    {_watched(config)}{chr(10)}' if config.watch else ''}\n"
        f"{''.join(f'  {bold(each)}{chr(10)}' for each in commands)}\n"
        f"Press Ctrl-C to stop the server.\n"
    )
