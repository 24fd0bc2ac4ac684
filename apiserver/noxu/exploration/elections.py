"""Locks of leader elections: what they are, and how one is released whose holder was killed.

A lock is a Lease, or a ConfigMap or Endpoints with the annotation of client-go (`tools/leaderelection/resourcelock`). Its holder
writes it every few seconds, which says nothing about what a controller does: nothing of it is recorded.

A program that was killed starts again as another candidate, and would wait until the lease of the one before has run out: fifteen
seconds by default, in which nothing happens. So the lease runs out at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from noxu.exploration.recording import ObjectPlace
from noxu.values import Object

LEASES: Final = "leases.coordination.k8s.io"
ANNOTATION: Final = "control-plane.alpha.kubernetes.io/leader"
_ANNOTATED: Final = ("configmaps", "endpoints")


def is_lock(place: ObjectPlace, value: Object) -> bool:
    if place.resource == LEASES:
        return True
    metadata = value.get("metadata") or {}
    return place.resource in _ANNOTATED and ANNOTATION in (metadata.get("annotations") or {})


def released(place: ObjectPlace, value: Object) -> Object:
    """The merge patch after which no one holds a lock; {}: no one does."""
    if place.resource == LEASES:
        held = (value.get("spec") or {}).get("holderIdentity")
        return {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}} if held else {}
    try:
        record = json.loads(value["metadata"]["annotations"][ANNOTATION])
    except ValueError:
        return {}
    if not isinstance(record, dict) or not record.get("holderIdentity"):
        return {}
    record |= {"holderIdentity": "", "leaseDurationSeconds": 1}
    return {"metadata": {"annotations": {ANNOTATION: json.dumps(record)}}}


def patches(locks: Iterable[tuple[ObjectPlace, Object]]) -> list[tuple[ObjectPlace, Object]]:
    """The patches that release these locks."""
    return [(place, patch) for place, value in locks if (patch := released(place, value))]
