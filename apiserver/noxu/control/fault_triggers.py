"""The log as triggers see it, and what a rule does by itself when its trigger fires.

A trigger looks at a change before its writer is answered, so a rule is on for the next request of that client. The object of
an event is decoded only if a trigger is about it, at its storage version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from noxu.api import codec
from noxu.control.faults.armed import Asked
from noxu.control.faults.rules import Rule
from noxu.control.faults.triggers import Trigger, concerns, fires
from noxu.control_plane import ControlPlane
from noxu.registry import kind_names
from noxu.registry.access import User
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.resource import MERGE_PATCH, Resource
from noxu.registry.stored_object import StoredObject, object_at
from noxu.values import Object
from noxu_storage.types import Event, Key, Revision

WRITER: Final = User("noxu:fault", groups=("system:masters",))
MANAGER: Final = "noxu-fault"


class TriggerWatcher:
    """A `LogWatcher`: calls `fired` for each rule whose trigger fires, once, with the object."""

    def __init__(
        self, plane: ControlPlane, rules: Sequence[Rule], fired: Callable[[Rule, Resource, Key], object]
    ) -> None:
        served = plane.served_resources.current
        self._fired = fired
        self.seen: dict[str, int] = {}
        """How often each trigger has seen what it waits for, by rule."""
        self._rules: dict[str, list[tuple[Rule, Resource]]] = {}  # by collection
        for rule in rules:
            if rule.trigger is not None:
                resource = kind_names.find(served, rule.trigger.resource).versions.storage
                self._rules.setdefault(resource.collection, []).append((rule, resource))

    def deliver(self, events: Sequence[Event], revision: Revision) -> None:
        for event in events:
            for rule, resource in self._rules.get(event.key.collection, ()):
                self._look(rule, resource, event)

    def _look(self, rule: Rule, resource: Resource, event: Event) -> None:
        trigger = rule.trigger
        if trigger is None or self.seen.get(rule.name, 0) >= trigger.nth:
            return
        if not fired_by(trigger, resource, event):
            return
        self.seen[rule.name] = self.seen.get(rule.name, 0) + 1
        if self.seen[rule.name] == trigger.nth:
            self._fired(rule, resource, event.key)

    def end(self) -> None:
        """What was missed while the cache was reset fires nothing."""


def fired_by(trigger: Trigger, resource: Resource, event: Event) -> bool:
    """Whether an event of the resource is what its trigger waits for."""
    key, before = event.key, event.previous
    if not concerns(trigger, key.partition.removesuffix("/"), key.name):
        return False
    old = None if before is None else object_at(StoredObject(key, before.value, before.revision), resource)
    new = None if event.value is None else object_at(StoredObject(key, event.value, event.revision), resource)
    return fires(trigger, old, new)


async def mutate(plane: ControlPlane, wanted: Mapping[str, Any], triggered: Resource, key: Key) -> Asked:
    """Patch an object: the one that is named, or that of the trigger. Raises ApiError, LookupError."""
    resource, namespace, name = triggered, key.partition.removesuffix("/"), key.name
    if wanted["resource"]:
        resource = kind_names.find(plane.served_resources.current, wanted["resource"])
        namespace, name = wanted["namespace"], wanted["name"]
    patch: Object = wanted["patch"]
    body = Body(codec.encode(patch, sort_keys=False), MERGE_PATCH)
    options = Options(field_manager=MANAGER)
    await plane.writer.write(
        WriteRequest(Action.PATCH, resource, namespace, name, body=body, options=options, user=WRITER)
    )
    return Asked("patch", str(resource.group_resource), "", namespace, name, WRITER.name, "", "")
