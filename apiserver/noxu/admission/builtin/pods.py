"""The plug-ins about pods: their resources, tolerations, priority, runtime class, and the taints of new nodes.

The resources of a pod: the sums over its containers (pkg/api/v1/resource, PodRequests and PodLimits).

Containers run at the same time, init containers one after another before them; an init container that is restarted
always (a sidecar) runs beside all that follow it.

Tolerations of pods: DefaultTolerationSeconds, and the merge of a RuntimeClass's with a pod's own.

Sources: plugin/pkg/admission/defaulttolerationseconds, and MergeTolerations in pkg/util/tolerations.

Priority: the priority of a pod is that of its PriorityClass (plugin/pkg/admission/priority).

RuntimeClass: pods get the overhead, the node selector and the tolerations of their class (plugin/pkg/admission/runtimeclass).

TaintNodesByCondition: a new node is not ready until its conditions say so (plugin/pkg/admission/nodetaint).
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from noxu.admission.attributes import Attributes, refusal
from noxu.admission.builtin.rules import PluginRules, find, objects
from noxu.go.quantity import Quantity, add, compare, parse
from noxu.values import Json, Object

Resources: TypeAlias = dict[str, Quantity]
Which: TypeAlias = Literal["requests", "limits"]
_POD_LEVEL: Final = ("cpu", "memory")  # and hugepages-*


def quantities(value: Json) -> Resources:
    """A list of resources of an object, such as `requests`."""
    return {name: parse(str(text)) for name, text in (value or {}).items()}


def of_container(container: Object, which: Which) -> Resources:
    return quantities((container.get("resources") or {}).get(which))


def of_pod(spec: Object, which: Which, *, overhead: bool = False) -> Resources:
    """The sum; with `overhead` that of the pod's runtime, too. Raises ValueError if numbers are too large."""
    total: Resources = {}
    for container in spec.get("containers") or ():
        total = plus(total, of_container(container, which))
    sidecars: Resources = {}
    initial: Resources = {}
    for container in spec.get("initContainers") or ():
        own = of_container(container, which)
        if container.get("restartPolicy") == "Always":
            total, sidecars = plus(total, own), plus(sidecars, own)
            initial = _larger(initial, sidecars)
        else:
            initial = _larger(initial, plus(own, sidecars))
    total = _larger(total, initial)
    for name, quantity in quantities((spec.get("resources") or {}).get(which)).items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = quantity
    if overhead:
        extra = quantities(spec.get("overhead"))
        if which == "limits":  # only what is limited at all
            extra = {name: quantity for name, quantity in extra.items() if name in total}
        total = plus(total, extra)
    return total


def plus(left: Resources, right: Resources) -> Resources:
    """The sum of each resource. Raises ValueError if numbers are too large."""
    return {**left, **{name: add(left[name], item) if name in left else item for name, item in right.items()}}


def _larger(left: Resources, right: Resources) -> Resources:
    larger = dict(left)
    for name, quantity in right.items():
        if name not in larger or compare(quantity, larger[name]) > 0:
            larger[name] = quantity
    return larger


# -- tolerations ------------------------------------------------------------------------------------------------------


NOT_READY: Final = "node.kubernetes.io/not-ready"
_DEFAULT: Final = (NOT_READY, "node.kubernetes.io/unreachable")
_SECONDS: Final = 300


async def _tolerate_for_some_time(request: Attributes) -> None:
    """A pod stays on a node that is not ready or not reachable for five minutes, unless it says otherwise."""
    if request.subresource:
        return
    spec = request.draft.new["spec"]
    before = spec.get("tolerations") or []
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
        for key in _DEFAULT
        if not any(_concerns(toleration, key) for toleration in before)
    ]
    if added:
        spec["tolerations"] = [*before, *added]


def _concerns(toleration: Object, key: str) -> bool:
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in ("NoExecute", "")


TOLERATIONS: Final = PluginRules(mutate=_tolerate_for_some_time)


def merged(first: list[Object], second: list[Object]) -> list[Object]:
    """All tolerations except those that another one covers; of equal ones the first."""
    every, kept = [*first, *second], list[Object]()
    for place, toleration in enumerate(every):
        if any(_covers(keeper, toleration) for keeper in kept):
            continue
        if any(later != toleration and _covers(later, toleration) for later in every[place + 1 :]):
            continue
        kept.append(toleration)
    return kept


def _covers(wide: Object, narrow: Object) -> bool:
    """Whether `wide` tolerates everything that `narrow` does (upstream's isSuperset)."""
    if wide == narrow:
        return True
    operator = wide.get("operator", "")
    if narrow.get("key", "") != wide.get("key", "") and (wide.get("key") or operator != "Exists"):
        return False
    if wide.get("effect", "") not in (narrow.get("effect", ""), ""):
        return False
    limit = wide.get("tolerationSeconds") if wide.get("effect") == "NoExecute" else None
    if limit is not None and not (narrow.get("tolerationSeconds") is not None and narrow["tolerationSeconds"] <= limit):
        return False
    if operator in ("Equal", ""):
        return narrow.get("operator", "") in ("Equal", "") and narrow.get("value", "") == wide.get("value", "")
    return bool(operator == "Exists")


# -- priorities -------------------------------------------------------------------------------------------------------


_GROUP: Final = "scheduling.k8s.io"
_CLASSES: Final = "priorityclasses"
_PREEMPT: Final = "PreemptLowerPriority"
_COMPUTED: Final = "priority admission controller computed {} from the given PriorityClass name"


