"""Status updates by the controllers of definitions, with the effect of upstream's updates through /status."""

from __future__ import annotations

from typing import Final, NamedTuple

from noxu.clock import Clock
from noxu.go.time import format_time
from noxu.registry.entry import Entry, new_entry_with_spec
from noxu.registry.resource import Resource
from noxu.values import Object, copy

MANAGER: Final = "kube-apiserver"


class Updated(NamedTuple):
    """The entry of a definition that is about to be written, and the definition as it is decoded from it.

    That has no resourceVersion: the entry gets its revision when it is written.
    """

    entry: Entry
    crd: Object


def with_status(entry: Entry, live: Object, crd: Object, resource: Resource, clock: Clock) -> Updated:
    """A definition with the metadata and status of `crd`; `live` is what the entry has. Both have the spec of the entry.

    The field manager is that of upstream's controllers.
    """
    from noxu.apply import manager  # with the first definition
    from noxu.registry import ownership

    tracker = ownership.tracker(resource, "status")
    owned = manager.update(_without_spec(live), _without_spec(crd), tracker, manager=MANAGER, now=now(clock))
    changed = {**crd, "metadata": owned["metadata"]}
    updated = new_entry_with_spec(entry, live, resource, changed)
    return Updated(updated, {**resource.behaviour.written(_without_spec(changed)), "spec": crd["spec"]})


def to_change(crd: Object) -> Object:
    """A copy of a definition in which metadata and status can be changed. The spec, nearly all of it, is shared."""
    return {name: value if name == "spec" else copy(value) for name, value in crd.items()}


def at_revision(crd: Object, entry: Entry) -> Object:
    """A definition with the resourceVersion of its entry, as `object_at` returns it."""
    return {**crd, "metadata": {**crd["metadata"], "resourceVersion": str(entry.revision)}}


def now(clock: Clock) -> str:
    return format_time(clock.now())


def _without_spec(crd: Object) -> Object:
    return {name: value for name, value in crd.items() if name != "spec"}
