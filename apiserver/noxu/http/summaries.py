"""Summaries of entries, kept: what `kubectl get` and informers of metadata request again and again.

A summary is made once per entry, of which there is a new one for each revision, and per schema. It is kept as long as the
entry is: in a collection, or in a change that the cache keeps for watches. The oldest ones are dropped when all together
exceed MAX_BYTES.
"""

from __future__ import annotations

from threading import RLock
from typing import Final, NamedTuple
from weakref import ref

from noxu.api import codec
from noxu.registry.entry import Entry, body_at
from noxu.registry.resource import Resource
from noxu.tables import cell_budget
from noxu.tables.summary import Summary, summarize
from noxu.tables.table import Columns

MAX_BYTES: Final = 64 * 1024 * 1024
OVERHEAD: Final = 1000  # bytes of the objects that hold a summary


class _Kept(NamedTuple):
    resource: Resource
    summary: Summary
    size: int


class Summaries:
    """The summaries of entries. Threads may use it."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept: dict[ref[Entry], _Kept] = {}
        self._bytes = 0
        self._lock = RLock()  # an entry may end, and `_drop` be called, while this thread has it

    def has(self, entry: Entry, resource: Resource) -> bool:
        """Whether the summary of an entry need not be made."""
        found = self._kept.get(ref(entry))
        return found is not None and found.resource is resource

    def of(self, entry: Entry, resource: Resource, columns: Columns) -> Summary:
        """The summary of an entry at a resource's version, in its columns. Raises ApiError if it cannot be read."""
        found = self._kept.get(ref(entry))
        if found is not None and found.resource is resource:
            return found.summary
        summary = summarize(codec.decode_stored(body_at(entry, resource)), columns)
        budget = cell_budget.CURRENT.get()
        if budget is None or not budget.cut_short:  # another request may afford the cells that are empty in this one
            self._keep(entry, resource, summary)
        return summary

    def _keep(self, entry: Entry, resource: Resource, summary: Summary) -> None:
        size = OVERHEAD + len(entry.stored) + sum(map(len, summary.pieces)) + len(summary.metadata)
        if size > self._max_bytes:
            return
        with self._lock:
            self._drop(ref(entry))
            while self._kept and self._bytes + size > self._max_bytes:
                self._drop(next(iter(self._kept)))
            self._kept[ref(entry, self._drop)] = _Kept(resource, summary, size)
            self._bytes += size

    def _drop(self, entry: ref[Entry]) -> None:
        """Also called when an entry has ended."""
        with self._lock:
            kept = self._kept.pop(entry, None)
            if kept is not None:
                self._bytes -= kept.size
