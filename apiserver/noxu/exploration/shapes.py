"""What objects are called in every run: their shapes.

The *shape* of an object is its resource, namespace and name; a generated name becomes `*`, behind what it was generated from, and so
does a uid in a name. In texts, the uid of an object becomes its shape, and a time becomes `<time>`.

    configmaps default/a-x7k2p (generateName: a-)    →    configmaps default/a-*
    7d3f0e52-…, the uid of configmaps a-x7k2p        →    <uid of configmaps a-*>
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from noxu.exploration.recording import ObjectPlace, RunRecording
from noxu.values import Object

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SHORTEST: Final = len("2026-01-01T00:00:00Z")
"""Shorter texts, which are most of all, are neither times nor have uids."""
TIME: Final = "<time>"
"""What a text becomes that is a time."""


class Shape(NamedTuple):
    """An object as it is the same in each run. A name that was generated ends with `*`."""

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource} {self.namespace}/{self.name}" if self.namespace else f"{self.resource} {self.name}"


class MaskedNames:
    """How names are masked that a server or a controller has made at random: by generateName, or after a masked owner."""

    def __init__(self, recording: RunRecording) -> None:
        self._masked: dict[ObjectPlace, str] = {}
        self._uids: dict[str, str] = {}
        for change in recording.changes:
            for value in (change.before, change.after):
                if value is not None:
                    self._see(change.place, value)
        for place, value in recording.objects:
            self._see(place, value)

    def _see(self, place: ObjectPlace, value: Object) -> None:
        metadata = value.get("metadata") or {}
        if prefix := metadata.get("generateName"):
            self._masked[place] = f"{prefix}*"
        elif _UID.search(place.name):
            self._masked[place] = _UID.sub("*", place.name)
        if uid := metadata.get("uid"):
            self._uids[uid] = f"<uid of {place.resource} {self._masked.get(place, place.name)}>"

    def shape(self, place: ObjectPlace) -> Shape:
        return Shape(place.resource, place.namespace, self._masked.get(place, place.name))

    def text(self, text: str) -> str:
        """A text, in which uids and times are masked."""
        if len(text) < _SHORTEST:
            return text
        if _TIME.fullmatch(text):
            return TIME
        return _UID.sub(lambda found: self._uids.get(found[0], "<uid>"), text)
