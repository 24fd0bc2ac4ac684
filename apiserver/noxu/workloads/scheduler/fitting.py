"""Whether a pod fits a node, as far as the node and the pods on it say. Each filter is one of upstream's plug-ins.

A filter returns None if the pod fits, or why it does not: reasons in upstream's words. `may_change`: the eviction of pods could
help (upstream's Unschedulable; the others are UnschedulableAndUnresolvable).

Sources: pkg/scheduler/framework/plugins (nodeunschedulable, tainttoleration, nodeaffinity, nodeports, noderesources).
NodeName is not here: a pod with a spec.nodeName is bound, and no scheduler looks at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from noxu.values import Object
from noxu.workloads.node_matching import KEEPS_OFF, UNSCHEDULABLE, matches_node, untolerated
from noxu.workloads.scheduler.cluster import NodeFacts, PodFacts


class Misfit(NamedTuple):
    """Why a pod does not fit a node: the plug-in that says so, and its reasons."""

    plugin: str
    reasons: Sequence[str]
    may_change: bool = False


def node_unschedulable(pod: PodFacts, node: NodeFacts) -> Misfit | None:
    if not node.is_unschedulable or untolerated([UNSCHEDULABLE], _tolerations(pod), KEEPS_OFF) is None:
        return None
    return Misfit("NodeUnschedulable", ["node(s) were unschedulable"])


def taint_toleration(pod: PodFacts, node: NodeFacts) -> Misfit | None:
    if not node.taints or untolerated(node.taints, _tolerations(pod), KEEPS_OFF) is None:
        return None
    return Misfit("TaintToleration", ["node(s) had untolerated taint(s)"])


def node_affinity(pod: PodFacts, node: NodeFacts) -> Misfit | None:
    if matches_node(pod.pod["spec"], node.labels, node.name):
        return None
    return Misfit("NodeAffinity", ["node(s) didn't match Pod's node affinity/selector"])


def node_ports(pod: PodFacts, node: NodeFacts) -> Misfit | None:
    if not pod.ports or not node.holding_ports:
        return None
    taken = [port for other in node.holding_ports.values() for port in other.ports]
    if not any(wanted.conflicts(port) for wanted in pod.ports for port in taken):
        return None
    return Misfit("NodePorts", ["node(s) didn't have free ports for the requested pod ports"], may_change=True)


def node_resources_fit(pod: PodFacts, node: NodeFacts) -> Misfit | None:
    reasons, may_change = [], True
    allocatable, used = node.allocatable, node.used
    if len(node.pods) + 1 > allocatable.get("pods", 0):
        reasons.append("Too many pods")
    for name, wanted in pod.requests.items():
        if wanted > 0 and wanted > allocatable.get(name, 0) - used.get(name, 0):
            reasons.append(f"Insufficient {name}")
            may_change = may_change and wanted <= allocatable.get(name, 0)
    return Misfit("NodeResourcesFit", reasons, may_change) if reasons else None


def _tolerations(pod: PodFacts) -> Sequence[Object]:
    return pod.pod["spec"].get("tolerations") or ()


NODE_FILTERS: Final = (node_unschedulable, taint_toleration, node_affinity, node_ports, node_resources_fit)
"""In upstream's order: the first that says no is what a person reads."""


def misfit(pod: PodFacts, node: NodeFacts) -> Misfit | None:
    for fits in NODE_FILTERS:
        if (found := fits(pod, node)) is not None:
            return found
    return None


def node_names(spec: Object) -> frozenset[str] | None:
    """The only nodes that the required affinity leaves by their names, as DaemonSets' pods have it. None: all nodes.

    An empty set: its terms conflict. (PreFilter of NodeAffinity.)
    """
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return None
    names: frozenset[str] = frozenset()
    for term in required.get("nodeSelectorTerms") or ():
        given = [frozenset(it.get("values") or ()) for it in term.get("matchFields") or () if _names_nodes(it)]
        if not given:
            return None
        names |= frozenset.intersection(*given)
    return names


def _names_nodes(field: Object) -> bool:
    return bool(field.get("key") == "metadata.name" and field.get("operator") == "In")
