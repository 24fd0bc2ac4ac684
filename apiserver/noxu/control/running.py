"""One server and what `/_noxu/` keeps about it: its tenants, snapshots, faults.

A part is made when it is first asked for, and belongs to one server:

    snapshots = control.part(Snapshots)     # the same one for HTTP, commands and the handle

A *held* answer stays open: the client has what it holds for as long as its connection lasts. When the connection ends, for
whatever reason, also because its process was killed, `ended` is called; so it is when the server stops. It runs in a task
of its own, which nothing cancels. All of this happens in the event loop of the server.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from noxu.containment import Contained
from noxu.identifiers import new_uuid
from noxu.values import Object, cached_property

if TYPE_CHECKING:
    from noxu.clock import Clock
    from noxu.config import Config
    from noxu.control.faults.armed import Armed
    from noxu.control.history import WriteHistory
    from noxu.control.recorded_requests import RequestDetails, RequestRecord
    from noxu.control.retention import Retention
    from noxu.control.templates import Template
    from noxu.control_plane import ControlPlane
    from noxu.crd.known_definitions import KnownDefinitions
    from noxu.manifests.documents import Document, Read
    from noxu.manifests.watch import FileWatch
    from noxu.registry.access import User
    from noxu.security.kubeconfig import Access
    from noxu.webhook.client import Caller
    from noxu_storage.memory import Base

T = TypeVar("T")


class Activity(Protocol):
    """What clients do: `noxu.http.activity`. Times are the event loop's."""

    requests: int
    """How many requests have been answered."""

    def under_way(self, ignored: Collection[str]) -> list[str]:
        """The requests that are being handled, and the watches that have not sent everything, in words."""
        ...

    def last(self, ignored: Collection[str]) -> float:
        """When a client last asked for something, or got its answer."""
        ...

    def connections(self) -> Sequence[tuple[object, object]]:
        """Those of clients: their addresses, and those of the server's sockets."""
        ...


class ProgramUnderTest(Protocol):
    """A program under test. `pid` is 0 while it does not run; it leads a process group."""

    @property
    def pid(self) -> int: ...

    def send(self, number: int) -> None:
        """Send a signal to its group; nothing happens if it does not run."""


class ProgramsUnderTest(Protocol):
    """Those of a server: `noxu.control.programs`."""

    def asking(self, peer: object, local: object) -> ProgramUnderTest | None:
        """The program whose connection has these addresses; None: another client's."""

    def strike(self, what: str, seconds: float = 0.0, program: ProgramUnderTest | None = None) -> None:
        """kill, pause or resume a program."""


class Intervening(Protocol):
    """What is done to the requests of a server besides answering them: `noxu.http.interventions`."""

    def await_turn(self, turn: Callable[[], Awaitable[None] | None]) -> None:
        """Let each request begin when `turn` allows it."""

    def activity(self) -> Activity:
        """What the clients do; it is observed from the first call on."""

    def requests(self) -> RequestRecord:
        """What the clients ask; it is recorded from the first call on, or from the start."""

    def details(self) -> RequestDetails:
        """What the writes of clients had besides, as far as it was kept."""

    def keep_details(self, *, wanted: bool) -> None:
        """Keep the details of further writes, or no longer."""

    def begin_requests(self) -> RequestRecord:
        """What the clients ask, until `end_requests`. There may be gaps before."""

    def end_requests(self) -> None:
        """Record no requests any more, unless something else wants them."""

    def end_watches(self) -> None:
        """End all watches now, as a server does that restarts."""

    def let_go(self) -> None:
        """Break the connections that hang because of faults: the server stops."""

    def hit_requests(self, armed: Armed | None, programs: ProgramsUnderTest) -> None:
        """Let the rules of faults hit requests from now on, and the programs; None: there are none."""


class Running(Protocol):
    """A server that runs, as this room knows it: `process.server.Server`."""

    config: Config
    plane: ControlPlane
    clock: Clock
    url: str
    retention: Retention
    watch: FileWatch | None
    given: Sequence[Document] | None
    """The documents that it was started with; None: those of its files."""
    read: Read | None
    """How those are read; None: from the files."""
    definitions: KnownDefinitions | None
    """What is known of the definitions in them."""
    template: Template | None
    """What it has begun with."""
    caller: Caller
    """Calls webhooks."""
    history: WriteHistory | None
    """None: the server keeps none."""

    @property
    def interventions(self) -> Intervening:
        """Those in its requests."""

    @property
    def parent(self) -> Running | None:
        """The server whose tenant this one is."""

    def access(self) -> Access:
        """What its administrator needs to use it."""

    def access_of(self, user: User) -> Access:
        """What a user needs, with new credentials. Raises ValueError for one who cannot have them."""

    @property
    def tenants_config(self) -> Config:
        """The configuration of its tenants."""

    def tenant(
        self, template: Template | None = None, documents: Iterable[Document] = (), base: Base | None = None
    ) -> contextlib.AbstractAsyncContextManager[Running]:
        """A server of its own beside this one, which runs in the context. Raises StartError there.

        It begins with the template or the stored objects, if there are any, and loads the documents.
        """


@dataclass(slots=True, eq=False)
class Held:
    """An answer that stays open: `first` is sent at once, a line of JSON. To end it, set `over`."""

    first: Object
    ended: Callable[[], Awaitable[object]]
    """Called once, when the client is gone, the answer is over or the server stops. A failure is logged."""
    status: int = 201
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Control:
    """`closing` is closed when the server stops, before its connections are: what a part needs to stop is pushed there."""

    def __init__(self, server: Running) -> None:
        self.server = server
        self.closing = contextlib.AsyncExitStack()
        self.is_closed = False
        self._parts: dict[Callable[[Control], Any], Any] = {}
        self._held: dict[Held, None] = {}  # in the order of their beginnings
        self._ending: set[asyncio.Task[None]] = set()

    @cached_property
    def token(self) -> str:
        """What a web page needs to change something: random, another one at each start. `noxu serve` prints it."""
        return new_uuid().replace("-", "")

    def part(self, make: Callable[[Control], T]) -> T:
        """What `make`, usually a class, makes for this server; made by the first call."""
        if make not in self._parts:
            self._parts[make] = make(self)
        found: T = self._parts[make]
        return found

    def hold(self, held: Held, connection: asyncio.Task[Any]) -> None:
        """Call `held.ended` when the task of the connection is done, or earlier if the server stops."""
        self._held[held] = None
        # a callback of the task, because it runs however the task ends: the code that writes may be cancelled anywhere
        connection.add_done_callback(lambda _task: self._end(held))

    def _end(self, held: Held) -> None:
        if held not in self._held:
            return
        del self._held[held]  # before the task runs: a second reason to end it finds nothing
        held.over.set()
        task = asyncio.get_running_loop().create_task(_ended(held))
        self._ending.add(task)  # the loop has only a weak reference
        task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End what is held, and then all parts."""
        self.is_closed = True
        for held in tuple(self._held):
            self._end(held)
        while self._ending:
            await asyncio.gather(*self._ending)
        await self.closing.aclose()
        self._parts.clear()  # each refers to this, and may to all that the server had


async def _ended(held: Held) -> None:
    with Contained("what ends with a connection"):
        await held.ended()
