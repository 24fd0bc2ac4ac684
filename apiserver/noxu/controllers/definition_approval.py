"""The condition KubernetesAPIApprovalPolicyConformant of definitions in protected groups (upstream's apiapproval).

A write that changes the approval annotation is answered before the condition changes. The condition does not affect what
is served, and a client that updates a definition twice in a row can use the resourceVersion of the first answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from noxu.clock import Clock
from noxu.controllers.controller import Controller
from noxu.controllers.definition_status import now, to_change, with_status
from noxu.crd import conditions
from noxu.registry.cache import Change
from noxu.registry.offload import offload
from noxu.registry.persistence import Persistence
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject, key_of, object_at

DELAY: Final = 0.004  # seconds after a change


class ApprovalController(Controller[str]):
    """Keeps the condition up to date. Keys are names."""

    name = "crd-api-approval-controller"

    def __init__(self, reader: Reader, persistence: Persistence, resource: Resource, clock: Clock) -> None:
        super().__init__(reader, resource, clock)
        self.persistence = persistence

    def observe(self, change: Change) -> Iterable[str]:
        if change.entry is not None and _may_be_approved(change.entry):
            self.queue.add_after(change.key.name, DELAY)
        return ()

    def resync(self) -> Iterable[str]:
        return [key.name for key, entry in self.collection.entries.items() if _may_be_approved(entry)]

    async def reconcile(self, name: str) -> None:
        while (entry := self.collection.entries.get(key_of(self.resource, "", name))) is not None:
            crd = await offload(len(entry.stored), object_at, entry, self.resource)
            approved = conditions.approved(crd)
            if approved is None or conditions.find(crd, conditions.APPROVED) is None:
                return  # the establishing controller sets it first
            if conditions.is_set(crd, approved):
                return
            new = to_change(crd)
            conditions.set_condition(new, approved, now(self.clock))
            updated = await offload(len(entry.stored), with_status, entry, crd, new, self.resource, self.clock)
            if await self.persistence.replace(entry, updated.entry):
                return


def _may_be_approved(entry: StoredObject) -> bool:
    """Whether a definition may have the condition, which the establishing controller sets first."""
    return conditions.APPROVED.encode() in entry.stored
