"""The heartbeats of simulated nodes: each has a Lease in kube-node-lease, which its kubelet renews (pkg/kubelet, component-helpers).

    node is there          the Lease is created, and renewed every RENEW_EVERY seconds of process time
    node is lost           its Lease is renewed a last time, with the mark of the loss, and then no more
    node is back           its Lease is renewed without the mark, and its conditions are those of a healthy node

A node is lost as long as it has the annotation `noxu.dev/simulate: node-lost`, see nodes.is_lost. Renewals follow process time,
because a year of a controlled clock would have three million of them; a clock that stands still has none. All nodes share one timer.
So a Lease tells how long a node has been silent only if it has the mark.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from noxu.go.time import MICRO, format_time
from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.kubelet.addresses import host_addresses
from noxu.workloads.nodes import LOST, healthy_conditions, is_lost
from noxu.workloads.objects import LEASES, NODES, Objects
from noxu.workloads.pods import SIMULATE, is_true
from noxu.workloads.writes import Create, Kind, NamespacedName, Replace, Steps, done, with_status

NAMESPACE: Final = "kube-node-lease"
RENEW_EVERY: Final = 10.0  # seconds
LEASE_SECONDS: Final = 40


class NodeHeartbeats(WorkloadController):
    """Keys are the names of nodes."""

    name = "node-heartbeats"
    kind = NODES
    looks_at = (LEASES,)
    account = "kubelet"
    field_manager = "kubelet"
    on_process_time = True

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        if kind == NODES and new is not None and (old is None or _looks(old) != _looks(new)):
            yield NamespacedName("", new["metadata"]["name"])

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        return heartbeat(objects, key, now)


def _looks(node: Object) -> object:
    """What the heartbeats of a node depend on."""
    return is_lost(node), bool(host_addresses(node))


def heartbeat(objects: Objects, key: NamespacedName, now: datetime) -> Steps:
    node = objects.get(NODES, key)
    if node is None or not host_addresses(node):
        return None  # the Lease of a node that is gone is garbage
    lost, found = is_lost(node), objects.get(LEASES, NamespacedName(NAMESPACE, key.name))
    if lost and found is not None and lost_since(found) is not None:
        return None
    if found is None:
        done((yield [Create(LEASES, _renewed(_lease(node), now, lost=lost))]))
    elif (renewed := _renewed(found, now, lost=lost)) != found:
        done((yield [Replace(LEASES, renewed)]))
    if lost:
        return None
    if found is not None and lost_since(found) is not None and not is_true(node, "Ready"):
        yield from _recovered(node, now)
    return RENEW_EVERY


def _recovered(node: Object, now: datetime) -> Steps:
    status = {**node["status"], "conditions": healthy_conditions(now, node["status"].get("conditions") or ())}
    done((yield [Replace(NODES, with_status(node, status), "status")]))
    return None


def lost_since(lease: Object) -> str | None:
    """When the last heartbeat of a lost node was, as objects have it; None: the node is not lost."""
    is_marked = (lease["metadata"].get("annotations") or {}).get(SIMULATE) == LOST
    return str(lease["spec"]["renewTime"]) if is_marked else None


def _lease(node: Object) -> Object:
    name, uid = node["metadata"]["name"], node["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS},
    }


def _renewed(lease: Object, now: datetime, *, lost: bool) -> Object:
    metadata = dict(lease["metadata"])
    annotations = {name: value for name, value in (metadata.pop("annotations", None) or {}).items() if name != SIMULATE}
    if lost:
        annotations[SIMULATE] = LOST
    if annotations:
        metadata["annotations"] = annotations
    spec = {**lease["spec"], "renewTime": format_time(now, MICRO)}
    return {**lease, "metadata": metadata, "spec": spec}
