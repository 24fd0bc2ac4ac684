"""VolumeBinding: a pod's claims must be bound, or such that they can be bound once its node is known (WaitForFirstConsumer).

    before any node       a claim is missing, lost or being deleted, or has to be bound first: no node takes the pod
    a bound claim         the node affinity of its volume must match the node
    a claim that waits    a volume that is free matches it on the node, or its class makes one there

When a node is chosen, free volumes get a reference to their claims, and the other claims the annotation of the node. The pod is
bound once all its claims are. Sources: pkg/scheduler/framework/plugins/volumebinding (volume_binding.go, binder.go),
volumerestrictions, component-helpers/storage/volume.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from noxu.values import Object
from noxu.workloads.node_matching import matches_selector
from noxu.workloads.objects import CLAIMS, VOLUMES, Objects, controller_of
from noxu.workloads.pods import is_terminating
from noxu.workloads.scheduler.cluster import Cluster, NodeFacts, PodFacts
from noxu.workloads.scheduler.fitting import Misfit
from noxu.workloads.scheduler.resources import amount
from noxu.workloads.scheduler.terms import readable
from noxu.workloads.volume_matching import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    annotation,
    claim_reference,
    class_name,
    class_of,
    has_modes,
    has_volume_mode,
    is_bound_to,
    waits_for_consumer,
    with_annotations,
)
from noxu.workloads.writes import NamespacedName, Replace

PLUGIN: Final = "VolumeBinding"
_NOT_FOUND: Final = Misfit(PLUGIN, ["node(s) didn't find available persistent volumes to bind"])
EXCLUSIVE: Final = "ReadWriteOncePod"


class PodVolumes:
    """The claims of a pod: those that are bound, and those that wait for a node. `before`: why no node takes the pod."""

    def __init__(self, pod: PodFacts, cluster: Cluster) -> None:
        self._objects = cluster.objects
        self._bound: list[Object] = []
        self._waiting: list[Object] = []
        self.before = self._read(pod) or self._exclusive(pod, cluster)

    def _read(self, pod: PodFacts) -> Misfit | None:
        is_unbound = False
        for used in pod.claims:
            claim = self._objects.get(CLAIMS, NamespacedName(pod.namespace, used.name))
            if reason := _unusable(used.name, used.is_ephemeral, claim, pod.pod):
                return Misfit(PLUGIN, [reason])
            assert claim is not None
            if is_bound(claim):
                self._bound.append(claim)
            elif waits_for_consumer(self._objects, claim) and not claim["spec"].get("volumeName"):
                self._waiting.append(claim)
            else:
                is_unbound = True
        return Misfit(PLUGIN, ["pod has unbound immediate PersistentVolumeClaims"]) if is_unbound else None

    def _exclusive(self, pod: PodFacts, cluster: Cluster) -> Misfit | None:
        """A claim for one pod only, which another one uses (VolumeRestrictions)."""
        claims = (*self._bound, *self._waiting)
        names = {claim["metadata"]["name"] for claim in claims if EXCLUSIVE in (claim["spec"].get("accessModes") or ())}
        if not names:
            return None
        for other in cluster.pods():
            if other.namespace == pod.namespace and any(used.name in names for used in other.claims):
                reason = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
                return Misfit("VolumeRestrictions", [reason], may_change=True)
        return None

    def misfit(self, node: NodeFacts) -> Misfit | None:
        for claim in self._bound:
            volume = self._objects.get(VOLUMES, NamespacedName("", claim["spec"]["volumeName"]))
            if volume is None:
                reason = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
                return Misfit(PLUGIN, [reason])
            if not _reaches(volume, node):
                return Misfit(PLUGIN, ["node(s) didn't match PersistentVolume's node affinity"])
        return None if not self._waiting or self._bindings(node) is not None else _NOT_FOUND

    def bindings(self, node: NodeFacts) -> Sequence[Replace] | None:
        """What is written when a node is chosen; None, if all claims are bound."""
        return self._bindings(node) if self._waiting else None

    def _bindings(self, node: NodeFacts) -> Sequence[Replace] | None:
        """None: the claims that wait cannot be bound there."""
        taken: set[str] = set()
        static: list[Replace] = []
        provisioned: list[Replace] = []
        for claim in sorted(self._waiting, key=_size):
            selected = annotation(claim, SELECTED_NODE)
            if selected and selected != node.name:
                return None
            volume = None if selected else self._free_volume(claim, node, taken)
            if volume is not None:
                taken.add(volume["metadata"]["name"])
                static += _reserve(volume, claim)
            elif not self._makes_one(claim, node):
                return None
            elif not selected:
                provisioned.append(Replace(CLAIMS, with_annotations(claim, {SELECTED_NODE: node.name})))
        return [*static, *provisioned]

    def _free_volume(self, claim: Object, node: NodeFacts, taken: set[str]) -> Object | None:
        """The smallest volume that a claim can have on a node (FindMatchingVolume)."""
        fitting = [
            volume
            for volume in self._objects.all(VOLUMES)
            if volume["metadata"]["name"] not in taken and _suits(volume, claim) and _reaches(volume, node)
        ]
        for volume in fitting:
            if volume["spec"].get("claimRef"):
                return volume
        return min(fitting, key=lambda it: (_capacity(it), it["metadata"]["name"]), default=None)

    def _makes_one(self, claim: Object, node: NodeFacts) -> bool:
        """Whether the claim's class provisions a volume on a node."""
        storage_class = class_of(self._objects, claim)
        if storage_class is None or storage_class.get("provisioner") in (None, "", NO_PROVISIONER):
            return False
        topologies = storage_class.get("allowedTopologies") or ()
        return not topologies or any(_is_in(topology, node) for topology in topologies)


