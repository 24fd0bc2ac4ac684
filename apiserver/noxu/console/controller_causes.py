"""What the server's own controllers act upon. They see every object as soon as it is written, so no watch tells what they were shown.

A controller writes an object because of what was written to it before, and because of the objects that it owns; it creates one because
of its owner:

    create deployments web (kubectl)  ->  create replicasets web-7d5 (deployment-controller)  ->  create pods web-7d5-x …

So the newest of these writes are its causes. Only what controllers write is decoded, for its owners.
"""

from __future__ import annotations

from typing import Final

from noxu.console.timeline import MAX_CAUSES
from noxu.control.write_log import decoded
from noxu.registry.served_resources import LiveResources
from noxu.registry.stored_object import key_of
from noxu.values import Object
from noxu_storage.types import Event, Key, Revision

MAX_KNOWN: Final = 40_000  # objects; of more than that, the half that was written last is kept


class ControllerCauses:
    """The newest revision of each object, and of what it owns."""

    def __init__(self, served: LiveResources) -> None:
        self.newest: dict[Key, Revision] = {}
        """Each event is added here in its turn, so that it is known to the later ones: without a call for each."""
        self._served = served
        self._of_owned: dict[Key, Revision] = {}

    def causes(self, event: Event) -> list[Revision]:
        """The revisions that an event follows from which a controller has written, the newest first."""
        previous = 0 if event.previous is None else event.previous.revision
        owners = self._owners(event)
        found = {previous, *(self.newest.get(owner, 0) for owner in owners if not previous)}
        if (owned := self._of_owned.get(event.key, 0)) > previous:
            found.add(owned)
        for owner in owners:
            self._of_owned[owner] = event.revision
        return sorted(found - {0}, reverse=True)[:MAX_CAUSES]

    def forget(self) -> None:
        """Forget the oldest if there are too many."""
        for known in (self.newest, self._of_owned):
            if len(known) > MAX_KNOWN:  # rarely: it looks at all of them
                oldest_kept = sorted(known.values())[-(MAX_KNOWN // 2)]
                for old in [key for key, at in known.items() if at < oldest_kept]:
                    del known[old]

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
