"""What a store keeps: bytes under keys, each write with a revision of the whole store (etcd's mod_revision).

Keys are three columns, never joined strings: no request can reach outside its collection or its partition by a clever
name. Keys order as their tuples do. Kubernetes calls the columns `group/plural`, namespace and name; that a namespace
carries a trailing slash (`default/`), so that keys order as upstream's `/registry/…/namespace/name` do, is the
registry's business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

Revision: TypeAlias = int

FIRST: Final[Revision] = 1  # where an empty store stands; no event has it


class Key(NamedTuple):
    """Any texts, also empty ones; but no lone surrogates, which are no text (ValueError)."""

    collection: str
    partition: str
    name: str


class Prefix(NamedTuple):
    """All keys of a collection, or of one partition of it. `Prefix()` is everything."""

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
    """One change. `value` is None for a delete, `previous` None for a create.

    `previous` is the state that the change replaced: a watcher with a selector needs it to know what it had seen. Its
    value is empty if it was damaged when it was replaced.
    """

    key: Key
    revision: Revision
    value: bytes | None
    previous: KeyValue | None


class Batch(NamedTuple):
    """Events in the order of their revisions. The watch has then seen everything up to `revision` inclusive."""

    events: Sequence[Event]
    revision: Revision


class Page(NamedTuple):
    """One page of a list: the state at `revision`. `remaining` counts the keys behind the page; 0 on the last one."""

    items: Sequence[KeyValue]
    revision: Revision
    remaining: int


class Status(NamedTuple):
    """For people and health checks.

    `bytes` are what the store occupies. `fault` says why it takes no writes now, or cannot even be read: then `keys`
    is 0.
    """

    backend: str
    revision: Revision
    compacted: Revision
    keys: int
    bytes: int
    fault: str = ""


class StoreError(Exception):
    """Anything a store refuses or cannot do."""


class Conflict(StoreError):
    """The key is not at the expected revision. `current` is what it holds now, None if there is no such key."""

    def __init__(self, key: Key, current: KeyValue | None) -> None:
        super().__init__(f"{key}: expected another revision than {current.revision if current else 'none'}")
        self.key = key
        self.current = current


class Compacted(StoreError):
    """The revision asked for is no longer kept; `revision` is the oldest that is."""

    def __init__(self, revision: Revision) -> None:
        super().__init__(f"compacted up to revision {revision}")
        self.revision = revision


class FutureRevision(StoreError):
    """The revision asked for does not exist yet; `current` is the newest."""

    def __init__(self, current: Revision) -> None:
        super().__init__(f"the newest revision is {current}")
        self.current = current


class Unknown(StoreError):
    """Nobody knows whether the write happened: the back end failed while it was being made durable."""


class Unavailable(StoreError):
    """The back end cannot do this now: no space, no connection. A write that raises it did not happen; try again."""


class Corrupt(StoreError):
    """Stored values do not match their checksums, or cannot be read. Only they are affected.

    `damaged` are their keys and revisions, as far as anything is known of them: a write that expects such a revision
    replaces the value. `page` is what a list would have returned without them; None for anything but a list.
    """

    def __init__(self, message: str, damaged: Mapping[Key, Revision] | None = None, page: Page | None = None) -> None:
        super().__init__(message)
        self.damaged: Mapping[Key, Revision] = damaged or {}
        self.page = page


class Unusable(StoreError):
    """The file cannot be opened as a store: in use, foreign, or of a newer version. The message says what to do."""


class Closed(StoreError):
    """The store has been closed."""
