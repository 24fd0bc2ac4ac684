"""Who writes, and what they were shown before: raw notes, which cost a request no call of a function.

A request that writes sets `AUTHOR` in the context of its task, and so does what writes for the server itself: a controller,
the files of a start. `Persistence` notes the author beside each revision that it has written. What reads adds what it has
shown to whom. `noxu.control.history` makes of these notes what people ask for: no request waits for that.

    journal.writes    (revision, seconds, author)                     by `Persistence`, when the store has answered
    journal.reads     (arrived, user, agent, what, revision)          by GET (of a key) and LIST (of a scope)
    journal.watches   {(user, agent): Watching}                       open watches, and how far each one has come

A *client* is a user and a user agent: a controller has several connections, and a watch occupies one. What a watch has
delivered is not noted when it happens, because there may be 10,000 of them: a write copies how far its client's watches
have come, which they know anyway.

    stream of widgets   after = 12       a write by the same client arrives: author.shown = (12, 9)
    stream of gadgets   after = 9

Without a journal (`Persistence.journal` is None) nothing of this happens. See docs/limits.md for its memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias

from noxu.clock import SYSTEM_CLOCK, AdjustableClock, Clock, timestamp
from noxu_storage.types import Key, Revision

MAX_WRITES: Final = 65_536  # notes of writes in memory, the newest: about 40 MB if each is another request
MAX_READS: Final = 8_192  # notes of reads that no write has been connected with yet, the newest: about 3 MB
MAX_CLIENTS: Final = 1_000  # clients whose ended watches are remembered
MAX_ENDED: Final = 32  # ended watches of a client that are remembered, the newest
MAX_TEXT: Final = 256  # characters of what a client sends about itself
MAX_SELECTOR: Final = 1_024  # characters of a selector; of a longer one, which is not understood then, the beginning

ClientId: TypeAlias = tuple[str, str]
"""The name of the user, and the user agent."""


class WatchScope(NamedTuple):
    """What a watch shows. `partition` None: all; `name` "": all names. The selectors are texts, "" for none."""

    collection: str
    partition: str | None
    name: str = ""
    labels: str = ""
    fields: str = ""


class Followed(NamedTuple):
    """One watch of a client: it has delivered everything in `scope` after `since` and up to `upto`."""

    scope: WatchScope
    since: Revision
    upto: Revision


class Author(NamedTuple):
    """Who asked for a write, and how. Texts are "" if there is none; `controller` is one of this server, which no client asked.

    `verb` is the API's, or `apply`. `request_id` is the Audit-Id. `arrived` is when the request did, in the event loop's time.
    `watching` and `shown` say what its client's watches had delivered then: `followed`.
    """

    verb: str = ""
    subresource: str = ""
    user: str = ""
    agent: str = ""
    manager: str = ""
    request_id: str = ""
    traceparent: str = ""
    controller: str = ""
    arrived: float = 0.0
    watching: tuple[tuple[WatchScope, Revision], ...] = ()
    """Of each watch, its scope and the revision after which it began."""
    shown: tuple[Revision, ...] = ()
    """Of each of them, how far it had come."""

    @property
    def client(self) -> ClientId:
        return (self.user, self.agent)

    @property
    def followed(self) -> list[Followed]:
        return [Followed(scope, since, upto) for (scope, since), upto in zip(self.watching, self.shown, strict=True)]


UNKNOWN: Final = Author()
BOOTSTRAP: Final = Author(controller="bootstrap")
"""Creates the objects of every cluster, before the first request."""
FILES: Final = Author(controller="files")
"""Loads the files that a server was given."""
TEMPLATE: Final = Author(controller="template")
"""Was there when the server began, because another one has made it."""
AUTHOR: Final[ContextVar[Author]] = ContextVar("author", default=UNKNOWN)
"""On whose behalf the current task writes."""


def of_controller(name: str) -> Author:
    """The author of what the server writes by itself."""
    return Author(controller=name)


@contextmanager
def writing_as(author: Author) -> Iterator[None]:
    """Everything that is written in the context, also by tasks that are made there, is this author's."""
    token = AUTHOR.set(author)
    try:
        yield
    finally:
        AUTHOR.reset(token)


class Advancing(Protocol):
    """A watch. `after`: everything up to here has been sent."""

    after: Revision


class Ended:
    """A watch that has ended: the client still knows what it has shown."""

    __slots__ = ("after",)

    def __init__(self, after: Revision) -> None:
        self.after = after


class Watching:
    """The watches of one client: `streams`, and in the same order their `scopes`. Both are replaced as a whole, so that an
    author may share `scopes`."""

    __slots__ = ("scopes", "streams")

    def __init__(self) -> None:
        self.streams: tuple[Advancing, ...] = ()
        self.scopes: tuple[tuple[WatchScope, Revision], ...] = ()

    def add(self, stream: Advancing, scope: WatchScope) -> None:
        """A watch begins. It takes the place of an ended one with the same scope, which it continues."""
        kept = [
            (known, of)
            for known, of in zip(self.streams, self.scopes, strict=True)
            if not (isinstance(known, Ended) and of[0] == scope)
        ]
        self._set([*kept, (stream, (scope, stream.after))])

    def end(self, stream: Advancing) -> None:
        """A watch ends."""
        kept = [
            (Ended(known.after) if known is stream else known, of)
            for known, of in zip(self.streams, self.scopes, strict=True)
        ]
        ended = [pair for pair in kept if isinstance(pair[0], Ended)]
        if len(ended) > MAX_ENDED:
            kept.remove(ended[0])
        self._set(kept)

    def _set(self, pairs: list[tuple[Advancing, tuple[WatchScope, Revision]]]) -> None:
        self.streams = tuple(stream for stream, _ in pairs)
        self.scopes = tuple(scope for _, scope in pairs)

    @property
    def is_open(self) -> bool:
        return any(not isinstance(stream, Ended) for stream in self.streams)


Write: TypeAlias = tuple[Revision, float, Author]
Read: TypeAlias = tuple[float, str, str, Key | WatchScope, Revision]


class Timed(Protocol):
    """Tells object time in seconds since 1970. `timestamp` may become another function when a clock is set."""

    @property
    def timestamp(self) -> Callable[[], float]: ...


class _Timed:
    """A clock that a program has given, which need not have a `timestamp`."""

    def __init__(self, clock: Clock) -> None:
        self.timestamp: Callable[[], float] = partial(timestamp, clock)


class Journal:
    """The notes of one server. Everything is added in the event loop; times are object time."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock: Timed = clock if isinstance(clock, AdjustableClock) else _Timed(clock)
        self.writes: deque[Write] = deque(maxlen=MAX_WRITES)
        self.reads: deque[Read] = deque(maxlen=MAX_READS)
        self.watches: dict[ClientId, Watching] = {}
        self.many_reads: Callable[[], object] = int
        """Called when half of the room for reads is taken."""

    def begin_watch(self, client: ClientId, stream: Advancing, scope: WatchScope) -> None:
        """A client follows a stream from `stream.after` on."""
        watching = self.watches.pop(client, None) or Watching()
        watching.add(stream, scope)
        self.watches[client] = watching  # the newest client is the last one
        if len(self.watches) > MAX_CLIENTS:
            gone = next((known for known, each in self.watches.items() if not each.is_open), None)
            if gone is not None:
                del self.watches[gone]

    def end_watch(self, client: ClientId, stream: Advancing) -> None:
        """The stream has ended."""
        if (watching := self.watches.get(client)) is not None:
            watching.end(stream)