def _unusable(name: str, is_ephemeral: bool, claim: Object | None, pod: Object) -> str:
    """Why a pod cannot use a claim at all; "" if it can."""
    if claim is None:
        if is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume = claim["spec"].get("volumeName") or ""
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if is_terminating(claim):
        return f'persistentvolumeclaim "{name}" is being deleted'
    if is_ephemeral and (controller_of(claim) or {}).get("uid") != pod["metadata"]["uid"]:
        where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        return f"PVC {pod['metadata']['namespace']}/{name} was not created for pod {where} (pod is not owner)"
    return ""


def is_bound(claim: Object) -> bool:
    """Whether a claim is bound for good."""
    return bool(claim["spec"].get("volumeName")) and annotation(claim, BIND_COMPLETED) is not None


def _reaches(volume: Object, node: NodeFacts) -> bool:
    affinity = volume["spec"].get("nodeAffinity") or {}
    return matches_selector(affinity.get("required"), node.labels, node.name)


def _suits(volume: Object, claim: Object) -> bool:
    """Whether a volume is free for a claim, and has what it wants."""
    if volume["spec"].get("claimRef"):
        if not is_bound_to(volume, claim):
            return False
    elif (volume.get("status") or {}).get("phase") not in (None, "", "Available", "Pending"):
        return False
    if is_terminating(volume) or class_name(volume) != class_name(claim):
        return False
    if not has_volume_mode(volume, claim) or not has_modes(volume, claim):
        return False
    selector = claim["spec"].get("selector")
    if selector is not None and not readable(selector).matches(volume["metadata"].get("labels") or {}):
        return False
    return _capacity(volume) >= _size(claim)


def _capacity(volume: Object) -> int:
    return amount("storage", (volume["spec"].get("capacity") or {}).get("storage") or "0")


def _size(claim: Object) -> int:
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return amount("storage", requests.get("storage") or "0")


def _is_in(topology: Object, node: NodeFacts) -> bool:
    """Whether a node is in a TopologySelectorTerm."""
    expressions = topology.get("matchLabelExpressions") or ()
    return all(node.labels.get(it["key"]) in (it.get("values") or ()) for it in expressions)


def _reserve(volume: Object, claim: Object) -> list[Replace]:
    """The reference of a volume to its claim: nothing, if it has one."""
    if (volume["spec"].get("claimRef") or {}).get("uid") == claim["metadata"]["uid"]:
        return []
    reserved = {**volume, "spec": {**volume["spec"], "claimRef": claim_reference(claim)}}
    return [Replace(VOLUMES, with_annotations(reserved, {BOUND_BY_CONTROLLER: "yes"}))]


class Claims(NamedTuple):
    """How the claims of a pod that has a node are: all bound, or one cannot be bound there after all."""

    are_bound: bool
    have_failed: bool


def claims_of(pod: PodFacts, node: str, objects: Objects) -> Claims:
    """How a pod's claims are, after `bindings` were written (checkBindings)."""
    found = [objects.get(CLAIMS, NamespacedName(pod.namespace, used.name)) for used in pod.claims]
    if any(claim is None for claim in found):
        return Claims(are_bound=False, have_failed=True)
    claims = [claim for claim in found if claim is not None]
    return Claims(all(map(is_bound, claims)), any(_has_lost_node(claim, node, objects) for claim in claims))


def _has_lost_node(claim: Object, node: str, objects: Objects) -> bool:
    """Whether a claim is neither bound, nor to be provisioned on the node, nor to have a free volume."""
    if is_bound(claim):
        return False
    if annotation(claim, SELECTED_NODE) == node:
        return False
    uid = claim["metadata"]["uid"]
    return not any((it["spec"].get("claimRef") or {}).get("uid") == uid for it in objects.all(VOLUMES))
