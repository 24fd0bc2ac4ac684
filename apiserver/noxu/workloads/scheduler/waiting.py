"""The pods that wait for a node: those to be tried, by priority, and those that were tried in vain until something changes.

A pod that was tried in vain remembers the plug-ins that rejected it. It is tried again when a change happens that may matter to one of
them, as upstream's plug-ins register it (EventsToRegister); there is no backoff, because there is nothing to protect.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Flag, auto
from typing import Final

from noxu.values import Object
from noxu.workloads.objects import name_of
from noxu.workloads.writes import NamespacedName


class Happening(Flag):
    """What may make a pod schedulable."""

    NODE = auto()  # a node came, or its labels, taints or resources changed
    POD_GONE = auto()  # a bound pod went, ended, or requests less
    POD_CAME = auto()  # a pod was bound, or its labels changed
    VOLUMES = auto()  # a claim, a volume or a class changed


_PODS: Final = Happening.POD_GONE | Happening.POD_CAME
MATTERS: Final[dict[str, Happening]] = {
    "NodeUnschedulable": Happening.NODE,
    "TaintToleration": Happening.NODE,
    "NodeAffinity": Happening.NODE,
    "NodePorts": Happening.NODE | Happening.POD_GONE,
    "NodeResourcesFit": Happening.NODE | Happening.POD_GONE,
    "VolumeRestrictions": Happening.NODE | Happening.POD_GONE | Happening.VOLUMES,
    "VolumeBinding": Happening.NODE | Happening.VOLUMES,
    "PodTopologySpread": Happening.NODE | _PODS,
    "InterPodAffinity": Happening.NODE | _PODS,
}


class WaitingPods:
    """Pods by name. `put` makes one ready to be tried."""

    def __init__(self) -> None:
        self._ready: dict[NamespacedName, Object] = {}
        self._in_vain: dict[NamespacedName, Happening] = {}
        self._pods: dict[NamespacedName, Object] = {}  # of those in vain

    def put(self, pod: Object) -> None:
        name = name_of(pod)
        self.drop(name)
        self._ready[name] = pod

    def update(self, pod: Object) -> None:
        """Its status changed: that alone makes nothing schedulable."""
        name = name_of(pod)
        if name in self._in_vain:
            self._pods[name] = pod
        else:
            self._ready[name] = pod

    def drop(self, name: NamespacedName) -> None:
        self._ready.pop(name, None)
        self._in_vain.pop(name, None)
        self._pods.pop(name, None)

    def failed(self, name: NamespacedName, plugins: frozenset[str]) -> None:
        """It was tried in vain, and these plug-ins rejected it. None: there was no node."""
        pod = self._ready.pop(name, None)
        if pod is not None:
            self._in_vain[name] = _what_matters(plugins)
            self._pods[name] = pod

    def happened(self, what: Happening) -> bool:
        """Make those ready to which a change may matter: whether there are any."""
        names = [name for name, matters in self._in_vain.items() if matters & what]
        for name in names:
            self.put(self._pods[name])
        return bool(names)

    def ready(self) -> Sequence[Object]:
        """Those to be tried, the most urgent first."""
        return sorted(self._ready.values(), key=urgency)

    def __contains__(self, name: object) -> bool:
        return name in self._ready or name in self._in_vain


def _what_matters(plugins: frozenset[str]) -> Happening:
    matters = Happening.NODE
    for plugin in plugins:
        matters |= MATTERS[plugin]
    return matters


def urgency(pod: Object) -> tuple[int, str, NamespacedName]:
    """The order in which pods are tried: the highest priority first, then the oldest (PrioritySort)."""
    return -(pod["spec"].get("priority") or 0), pod["metadata"].get("creationTimestamp") or "", name_of(pod)
