"""The timeline of a reconcile: what is drawn of writes and requests, as JSON.

Each client has a *lane*, and what it did is a *mark* in it. Times are in seconds since 1970, of the machine:

    {"key": "812", "at": 1767225600.25, "lane": "operator/v1", "what": "write", "verb": "update", "subresource": "status",
     "resource": "widgets.example.com", "namespace": "default", "name": "a", "revision": 812, "event": "MODIFIED",
     "because": [811], "to": ["kubectl/v1.37.0"], "code": 200, "request": 1234, "id": "…", "path": "/apis/…", "seconds": 0.002}
    {"key": "r1235", "at": …, "lane": …, "what": "refused", "code": 409, "reason": "Conflict", "message": "…", …}

`what` is "write", "refused", "unchanged" (a request that wrote nothing), "read", "watch", or "call": of a webhook, by the request with
the id `caller`. `to` are the lanes whose watches
have been sent the event of a write, `because` the revisions that the client had been shown since its previous write, the
newest first (`noxu.control.causes`). The page draws an arrow for each of both.

Everything here is pure: from what a server has recorded, or a recording has, to marks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple

from noxu.control.causes import spans
from noxu.control.recorded_requests import Answered, RecordedRequest
from noxu.control.recorded_writes import RecordedWrite
from noxu.control.write_log import resource_name
from noxu.registry.authors import UNKNOWN, Author, WatchScope
from noxu.registry.trace import HookCall
from noxu.values import MAX_INT64, Json, Object
from noxu_storage.types import Event, Key, Revision

MAX_CAUSES: Final = 8  # of a mark, the newest: more arrows to one point say nothing
MAX_LOOKED_AT: Final = 500  # events in which the causes of one write are looked for, the newest
MAX_RECENT: Final = 20_000
ANONYMOUS: Final = "system:anonymous"
READS: Final = ("get", "list")
_VERBS: Final = {"ADDED": "create", "MODIFIED": "update", "DELETED": "delete"}


@lru_cache(1_000)
def lane(user: str, agent: str, controller: str = "") -> str:
    """The name of a client: the first word of its user agent, and its user if it has one; of a controller its own."""
    if controller:
        return f"noxu {controller}"
    name = agent.partition(" ")[0] or ("client" if user else "noxu")
    return name if user in ("", ANONYMOUS) else f"{name} {user}"


class Sight(NamedTuple):
    """A watch of a client. `after`: what it began with; `upto`: what it has come to now, or at its end."""

    lane: str
    scope: WatchScope
    after: Revision
    upto: Revision
    is_open: bool = True


def has_selectors(scope: WatchScope) -> bool:
    return bool(scope.labels or scope.fields)


class ShownPlace(NamedTuple):
    """The watches that show a place, unless their selectors leave an object out.

    All `lanes` have been sent each event of it after `after` and up to `upto`; where selectors have to be asked, there is none such.
    """

    sights: Sequence[Sight]
    lanes: list[str]
    after: Revision
    upto: Revision


def _place(sights: Sequence[Sight]) -> ShownPlace:
    lanes = [*dict.fromkeys(sight.lane for sight in sights)]
    if any(has_selectors(sight.scope) for sight in sights):
        return ShownPlace(sights, lanes, 0, 0)
    return ShownPlace(
        sights,
        lanes,
        max((sight.after for sight in sights), default=0),
        min((sight.upto for sight in sights), default=MAX_INT64),
    )


def receivers(event: Event, sights: Iterable[Sight], selects: Callable[[WatchScope, Event], bool]) -> list[str]:
    """The lanes of watches that have been sent an event. `selects` is asked about those with selectors."""
    revision, found = event.revision, dict[str, None]()
    for name, scope, after, upto, _ in sights:
        if after < revision <= upto and (not has_selectors(scope) or selects(scope, event)):
            found[name] = None
    return [*found]


class Sights:
    """The watches of all clients. Those that may show an object are found without a look at the others."""

    def __init__(self, sights: Iterable[Sight] = ()) -> None:
        self._of: dict[tuple[str, str | None, str], list[Sight]] = {}
        self._of_places: dict[tuple[str, str], ShownPlace] = {}  # those of all names: found once for many objects
        for sight in sights:
            self._of.setdefault(sight.scope[:3], []).append(sight)
        self.have_names = any(name for _, _, name in self._of)

    def showing(self, key: Key) -> ShownPlace:
        """Those that show an object, unless their selectors leave it out."""
        place = key[:2]
        found = self._of_places.get(place)
        if found is None:
            collection, partition = place
            found = self._of_places[place] = _place(self._at((collection, None, ""), (collection, partition, "")))
        return self._with_named(found, key) if self.have_names else found

    def _with_named(self, found: ShownPlace, key: Key) -> ShownPlace:
        """With the watches of this object alone."""
        collection, partition, name = key
        named = self._at((collection, partition, name), (collection, None, name))
        return _place([*found.sights, *named]) if named else found

    def _at(self, *scopes: tuple[str, str | None, str]) -> list[Sight]:
        return [sight for scope in scopes for sight in self._of.get(scope, ())]


def is_awaited(event: Event, showing: Iterable[Sight], had: Collection[str]) -> bool:
    """Whether a watch may still be sent an event, and its lane has not had it."""
    return any(sight.is_open and sight.upto < event.revision and sight.lane not in had for sight in showing)


class RecentEvents:
    """The newest events, in which causes are looked for."""

    def __init__(self) -> None:
        self._revisions: list[Revision] = []
        self._keys: list[Key] = []

    def add(self, events: Sequence[Event]) -> None:
        """Take events in their order. The writes among them may be asked about afterwards: only what is older is their cause."""
        self._revisions += [event.revision for event in events]
        self._keys += [event.key for event in events]
        if len(self._revisions) > 2 * MAX_RECENT:  # rarely: each time it moves half of them
            del self._revisions[:-MAX_RECENT], self._keys[:-MAX_RECENT]

    def causes(self, write: RecordedWrite, previous: RecordedWrite | None) -> list[Revision]:
        """The revisions that the client of a write had been shown since its previous one, the newest first."""
        if not (write.reads or write.author.watching):
            return []
        found = {revision for what, revision in write.reads if isinstance(what, Key)}
        for (collection, partition, name, *_), after, upto in spans(write, previous):
            last = bisect_right(self._revisions, min(upto, write.revision - 1))
            first = max(bisect_right(self._revisions, after), last - MAX_LOOKED_AT)
            for n in range(last - 1, first - 1, -1):
                key = self._keys[n]  # as `control.causes.covers`, without a call for each
                if key[0] == collection and partition in (None, key[1]) and name in ("", key[2]):
                    found.add(self._revisions[n])
                    if len(found) >= 2 * MAX_CAUSES:
                        break
        return sorted(found, reverse=True)[:MAX_CAUSES]


WRITE_COLUMNS: Final = (
    "revision", "at", "lane", "verb", "subresource", "resource", "namespace", "name", "event", "because", "to",
    "id", "manager", "traceparent", "code", "request", "method", "path", "seconds",
)  # fmt: skip
"""What a row of `write_row` has. None: it is not known, and the mark lacks it."""
ID: Final = WRITE_COLUMNS.index("id")
_OF_REQUEST: Final = (None,) * 5


def write_row(
    event: Event,
    at: float,
    write: RecordedWrite | None,
    request: Answered | None,
    because: list[Revision],
    to: list[str],
) -> list[Json]:
    """What is drawn of a write, which keeps both lists. `request` None: it is not known, or the server itself wrote.

    A row takes half the time of a dict, and an eighth with its JSON. Each call that can be left out is.
    """
    (collection, partition, name), revision, value, before = event
    kind = "DELETED" if value is None else "ADDED" if before is None else "MODIFIED"
    author: Author = UNKNOWN if write is None else write.author
    verb, subresource, user, agent, manager, request_id, traceparent, controller = author[:8]
    number, code, method, path, seconds = _OF_REQUEST if request is None else request[1:6]
    return [
        revision, at, lane(user, agent, controller), verb or _VERBS[kind], subresource,
        resource_name(collection), partition.removesuffix("/"), name, kind, because, to,
        request_id or None, manager or None, traceparent or None, code, number, method, path, seconds,
    ]  # fmt: skip


def mark_of(row: Sequence[Json]) -> Object:
    """The mark of a row."""
    known = {name: value for name, value in zip(WRITE_COLUMNS, row, strict=True) if value is not None}
    return {"key": str(known["revision"]), "what": "write", **known}


def request_mark(request: RecordedRequest) -> Object | None:
    """What is drawn of a request that wrote nothing; None: nothing, for it is about no object of the API."""
    if not request.verb or (request.verb in (*READS, "watch") and request.user_agent.startswith("Mozilla/")):
        return None  # the page itself reads, too
    mark: Object = {
        "key": f"r{request.number}",
        "at": request.at,
        "lane": lane(request.user, request.user_agent),
        "what": _what(request),
        "verb": request.verb,
        "subresource": request.subresource,
        "resource": request.resource,
        "namespace": request.namespace,
        "name": request.name,
        "code": request.code,
        "request": request.number,
        "method": request.method,
        "path": request.path,
        "seconds": request.seconds,
        "id": request.id,
    }
    if request.reason or request.message:
        mark |= {"reason": request.reason, "message": request.message}
    return mark


def call_marks(caller: Object, calls: Sequence[HookCall]) -> list[Object]:
    """What is drawn of the calls of webhooks that a request had. `caller`: its mark, beside which they are."""
    place = {name: caller[name] for name in ("resource", "namespace", "name", "subresource")}
    return [
        {
            "key": f"{caller['id']}/{number}",
            "at": caller["at"],
            "lane": f"webhook {call.webhook}",
            "what": "call",
            "verb": "review",
            **place,
            "caller": caller["id"],
            "from": caller["lane"],
            "seconds": call.seconds,
            "message": call.message,
            "changes": call.changes,
        }
        for number, call in enumerate(calls, 1)
    ]


def with_calls(found: list[Object], calls: Mapping[str, Sequence[HookCall]]) -> list[Object]:
    """Marks, each followed by those of the calls that it made. `calls`: by Audit-Id."""
    if not calls:
        return found
    return [each for mark in found for each in (mark, *call_marks(mark, calls.get(mark.get("id", ""), ())))]


def is_refused(code: int, *, reads: bool) -> bool:
    """Whether an answer is a refusal. Who looks for something that is not there has not been refused."""
    return code >= 400 and not (code == 404 and reads)


def _what(request: RecordedRequest) -> str:
    if is_refused(request.code, reads=request.verb in READS):
        return "refused"
    if request.verb in READS:
        return "read"
    return "watch" if request.verb == "watch" else "unchanged"


def request_marks(requests: Iterable[RecordedRequest]) -> list[Object]:
    return [mark for request in requests if (mark := request_mark(request)) is not None]


def in_order(marks: Iterable[Object]) -> list[Object]:
    """Marks in the order of their times."""
    return sorted(marks, key=itemgetter("at"))
