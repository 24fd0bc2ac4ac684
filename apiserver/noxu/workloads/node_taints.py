"""The taints that follow from the conditions of a node (nodelifecycle: doNoScheduleTaintingPass, processTaintBaseEviction).

    NoSchedule     for each bad condition, and if the node is cordoned
    NoExecute      if it is not ready, or unreachable: its pods are evicted

In disruption no node is tainted with NoExecute: if no node is ready in any zone, these taints are taken away. If more than
half of a zone's nodes are not ready, those that there are stay, and there are no new ones. Upstream limits the rate of new
ones, too: one node in ten seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import Final

from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.pods import condition

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_OF_CONDITIONS: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OWN: Final = frozenset({*_OF_CONDITIONS.values(), UNSCHEDULABLE})
_EVICTING: Final = frozenset({NOT_READY, UNREACHABLE})
_EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
_REGION, _ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
_MANY: Final = 0.55  # of the nodes of a zone
_FEW: Final = 2  # nodes that are not ready never are a disruption of a zone


class Disruption(Enum):
    NONE = 0
    PARTIAL = 1
    """So many nodes of the zone are not ready that they probably are: the fault is elsewhere."""
    FULL = 2
    """No node is ready."""


def ready_status(node: Object) -> str:
    """True, False, Unknown, or "" if nothing was said yet."""
    return str((condition(node, "Ready") or {}).get("status") or "")


def disruption(node: Object, nodes: Iterable[Object]) -> Disruption:
    """That which a node is in."""
    zones: dict[tuple[str, str], list[bool]] = {}
    for each in nodes:
        if _EXCLUDED not in (each["metadata"].get("labels") or {}):
            zones.setdefault(_zone(each), []).append(ready_status(each) == "True")
    if not any(ready for zone in zones.values() for ready in zone):
        return Disruption.FULL
    own = zones.get(_zone(node), [])
    unready = own.count(False)
    is_partial = any(own) and unready > _FEW and unready / len(own) >= _MANY
    return Disruption.PARTIAL if is_partial else Disruption.NONE


def _zone(node: Object) -> tuple[str, str]:
    labels = node["metadata"].get("labels") or {}
    return labels.get(_REGION, ""), labels.get(_ZONE, "")


def taints_of(node: Object, state: Disruption, now: datetime) -> list[Object]:
    """All taints that a node should have: those of others stay as they are."""
    spec = node.get("spec") or {}
    before = spec.get("taints") or []
    wanted = {(key, "NoSchedule") for key in _unschedulable(node)}
    evicting = {"False": NOT_READY, "Unknown": UNREACHABLE}.get(ready_status(node))
    has_one = any(taint["effect"] == "NoExecute" and taint["key"] in _EVICTING for taint in before)
    if evicting and (state is Disruption.NONE or (state is Disruption.PARTIAL and has_one)):
        wanted.add((evicting, "NoExecute"))
    kept = [taint for taint in before if not _is_own(taint) or (taint["key"], taint["effect"]) in wanted]
    there = {(taint["key"], taint["effect"]) for taint in kept}
    time = format_time(now)
    return [*kept, *({"key": key, "effect": effect, "timeAdded": time} for key, effect in sorted(wanted - there))]


def _is_own(taint: Object) -> bool:
    keys = {"NoSchedule": _OWN, "NoExecute": _EVICTING}.get(taint["effect"], frozenset())
    return taint["key"] in keys


def _unschedulable(node: Object) -> Iterable[str]:
    for each in (node.get("status") or {}).get("conditions") or ():
        if key := _OF_CONDITIONS.get((each.get("type"), each.get("status"))):
            yield key
    if (node.get("spec") or {}).get("unschedulable"):
        yield UNSCHEDULABLE
