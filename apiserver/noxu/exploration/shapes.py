"""What objects are called in every run: their shapes.

The *shape* of an object is its resource, namespace and name; a generated name becomes `*`, behind what it was generated from, and so
does a uid in a name, a time, as CronJobs have it in the names of their Jobs, and the hash of a template: a Deployment that is made
anew takes another one while its old ReplicaSet is there. In texts, the uid of an object becomes its shape, and a time becomes `<time>`.

    configmaps default/a-x7k2p (generateName: a-)    →    configmaps default/a-*
    jobs default/a-1795904226 (made at that time)    →    jobs default/a-*
    replicasets default/a-5f7b (with that hash)      →    replicasets default/a-*
    7d3f0e52-…, the uid of configmaps a-x7k2p        →    <uid of configmaps a-*>
"""

from __future__ import annotations

import contextlib
import re
from datetime import datetime
from typing import Final, NamedTuple

from noxu.exploration.recording import ObjectPlace, RunRecording
from noxu.values import Object

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NUMBER: Final = re.compile(r"(?<![0-9a-z])[0-9]{8,}(?![0-9a-z])")
_UNITS: Final = (1.0, 60.0, 1e-3, 1e-6, 1e-9)  # seconds
_ABOUT: Final = 30 * 86_400.0
"""So many seconds may be between such a time and the creation: object time may pass faster."""
_SHORTEST: Final = len("2026-01-01T00:00:00Z")
"""Shorter texts, which are most of all, are neither times nor have uids."""
_HASH: Final = "pod-template-hash"
"""The label of a ReplicaSet of a Deployment, and of its pods."""
TIME: Final = "<time>"
"""What a text becomes that is a time."""


class Shape(NamedTuple):
    """An object as it is the same in each run. A name that was generated ends with `*`."""

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource} {self.namespace}/{self.name}" if self.namespace else f"{self.resource} {self.name}"


def generated(value: Object) -> str:
    """The name of an object that is another one in each run, with `*` for what differs; "" if it is the same.

    `a-*` of `a-x7k2p` with the generateName `a-`, `pvc-*` of `pvc-7d3f…` with a uid, `a-*` of `a-1795904226` if it was made about then.
    """
    metadata = value.get("metadata") or {}
    name, prefix, created = (str(metadata.get(each, "")) for each in ("name", "generateName", "creationTimestamp"))
    masked = _UID.sub("*", f"{prefix}*" if prefix else name)
    if created:
        masked = _NUMBER.sub(lambda found: "*" if _is_time(found[0], created) else found[0], masked)
    return "" if masked == name else masked


def _is_time(digits: str, created: str) -> bool:
    """Whether a number is a time about when an object was made: seconds, their parts, or minutes since 1970; or a date."""
    seconds = datetime.fromisoformat(created).timestamp()
    since_1970 = (int(digits) * unit for unit in _UNITS)
    if any(abs(each - seconds) < _ABOUT for each in since_1970):
        return True
    with contextlib.suppress(ValueError):
        return abs(datetime.strptime(f"{digits[:8]}Z", "%Y%m%d%z").timestamp() - seconds) < _ABOUT
    return False


class MaskedNames:
    """How names are masked that a server or a controller has made at random: by generateName, or after a masked owner."""

    def __init__(self, recording: RunRecording) -> None:
        self._masked: dict[ObjectPlace, str] = {}
        self._uids: dict[str, str] = {}
        hashed: dict[str, str] = {}
        for change in recording.changes:
            for value in (change.before, change.after):
                if value is not None:
                    self._see(change.place, value, hashed)
        for place, value in recording.objects:
            self._see(place, value, hashed)
        self._hashed = hashed
        names = "|".join(re.escape(name) for name in sorted(hashed, key=len, reverse=True))
        self._names_with_hash = re.compile(rf"(?<![\w-])(?:{names})(?!\w)") if names else None

    def _see(self, place: ObjectPlace, value: Object, hashed: dict[str, str]) -> None:
        metadata = value.get("metadata") or {}
        template = (metadata.get("labels") or {}).get(_HASH)
        if template and place.name.endswith(f"-{template}"):
            self._masked[place] = hashed[place.name] = f"{place.name.removesuffix(template)}*"
        elif pattern := generated(value):
            self._masked[place] = pattern.replace(f"-{template}-", "-*-")
        if uid := metadata.get("uid"):
            self._uids[uid] = f"<uid of {place.resource} {self._masked.get(place, place.name)}>"

    def shape(self, place: ObjectPlace) -> Shape:
        return Shape(place.resource, place.namespace, self._masked.get(place, place.name))

    def text(self, text: str) -> str:
        """A text, in which uids, times and hashes of templates are masked."""
        if self._names_with_hash is not None:
            text = self._names_with_hash.sub(lambda found: self._hashed[found[0]], text)
        if len(text) < _SHORTEST:
            return text
        if _TIME.fullmatch(text):
            return TIME
        return _UID.sub(lambda found: self._uids.get(found[0], "<uid>"), text)
