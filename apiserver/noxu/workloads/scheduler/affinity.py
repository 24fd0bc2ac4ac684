"""InterPodAffinity: a pod wants to be in a domain with others, or without others, and others may not want it in theirs.

    affinity             in each term's domain there is a pod that all terms mean; or it is the first of its own kind
    anti-affinity        in no term's domain there is a pod that the term means
    existing pods'       in no domain there is a pod whose anti-affinity means it

Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from noxu.workloads.objects import NAMESPACES, Objects
from noxu.workloads.scheduler.cluster import Cluster, NodeFacts, PodFacts
from noxu.workloads.scheduler.fitting import Misfit
from noxu.workloads.scheduler.terms import AffinityTerm, Labels, LabelsOf
from noxu.workloads.writes import NamespacedName

PLUGIN: Final = "InterPodAffinity"
_NO_LABELS: Final[Labels] = {}

Domain = tuple[str, str]
"""A label of nodes and its value."""


def namespace_labels(objects: Objects) -> LabelsOf:
    def labels_of(namespace: str) -> Labels:
        found = objects.get(NAMESPACES, NamespacedName("", namespace))
        return (found["metadata"].get("labels") if found else None) or _NO_LABELS

    return labels_of


class PodAffinity:
    """The pods that matter to one that is to be placed, counted by domain. `count` follows those that a preemption takes away."""

    def __init__(self, pod: PodFacts, cluster: Cluster) -> None:
        self._pod = pod
        self._labels_of = namespace_labels(cluster.objects)
        self._affinity: Counter[Domain] = Counter()
        self._anti_affinity: Counter[Domain] = Counter()
        self._existing: Counter[Domain] = Counter()
        looks_at_all = bool(pod.affinity or pod.anti_affinity)
        for node in cluster.nodes:
            for other in (node.pods if looks_at_all else node.exclusive).values():
                self.count(other, node, 1)

    def count(self, other: PodFacts, node: NodeFacts, by: int) -> None:
        """Add a pod on a node, or take it away."""
        pod, labels_of = self._pod, self._labels_of
        if pod.affinity and all(term.matches(other.namespace, other.labels, labels_of) for term in pod.affinity):
            _count(self._affinity, pod.affinity, node, by)
        meant = [term for term in pod.anti_affinity if term.matches(other.namespace, other.labels, labels_of)]
        _count(self._anti_affinity, meant, node, by)
        unwanted = [term for term in other.anti_affinity if term.matches(pod.namespace, pod.labels, labels_of)]
        _count(self._existing, unwanted, node, by)

    def misfit(self, node: NodeFacts) -> Misfit | None:
        if not self._is_near(node):
            return Misfit(PLUGIN, ["node(s) didn't match pod affinity rules"])
        if any(self._anti_affinity[term.key, node.labels.get(term.key, "")] > 0 for term in self._pod.anti_affinity):
            return Misfit(PLUGIN, ["node(s) didn't match pod anti-affinity rules"], may_change=True)
        if self._existing and any(self._existing[label] > 0 for label in node.labels.items()):
            return Misfit(PLUGIN, ["node(s) didn't satisfy existing pods anti-affinity rules"], may_change=True)
        return None

    def _is_near(self, node: NodeFacts) -> bool:
        wanted, pod = self._pod.affinity, self._pod
        if any(term.key not in node.labels for term in wanted):
            return False
        if all(self._affinity[term.key, node.labels[term.key]] > 0 for term in wanted):
            return True
        is_first = not any(self._affinity.values())
        return is_first and all(term.matches(pod.namespace, pod.labels, self._labels_of) for term in wanted)


def _count(domains: Counter[Domain], terms: Iterable[AffinityTerm], node: NodeFacts, by: int) -> None:
    for term in terms:
        if term.key in node.labels:
            domains[term.key, node.labels[term.key]] += by


def concerns(pod: PodFacts, nodes: Sequence[NodeFacts]) -> bool:
    """Whether affinity has a say at all."""
    return bool(pod.affinity or pod.anti_affinity or any(node.exclusive for node in nodes))
