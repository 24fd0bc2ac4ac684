"""On which node a pod is placed: the best of those that it fits, or why it fits none.

A node that was nominated for the pod by a preemption comes first. Pods that were nominated for a node count there, too, if they are not
less important than this one. Source: pkg/scheduler/schedule_one.go (schedulePod, findNodesThatFitPod).
"""

from __future__ import annotations

from typing import Final

from noxu.workloads.scheduler.affinity import PodAffinity, concerns
from noxu.workloads.scheduler.cluster import Cluster, NodeFacts, PodFacts
from noxu.workloads.scheduler.diagnosis import Diagnosis
from noxu.workloads.scheduler.fitting import Misfit, misfit, node_names
from noxu.workloads.scheduler.preferences import best
from noxu.workloads.scheduler.spreading import Spread, constraints
from noxu.workloads.scheduler.volumes import PodVolumes

_CONFLICT: Final = Misfit("NodeAffinity", ["pod affinity terms conflict"])
_ABSENT: Final = Misfit("NodeAffinity", ["node(s) didn't satisfy plugin(s) [NodeAffinity]"])


class Placement:
    """One attempt to place a pod: what the filters have counted for it."""

    def __init__(self, pod: PodFacts, cluster: Cluster) -> None:
        self.pod, self._cluster = pod, cluster
        spec, nodes = pod.pod["spec"], cluster.nodes
        self._names = node_names(spec) if spec.get("affinity") else None
        self._affinity = PodAffinity(pod, cluster) if concerns(pod, nodes) else None
        hard = constraints(pod, "DoNotSchedule") if spec.get("topologySpreadConstraints") else ()
        self._spread = Spread(pod, cluster, hard) if hard else None
        self.volumes = PodVolumes(pod, cluster) if pod.claims else None

    def find(self) -> NodeFacts | Diagnosis:
        nodes = self._cluster.nodes
        if not nodes:
            return Diagnosis(0, {})
        if (before := self._before()) is not None:
            return Diagnosis(len(nodes), {}, before=before)
        nominated = self._nominated()
        if nominated is not None and self.misfit(nominated) is None:
            return nominated
        rejected: dict[str, Misfit] = {}
        fitting: list[NodeFacts] = []
        for node in nodes:
            if self._names is not None and node.name not in self._names:
                continue
            found = self.misfit(node)
            if found is None:
                fitting.append(node)
            else:
                rejected[node.name] = found
        if not fitting:
            return Diagnosis(len(nodes), rejected, absent=None if self._names is None else _ABSENT)
        return best(self.pod, fitting, self._cluster)

    def _before(self) -> Misfit | None:
        """Why no node needs to be looked at."""
        if self._names is not None and not self._names:
            return _CONFLICT
        return self.volumes.before if self.volumes is not None else None

    def _nominated(self) -> NodeFacts | None:
        name = (self.pod.pod.get("status") or {}).get("nominatedNodeName")
        return self._cluster.node(name) if name and (self._names is None or name in self._names) else None

    def misfit(self, node: NodeFacts) -> Misfit | None:
        """Why the pod does not fit a node; None if it does."""
        expected = self._cluster.nominated_before(self.pod, node.name)
        if expected:
            crowded = node.copy()
            for pod in expected:
                self.add(pod, crowded)
            found = self._misfit(crowded)
            for pod in expected:
                self.remove(pod, crowded)
            if found is not None:
                return found
        return self._misfit(node)

    def _misfit(self, node: NodeFacts) -> Misfit | None:
        found = misfit(self.pod, node)
        for part in (self.volumes, self._spread, self._affinity):
            if found is None and part is not None:
                found = part.misfit(node)
        return found

    # -- what if other pods were there, or were not

    def add(self, pod: PodFacts, node: NodeFacts) -> None:
        """Suppose a pod on a node, which is a copy."""
        node.add(pod)
        self._count(pod, node, 1)

    def remove(self, pod: PodFacts, node: NodeFacts) -> None:
        """Suppose a pod away from a node, which is a copy."""
        node.remove(pod.name)
        self._count(pod, node, -1)

    def _count(self, pod: PodFacts, node: NodeFacts, by: int) -> None:
        for part in (self._spread, self._affinity):
            if part is not None:
                part.count(pod, node, by)
