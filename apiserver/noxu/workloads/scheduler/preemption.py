"""Preemption: which less important pods go, so that a pod fits a node that it does not fit now (the DefaultPreemption plug-in).

On each node where that could help: take all less important pods away; if the pod fits then, give back as many of them as possible, first
those whose budget would be violated, the most important first. The others are its victims. The best node has, in this order,

    the fewest violations of budgets          the fewest victims
    the least important first victim          the latest start of its most important victims
    the smallest sum of priorities            the first name

Sources: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from noxu.values import Object
from noxu.workloads.objects import BUDGETS
from noxu.workloads.ownership import selects
from noxu.workloads.pods import condition, is_terminating
from noxu.workloads.scheduler.cluster import Cluster, NodeFacts, PodFacts
from noxu.workloads.scheduler.diagnosis import NO_VICTIMS, NOT_HELPFUL, Diagnosis, histogram
from noxu.workloads.scheduler.placement import Placement
from noxu.workloads.writes import NamespacedName

BY_SCHEDULER: Final = "PreemptionByScheduler"
_LEAST_PRIORITY: Final = -(2**31)
_NOT_STARTED: Final = "9999-12-31T23:59:59Z"


class Victims(NamedTuple):
    """The pods that would have to go from a node, the most important first. `violations` of budgets."""

    node: str
    pods: Sequence[PodFacts]
    violations: int


class PreemptionOutcome(NamedTuple):
    """The victims on the best node, or why there are none. `keeps_nomination`: an earlier preemption is still on its way."""

    victims: Victims | None
    text: str = ""
    keeps_nomination: bool = False


def preempt(placement: Placement, diagnosis: Diagnosis, cluster: Cluster) -> PreemptionOutcome:
    pod = placement.pod
    if why_not := _not_eligible(pod, diagnosis, cluster):
        return PreemptionOutcome(None, f"preemption: {why_not}", keeps_nomination=True)
    candidates: list[Victims] = []
    reasons: Counter[str] = Counter()
    budgets = list(cluster.objects.all(BUDGETS))
    for node in cluster.nodes:
        misfit = diagnosis.nodes.get(node.name)
        if misfit is None or not misfit.may_change:
            reasons[NOT_HELPFUL] += 1
            continue
        found = victims_on(node, placement, budgets)
        if isinstance(found, Victims):
            candidates.append(found)
        else:
            reasons.update(found)
    if not candidates:
        return PreemptionOutcome(None, f"preemption: 0/{len(cluster.nodes)} nodes are available:{histogram(reasons)}")
    return PreemptionOutcome(min(candidates, key=_cost))


def _not_eligible(pod: PodFacts, diagnosis: Diagnosis, cluster: Cluster) -> str:
    """Why a pod may not preempt others; "" if it may (PodEligibleToPreemptOthers)."""
    if pod.pod["spec"].get("preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    nominated = (pod.pod.get("status") or {}).get("nominatedNodeName")
    node = cluster.node(nominated) if nominated else None
    if node is None or not getattr(diagnosis.nodes.get(node.name), "may_change", False):
        return ""
    if any(other.priority < pod.priority and _goes_for_another(other.pod) for other in node.pods.values()):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def _goes_for_another(pod: Object) -> bool:
    """Whether a pod is being deleted because the scheduler preempts it."""
    found = condition(pod, "DisruptionTarget") or {}
    return is_terminating(pod) and found.get("status") == "True" and found.get("reason") == BY_SCHEDULER


def victims_on(node: NodeFacts, placement: Placement, budgets: Iterable[Object]) -> Victims | Sequence[str]:
    """The victims on a node, or why a preemption there does not help."""
    pod = placement.pod
    less_important = [other for other in node.pods.values() if other.priority < pod.priority]
    if not less_important:
        return [NO_VICTIMS]
    emptied, given_back = node.copy(), set[NamespacedName]()
    for other in less_important:
        placement.remove(other, emptied)
    try:
        if (misfit := placement.misfit(emptied)) is not None:
            return misfit.reasons
        violating, others = by_budgets(sorted(less_important, key=importance), budgets)
        victims: list[PodFacts] = []
        violations = 0
        for group in (violating, others):
            for other in group:
                placement.add(other, emptied)
                if placement.misfit(emptied) is None:
                    given_back.add(other.name)
                    continue
                placement.remove(other, emptied)
                victims.append(other)
                violations += group is violating
        return Victims(node.name, sorted(victims, key=importance), violations)
    finally:
        for other in less_important:
            if other.name not in given_back:
                placement.add(other, emptied)  # as it is


def importance(pod: PodFacts) -> tuple[int, str, str]:
    """The most important first: by priority, and then the one that has run the longest (MoreImportantPod)."""
    return -pod.priority, _start(pod), pod.name.name


def _start(pod: PodFacts) -> str:
    return (pod.pod.get("status") or {}).get("startTime") or _NOT_STARTED


def by_budgets(pods: Sequence[PodFacts], budgets: Iterable[Object]) -> tuple[list[PodFacts], list[PodFacts]]:
    """The pods whose budgets would be violated if these went in this order, and the others (filterPodsWithPDBViolation)."""
    protecting = list(budgets)
    allowed = [(budget.get("status") or {}).get("disruptionsAllowed") or 0 for budget in protecting]
    violating: list[PodFacts] = []
    others: list[PodFacts] = []
    for pod in pods:
        is_violated = False
        for n, budget in enumerate(protecting):
            if _protects(budget, pod):
                allowed[n] -= 1
                is_violated = is_violated or allowed[n] < 0
        (violating if is_violated else others).append(pod)
    return violating, others


def _protects(budget: Object, pod: PodFacts) -> bool:
    if budget["metadata"]["namespace"] != pod.namespace or not pod.labels:
        return False
    selector = budget["spec"].get("selector") or {}
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return False
    if pod.name.name in ((budget.get("status") or {}).get("disruptedPods") or ()):
        return False
    return selects(selector, pod.pod)


def _cost(victims: Victims) -> tuple[int, int, int, int, list[int], str]:
    """Less is better."""
    pods = victims.pods
    first = pods[0].priority if pods else _LEAST_PRIORITY
    total = sum(pod.priority - _LEAST_PRIORITY for pod in pods)
    earliest = min((_start(pod) for pod in pods if pod.priority == first), default=_NOT_STARTED)
    return victims.violations, first, total, len(pods), [-ord(letter) for letter in earliest], victims.node
