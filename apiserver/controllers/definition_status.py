"""Status updates by the controllers of definitions, with the effect of upstream's updates through /status."""

from __future__ import annotations

from typing import Final

from noxu.apiserver.apply import manager
from noxu.apiserver.clock import Clock
from noxu.apiserver.go.time import format_time
from noxu.apiserver.registry import ownership
from noxu.apiserver.registry.entry import Entry, new_entry_with_spec, object_at
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.values import Object

MANAGER: Final = "kube-apiserver"


def with_status(entry: Entry, resource: Resource, crd: Object, clock: Clock) -> Entry:
    """The entry of a definition with the status of `crd`, which has its spec. The field manager is that of upstream's controllers."""
    tracker = ownership.tracker(resource, "status")
    live = object_at(entry, resource)
    owned = manager.update(_without_spec(live), _without_spec(crd), tracker, manager=MANAGER, now=now(clock))
    return new_entry_with_spec(entry, live, resource, {**crd, "metadata": owned["metadata"]})


def now(clock: Clock) -> str:
    return format_time(clock.now())


def _without_spec(crd: Object) -> Object:
    return {name: value for name, value in crd.items() if name != "spec"}
