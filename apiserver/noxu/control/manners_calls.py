"""The manners of the clients of a running server, `GET /_noxu/report`, and the least roles for them, `GET /_noxu/rbac`.

The requests of a server are recorded from the first call on, or from its start with `noxu serve --record-requests`; those of a
test always are. What they have written is known from the history of the server (`control.history`) and its log, in which only
objects that were written often are compared with their state before.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from noxu.api import errors
from noxu.api.names import path_segment_name
from noxu.control.arguments import BOOLEAN, TEXT, TEXTS, Argument, duration, one_of, time
from noxu.control.calls import ControlCall, ControlRoute, Download
from noxu.control.changed_paths import changed_paths
from noxu.control.least_roles import least_rules, manifests, name_of, questions, refused
from noxu.control.manners.observed import ObjectId, Observed, ObservedWrite, WriteAuthor
from noxu.control.manners.page import as_page
from noxu.control.manners.report import report
from noxu.control.manners.writing import TURNS
from noxu.control.recorded_requests import RecordedRequest, RequestRecord
from noxu.control.recorded_writes import RecordedWrite
from noxu.control.running import Running
from noxu.control.write_log import decoded, described, events_between
from noxu.registry.authors import MAX_WRITES, Author
from noxu.registry.offload import offload
from noxu.values import Object
from noxu_storage.types import EVERYTHING, Compacted, Event

MAX_COMPARED: Final = 5_000
"""States of objects that are compared for a report, the newest: about a second."""
PORTION: Final = 500  # writes or requests that are looked at before other tasks run
MIN_WRITES: Final = TURNS + 1
"""Objects with fewer writes are not compared, unless a PUT without a resourceVersion is among these."""


async def observe(
    server: Running, *, client: str = "", since: float = 0.0, after: int = 0
) -> tuple[Observed, RequestRecord]:
    """What a report is made of. `client`: only requests of user agents that begin so. `since`: only later ones; `after`: only
    those after the one with this number. Raises StoreError."""
    record = server.interventions.requests()
    requests = [request for request in record.since(after) if request.at >= since]
    if client:
        requests = [request for request in requests if is_of(request, client)]
    if server.history is None:
        return Observed(requests, knows_writes=False), record
    writes = await server.history.all()
    if len(writes) >= MAX_WRITES:  # older ones are forgotten, so nothing is known of what such requests wrote
        known = {write.author.request_id for write in writes}
        first = next((n for n, request in enumerate(requests) if request.id in known), len(requests))
        requests = requests[first:]
    return Observed(requests, await _observed_writes(server, writes, requests)), record


def is_of(request: RecordedRequest, client: str) -> bool:
    """Whether a request is of a client that is named so: by its user agent, or how that begins."""
    return request.user_agent.startswith(client)


async def _observed_writes(
    server: Running, writes: Sequence[RecordedWrite], requests: Sequence[RecordedRequest]
) -> list[ObservedWrite]:
    """What is known of each revision, in order. Raises StoreError."""
    by_revision = {write.revision: write for write in writes}
    store = server.plane.store
    try:
        events = [
            event
            async for event in events_between(store, EVERYTHING, store.compacted, store.revision)
            if event.revision in by_revision
        ]
    except Compacted:  # meanwhile
        return []
    number = Counter(event.key for event in events)
    blind = {request.id for request in requests if request.is_unconditional}
    risky = {event.key for event in events if by_revision[event.revision].author.request_id in blind}
    compared = {event.key for event in events if number[event.key] >= MIN_WRITES or event.key in risky}
    observed = []
    first_compared = max(len(events) - MAX_COMPARED, 0)
    for n, event in enumerate(events):
        author, where = by_revision[event.revision].author, described(event.key)
        changed = await _changed(event) if event.key in compared and n >= first_compared else None
        object_ = ObjectId(where["resource"], where["namespace"], where["name"])
        observed.append(ObservedWrite(event.revision, object_, _writer(author), author.request_id, changed))
        if not n % PORTION:
            await asyncio.sleep(0)
    return observed


async def _changed(event: Event) -> tuple[str, ...] | None:
    before, after = None if event.previous is None else event.previous.value, event.value
    if not before or not after:
        return None
    return tuple(await offload(len(before) + len(after), lambda: changed_paths(decoded(before), decoded(after))))


def _writer(author: Author) -> WriteAuthor:
    return WriteAuthor(author.agent, author.user, author.manager, author.controller)


# -- the call ----------------------------------------------------------------------------------------------------------


async def report_of(server: Running, *, client: str = "", since: str = "", after: int = 0) -> Object:
    """The report about a server. `since`: requests after a time, or within a duration until now; `after`: after that number.

    Raises ApiError, StoreError.
    """
    observed, record = await observe(server, client=client, since=_time_of(since), after=after)
    return await offload(len(observed.requests) * _PER_REQUEST, report, observed, record.began, _notes(server, record))


def _notes(server: Running, record: RequestRecord) -> list[str]:
    """What is left out, and how it is had."""
    notes = _kept(record)
    if server.history is None:
        notes.append("what was written is not known: the server runs with --history off")
    return notes


def _kept(record: RequestRecord) -> list[str]:
    notes = []
    if not record.last:
        began = datetime.fromtimestamp(record.began, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        notes.append(f"requests are recorded since {began}; noxu serve --record-requests records them from the start")
    if record.last > record.limit:
        notes.append(f"the newest {record.limit} of {record.last} requests are kept")
    return notes


def _time_of(since: str) -> float:
    """The time of `since`, in seconds since 1970. Raises ApiError."""
    if not since:
        return 0.0
    try:
        if "T" in since:
            return time(since).timestamp()
        return datetime.now(UTC).timestamp() - duration(since.removeprefix("-"))
    except ValueError:
        raise errors.bad_request(
            f"since: {since!r} is no duration such as 5m, and no time such as 2030-01-01T00:00:00Z"
        ) from None


async def roles_of(
    server: Running,
    *,
    client: str = "",
    user: str = "",
    since: str = "",
    name: str = "",
    bind: Sequence[str] = (),
    names: bool = True,
    discovery: bool = False,
) -> Object:
    """The least roles for what clients have asked: `items`, the number of `requests`, `notes`. Raises ApiError.

    `bind`: users and service accounts for whom there are bindings. `names` False: no rule is for one name only.
    """
    record, after = server.interventions.requests(), _time_of(since)
    requests = [
        request
        for request in record.since()
        if request.at >= after and not request.by_handle and is_of(request, client) and user in ("", request.user)
    ]
    if name and (wrong := path_segment_name(name)):
        raise errors.bad_request(f"name: {name!r} {', '.join(wrong)}")
    return await offload(len(requests) * _PER_REQUEST, _roles, requests, name, bind, names, discovery, _kept(record))


_PER_REQUEST: Final = 100
"""The weight of a recorded request, in bytes of an object: both take some microseconds."""


def _roles(
    requests: Sequence[RecordedRequest],
    name: str,
    bind: Sequence[str],
    names: bool,
    discovery: bool,
    notes: Sequence[str],
) -> Object:
    asked = questions(requests, discovery=discovery)
    named = name or name_of(request.user_agent for request in requests)
    roles = manifests(least_rules(asked, names=names), named, bind)
    if wrong := refused(roles, asked):
        raise AssertionError(f"the roles refuse {wrong[0]}")  # a bug, of which the log says more
    return {"items": roles, "requests": len(requests), "notes": [*notes]}


async def _rbac(call: ControlCall) -> Object:
    return await roles_of(call.control.server, **call.query)


async def _report(call: ControlCall) -> Object | Download:
    value = await report_of(call.control.server, client=call.query["client"], since=call.query["since"])
    if call.query["output"] == "html":
        return Download(as_page(value).encode(), "text/html; charset=utf-8")
    return value


_SELECTING: Final = {
    "client": Argument(TEXT, "how the user agents of the clients begin; none: all clients", ""),
    "since": Argument(TEXT, "later requests only: a duration until now, or a time", ""),
}
ROUTES: Final = (
    ControlRoute(
        "GET",
        "/_noxu/rbac",
        _rbac,
        "Make the least roles for what clients have asked.",
        query={
            **_SELECTING,
            "user": Argument(TEXT, "requests of this user only; none: of all users", ""),
            "name": Argument(TEXT, "the name of the roles; none: that of the user agent", ""),
            "bind": Argument(TEXTS, "users and service accounts that the roles are bound to", ()),
            "names": Argument(BOOLEAN, "limit a rule to a name that was always the same", True),
            "discovery": Argument(BOOLEAN, "include what every user may get", False),
        },
    ),
    ControlRoute(
        "GET",
        "/_noxu/report",
        _report,
        "Report the manners of clients.",
        query={**_SELECTING, "output": Argument(one_of("json", "html"), "JSON, or a page for people", "json")},
    ),
)
