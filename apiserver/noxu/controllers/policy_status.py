"""The status of ValidatingAdmissionPolicies, as upstream's controller writes it.

The status has the generation of the policy that was checked, and warnings about expressions that do not match the schemas
of the resources that the policy selects. A policy is checked when it changes, not when a schema changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from noxu.clock import rfc3339_now
from noxu.controllers.controller import Controller
from noxu.cpu_budget import require_imported
from noxu.registry.cache import Change
from noxu.registry.offload import offload_if_long
from noxu.registry.stored_object import StoredObject, new_entry, object_at
from noxu.values import Object
from noxu_storage.types import Key

MANAGER: Final = "validatingadmissionpolicy-status"


class PolicyStatusController(Controller[Key]):
    """Keeps the status of policies up to date."""

    name = "validatingadmissionpolicy-status-controller"
    follows = (("admissionregistration.k8s.io", "validatingadmissionpolicies"),)

    def observe(self, change: Change) -> Iterable[Key]:
        return () if change.entry is None else [change.key]

    def resync(self) -> Iterable[Key]:
        return list(self.collection.keys)

    async def reconcile(self, key: Key) -> None:
        while (entry := self.collection.entries.get(key)) is not None:
            updated = await offload_if_long(len(entry.stored), self._with_status, entry)
            if updated is None or await self.persistence.replace(entry, updated):
                return

    def _with_status(self, entry: StoredObject) -> StoredObject | None:
        """The entry with its status, None if that is up to date."""
        policy = object_at(entry, self.resource)
        generation = policy["metadata"].get("generation", 0)
        status: Object = policy.get("status") or {}
        if generation <= status.get("observedGeneration", 0):
            return None
        require_imported("noxu.admission.expressions", "warnings")
        from noxu.admission.expressions import warnings  # 63 ms, with the first policy
        from noxu.registry.ownership import update_status

        messages = warnings(policy, self.served_resources.current)
        checked = {"observedGeneration": generation, "typeChecking": {"expressionWarnings": messages}}
        new = {**policy, "status": {**status, **checked}}
        now = rfc3339_now(self.clock)
        owned = update_status(policy, new, self.resource, manager=MANAGER, now=now)
        return new_entry(entry.key, self.resource, owned)
