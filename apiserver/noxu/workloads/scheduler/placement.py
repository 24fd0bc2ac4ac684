"""On which node a pod is placed: the best of those that it fits, or why it fits none.

The best has most of its processor and memory left, and of equal ones the first by name: the same cluster gives the same answer,
whatever the order of its objects. Source: pkg/scheduler/schedule_one.go (schedulePod), noderesources/least_allocated.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from noxu.workloads.scheduler.cluster import Cluster, NodeFacts, PodFacts
from noxu.workloads.scheduler.diagnosis import Diagnosis
from noxu.workloads.scheduler.fitting import Misfit, misfit, node_names
from noxu.workloads.scheduler.resources import CPU, MEMORY

_WHOLE: Final = 1_000_000


def place(pod: PodFacts, cluster: Cluster) -> NodeFacts | Diagnosis:
    """The node for a pod."""
    nodes = cluster.nodes
    if not nodes:
        return Diagnosis(0, {})
    names = node_names(pod.pod["spec"]) if pod.pod["spec"].get("affinity") else None
    if names is not None and not names:
        return Diagnosis(len(nodes), {}, before=Misfit("NodeAffinity", ["pod affinity terms conflict"]))
    considered = nodes if names is None else [node for node in nodes if node.name in names]
    absent = None if names is None else Misfit("NodeAffinity", ["node(s) didn't satisfy plugin(s) [NodeAffinity]"])
    rejected: dict[str, Misfit] = {}
    fitting: list[NodeFacts] = []
    for node in considered:
        found = misfit(pod, node)
        if found is None:
            fitting.append(node)
        else:
            rejected[node.name] = found
    if not fitting:
        return Diagnosis(len(nodes), rejected, absent=absent)
    return best(pod, fitting)


def best(pod: PodFacts, nodes: Sequence[NodeFacts]) -> NodeFacts:
    """The best of nodes, which are sorted by name."""
    return max(nodes, key=lambda node: left(pod, node))


def left(pod: PodFacts, node: NodeFacts) -> int:
    """How much of a node is left with a pod on it: the shares of processor and memory together."""
    total = 0
    for name in (CPU, MEMORY):
        capacity = node.allocatable.get(name, 0)
        used = node.counted.get(name, 0) + pod.counted.get(name, 0)
        total += max(capacity - used, 0) * _WHOLE // capacity if capacity else 0
    return total
