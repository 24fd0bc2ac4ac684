"""What is recorded of a write: who made it, when, and what the client had been shown; and its form in the file of a store.

There it is a note beside a revision (`noxu_storage.notes`). One that cannot be read is treated as not known. A note is an array
of JSON, which is read by its positions:

    [verb, subresource, user, agent, manager, request id, traceparent, controller,
     [[collection, partition, name, labels, fields, since, upto] …], [[key or scope …, revision] …], previous]
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from noxu.api import codec
from noxu.registry.authors import Author, WatchScope
from noxu_storage.notes import RevisionNote
from noxu_storage.types import Key, Revision

Shown = tuple[Key | WatchScope, Revision]
"""What a read has shown: an object at the revision that wrote it, or a list at its revision."""


class RecordedWrite(NamedTuple):
    """A revision, when it was written (seconds since 1970, object time), by whom, and what its client had read before it.

    `reads` are those since the previous write of the client, the oldest first; what its watches had shown is in `author`.
    `previous` is the newest revision of the client's request before, 0 if that is not known.
    """

    revision: Revision
    seconds: float
    author: Author
    reads: tuple[Shown, ...] = ()
    previous: Revision = 0

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)


# -- as notes ----------------------------------------------------------------------------------------------------------


_TEXTS: Final = 8  # the first fields of an author, up to `controller`


def to_note(write: RecordedWrite) -> RevisionNote:
    """What is kept of a write."""
    author = write.author
    watched = [[*scope, since, upto] for scope, since, upto in author.followed]
    reads = [[*what, revision] for what, revision in write.reads]
    value = [*author[:_TEXTS], watched, reads, write.previous]
    return RevisionNote(write.revision, write.seconds, codec.encode(value, sort_keys=False))


def from_note(note: RevisionNote) -> RecordedWrite | None:
    """The write of a note; None if that cannot be read."""
    try:
        return _read(note)
    except (ValueError, TypeError, IndexError):
        return None


def _read(note: RevisionNote) -> RecordedWrite:
    *texts, watched, reads, previous = codec.decode_stored(note.note)
    if len(texts) != _TEXTS or not all(isinstance(text, str) for text in texts) or not isinstance(previous, int):
        raise ValueError(note.revision)
    author = Author(*texts)._replace(
        watching=tuple((WatchScope(*scope), int(since)) for *scope, since, _ in watched),
        shown=tuple(int(upto) for *_, upto in watched),
    )
    return RecordedWrite(note.revision, note.seconds, author, tuple(map(_shown, reads)), previous)


def _shown(read: Sequence[Any]) -> tuple[Key | WatchScope, int]:
    *what, revision = read
    return (Key(*what) if len(what) == len(Key._fields) else WatchScope(*what)), int(revision)
