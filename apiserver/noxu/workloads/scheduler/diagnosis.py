"""Why no node takes a pod, in upstream's sentence (FitError in pkg/scheduler/framework/types.go).

0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. preemption: 0/3 nodes are available:
1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from noxu.workloads.scheduler.fitting import Misfit

NO_NODES: Final = "no nodes available to schedule pods"
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"


class Diagnosis(NamedTuple):
    """Why a pod fits none of `total` nodes: of each node, or of all of them together, which was found before any was looked at.

    `absent`: what holds for the nodes that are not in `nodes`, because the pod names others.
    """

    total: int
    nodes: Mapping[str, Misfit]
    before: Misfit | None = None
    absent: Misfit | None = None

    @property
    def plugins(self) -> frozenset[str]:
        """The plug-ins that rejected the pod: what changes nothing for them does not make it schedulable."""
        found = [*self.nodes.values(), self.before, self.absent]
        return frozenset(misfit.plugin for misfit in found if misfit is not None)

    def sentence(self, after: str = "") -> str:
        """`after`: what preemption found."""
        if not self.total:
            return NO_NODES
        if self.before is not None:
            text = f" {', '.join(self.before.reasons)}."
        else:
            text = histogram(self._reasons())
        return f"0/{self.total} nodes are available:{text}{' ' if after else ''}{after}"

    def _reasons(self) -> Counter[str]:
        reasons = Counter(reason for misfit in self.nodes.values() for reason in misfit.reasons)
        others = self.total - len(self.nodes)
        if self.absent is not None and others:
            reasons.update(dict.fromkeys(self.absent.reasons, others))
        return reasons


def histogram(reasons: Mapping[str, int]) -> str:
    """` 1 Insufficient cpu, 2 Too many pods.`, sorted as texts; "" without reasons."""
    texts = sorted(f"{count} {reason}" for reason, count in reasons.items())
    return f" {', '.join(texts)}." if texts else ""
