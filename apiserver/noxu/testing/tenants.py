"""Tenants in tests: further servers in the process and the event loop of the handle's, each a few milliseconds.

    with noxu.tenant() as other:             # what the handle's server was started with
        other.create(…)                      # which `noxu` does not see
        subprocess.run(["kubectl", "get", "widgets"], env={"KUBECONFIG": str(other.kubeconfig)})

    async with noxu.tenant(empty=True) as other:
        await other.list("namespaces")

They are those of `noxu.control.tenants`, without HTTP.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar, cast

from noxu.control.tenants import EMPTY, TEMPLATE, Tenant, Tenants, WantedTenant
from noxu.http.recent_requests import RecentRequests
from noxu.process.kubeconfig import write_kubeconfig
from noxu.process.server import Server
from noxu.security.kubeconfig import Access
from noxu.testing import calls
from noxu.testing.client import USER_AGENT, UserClient
from noxu.testing.clock import ServerClock
from noxu.testing.errors import Stopped, hidden
from noxu.testing.faults import FaultInjection
from noxu.testing.session import STOPPED, Runner, Session
from noxu.testing.snapshots import SnapshotCalls
from noxu.testing.sources import Source, documents
from noxu.testing.verbs import Verbs
from noxu.values import Object

__tracebackhide__ = hidden

DIRECTORY: Final = "tenants"
"""Of their kubeconfigs, beside that of the handle."""


T = TypeVar("T")


class TenantRunner(Runner):
    """Runs what is asked of a tenant in the loop of its parent."""

    def __init__(self, parent: Runner, server: Server) -> None:
        self._parent = parent
        self.server, self.loop, self.config = server, parent.loop, server.config
        self.is_over = False

    @property
    def is_running(self) -> bool:
        return self._parent.is_running and not self.is_over

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self.is_over:
            work.close()
            raise Stopped(STOPPED)
        return self._parent.submit(work)


class TestTenant(FaultInjection, SnapshotCalls, Verbs):
    """A running tenant. `url` is its address, `kubeconfig` a file for clients; it has the verbs of the handle."""

    __test__ = False  # pytest would take the class for one of tests

    def __init__(self, name: str, kubeconfig: Path, access: Access, session: Session) -> None:
        self.name = name
        self.url = access.url
        self._kubeconfig, self._access = kubeconfig, access
        self._session, self._runner = session, session.runner

    def __repr__(self) -> str:
        return f"<tenant {self.name} {self.url}>"

    @property
    def kubeconfig(self) -> Path:
        """A file for clients, which are administrators. It is written when it is first asked for."""
        if self._runner.is_running and not self._kubeconfig.exists():
            self._kubeconfig.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_kubeconfig(self._kubeconfig, self._access)
        return self._kubeconfig

    @property
    def clock(self) -> ServerClock:
        """The object time of the tenant."""
        return ServerClock(self._runner)


class TenantBlock:
    """A tenant for the life of a block."""

    def __init__(self, runner: Runner, directory: Path, wanted: WantedTenant, *, strict: bool) -> None:
        self._runner = runner
        self._directory = directory
        self._wanted = wanted
        self._strict = strict
        self._tenant: Tenant | None = None
        self._session: Session | None = None

    async def _begin(self) -> TestTenant:
        """Raises ApiError."""
        self._tenant = tenant = await self._runner.running.control.part(Tenants).create(self._wanted)
        server = cast("Server", tenant.server)
        access, requests = server.access(), RecentRequests(USER_AGENT)
        self._session = session = Session(
            TenantRunner(self._runner, server), UserClient(access, requests), requests, self._strict
        )
        return TestTenant(tenant.name, self._directory / tenant.name / "kubeconfig", access, session)

    async def _end(self) -> None:
        tenant, session = self._tenant, self._session
        assert tenant is not None
        if session is not None:
            await session.client.close()
            cast("TenantRunner", session.runner).is_over = True
        tenant.end()
        await tenant.gone.wait()

    def _clear(self) -> None:
        if self._tenant is not None:
            shutil.rmtree(self._directory / self._tenant.name, ignore_errors=True)
            with contextlib.suppress(OSError):
                self._directory.rmdir()  # unless another one is open

    def __enter__(self) -> TestTenant:
        return calls.blocking(self._runner.submit(self._begin()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner.is_running:  # else it has ended with its parent
            calls.blocking(self._runner.submit(self._end()))
        self._clear()

    async def __aenter__(self) -> TestTenant:
        return await calls.awaited(self._runner, self._begin())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner.is_running:
            await calls.awaited(self._runner, self._end())
        self._clear()


class TenantCalls:
    """The part of the handle that makes tenants."""

    _runner: Runner
    _strict: bool

    def _place(self) -> Path:
        """The directory of the handle's files."""
        raise NotImplementedError

    def tenant(
        self, *manifests: Source, name: str = "", empty: bool = False, snapshot: str | Object = ""
    ) -> TenantBlock:
        """For `with` and `async with`: a further server, in the process and the event loop of this one.

        It begins with what this one was started with, with nothing (`empty`), or with the objects of a snapshot of this one;
        `manifests` are loaded, too. The block raises ApiError for a name that another one has, for manifests that are
        refused, and for an unknown snapshot. Raises LoadError, TypeError.
        """
        source: str | Object = EMPTY if empty else TEMPLATE
        if snapshot:
            source = {"snapshot": snapshot if isinstance(snapshot, str) else snapshot["name"]}
        loaded = [document.value for document in documents(*manifests)]
        wanted = WantedTenant(name, source, None, manifests=loaded)
        return TenantBlock(self._runner, self._place() / DIRECTORY, wanted, strict=self._strict)
