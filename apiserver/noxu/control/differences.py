"""The difference between the present and a past revision: which writes make the objects again what they were.

The log of a store has, for each key that has changed since a revision, the state at that revision: it is what the first change
replaced. So the difference is read from the changes since then, whatever else is stored. With the revision 5:

    log                                    at 5     now       the difference
    6   put a "2", which replaced "1"      a "1"    a "3"     put a "1"
    7   put a "3", which replaced "2"
    8   put b "4", which replaced nothing           b "4"     delete b
    9   delete c, which was "5"            c "5"              put c "5"
    10  delete d, which was "6"            d "6"    d "7"     delete d, put d "6": another object has its name
    11  put d "7", which replaced nothing

An object gets its old bytes: they have its uid, its times, its generation and its managed fields. Only its resourceVersion
is new, which is not in them.

Some keys are left as they are, as the caller says: pins, claims and the leases of servers are no objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from noxu.api import codec
from noxu.crd import types as crd
from noxu.registry.storage_form import as_json
from noxu_storage.store import Store
from noxu_storage.transactions import StagedWrite
from noxu_storage.types import Corrupt, Event, Key, KeyValue, Revision

SLICE: Final = 500  # changes that are looked at before other tasks run
DEFINITIONS: Final = f"{crd.GROUP}/{crd.RESOURCE}"


class Touched:
    """A key that has changed: its state at the beginning, and now. `was_deleted`: at some time in between."""

    __slots__ = ("now", "then", "was_deleted")

    def __init__(self, then: KeyValue | None) -> None:
        self.then = then
        self.now: KeyValue | None = None
        self.was_deleted = False


class Changes:
    """The keys that have changed since a revision, as far as the log was followed."""

    def __init__(self, store: Store, since: Revision, leaves: Callable[[Key], bool]) -> None:
        """`leaves` tells the keys that are no part of the difference."""
        self.reached = since
        self.touched: dict[Key, Touched] = {}
        self._store = store
        self._leaves = leaves

    async def follow(self) -> None:
        """Read the log up to the newest revision. Raises Compacted, Corrupt, Unavailable."""
        newest = self._store.revision
        if self.reached >= newest:
            return
        async for batch in self._store.watch(after=self.reached):
            for start in range(0, len(batch.events), SLICE):
                for event in batch.events[start : start + SLICE]:
                    self._add(event)
                await asyncio.sleep(0)
            self.reached = batch.revision
            if self.reached >= newest:
                return

    def _add(self, event: Event) -> None:
        key, revision, value, previous = event
        if self._leaves(key):
            return
        touched = self.touched.get(key)
        if touched is None:
            touched = self.touched[key] = Touched(previous)
        touched.now = None if value is None else KeyValue(key, value, revision)
        touched.was_deleted |= value is None

    def writes(self) -> list[StagedWrite]:
        """What makes the objects again what they were. Raises Corrupt.

        Deletions come first, and definitions last of what is written. So watches show that objects are gone before their definition
        is; and a watch that has shown objects by another definition than theirs has to begin again, because it is
        older than the one that is served now (`Versions.since`).
        """
        deleted: list[StagedWrite] = []
        written: list[StagedWrite] = []
        defined: list[StagedWrite] = []
        for key, touched in self.touched.items():
            then, now = touched.then, touched.now
            if then is not None and not then.value:
                raise Corrupt(f"{' '.join(key)} was corrupt at revision {then.revision}", {key: then.revision})
            if then is not None and now is not None and now.value == then.value:
                continue
            expected, replaced = (0, None) if now is None else (now.revision, now.value)
            if now is not None and (then is None or (touched.was_deleted and _uid(then.value) != _uid(now.value))):
                deleted.append(StagedWrite(key, None, expected, replaced))
                expected, replaced = 0, None
            if then is not None:
                (defined if key.collection == DEFINITIONS else written).append(
                    StagedWrite(key, then.value, expected, replaced)
                )
        deleted.sort(key=lambda write: write.key.collection == DEFINITIONS)  # stable
        return [*deleted, *written, *defined]


def changed_definitions(writes: Sequence[StagedWrite]) -> list[str]:
    """The names of the definitions that a difference deletes, or gives another spec."""
    return [
        key.name
        for key, value, _, replaced in writes
        if key.collection == DEFINITIONS and replaced is not None and (value is None or _spec(value) != _spec(replaced))
    ]


def counted(writes: Sequence[StagedWrite]) -> dict[str, int]:
    """How many objects a difference deletes, creates and changes. One that gives its name to another is deleted, the other created."""
    written = [write for write in writes if write.value is not None]
    created = sum(not write.expected for write in written)
    return {"deleted": len(writes) - len(written), "created": created, "changed": len(written) - created}


def _uid(stored: bytes) -> object:
    """The uid of a stored object; None if it has none, or cannot be decoded."""
    try:
        return codec.decode_stored(as_json(stored))["metadata"]["uid"]
    except (ValueError, LookupError, TypeError):
        return None


def _spec(stored: bytes) -> object:
    """The spec of a stored definition; None if it has none, or cannot be decoded."""
    try:
        return codec.decode_stored(stored)["spec"]
    except (ValueError, LookupError, TypeError):
        return None
