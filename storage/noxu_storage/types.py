"""A store keeps bytes under keys. Each write gets a revision of the whole store (etcd's mod_revision).

A key is three columns, never a joined string: a request cannot leave its collection or partition by a crafted name. Keys
are ordered as tuples. Kubernetes calls the columns `group/plural`, namespace and name. The registry appends a slash to
the namespace (`default/`), which makes the order equal to upstream's order of `/registry/…/namespace/name`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

Revision: TypeAlias = int
Progress: TypeAlias = Callable[[int, int], object]
"""How far long work is: called with what is done and the total, which is 0 if it is not known."""

FIRST: Final[Revision] = 1  # the revision of an empty store; no event has it


class Key(NamedTuple):
    """Three texts, which may be empty. Lone surrogates cannot be encoded: writing them raises ValueError, and no such key exists."""

    collection: str
    partition: str
    name: str

    @property
    def is_encodable(self) -> bool:
        try:
            "".join(self).encode()
        except UnicodeEncodeError:
            return False
        return True


class Prefix(NamedTuple):
    """All keys of a collection, or of one of its partitions. `Prefix()` matches every key."""

    collection: str | None = None
    partition: str | None = None

    def covers(self, key: Key) -> bool:
        return (self.collection is None or self.collection == key.collection) and (
            self.partition is None or self.partition == key.partition
        )


EVERYTHING = Prefix()


class KeyValue(NamedTuple):
    """A value and the revision that wrote it."""

    key: Key
    value: bytes
    revision: Revision


class Event(NamedTuple):
    """One change. `value` is None for a delete, `previous` is None for a create.

    `previous` is the state that the change replaced: a watcher with a selector needs it to know whether it has seen the
    object. If that state was corrupt, its value is empty.
    """

    key: Key
    revision: Revision
    value: bytes | None
    previous: KeyValue | None


class Batch(NamedTuple):
    """Events in the order of their revisions. After it the watch has seen every event up to and including `revision`."""

    events: Sequence[Event]
    revision: Revision


class Page(NamedTuple):
    """One page of a list, at `revision`. `remaining` is the number of keys after the page, 0 on the last page."""

    items: Sequence[KeyValue]
    revision: Revision
    remaining: int


class Status(NamedTuple):
    """For people and health checks.

    `bytes` is the size of the store on disk or in memory. `fault` is the reason why the store accepts no writes, or
    cannot be read, in which case `keys` is 0. Without a fault it is empty.
    """

    backend: str
    revision: Revision
    compacted: Revision
    keys: int
    bytes: int
    fault: str = ""


class StoreError(Exception):
    """Every error that a store raises on purpose."""


class Conflict(StoreError):
    """The key is not at the expected revision. `current` is its current state, None if it does not exist.

    It is the expected one if the write has waited for a transaction: see store.py.
    """

    def __init__(self, key: Key, current: KeyValue | None) -> None:
        super().__init__(f"{key}: expected another revision than {current.revision if current else 'none'}")
        self.key = key
        self.current = current


class Compacted(StoreError):
    """The requested revision has been compacted; `revision` is the oldest one that is available."""

    def __init__(self, revision: Revision) -> None:
        super().__init__(f"compacted up to revision {revision}")
        self.revision = revision


class FutureRevision(StoreError):
    """The requested revision does not exist yet; `current` is the newest one."""

    def __init__(self, current: Revision) -> None:
        super().__init__(f"the newest revision is {current}")
        self.current = current


class OutcomeUnknown(StoreError):
    """The back end failed during COMMIT: the write may or may not have happened."""


class Unavailable(StoreError):
    """The back end cannot do this now: no space, no connection. A write that raises it did not happen; try again."""


class TooLarge(StoreError):
    """The back end takes no value of this size. The write did not happen; the message is the back end's."""


class Corrupt(StoreError):
    """Stored values do not match their checksums, or cannot be read. Other values are not affected.

    `keys` are the corrupt keys and their revisions, if these are known: a write that expects such a revision
    replaces the value. For a list, `page` is the result without the corrupt values; for other calls it is None.
    """

    def __init__(self, message: str, keys: Mapping[Key, Revision] | None = None, page: Page | None = None) -> None:
        super().__init__(message)
        self.keys: Mapping[Key, Revision] = keys or {}
        self.page = page


class OpenError(StoreError):
    """The file cannot be opened as a store: in use, foreign, corrupt, too new. The message says what to do."""


class Closed(StoreError):
    """The store has been closed."""


def no_progress(done: int, total: int) -> None:
    """The progress that is not reported."""


def reason(error: Exception, *, named: bool = True) -> str:
    """The text of an error. Errors of the system are named without their numbers, in which platforms differ.

    `named`: with the file that the error is about. asyncio and socket add addresses to the text, which are left out.
    """
    if not isinstance(error, OSError) or error.errno is None:
        return str(error)
    text = (error.strerror or errno.errorcode.get(error.errno) or str(error)).partition(" (while attempting")[0]
    if text.startswith("Connect call failed"):
        text = os.strerror(error.errno)
    return f"{error.filename}: {text}" if named and error.filename else text
