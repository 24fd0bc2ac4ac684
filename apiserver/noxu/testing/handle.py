"""A server for a test: in this process, in memory, on a free port, stopped at the end of the test.

It runs in a thread of its own, so sync and async tests can use it. `MakeNoxu` is the type of the fixture `make_noxu`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar, cast
from weakref import WeakKeyDictionary

from noxu import features, releases
from noxu.clock import SYSTEM_CLOCK, Clock
from noxu.config import (
    DEFAULT_AUTHENTICATION,
    Authentication,
    Config,
    Profile,
    ServiceName,
    StartError,
    TlsOptions,
)
from noxu.control.faults.effects import delay_range
from noxu.control.recorded_requests import RecordedRequest
from noxu.control.retention import history_of
from noxu.controllers import manager
from noxu.features import Features, modes
from noxu.files import write_whole
from noxu.http.recent_requests import RecentRequests
from noxu.manifests.documents import LoadError
from noxu.process import limits as process_limits
from noxu.process.kubeconfig import write_kubeconfig
from noxu.process.server import Server
from noxu.security.kubeconfig import Access
from noxu.testing import addresses, calls, users
from noxu.testing.addresses import Address
from noxu.testing.calls import AnsweredCall
from noxu.testing.client import USER_AGENT, UserClient
from noxu.testing.clock import TimeCalls
from noxu.testing.errors import hidden
from noxu.testing.faults import FaultInjection
from noxu.testing.manners import MannersCalls
from noxu.testing.past import PastCalls
from noxu.testing.programs import ProgramCalls
from noxu.testing.recordings import ReplayCalls
from noxu.testing.registration import Registration
from noxu.testing.session import Runner, Session
from noxu.testing.snapshots import SnapshotCalls
from noxu.testing.sources import Source as Source
from noxu.testing.sources import documents as documents
from noxu.testing.sources import names, several
from noxu.testing.templates import beginning
from noxu.testing.tenants import TenantCalls
from noxu.testing.users import TestUser
from noxu.testing.verbs import Verbs, selectors
from noxu.testing.waiting import time_of
from noxu.testing.workloads import WorkloadCalls
from noxu.testing.write_log import WriteLog
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.testing.calls import AwaitableNone, AwaitableObjects, AwaitableRequests

__tracebackhide__ = hidden

T = TypeVar("T")
KUBECONFIG: Final = "kubeconfig"
USERS: Final = "users"
"""The directory of their files."""
Users = Iterable[str] | Mapping[str, Iterable[str]]


running: WeakKeyDictionary[Noxu, RecentRequests] = WeakKeyDictionary()
"""The servers of this process that run, and what they were asked."""
NEWEST_VERSION: Final = releases.named(releases.NEWEST)
"""Of Kubernetes: what servers answer as by default."""
started: list[Callable[[Noxu, Server], object]] = []
"""What is called with each of them, and the server behind it, when it has loaded its manifests."""
stopping: list[Callable[[Noxu], object]] = []
"""What is called with each of them before it stops."""


class Noxu(
    FaultInjection,
    MannersCalls,
    PastCalls,
    ProgramCalls,
    Registration,
    ReplayCalls,
    SnapshotCalls,
    TenantCalls,
    TimeCalls,
    Verbs,
    WorkloadCalls,
    WriteLog,
):
    """A running server. `url` is its address, `kubeconfig` a file for clients, `users` those it was made with.

    Use it as a context manager (`with`, `async with`), or through the fixtures of the pytest plugin.
    """

    url: str
    users: dict[str, TestUser]
    _webhook_services: tuple[tuple[ServiceName, str], ...] = ()

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        manifests: Iterable[Source] = (),
        clock: Clock = SYSTEM_CLOCK,
        *,
        profile: Profile = "local",
        controllers: Iterable[str] | None = None,
        disable_admission_plugins: Iterable[str] = (),
        enable_admission_plugins: Iterable[str] = (),
        gates: Mapping[str, bool] | None = None,
        authentication: Authentication = DEFAULT_AUTHENTICATION,
        tls: bool = False,
        authorization_modes: Iterable[str] | None = None,
        data: str | os.PathLike[str] | None = None,
        users: Users = (),
        strict: bool = False,
        deterministic: int | None = None,
        history: str = "5m",
        faults: str | os.PathLike[str] | None = None,
        latency: str = "",
        tracing_config_file: str | os.PathLike[str] | None = None,
        nodes: int | None = None,
        stages: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
        exec: str = "",  # noqa: A002 - the option's name
        kinds: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
        record: str | os.PathLike[str] | None = None,
        kubernetes: str = NEWEST_VERSION,
    ) -> None:
        """`directory` is the directory of the kubeconfig; None: a temporary one, which `stop` removes.

        `manifests` are loaded before the server answers. `profile`, `controllers`, `disable_admission_plugins` and
        `enable_admission_plugins` are those of `noxu serve`; `controllers` None: those of the profile. `gates` are feature
        gates. `data` is a directory for the objects; None: they are in memory. `users` are names, or names with their groups.
        `tls`: HTTPS; the kubeconfig has the CA and a client certificate. `authentication` and `authorization_modes` say who
        users are, and who decides what they may do. `strict`: unknown fields are refused where a call does not say otherwise.
        `deterministic` is the seed of a server whose objects repeat from run to run, byte for byte.
        `history` is that of `noxu serve`: a duration, `all` or `off`. `faults`, a plan, and `latency` are those of `noxu serve`.
        So is `tracing_config_file`, for spans of the requests. `nodes`: the number of simulated nodes, which come with the
        controllers of workloads; None: neither. `stages`, files with rules for pods, and `exec` are those of `noxu serve`.
        So are `kinds`, OpenAPI documents whose kinds are served, `record`, the file of a recording, and `kubernetes`, the version
        that the server answers as.

        Where several names or sources are expected, one may be given by itself. Raises LoadError for sources that cannot be
        read, and ValueError for unknown profiles, controllers, plug-ins, gates, modes and versions.
        """
        controllers = None if controllers is None else names(controllers)
        if deterministic is not None and (data is not None or clock is not SYSTEM_CLOCK):
            raise ValueError("deterministic: objects are in memory, and the clock is the server's own")
        try:
            if latency:
                delay_range(latency)
            manager.check_profile(profile)
            manager.check_controllers(controllers or (), has_nodes=nodes is not None)
            manager.check_workloads(nodes, stages=bool(stages), exec=exec)
            config = Config(
                port=0,
                profile=profile,
                controllers=controllers,
                admission_plugins=features.select_plugins(
                    names(enable_admission_plugins),
                    names(disable_admission_plugins),
                    controllers=manager.has_accounts(profile, controllers),
                ),
                features=_features(gates or {}, releases.parse(kubernetes)),
                authentication=authentication,
                authorization_modes=None if authorization_modes is None else modes(names(authorization_modes)),
                tls=TlsOptions() if tls else None,
                data=None if data is None else Path(data),
                deterministic=deterministic,
                history=history_of(history),
                faults=None if faults is None else Path(faults),
                latency=latency,
                tracing_config_file=None if tracing_config_file is None else Path(tracing_config_file),
                nodes=nodes,
                stages=_paths(stages),
                exec=exec,
                kinds=_paths(kinds),
                webhook_services=self._webhook_services,
                record=None if record is None else Path(record),
            )
            loaded = beginning(config, clock, several(manifests))
        except (ValueError, LoadError) as error:
            raise error.with_traceback(None) from None  # what the caller has given is wrong: it sees no frame of ours
        self._given_directory = directory
        self._directory: Path | None = None  # from the first file on
        self._access: Access | None = None  # from the first start on
        self._wanted = _with_groups(users)
        self._made = 0
        self._named: set[str] = set()
        self._files: dict[str, bytes] = {}  # by their paths below the directory; those of a server that is stopped
        self._has_begun = False
        self._announced = []
        self._programs = []
        self._strict = strict
        self._requests = RecentRequests(USER_AGENT)
        self._runner = Runner(config, loaded, clock, self._requests)
        self._clients: list[UserClient] = []
        self._session = self._session_of(Access(""))  # until it is started
        self.users = {}

    @property
    def kubeconfig(self) -> Path:
        """A file for clients, which are administrators. It is there while the server runs.

        It is written when it is first asked for: a third of the time of a test goes into files that no client reads.
        """
        path = self._place() / KUBECONFIG
        if self._access is not None and self._runner.is_running and not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_kubeconfig(path, self._access)
        return path

    def _place(self) -> Path:
        """The directory of files. Raises StartError."""
        given = self._given_directory
        if self._directory is None:
            if given is None and not self._runner.is_running:
                return Path(tempfile.gettempdir(), "noxu-that-does-not-run")
            self._directory = _temporary_directory() if given is None else Path(given)
        return self._directory

    def __repr__(self) -> str:
        return f"<Noxu {self.url}>" if self._runner.is_running else "<Noxu, which does not run>"

    def start(self) -> AwaitableNoxu:
        """Return when the server is ready; at once if it runs. Raises StartError.

        A server that was stopped is restarted at the same address: with its objects, also those in memory, with its users,
        certificates and functions, and without loading its manifests again. Clients find what they would after a restart of a
        real server: connections are lost, and a watch can go on from the last resourceVersion that it has seen.
        """
        return cast("AwaitableNoxu", self._sync_or_awaited("start", self._start))

    def stop(self) -> AwaitableNone:
        """Stop the server: its thread ends, its port is free, the kubeconfig is removed. It may be called twice.

        `start` makes it run again.
        """
        return cast("AwaitableNone", self._sync_or_awaited("stop", self._stop))

    def _sync_or_awaited(self, name: str, work: Callable[[], T]) -> T | Coroutine[Any, Any, T]:
        return calls.pending(name, asyncio.to_thread(work)) if calls.in_coroutine() else work()

    def _start(self) -> Self:
        if self._runner.is_running:
            return self
        self._runner.start()
        try:
            if self._has_begun:
                self._restore_files()
                self._register_programs()
            else:
                self._begin()
            if self._announced:  # of a server that is started again
                self._soon(self._follow_catalog)
            for about in started:
                about(self, self._server)
            running[self] = self._requests
        except BaseException:
            self._stop()
            raise
        return self

    def _begin(self) -> None:
        """What is done at the first start."""
        self._access = access = self._server.access()
        self.url = self._server.url
        self._session = self._session_of(access)
        if isinstance(self._given_directory, (str, Path)):
            write_kubeconfig(self.kubeconfig, access)  # where others may look for it
        self.users = {name: self.user(name, groups) for name, groups in self._wanted.items()}
        self._has_begun = True

    def _stop(self) -> None:
        is_known = running.pop(self, None) is not None
        if self._runner.is_running:
            for about in stopping if is_known else ():  # one that did not start has nothing to say
                about(self)
            if any(client.is_open for client in self._clients):
                self._runner.submit(self._close_clients()).result()
            self._runner.stop()
            self._remember_files()
        if self._directory is None:
            return
        (self._directory / KUBECONFIG).unlink(missing_ok=True)
        shutil.rmtree(self._directory / USERS, ignore_errors=True)
        if self._given_directory is None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _remember_files(self) -> None:
        """Keep the kubeconfig and the files of users for a restart."""
        if self._directory is not None:
            below = self._directory
            paths = [below / KUBECONFIG, *(path for path in (below / USERS).rglob("*") if path.is_file())]
            self._files = {str(path.relative_to(below)): path.read_bytes() for path in paths if path.exists()}

    def _restore_files(self) -> None:
        for name, content in self._files.items():
            path = self._place() / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, content)

    def __enter__(self) -> Self:
        return self._start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        if error is None:
            self._check_announced()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self._start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    # -- what happened

    def events(self, what: str | Object | None = None, name: str = "", /, *, namespace: str = "") -> AwaitableObjects:
        """The Events about an object, or all of them, the oldest first: what `kubectl events` shows."""
        fields = {}
        if what is not None:
            address = addresses.of(self._session.served_resources, what, name, namespace or None)
            fields = {"involvedObject.kind": address.resource.kind, "involvedObject.name": address.name}
            namespace = address.namespace or namespace
        events = Address(addresses.find(self._session.served_resources, "events"), namespace)
        return cast("AwaitableObjects", self._ask("events", self._events, events, selectors("", fields)))

    async def _events(self, address: Address, query: Mapping[str, str]) -> AnsweredCall[list[Object]]:
        listed = await self._list(address, query)
        return AnsweredCall(sorted(listed.value, key=time_of))

    def requests(
        self,
        what: str | Object = "",
        name: str = "",
        /,
        *,
        namespace: str | None = None,
        verb: str = "",
        subresource: str | None = None,
        code: int = 0,
        user: str = "",
        by_handle: bool | None = False,
    ) -> AwaitableRequests:
        """What clients asked, in the order of arrival, and how they were answered; every argument selects (an object: about this one).

        `verb` is the API's: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`. The requests of
        the handle itself are left out (`by_handle=None`: they are included, True: only they). A request is listed before its
        client has the answer. The newest 10,000 are kept. Raises UnknownKind, and ValueError for a verb, a subresource, a code,
        a namespace or a user that nothing has.
        """
        addresses.verb(verb)
        addresses.code(code)
        resource = None
        if what:
            address = addresses.of_any(self._session.served_resources, what, name, namespace)
            resource, name = str(address.resource.group_resource), address.name
            namespace = namespace if isinstance(what, str) else address.namespace
        wanted = {
            "resource": resource,
            "name": name or None,
            "namespace": namespace,
            "verb": verb or None,
            "subresource": addresses.subresource(subresource, self._session.served_resources, resource),
            "code": code or None,
            "user": user or None,
            "by_handle": by_handle,
        }
        selected = {field: value for field, value in wanted.items() if value is not None}
        return cast("AwaitableRequests", self._ask("requests", self._recorded, selected))

    async def _recorded(self, selected: Mapping[str, object]) -> AnsweredCall[list[RecordedRequest]]:
        await self._session.check_namespace(str(selected.get("namespace", "")))
        await self._session.check_user(str(selected.get("user", "")))
        return AnsweredCall(
            [
                request
                for request in self._requests.since()
                if all(getattr(request, field) == value for field, value in selected.items())
            ]
        )

    # -- users

    def user(self, name: str, groups: Iterable[str] = (), *, uid: str = "") -> TestUser:
        """A user of the server, with a kubeconfig: over HTTP with a random token, over TLS with a client certificate.

        It has the verbs of the handle, as that user. `system:authenticated` is added to its groups. It may do what the mode of
        authorization allows. Raises ValueError for a group `system:…` that Kubernetes does not have.
        """
        groups = addresses.groups(groups)
        self._made += 1
        self._named.add(name)
        return users.make(self._server, self._place() / USERS / str(self._made), name, groups, uid, self._session_of)

    def _session_of(self, access: Access) -> Session:
        return Session(self._runner, self._client(access), self._requests, self._strict, self._named)

    def _client(self, access: Access) -> UserClient:
        client = UserClient(access, self._requests)
        self._clients.append(client)
        return client

    async def _close_clients(self) -> None:
        for client in self._clients:
            await client.close()

    # -- the server

    @property
    def _server(self) -> Server:
        return self._runner.running

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return self._runner.loop

    @property
    def _config(self) -> Config:
        return self._runner.config

    @_config.setter
    def _config(self, config: Config) -> None:
        self._runner.config = config

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop of the server."""
        return calls.blocking(self._runner.submit(work))


