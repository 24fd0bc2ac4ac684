"""Which of the nodes that a pod fits is the best: what it prefers, and how much of each is left.

Each part gives every node 0 to 1,000,000, the most to the best of them, and counts with its weight (apis/config/v1/default_plugins.go):

    taints PreferNoSchedule that are not tolerated: few       3
    preferred node affinity                                   2
    preferred pod affinity and anti-affinity                  2
    topology spread with ScheduleAnyway                       2
    processor and memory that are left                        1

Of equal nodes the first by name is the best: the same cluster gives the same answer, whatever the order of its objects. Parts that
a pod says nothing about cost nothing. Existing pods' preferences do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from noxu.values import Object
from noxu.workloads.node_matching import matches_term, untolerated
from noxu.workloads.scheduler.affinity import namespace_labels
from noxu.workloads.scheduler.cluster import Cluster, NodeFacts, PodFacts
from noxu.workloads.scheduler.resources import CPU, MEMORY
from noxu.workloads.scheduler.spreading import Spread, constraints
from noxu.workloads.scheduler.terms import term

_WHOLE: Final = 1_000_000
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_SOFT: Final = ("PreferNoSchedule",)


def best(pod: PodFacts, nodes: Sequence[NodeFacts], cluster: Cluster) -> NodeFacts:
    """The best of nodes that are sorted by name."""
    if len(nodes) == 1:
        return nodes[0]
    scores = [left(pod, node) for node in nodes]
    for weight, part in _parts(pod, nodes, cluster):
        scores = [score + weight * more for score, more in zip(scores, part, strict=True)]
    return nodes[scores.index(max(scores))]


def left(pod: PodFacts, node: NodeFacts) -> int:
    """How much of a node's processor and memory is left with a pod on it, from 0 to 1,000,000."""
    total = 0
    for name in (CPU, MEMORY):
        capacity = node.allocatable.get(name, 0)
        used = node.counted.get(name, 0) + pod.counted.get(name, 0)
        total += max(capacity - used, 0) * _WHOLE // capacity if capacity else 0
    return total // 2


def _parts(pod: PodFacts, nodes: Sequence[NodeFacts], cluster: Cluster) -> list[tuple[int, list[int]]]:
    """The weight and the scores of what has a say beside the resources."""
    spec = pod.pod["spec"]
    parts = []
    if any(taint.get("effect") in _SOFT for node in nodes for taint in node.taints):
        parts.append((3, _scaled([-_untolerated(pod, node) for node in nodes])))
    affinity = spec.get("affinity") or {}
    if preferred := (affinity.get("nodeAffinity") or {}).get(_PREFERRED):
        parts.append((2, _scaled([_node_affinity(preferred, node) for node in nodes])))
    if any((affinity.get(kind) or {}).get(_PREFERRED) for kind in ("podAffinity", "podAntiAffinity")):
        parts.append((2, _scaled(_pod_affinity(pod, affinity, nodes, cluster))))
    if soft := constraints(pod, "ScheduleAnyway"):
        spread = Spread(pod, cluster, soft)
        parts.append((2, _scaled([-spread.crowd(node) for node in nodes])))
    return parts


def _scaled(scores: Sequence[int]) -> list[int]:
    """From 0 for the worst to 1,000,000 for the best."""
    least, most = min(scores), max(scores)
    return [(score - least) * _WHOLE // (most - least) if most > least else 0 for score in scores]


def _untolerated(pod: PodFacts, node: NodeFacts) -> int:
    tolerations = pod.pod["spec"].get("tolerations") or ()
    return sum(untolerated([taint], tolerations, _SOFT) is not None for taint in node.taints)


def _node_affinity(preferred: Sequence[Object], node: NodeFacts) -> int:
    return sum(it["weight"] for it in preferred if matches_term(it.get("preference") or {}, node.labels, node.name))


def _pod_affinity(pod: PodFacts, affinity: Object, nodes: Sequence[NodeFacts], cluster: Cluster) -> list[int]:
    """The weights of terms that mean pods in the domains of each node: those of anti-affinity count against it."""
    labels_of = namespace_labels(cluster.objects)
    totals: dict[tuple[str, str], int] = {}
    for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
        for weighted in (affinity.get(kind) or {}).get(_PREFERRED) or ():
            wanted = term(weighted["podAffinityTerm"], pod.namespace, pod.labels)
            for node in cluster.nodes:
                if wanted.key in node.labels:
                    meant = sum(wanted.matches(it.namespace, it.labels, labels_of) for it in node.pods.values())
                    domain = wanted.key, node.labels[wanted.key]
                    totals[domain] = totals.get(domain, 0) + sign * weighted["weight"] * meant
    keys = {key for key, _ in totals}
    return [sum(totals.get((key, node.labels.get(key, "")), 0) for key in keys) for node in nodes]