async def _set_priority(request: Attributes) -> None:
    """New pods get the priority of their class, or of the default class; updated ones keep theirs."""
    if request.resource.plural != "pods" or request.subresource:
        return
    spec = request.draft.new["spec"]
    if request.draft.old is not None:
        for name in ("priority", "preemptionPolicy"):
            if spec.get(name) is None and (kept := request.draft.old["spec"].get(name)) is not None:
                spec[name] = kept
        return
    if name := spec.get("priorityClassName"):
        priority_class = await find(request, _GROUP, _CLASSES, name)
        if priority_class is None:
            raise refusal(request, f"no PriorityClass with name {name} was found")
    elif (priority_class := await _default_class(request)) is not None:
        spec["priorityClassName"] = priority_class["metadata"]["name"]
    priority, policy = (
        (0, _PREEMPT)
        if priority_class is None
        else (priority_class.get("value", 0), priority_class.get("preemptionPolicy"))
    )
    if spec.get("priority", priority) != priority:
        why = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec"
        raise refusal(request, f"{why}; {_COMPUTED.format(priority)}")
    spec["priority"] = priority
    if policy is None:
        return
    if spec.get("preemptionPolicy", policy) != policy:
        why = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec"
        raise refusal(request, f"{why}; {_COMPUTED.format(policy)}")
    spec["preemptionPolicy"] = policy


async def _allow_one_default(request: Attributes) -> None:
    """Refuse a second default class."""
    new = request.draft.new
    if request.resource.plural != _CLASSES or not new.get("globalDefault"):
        return
    name = (default := await _default_class(request)) and default["metadata"]["name"]
    if name is not None and (request.operation == "CREATE" or name != new["metadata"]["name"]):
        raise refusal(request, f"PriorityClass {name} is already marked as default. Only one default can exist")


async def _default_class(request: Attributes) -> Object | None:
    """The default class; of several, which may come from a race, the one with the lowest value."""
    classes = await objects(request, _GROUP, _CLASSES)
    return min(
        (priority_class for priority_class in classes if priority_class.get("globalDefault")),
        key=lambda priority_class: priority_class.get("value", 0),
        default=None,
    )


PRIORITY: Final = PluginRules(mutate=_set_priority, validate=_allow_one_default)


# -- runtime classes --------------------------------------------------------------------------------------------------


_MISMATCH: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_WITHOUT_CLASS: Final = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


async def _complete_class(request: Attributes) -> None:
    runtime_class = await _class_of(request)
    if runtime_class is None:
        return
    spec = request.draft.new["spec"]
    if runtime_class.get("overhead"):
        overhead = _overhead(runtime_class)
        if spec.get("overhead") is not None and not _equal(spec["overhead"], overhead):
            raise refusal(request, _MISMATCH)
        spec["overhead"] = overhead
    if scheduling := runtime_class.get("scheduling"):
        selector = spec.get("nodeSelector") or {}
        for name, value in sorted((scheduling.get("nodeSelector") or {}).items()):
            if selector.get(name, value) != value:
                where = f"runtimeClass.scheduling.nodeSelector[{name}] = {value}"
                raise refusal(request, f"conflict: {where}; pod.spec.nodeSelector[{name}] = {selector[name]}")
        if selector := {**selector, **(scheduling.get("nodeSelector") or {})}:
            spec["nodeSelector"] = selector
        if tolerations := merged(spec.get("tolerations") or [], scheduling.get("tolerations") or []):
            spec["tolerations"] = tolerations


async def _validate_class(request: Attributes) -> None:
    if request.operation != "CREATE" or request.subresource:
        return
    runtime_class, overhead = await _class_of(request), request.draft.new["spec"].get("overhead")
    if overhead is None:
        return
    if runtime_class is None or not runtime_class.get("overhead"):
        raise refusal(request, _WITHOUT_CLASS)
    if not _equal(overhead, _overhead(runtime_class)):
        raise refusal(request, _MISMATCH)


async def _class_of(request: Attributes) -> Object | None:
    """The class of a pod that is created. Raises ApiError if it does not exist."""
    if request.operation != "CREATE" or request.subresource:
        return None
    name = request.draft.new["spec"].get("runtimeClassName")
    if name is None:
        return None
    runtime_class = await find(request, "node.k8s.io", "runtimeclasses", name)
    if runtime_class is None:
        raise refusal(request, f'pod rejected: RuntimeClass "{name}" not found')
    return runtime_class


def _overhead(runtime_class: Object) -> Object:
    return dict(runtime_class["overhead"].get("podFixed") or {})


def _equal(left: Object, right: Object) -> bool:
    return left.keys() == right.keys() and all(compare(parse(left[name]), parse(right[name])) == 0 for name in left)


RUNTIME_CLASS: Final = PluginRules(mutate=_complete_class, validate=_validate_class)


# -- node taints ------------------------------------------------------------------------------------------------------


_EFFECT: Final = "NoSchedule"


async def _taint(request: Attributes) -> None:
    if request.operation != "CREATE" or request.subresource:
        return
    spec = request.draft.new.setdefault("spec", {})
    taints = spec.get("taints") or []
    if not any((taint.get("key"), taint.get("effect")) == (NOT_READY, _EFFECT) for taint in taints):
        spec["taints"] = [*taints, {"key": NOT_READY, "effect": _EFFECT}]


NODE_TAINTS: Final = PluginRules(mutate=_taint)
