"""A server for a test: in this process, in memory, on a free port, stopped at the end of the test.

It runs in a thread of its own, so sync and async tests can use it.
"""

from __future__ import annotations

import asyncio
import shutil
import textwrap
import threading
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from noxu.apiserver import admission_plugins, loading, manifests, server
from noxu.apiserver.api.codec import Decoded
from noxu.apiserver.clock import SYSTEM_CLOCK, Clock
from noxu.apiserver.config import DEFAULT_AUTHENTICATION, Authentication, Config, Profile, Tls
from noxu.apiserver.controllers import manager
from noxu.apiserver.features import Features
from noxu.apiserver.kubeconfig import write_kubeconfig
from noxu.apiserver.manifests import Document
from noxu.apiserver.testing import users
from noxu.apiserver.testing.users import TestUser
from noxu.apiserver.values import Object

Source = Path | str | Object
"""A file or directory of manifests, a text that contains manifests (it may be indented), or an object."""

T = TypeVar("T")
Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class Noxu:
    """A running server. `url` is its address, `kubeconfig` a file for clients.

    Use it as a context manager, or through the fixtures of `noxu.apiserver.testing.plugin`.
    """

    url: str
    kubeconfig: Path

    def __init__(
        self,
        directory: Path,
        sources: Iterable[Source] = (),
        clock: Clock = SYSTEM_CLOCK,
        *,
        profile: Profile = "local",
        controllers: Iterable[str] | None = None,
        disable_admission_plugins: Iterable[str] = (),
        enable_admission_plugins: Iterable[str] = (),
        features: Features = Features(),
        authentication: Authentication = DEFAULT_AUTHENTICATION,
        tls: bool = False,
        authorization_modes: Iterable[str] | None = None,
    ) -> None:
        """`directory` is the directory of the kubeconfig; `disable_admission_plugins` and
        `enable_admission_plugins` as for `noxu serve`.

        `profile` and `controllers` are those of `noxu serve`, too; `controllers` None: those of the profile. Raises LoadError
        for sources that cannot be read, and ValueError for unknown plug-ins. `tls`: HTTPS; the kubeconfig has the CA and a
        client certificate. `authentication` and `authorization_modes` say who users are, and who decides what they may do.
        """
        self.kubeconfig = directory / "kubeconfig"
        controllers = None if controllers is None else tuple(controllers)
        self._config = Config(
            port=0,
            profile=profile,
            controllers=controllers,
            admission_plugins=admission_plugins.select(
                enable_admission_plugins,
                disable_admission_plugins,
                controllers=manager.has_accounts(profile, controllers),
            ),
            features=features,
            authentication=authentication,
            authorization_modes=None if authorization_modes is None else tuple(authorization_modes),
            tls=Tls() if tls else None,
        )
        self._users = 0
        self._clock = clock
        self._documents = documents(*sources)
        self._loop: asyncio.AbstractEventLoop
        self._server: server.Server
        self._stop: asyncio.Event
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="noxu", daemon=True)

    def start(self) -> Self:
        """Return when the server is ready. Raises StartError."""
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error
        write_kubeconfig(self.kubeconfig, self._server.access())
        return self

    def stop(self) -> None:
        """Stop the server: its thread ends, its port is free, the kubeconfig is removed. It may be called twice."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        self.kubeconfig.unlink(missing_ok=True)
        shutil.rmtree(self.kubeconfig.parent / "users", ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def apply(self, *sources: Source) -> list[Object]:
        """Create objects, or replace existing ones; CRDs first. Returns the stored objects.

        When it returns, the objects can be read and watched. Raises LoadError for a source that cannot be read, and
        ApiError for an object that the server refuses, with the message that kubectl would show.
        """
        return self._call(self._apply(documents(*sources)))

    async def _apply(self, to_apply: list[Document]) -> list[Object]:
        return [await loading.apply(self._server.plane, document.value) for document in to_apply]

    def user(self, name: str, groups: Iterable[str] = (), *, uid: str = "") -> TestUser:
        """A user of the server, with a kubeconfig: over HTTP with a random token, over TLS with a client certificate.

        `system:authenticated` is added to its groups. It may do what the mode of authorization allows.
        """
        self._users += 1
        directory = self.kubeconfig.parent / "users" / str(self._users)
        return users.make(self._server, directory, name, groups, uid)

    def mutating(
        self,
        resource: str,
        *,
        operations: Iterable[str] = ("CREATE", "UPDATE"),
        version: str = "*",
        name: str = "",
        reinvoke: bool = False,
    ) -> Callable[[F], F]:
        """Decorates a function that is called like a mutating webhook; see docs/testing.md.

        `resource` is `widgets.example.com`, or with a subresource `widgets.example.com/status`. The function gets objects
        in `version` (`*`: in the version of the request). `reinvoke`: reinvocationPolicy IfNeeded.

        Raises ValueError if the plug-in that calls mutating webhooks is disabled.
        """
        self._require("MutatingAdmissionWebhook")

        def register(function: F) -> F:
            self._call(self._register(True, function, resource, operations, version, name, reinvoke))
            return function

        return register

    def validating(
        self,
        resource: str,
        *,
        operations: Iterable[str] = ("CREATE", "UPDATE"),
        version: str = "*",
        name: str = "",
    ) -> Callable[[F], F]:
        """Decorates a function that is called like a validating webhook; see `mutating`."""
        self._require("ValidatingAdmissionWebhook")

        def register(function: F) -> F:
            self._call(self._register(False, function, resource, operations, version, name, False))
            return function

        return register

    def converting(self, definition: str) -> Callable[[F], F]:
        """Decorates a function (object, apiVersion) → object that converts the objects of a CRD.

        It takes the place of the CRD's `spec.conversion`.
        """

        def register(function: F) -> F:
            self._call(self._convert(definition, function))
            return function

        return register

    def _require(self, plugin: str) -> None:
        if plugin not in self._config.admission_plugins:
            raise ValueError(f"the function would not be called: the admission plug-in {plugin} is disabled")

    async def _register(
        self,
        mutating: bool,
        function: Function,
        resource: str,
        operations: Iterable[str],
        version: str,
        name: str,
        reinvoke: bool,
    ) -> None:
        from noxu.apiserver.testing import functions

        hook = functions.hook(
            function,
            resource,
            mutating=mutating,
            operations=operations,
            version=version,
            name=name,
            reinvoke=reinvoke,
        )
        chain = self._server.plane.admission
        (chain.local_mutating if mutating else chain.local_validating).append(hook)

    async def _convert(self, definition: str, function: Function) -> None:
        from noxu.apiserver.testing import functions

        self._server.plane.convert_in_process(definition, functions.converter(function))

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=server.new_loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with server.Server(self._config, self._documents, self._clock) as running:
                self._server, self.url = running, running.url
                self._started.set()
                await self._stop.wait()
        except BaseException as error:
            self._error = error
            if self._started.is_set():
                raise
        finally:
            self._started.set()


def documents(*sources: Source) -> list[Document]:
    """The objects of sources, in the order in which they have to be created. Raises LoadError."""
    found: list[Document] = []
    for source in sources:
        if isinstance(source, dict):
            found += manifests.flatten(Decoded(source), "object")
        elif isinstance(source, Path) or "\n" not in source:
            found += manifests.read_paths([Path(source)])
        else:
            found += manifests.read(textwrap.dedent(source).encode(), "text")
    return loading.ready(manifests.checked(found))