def _temporary_directory() -> Path:
    """Raises StartError."""
    try:
        return Path(tempfile.mkdtemp(prefix="noxu-"))
    except OSError as error:
        raise StartError(f"there is no place for the kubeconfig: {process_limits.sentence(error)}") from None


def _with_groups(users: Users) -> dict[str, tuple[str, ...]]:
    """The groups of each user. Raises ValueError."""
    if not isinstance(users, Mapping):
        return dict.fromkeys(names(users), ())
    return {name: addresses.groups(groups) for name, groups in users.items()}


def _paths(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[Path, ...]:
    """Files, of which one may be given by itself."""
    return tuple(map(Path, [given] if isinstance(given, str | os.PathLike) else given))


def _features(gates: Mapping[str, bool], release: int) -> Features:
    return features.parse_gates([f"{gate}={str(enabled).lower()}" for gate, enabled in gates.items()], release)


# -- the fixture `make_noxu` -----------------------------------------------------------------------------------------


class MakeNoxu(Protocol):
    """Starts a server, which runs until the end of the test. In a coroutine it is awaited. The arguments are those of `Noxu`."""

    def __call__(
        self,
        *,
        manifests: Iterable[Source] = (),
        gates: Mapping[str, bool] | None = None,
        profile: Profile = "local",
        data: str | os.PathLike[str] | None = None,
        users: Users = (),
        strict: bool = False,
        tls: bool = False,
        controllers: Iterable[str] | None = None,
        disable_admission_plugins: Iterable[str] = (),
        enable_admission_plugins: Iterable[str] = (),
        authentication: Authentication = DEFAULT_AUTHENTICATION,
        authorization_modes: Iterable[str] | None = None,
        directory: str | os.PathLike[str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
        deterministic: int | None = None,
        history: str = "5m",
        faults: str | os.PathLike[str] | None = None,
        latency: str = "",
        tracing_config_file: str | os.PathLike[str] | None = None,
        nodes: int | None = None,
        stages: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
        exec: str = "",  # noqa: A002 - the option's name
        kinds: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
        record: str | os.PathLike[str] | None = None,
        kubernetes: str = NEWEST_VERSION,
    ) -> AwaitableNoxu: ...


if TYPE_CHECKING:

    class AwaitableNoxu(Noxu):
        def __await__(self) -> Generator[object, None, Noxu]: ...
