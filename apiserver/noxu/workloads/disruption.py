"""disruption-controller: the status of PodDisruptionBudgets, by which evictions are allowed or refused (pkg/controller/disruption).

    expectedPods         the selected pods, or the scale of their controllers if the budget is a share or `maxUnavailable`
    desiredHealthy       how many of them have to be ready
    currentHealthy       the ready ones, without those that are being deleted or were evicted
    disruptionsAllowed   currentHealthy - desiredHealthy

An eviction notes its pod in `disruptedPods`. After DELETED_WITHIN of object time without a deletion it counts again, and the
condition DisruptionTarget of a pod that was not deleted becomes False. A pod whose controller has no scale makes a budget that needs
it fail: it allows nothing then. The scale of a custom resource is that of its subresource.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from noxu.api.errors import ApiError
from noxu.api.selectors import label_selector
from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.registry.scale import integer_at
from noxu.registry.stored_object import object_at
from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.objects import (
    BUDGETS,
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Objects,
    controller_of,
    name_of,
)
from noxu.workloads.pods import FINISHED, condition, is_ready, is_terminating, moment, number_of, phase, with_condition
from noxu.workloads.writes import (
    NORMAL,
    WARNING,
    Kind,
    NamespacedName,
    NewEvent,
    Replace,
    Steps,
    Write,
    stored,
    with_status,
)

DELETED_WITHIN: Final = 120.0  # seconds of object time
ALLOWED: Final = "DisruptionAllowed"
TARGET: Final = "DisruptionTarget"
_PODS: Final = "pods/"
"""What the key of a pod begins with: no namespace does."""
_SCALED: Final[Mapping[tuple[str, str], Kind]] = {
    ("v1", "ReplicationController"): REPLICATION_CONTROLLERS,
    ("apps/v1", "ReplicaSet"): REPLICA_SETS,
    ("apps/v1", "StatefulSet"): STATEFUL_SETS,
    ("apps/v1", "Deployment"): DEPLOYMENTS,
}


class UnknownScale(Exception):
    """The number of pods that a budget is about cannot be found out."""


class Scale(NamedTuple):
    """The uid of an object that is scaled, and its replicas."""

    uid: str
    replicas: int


Scales: TypeAlias = Mapping[str, Scale | str]
"""Those of controllers of other kinds than of workloads, by their uid; or why one has none, "" if it does not exist."""


class DisruptionController(WorkloadController):
    """Keys are the names of budgets; and those of pods, after `pods/`, that were about to be deleted or have several budgets."""

    name = "disruption-controller"
    kind = BUDGETS
    looks_at = (PODS, DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)
    component = "controllermanager"

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self._served = parts.served_resources
        self.others: Scales = {}

    def keys(self, objects: Objects) -> Iterable[NamespacedName]:
        stale = (_pod_key(pod) for pod in objects.all(PODS) if _may_be_stale(pod))
        return [*map(name_of, objects.all(BUDGETS)), *stale]

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        if kind == BUDGETS:
            yield name_of(new or old or {})
        if kind != PODS:
            return
        if old is None or new is None or _is_concerned(old, new):
            values = [value for value in (old, new) if value is not None]
            budgets = objects.within(BUDGETS, values[0]["metadata"]["namespace"])
            concerned = [budget for budget in budgets if any(_selects(budget, value) for value in values)]
            yield from map(name_of, concerned)
            if len(concerned) > 1:
                yield _pod_key(values[-1])
        if new is not None and _may_be_stale(new):
            yield _pod_key(new)

    async def reconcile(self, key: NamespacedName) -> float | None:
        owners = other_owners(self.objects, key)
        self.others = {owner["uid"]: await self._scale(key.namespace, owner) for owner in owners}
        return await super().reconcile(key)

    async def _scale(self, namespace: str, owner: Object) -> Scale | str:
        """The scale of a custom resource, which no informer follows."""
        resource = self._served.current.find_kind(owner["apiVersion"], owner["kind"])
        if resource is None:
            return f'no matches for kind "{owner["kind"]}" in version "{owner["apiVersion"]}"'
        if resource.scale is None:
            name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
            return f"{name} does not implement the scale subresource"
        try:
            entry = await self.reader.get(resource, namespace, owner["name"])
        except ApiError as error:
            return "" if error.reason == "NotFound" else error.message
        value = object_at(entry, resource)
        return Scale(value["metadata"]["uid"], integer_at(value, resource.scale.spec_replicas) or 0)

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        if key.namespace.startswith(_PODS):
            return (yield from _pod_steps(objects, NamespacedName(key.namespace.removeprefix(_PODS), key.name), now))
        budget = objects.get(BUDGETS, key)
        if budget is None:
            return None
        try:
            pods = _pods_of(objects, budget)
        except ValueError as error:
            yield [NewEvent(budget, WARNING, "NoPods", f"Failed to get pods: {error}")]
            yield from _write(budget, _failed(budget, str(error), now))
            return None
        if not pods:
            yield [NewEvent(budget, NORMAL, "NoPods", "No matching pods found")]
        try:
            wanted = expected(objects, self.others, budget, pods)
        except (UnknownScale, ValueError) as error:
            text = f"Failed to calculate the number of expected pods: {error}"
            yield [NewEvent(budget, WARNING, "CalculateExpectedPodCountFailed", text)]
            yield from _write(budget, _failed(budget, str(error), now))
            return None
        if wanted.unmanaged:
            yield [NewEvent(budget, WARNING, "UnmanagedPods", _unmanaged(budget))]
        disrupted, again, events = _disrupted(budget, pods, now)
        if events:
            yield events
        yield from _write(budget, _status(budget, pods, wanted, disrupted, now))
        return again


def _write(budget: Object, status: Object) -> Steps:
    if status != budget.get("status"):
        stored(*(yield [Replace(BUDGETS, with_status(budget, status), "status")]))
    return None


def _pod_key(pod: Object) -> NamespacedName:
    namespace, name = name_of(pod)
    return NamespacedName(f"{_PODS}{namespace}", name)


# -- pods -------------------------------------------------------------------------------------------------------------


def _selects(budget: Object, pod: Object) -> bool:
    try:
        return _matches(budget, pod)
    except ValueError:
        return False


def _matches(budget: Object, pod: Object) -> bool:
    """An empty selector selects all pods, none selects nothing. Raises ValueError for an invalid one."""
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    labels = pod["metadata"].get("labels") or {}
    if not selector.get("matchExpressions"):
        return bool((selector.get("matchLabels") or {}).items() <= labels.items())
    return label_selector(selector).matches(labels)


def _pods_of(objects: Objects, budget: Object) -> list[Object]:
    """Raises ValueError for an invalid selector."""
    labels = (budget["spec"].get("selector") or {}).get("matchLabels") or {}
    return [pod for pod in objects.pods_with(budget["metadata"]["namespace"], labels) if _matches(budget, pod)]


def _is_concerned(old: Object, new: Object) -> bool:
    return (
        old["metadata"].get("labels") != new["metadata"].get("labels")
        or old["metadata"].get("ownerReferences") != new["metadata"].get("ownerReferences")
        or is_terminating(old) != is_terminating(new)
        or is_ready(old) != is_ready(new)
    )


def _may_be_stale(pod: Object) -> bool:
    """Whether a pod says that it is about to be deleted, and is not."""
    target = condition(pod, TARGET) or {}
    is_promised = target.get("status") == "True" and target.get("reason") != "TerminationByKubelet"
    return is_promised and not is_terminating(pod) and phase(pod) not in FINISHED


def _pod_steps(objects: Objects, name: NamespacedName, now: datetime) -> Steps:
    pod = objects.get(PODS, name)
    if pod is None:
        return None
    budgets = [budget for budget in objects.within(BUDGETS, name.namespace) if _selects(budget, pod)]
    if len(budgets) > 1:
        chosen = budgets[0]["metadata"]["name"]
        text = f'Pod "{name.namespace}"/"{name.name}" matches multiple PodDisruptionBudgets.  Chose "{chosen}" arbitrarily.'
        yield [NewEvent(pod, WARNING, "MultiplePodDisruptionBudgets", text)]
    if not _may_be_stale(pod):
        return None
    since = (condition(pod, TARGET) or {}).get("lastTransitionTime")
    left = DELETED_WITHIN - (now - moment(since)).total_seconds() if since else 0.0
    if left > 0:
        return left
    conditions = with_condition(pod["status"].get("conditions"), {"type": TARGET, "status": "False"}, now)
    stored(*(yield [Replace(PODS, with_status(pod, {**pod["status"], "conditions": conditions}), "status")]))
    return None


# -- numbers ----------------------------------------------------------------------------------------------------------


class Expected(NamedTuple):
    """The number of pods that there should be, of those that have to be healthy, and the pods without a controller."""

    pods: int
    healthy: int
    unmanaged: Sequence[str] = ()


def expected(objects: Objects, others: Scales, budget: Object, pods: Sequence[Object]) -> Expected:
    """Raises UnknownScale, and ValueError for a share that is none."""
    spec = budget["spec"]
    if (unavailable := spec.get("maxUnavailable")) is not None:
        scale, unmanaged = _scale(objects, others, pods)
        return Expected(scale, max(scale - number_of(unavailable, scale, rounds_up=True), 0), unmanaged)
    available = spec.get("minAvailable")
    if available is None:
        return Expected(0, 0)
    if isinstance(available, int):
        return Expected(len(pods), available)
    scale, unmanaged = _scale(objects, others, pods)
    return Expected(scale, number_of(available, scale, rounds_up=True), unmanaged)


def _scale(objects: Objects, others: Scales, pods: Iterable[Object]) -> tuple[int, list[str]]:
    """The scale of all controllers of pods together, and the names of those without one. Raises UnknownScale."""
    scales: dict[str, int] = {}
    known: set[str] = set()
    unmanaged = []
    for pod in pods:
        owner = controller_of(pod)
        if owner is None:
            unmanaged.append(pod["metadata"]["name"])
        elif owner["uid"] not in known:
            found = _scale_of(objects, others, pod, owner)
            scales[found.uid] = found.replicas
            known |= {owner["uid"], found.uid}
    return sum(scales.values()), unmanaged


def _scale_of(objects: Objects, others: Scales, pod: Object, owner: Object) -> Scale:
    """The scale of the controller of a pod; that of a Deployment if it has the ReplicaSet. Raises UnknownScale."""
    namespace = pod["metadata"]["namespace"]
    if (owner["apiVersion"], owner["kind"]) not in _SCALED:
        other = others.get(owner["uid"], "")
        if isinstance(other, str) and other:
            raise UnknownScale(other)
        scale = other if isinstance(other, Scale) and other.uid == owner["uid"] else None
    else:
        found = _owner(objects, namespace, owner)
        above = controller_of(found) if found is not None and owner["kind"] == "ReplicaSet" else None
        if above is not None and above["kind"] == "Deployment":
            found = _owner(objects, namespace, above) or found
        scale = None if found is None else Scale(found["metadata"]["uid"], found["spec"].get("replicas", 1))
    if scale is None:
        raise UnknownScale(f'found no controllers for pod "{pod["metadata"]["name"]}"')
    return scale


def other_owners(objects: Objects, key: NamespacedName) -> list[Object]:
    """The controllers of the pods of a budget that are no workloads, if their scale is needed."""
    budget = objects.get(BUDGETS, key)
    if budget is None or isinstance(budget["spec"].get("minAvailable"), int):
        return []
    try:
        pods = _pods_of(objects, budget)
    except ValueError:
        return []
    owners = {owner["uid"]: owner for pod in pods if (owner := controller_of(pod)) is not None}
    return [owner for owner in owners.values() if (owner["apiVersion"], owner["kind"]) not in _SCALED]


def _owner(objects: Objects, namespace: str, owner: Object) -> Object | None:
    found = objects.get(_SCALED[owner["apiVersion"], owner["kind"]], NamespacedName(namespace, owner["name"]))
    return found if found is not None and found["metadata"]["uid"] == owner["uid"] else None


# -- status -----------------------------------------------------------------------------------------------------------


def _disrupted(budget: Object, pods: Iterable[Object], now: datetime) -> tuple[Object, float | None, list[Write]]:
    """The evicted pods that are not deleted yet, when one of them counts again, and Events about those that do."""
    before = (budget.get("status") or {}).get("disruptedPods") or {}
    kept: Object = {}
    times: list[float] = []
    events: list[Write] = []
    namespace = budget["metadata"]["namespace"]
    for pod in pods:
        name = pod["metadata"]["name"]
        if is_terminating(pod) or name not in before:
            continue
        left = DELETED_WITHIN - (now - moment(before[name])).total_seconds()
        if left < 0:
            text = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            events.append(NewEvent(pod, WARNING, "NotDeleted", text))
        else:
            kept[name] = before[name]
            times.append(left)
    return kept, min(times) + 1 if times else None, events


def _status(budget: Object, pods: Iterable[Object], wanted: Expected, disrupted: Object, now: datetime) -> Object:
    healthy = sum(
        1 for pod in pods if is_ready(pod) and not is_terminating(pod) and pod["metadata"]["name"] not in disrupted
    )
    allowed = max(healthy - wanted.healthy, 0) if wanted.pods > 0 else 0
    generation = budget["metadata"].get("generation", 0)
    reason, is_allowed = ("SufficientPods", "True") if allowed > 0 else ("InsufficientPods", "False")
    new = {"type": ALLOWED, "status": is_allowed, "reason": reason, "message": "", "observedGeneration": generation}
    return {
        "conditions": with_condition((budget.get("status") or {}).get("conditions"), new, now),
        "currentHealthy": healthy,
        "desiredHealthy": wanted.healthy,
        **({"disruptedPods": disrupted} if disrupted else {}),
        "disruptionsAllowed": allowed,
        "expectedPods": wanted.pods,
        "observedGeneration": generation,
    }


def _failed(budget: Object, message: str, now: datetime) -> Object:
    """The status of a budget that cannot be calculated: nothing is allowed."""
    status = budget.get("status") or {}
    new = {"type": ALLOWED, "status": "False", "reason": "SyncFailed", "message": message}
    if generation := status.get("observedGeneration"):
        new["observedGeneration"] = generation
    numbers = {name: status.get(name, 0) for name in ("currentHealthy", "desiredHealthy", "expectedPods")}
    return {
        **status,
        **numbers,
        "disruptionsAllowed": 0,
        "conditions": with_condition(status.get("conditions"), new, now),
    }


def _unmanaged(budget: Object) -> str:
    selector = budget["spec"].get("selector") or {}
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each['key']},Operator:{each['operator']},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    shown = f"MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},"
    return (
        f"Pods selected by this PodDisruptionBudget (selector: &LabelSelector{{{shown}}}) were found to be unmanaged. "
        "As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. "
        'To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )
