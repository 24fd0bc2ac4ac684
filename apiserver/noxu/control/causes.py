"""Why a client wrote: what it had been shown since its previous write.

That is the server's knowledge, and needs nothing from the client. It is no proof: a client may have acted on what it has
known for long, or on a clock. For example, a controller watches widgets, and gets a gadget before it writes:

    revision   what                                     the controller's watch has come to
    7          it creates gadgets/a                     6
    8          kubectl changes widgets/a                7, then 8
    9          another user changes gadgets/b           8
    10         it reads gadgets/a (at 7), and writes    8

    causes of 10:   8  widgets/a MODIFIED, by its watch
                    7  gadgets/a, by a GET

The events of a watch after the revision that it had reached at the previous write, and up to where it is now, are causes;
without a previous write, those since the watch began. A watch that began with a list of all objects (revision 0) has shown
each of them once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple

from noxu.control.recorded_writes import RecordedWrite
from noxu.registry.authors import WatchScope
from noxu_storage.types import Event, Key, Revision

MAX_CAUSES: Final = 20  # of a write; the oldest are counted
Kind = Literal["ADDED", "MODIFIED", "DELETED"]


class Happened(NamedTuple):
    """An event of the log."""

    revision: Revision
    key: Key
    kind: Kind


class ShownSpan(NamedTuple):
    """What a watch has shown between two writes: the events in `scope` after a revision and up to another one."""

    scope: WatchScope
    after: Revision
    upto: Revision


class Cause(NamedTuple):
    """An object or a list that the client was shown. `kind` is that of an event, "" for a GET or LIST."""

    how: Literal["watch", "get", "list"]
    revision: Revision
    what: Key | WatchScope
    kind: Kind | Literal[""] = ""


Matches = Callable[[WatchScope, Happened], bool]


def covers(scope: WatchScope, event: Happened | Event) -> bool:
    """Whether an event is of the objects of a watch, whatever its selectors are."""
    key = event.key
    return (
        key.collection == scope.collection and scope.partition in (None, key.partition) and scope.name in ("", key.name)
    )


def spans(write: RecordedWrite, previous: RecordedWrite | None) -> list[ShownSpan]:
    """What the watches of its client have shown since its previous write."""
    before: dict[WatchScope, Revision] = {}
    if previous is not None:
        for followed in previous.author.followed:
            before[followed.scope] = max(followed.upto, before.get(followed.scope, 0))
    return [
        ShownSpan(scope, before.get(scope, since), upto)
        for scope, since, upto in write.author.followed
        if upto > before.get(scope, since)
    ]


def causes(
    write: RecordedWrite,
    previous: RecordedWrite | None,
    events: Iterable[Happened],
    matches: Matches = covers,
) -> list[Cause]:
    """All causes of a write, the newest first. `events` are those in its spans, and perhaps others."""
    found: dict[tuple[Revision, Key | WatchScope], Cause] = {}
    shown = spans(write, previous)
    for event in events:
        if any(span.after < event.revision <= span.upto and matches(span.scope, event) for span in shown):
            found[event.revision, event.key] = Cause("watch", event.revision, event.key, event.kind)
    for what, revision in write.reads:
        # a GET of what a watch has shown is the later knowledge, and the same event
        if isinstance(what, WatchScope):
            found[revision, what] = Cause("list", revision, what)
        else:
            found.setdefault((revision, what), Cause("get", revision, what))
    return sorted(_once(found.values(), shown), key=lambda cause: -cause.revision)


def _once(found: Iterable[Cause], shown: Sequence[ShownSpan]) -> list[Cause]:
    """Without the older events of an object that only a list at the beginning of a watch has shown."""
    kept = list(found)
    if all(span.after for span in shown):
        return kept
    newest: dict[Key | WatchScope, Revision] = {}
    for cause in kept:
        newest[cause.what] = max(cause.revision, newest.get(cause.what, 0))
    return [cause for cause in kept if cause.how != "watch" or cause.revision == newest[cause.what]]
