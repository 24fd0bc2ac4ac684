"""PodTopologySpread: the pods that a constraint selects are spread over the domains of nodes, so that none has `maxSkew` more than the emptiest.

Domains are those of nodes that have the labels of all constraints and that the constraint's policies include. With fewer than `minDomains` of
them the emptiest counts as empty. Pods that are being deleted, and those of other namespaces, do not count.

Source: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from noxu.api.selectors import IN, LabelSelector
from noxu.values import Object
from noxu.workloads.node_matching import KEEPS_OFF, matches_node, untolerated
from noxu.workloads.pods import is_terminating
from noxu.workloads.scheduler.cluster import Cluster, NodeFacts, PodFacts
from noxu.workloads.scheduler.fitting import Misfit
from noxu.workloads.scheduler.terms import readable, with_label_keys

PLUGIN: Final = "PodTopologySpread"
_NOT_MATCHED: Final = "node(s) didn't match pod topology spread constraints"


class Constraint(NamedTuple):
    key: str
    max_skew: int
    min_domains: int
    selector: LabelSelector
    honors_affinity: bool
    honors_taints: bool

    def includes(self, pod: PodFacts, node: NodeFacts) -> bool:
        """Whether a node's domain counts for a pod (matchNodeInclusionPolicies)."""
        spec = pod.pod["spec"]
        if self.honors_affinity and not matches_node(spec, node.labels, node.name):
            return False
        return not self.honors_taints or untolerated(node.taints, spec.get("tolerations") or (), KEEPS_OFF) is None


def constraints(pod: PodFacts, when: str) -> Sequence[Constraint]:
    """Those of a pod that say DoNotSchedule, or ScheduleAnyway."""
    given = pod.pod["spec"].get("topologySpreadConstraints") or ()
    return [_constraint(value, pod) for value in given if value.get("whenUnsatisfiable") == when]


def _constraint(value: Object, pod: PodFacts) -> Constraint:
    return Constraint(
        value["topologyKey"],
        value.get("maxSkew") or 1,
        value.get("minDomains") or 1,
        with_label_keys(readable(value.get("labelSelector")), value.get("matchLabelKeys"), pod.labels, IN),
        (value.get("nodeAffinityPolicy") or "Honor") == "Honor",
        value.get("nodeTaintsPolicy") == "Honor",
    )


class Spread:
    """The selected pods of each constraint, counted by domain. `count` follows those that a preemption takes away."""

    def __init__(self, pod: PodFacts, cluster: Cluster, wanted: Sequence[Constraint]) -> None:
        self._pod, self.constraints = pod, wanted
        self._counts: list[dict[str, int]] = [{} for _ in wanted]
        for node in cluster.nodes:
            if all(constraint.key in node.labels for constraint in wanted):
                self._count_node(node)

    def _count_node(self, node: NodeFacts) -> None:
        for constraint, counts in zip(self.constraints, self._counts, strict=True):
            if constraint.includes(self._pod, node):
                value = node.labels[constraint.key]
                selected = sum(self._selects(constraint, other) for other in node.pods.values())
                counts[value] = counts.get(value, 0) + selected

    def _selects(self, constraint: Constraint, other: PodFacts) -> bool:
        return (
            other.namespace == self._pod.namespace
            and constraint.selector.matches(other.labels)
            and not is_terminating(other.pod)
        )

    def count(self, other: PodFacts, node: NodeFacts, by: int) -> None:
        """Add a pod on a node, or take it away."""
        if not all(constraint.key in node.labels for constraint in self.constraints):
            return
        for constraint, counts in zip(self.constraints, self._counts, strict=True):
            if self._selects(constraint, other) and constraint.includes(self._pod, node):
                counts[node.labels[constraint.key]] += by

    def misfit(self, node: NodeFacts) -> Misfit | None:
        for constraint, counts in zip(self.constraints, self._counts, strict=True):
            value = node.labels.get(constraint.key)
            if value is None:
                return Misfit(PLUGIN, [f"{_NOT_MATCHED} (missing required label)"])
            least = min(counts.values()) if len(counts) >= constraint.min_domains else 0
            skew = counts.get(value, 0) + constraint.selector.matches(self._pod.labels) - least
            if skew > constraint.max_skew:
                return Misfit(PLUGIN, [_NOT_MATCHED], may_change=True)
        return None

    def crowd(self, node: NodeFacts) -> int:
        """How many selected pods are in the domains of a node: a preference for few."""
        pairs = zip(self.constraints, self._counts, strict=True)
        return sum(counts.get(node.labels.get(constraint.key, ""), 0) for constraint, counts in pairs)
