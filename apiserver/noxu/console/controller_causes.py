"""What the server's own controllers act upon. They see every object as soon as it is written, so no watch tells what they were shown.

A controller writes an object because of what was written to it before, and because of the objects that it owns; it creates one because
of its owner:

    create deployments web (kubectl)  ->  create replicasets web-7d5 (deployment-controller)  ->  create pods web-7d5-x …

So the newest of these writes are its causes. Only what controllers write is decoded, for its owners.
"""

from __future__ import annotations

from typing import Final

from noxu.console.timeline import MAX_CAUSES
from noxu.control.recorded_writes import RecordedWrite
from noxu.control.write_log import decoded
from noxu.registry.served_resources import LiveResources
from noxu.registry.stored_object import key_of
from noxu.values import Object
from noxu_storage.types import Event, Key, Revision

MAX_KNOWN: Final = 40_000  # objects; of more than that, the half that was written last is kept


class ControllerCauses:
    """The newest revision of each object, and of what it owns."""

    def __init__(self, served: LiveResources) -> None:
        self._served = served
        self._newest: dict[Key, Revision] = {}
        self._of_owned: dict[Key, Revision] = {}

    def add(self, event: Event, write: RecordedWrite | None) -> list[Revision]:
        """Take an event; return the revisions that it follows from if a controller wrote it, the newest first."""
        _put(self._newest, event.key, event.revision)
        if write is None or not write.author.controller:
            return []
        previous = 0 if event.previous is None else event.previous.revision
        owners = self._owners(event)
        found = {previous, *(self._newest.get(owner, 0) for owner in owners if not previous)}
        if (owned := self._of_owned.get(event.key, 0)) > previous:
            found.add(owned)
        for owner in owners:
            _put(self._of_owned, owner, event.revision)
        return sorted(found - {0}, reverse=True)[:MAX_CAUSES]

    def _owners(self, event: Event) -> list[Key]:
        find_kind = self._served.current.find_kind
        stored = event.value or (None if event.previous is None else event.previous.value)
        try:
            metadata: Object = (decoded(stored).get("metadata") if stored else None) or {}
            return [
                key_of(resource, metadata.get("namespace", "") if resource.namespaced else "", owner["name"])
                for owner in metadata.get("ownerReferences") or ()
                if (resource := find_kind(owner["apiVersion"], owner["kind"])) is not None
            ]
        except (ValueError, KeyError, TypeError, AttributeError):  # another program has stored it
            return []


def _put(found: dict[Key, Revision], key: Key, revision: Revision) -> None:
    found[key] = revision
    if len(found) > MAX_KNOWN:  # rarely: it looks at all of them
        oldest_kept = sorted(found.values())[-(MAX_KNOWN // 2)]
        for old in [known for known, at in found.items() if at < oldest_kept]:
            del found[old]
