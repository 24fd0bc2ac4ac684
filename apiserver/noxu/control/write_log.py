"""The log of a server: one entry for each write, who made it, what it changed, and why (`GET /_noxu/log`).

    {"revision": 12, "time": "…", "verb": "update", "event": "MODIFIED",
     "resource": "widgets.example.com", "namespace": "default", "name": "a", "subresource": "status",
     "user": "…", "userAgent": "…", "manager": "…", "controller": "", "requestID": "…", "traceparent": "",
     "changed": ["status.ready"],
     "why": [{"how": "watch", "revision": 11, "event": "MODIFIED", "resource": …, "namespace": …, "name": …}]}

What is not known of a write is "". The newest writes are selected, and listed in their order. The events are read backwards
from the newest in spans that double, so that the newest writes of a long history are found at once. Nothing takes long in
the event loop: events are looked at PORTION at a time, and large objects are compared in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.api.selectors import parse_fields, parse_labels
from noxu.clock import timestamp
from noxu.control.arguments import BOOLEAN, INTEGER, TEXT, Argument, duration, time
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.causes import MAX_CAUSES, Cause, Happened, Kind, causes, covers, spans
from noxu.control.changed_paths import changed_paths
from noxu.control.history import WriteHistory
from noxu.control.recorded_writes import RecordedWrite
from noxu.control_plane import ControlPlane
from noxu.go.time import MICRO, format_time
from noxu.registry import kind_names
from noxu.registry.authors import UNKNOWN, WatchScope
from noxu.registry.offload import offload
from noxu.registry.served_resources import ServedResources
from noxu.registry.storage_form import as_json, group_and_plural, is_temporary
from noxu.values import Object
from noxu_storage.store import Store
from noxu_storage.types import EVERYTHING, Compacted, Event, Key, Prefix, Revision

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 5_000
FIRST_SPAN: Final = 1_000  # revisions
PORTION: Final = 250  # events that are looked at before other tasks run: 1 ms, some more if watches have selectors
ENTRIES: Final = 20  # entries that are made before other tasks run
MAX_SEARCHED: Final = 200_000  # revisions in which causes are looked for, of all writes of an answer together
UNKNOWN_WRITERS: Final = "who wrote is not known: the server runs with --history off"


class Selected(NamedTuple):
    """Which writes are listed. None: whatever it is. `after`: only later ones."""

    collection: str | None = None
    partition: str | None = None
    name: str | None = None
    after: Revision = 0
    limit: int = DEFAULT_LIMIT

    @property
    def prefix(self) -> Prefix:
        return Prefix(self.collection, self.partition if self.collection is not None else None)

    def matches(self, key: Key) -> bool:
        return (
            self.collection in (None, key.collection)
            and self.partition in (None, key.partition)
            and self.name in (None, key.name)
        )


class NewestWrites(NamedTuple):
    """The newest events that were selected, in order; `is_complete`: there are no older ones that are selected and kept."""

    events: Sequence[Event]
    is_complete: bool


# -- events ------------------------------------------------------------------------------------------------------------


async def newest(store: Store, selected: Selected) -> NewestWrites:
    """The newest events. Raises StoreError."""
    found: list[Event] = []
    floor = max(selected.after, store.compacted)
    upto, span = store.revision, FIRST_SPAN
    while upto > floor and len(found) <= selected.limit:
        after = max(upto - span, floor)
        try:
            earlier = [
                event
                async for event in events_between(store, selected.prefix, after, upto)
                if selected.matches(event.key)
            ]
        except Compacted as compacted:  # meanwhile: what is left is shown
            floor = max(floor, compacted.revision)
            continue
        found[:0] = earlier
        upto, span = after, span * 2
    return NewestWrites(found[-selected.limit :], len(found) <= selected.limit)


async def events_between(store: Store, prefix: Prefix, after: Revision, upto: Revision) -> AsyncIterator[Event]:
    """The events of objects after a revision and up to another one, in order. Raises Compacted, StoreError."""
    if after >= upto:
        return
    # memory hands out all events at once, without a copy of each: they are looked at here, some at a time
    asked = prefix if store.groups_writes else EVERYTHING
    async for batch in store.watch(asked, after=after):
        for number, event in enumerate(batch.events, 1):
            if event.revision > upto:
                return
            if (asked is prefix or prefix.covers(event.key)) and not is_temporary(event.key):
                yield event
            if not number % PORTION:
                await asyncio.sleep(0)
        if batch.revision >= upto:
            return
        await asyncio.sleep(0)


def kind_of(event: Event) -> Kind:
    """What a watch would call it."""
    return "DELETED" if event.value is None else "ADDED" if event.previous is None else "MODIFIED"


_VERBS: Final[dict[Kind, str]] = {"ADDED": "create", "MODIFIED": "update", "DELETED": "delete"}
"""What a write was whose verb is not known."""


# -- entries -----------------------------------------------------------------------------------------------------------


async def entry(event: Event, write: RecordedWrite | None) -> Object:
    """What is listed of a write."""
    author = UNKNOWN if write is None else write.author
    kind = kind_of(event)
    before = None if event.previous is None else event.previous.value
    weight = len(event.value or b"") + len(before or b"")
    return {
        "revision": event.revision,
        "time": "" if write is None else format_time(write.time, MICRO),
        "verb": author.verb or _VERBS[kind],
        "event": kind,
        **described(event.key),
        "subresource": author.subresource,
        "user": author.user,
        "userAgent": author.agent,
        "manager": author.manager,
        "controller": author.controller,
        "requestID": author.request_id,
        "traceparent": author.traceparent,
        "changed": await offload(weight, _changed, before, event.value),
    }


def _changed(before: bytes | None, after: bytes | None) -> list[str]:
    if not before or not after:  # a corrupt state is empty
        return []
    return changed_paths(decoded(before), decoded(after))


def decoded(stored: bytes) -> Object:
    value: Object = codec.decode_stored(as_json(stored))
    return value


@lru_cache(1_000)
def resource_name(collection: str) -> str:
    """What a collection has, as `widgets.example.com`."""
    group, _, plural = group_and_plural(collection).partition("/")
    return f"{plural}.{group}" if group else plural


def described(what: Key | WatchScope) -> Object:
    """The object or the list that is meant. A list of all namespaces has none."""
    return {
        "resource": resource_name(what.collection),
        "namespace": (what.partition or "").removesuffix("/"),
        "name": what.name,
    }


# -- causes ------------------------------------------------------------------------------------------------------------


@dataclass
class Searching:
    """How many events may still be looked at for causes."""

    left: int = MAX_SEARCHED

    @property
    def is_over(self) -> bool:
        return self.left <= 0


async def why(
    store: Store,
    history: WriteHistory,
    write: RecordedWrite,
    searching: Searching | None = None,
    most: int | None = None,
) -> list[Object]:
    """The causes of a write, the newest first; the last one counts those beyond `most`, None: MAX_CAUSES. Raises StoreError.

    Events for which `searching` has no room are left out, the oldest ones first.
    """
    searching, most = searching or Searching(), MAX_CAUSES if most is None else most
    previous = await history.of(write.previous) if write.previous else None
    shown = spans(write, previous)
    events: list[Happened] = []
    selected: set[tuple[WatchScope, Revision]] = set()
    if shown:
        upto = max(span.upto for span in shown)
        after = max(min(span.after for span in shown), store.compacted, upto - searching.left)
        searching.left -= upto - after
        scopes = {span.scope for span in shown}
        async for event in events_between(store, _common(scopes), after, upto):
            happened = Happened(event.revision, event.key, kind_of(event))
            covering = [scope for scope in scopes if covers(scope, happened)]
            weight = weight_of(event)
            for scope in covering:
                if not (scope.labels or scope.fields) or await offload(weight, selects, scope, event):
                    selected.add((scope, event.revision))
            if covering:
                events.append(happened)
    found = causes(write, previous, events, lambda scope, event: (scope, event.revision) in selected)
    listed = [_cause(each) for each in found[:most]]
    if len(found) > most:
        listed.append({"how": "more", "number": len(found) - most})
    return listed


def _common(scopes: set[WatchScope]) -> Prefix:
    """What all scopes are in."""
    collections = {scope.collection for scope in scopes}
    partitions = {scope.partition for scope in scopes}
    if len(collections) > 1:
        return Prefix()
    return Prefix(next(iter(collections)), next(iter(partitions)) if len(partitions) == 1 else None)


def selects(scope: WatchScope, event: Event) -> bool:
    """Whether a watch with selectors has shown an event: its object is, or was, selected."""
    return bool(selecting([scope], event))


def selecting(scopes: Iterable[WatchScope], event: Event) -> frozenset[WatchScope]:
    """Those of several watches with selectors that have shown an event. Each state is decoded once."""
    states = [decoded(value).get("metadata") or {} for value in _states(event)]
    return frozenset(scope for scope in scopes if any(_matches(scope, metadata) for metadata in states))


def weight_of(event: Event) -> int:
    """Bytes of what `selects` decodes."""
    return sum(map(len, _states(event)))


def _states(event: Event) -> list[bytes]:
    return [value for value in (event.value, event.previous.value if event.previous else None) if value]


def _matches(scope: WatchScope, metadata: Object) -> bool:
    """Whether the selectors of a watch select an object, as far as that can be told: fields of the metadata."""
    try:
        labels = parse_labels(scope.labels)
        fields = parse_fields(scope.fields)
    except (ApiError, ValueError):  # it was cut
        return True
    if not labels.matches(metadata.get("labels") or {}):
        return False
    return all(
        fields.exact(path) in (None, metadata.get(path.removeprefix("metadata."), ""))
        for path in ("metadata.name", "metadata.namespace")
    )


def _cause(cause: Cause) -> Object:
    shown: Object = {"how": cause.how, "revision": cause.revision, **described(cause.what)}
    if cause.kind:
        shown["event"] = cause.kind
    if isinstance(cause.what, WatchScope) and cause.what.labels:
        shown["labelSelector"] = cause.what.labels
    return shown


# -- the call ----------------------------------------------------------------------------------------------------------


async def answer(call: ControlCall) -> Object:
    """The log, as `ROUTES` says. Raises ApiError, StoreError."""
    return await log(call.plane, call.control.server.history, call.query)


async def log(plane: ControlPlane, history: WriteHistory | None, query: Object) -> Object:
    """The newest writes that are selected, in order. `query` has all arguments of the route. Raises ApiError, StoreError."""
    selected = Selected(
        *_place(plane.served_resources.current, query["type"], query["namespace"]),
        query["name"] or None,
        await _after(query["since"], plane.store, timestamp(plane.clock), history),
        _limit(query["limit"]),
    )
    if query["why"] and history is None:
        raise errors.bad_request("why: this server keeps no history of who wrote: start it without --history off")
    found = await newest(plane.store, selected)
    items: list[Object] = []
    searching = Searching()
    for event in reversed(found.events):  # the newest first: they have causes, if not all can have some
        write = None if history is None else await history.of(event.revision)
        item = await entry(event, write)
        if query["why"] and history is not None:
            item["why"] = [] if write is None else await why(plane.store, history, write, searching)
        items.append(item)
        if not len(items) % ENTRIES:
            await asyncio.sleep(0)
    listed: Object = {"items": items[::-1], "revision": plane.store.revision, "first": plane.store.compacted}
    if note := _note(found, selected, plane.store, history, searching):
        listed["note"] = note
    return listed


def _note(
    found: NewestWrites, selected: Selected, store: Store, history: WriteHistory | None, searching: Searching
) -> str:
    """What is left out, and how it is had; "" for nothing."""
    if searching.is_over:
        return f"causes are looked for in {MAX_SEARCHED} revisions, and the oldest are left out: select fewer writes"
    if not found.is_complete:
        return f"only the newest {selected.limit} writes are listed: a larger limit, up to {MAX_LIMIT}, or a later `since` lists others"
    if selected.after < store.compacted and selected.after:
        return f"older writes are gone: the history begins at revision {store.compacted}; `noxu serve --history` keeps more"
    if history is None:
        return UNKNOWN_WRITERS
    return ""


def _place(served: ServedResources, type_: str, namespace: str) -> tuple[str | None, str | None]:
    """The collection and the partition of a query. Raises ApiError."""
    if not type_:
        return None, f"{namespace}/" if namespace else None
    try:
        resource = kind_names.find(served, type_)
    except LookupError as error:
        raise errors.bad_request(f"type: {error}") from None
    if not resource.namespaced:
        return resource.collection, None
    return resource.collection, f"{namespace}/" if namespace else None


async def _after(since: str, store: Store, now: float, history: WriteHistory | None) -> Revision:
    """The revision of `since`: a revision, a duration until now, or a time. Raises ApiError."""
    text = since.removeprefix("-")
    if not text:
        return 0
    if text.isdecimal() and len(text) < 20:
        if int(text) > store.revision:
            raise errors.bad_request(f"since: revision {text} does not exist yet: the newest is {store.revision}")
        return int(text)
    try:
        seconds = time(since).timestamp() if "T" in text else now - duration(text)
    except ValueError:
        raise errors.bad_request(
            f"since: {since!r} is no revision, no duration such as 5m, and no time such as 2030-01-01T00:00:00Z"
        ) from None
    if history is None:
        raise errors.bad_request("since: the server keeps no times: it runs with --history off; name a revision")
    return await history.revision_at(seconds)


def _limit(limit: int) -> int:
    if not 1 <= limit <= MAX_LIMIT:
        raise errors.bad_request(f"limit: {limit} is not between 1 and {MAX_LIMIT}")
    return limit


ROUTES: Final = (
    ControlRoute(
        "GET",
        "/_noxu/log",
        answer,
        "List the newest writes, who made them, and what they changed.",
        query={
            "type": Argument(TEXT, "a kind, by any of its names; none: all kinds", ""),
            "name": Argument(TEXT, "the name of an object", ""),
            "namespace": Argument(TEXT, "the namespace of the objects; none: all namespaces", ""),
            "since": Argument(TEXT, "list later writes only: a revision, a duration until now, or a time", ""),
            "limit": Argument(INTEGER, f"how many, at most {MAX_LIMIT}", DEFAULT_LIMIT),
            "why": Argument(BOOLEAN, "what the client had been shown since its previous write", False),
        },
    ),
)
