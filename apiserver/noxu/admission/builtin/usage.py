"""The usage of a ResourceQuota by an object (pkg/quota/v1/evaluator/core, and k8s.io/apiserver's pkg/quota/v1).

Pods use the sums of their containers' resources, claims their storage, services their node ports; every object is one of
its kind: `count/PLURAL.GROUP`. A quota with scopes counts only the objects that are in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from noxu.admission.builtin.pods import Resources, of_container, of_pod, plus, quantities
from noxu.admission.builtin.volumes import class_of
from noxu.api.errors import Qualified
from noxu.go.quantity import Quantity, compare, parse, sign, subtract
from noxu.go.time import unix_nanos
from noxu.registry.draft import Operation
from noxu.values import Json, Object

_ONE: Final = Quantity(1)
_ZERO: Final = Quantity(0)
IGNORED: Final = frozenset({Qualified("", "events"), Qualified("events.k8s.io", "events")})
"""Resources that no quota counts."""
_ALIASES: Final = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})
"""The resources of the core group whose plural is a name in quotas, too."""


class Evaluator(NamedTuple):
    """How the objects of a resource are counted.

    `counts`: whether it determines a name in a quota. `handles` (operation, subresource). `uses` (object, now) → what it
    uses. `is_in` (scope selector, object): whether the object is in the scope. `lacks` (names, object): why a quota with these names
    refuses the object, "" if it does not.
    """

    counts: Callable[[str], bool]
    handles: Callable[[Operation, str], bool]
    uses: Callable[[Object, float], Resources]
    is_in: Callable[[Object, Object], bool]
    lacks: Callable[[Iterable[str], Object], str]


def evaluator_of(resource: Qualified) -> Evaluator:
    """The evaluator of a resource."""
    return _OWN.get(resource) or _count_of(resource)


def evaluators(names: Iterable[str]) -> dict[Qualified, Evaluator]:
    """The resources that determine the names in a quota."""
    by_resource: dict[Qualified, Evaluator] = {}
    for name in sorted(names):
        kind, _, what = name.partition("/")
        by_resource |= {resource: evaluator for resource, evaluator in _OWN.items() if evaluator.counts(name)}
        if name in _ALIASES:
            by_resource[Qualified("", name)] = _count_of(Qualified("", name))
        elif kind == "count":
            plural, _, group = what.partition(".")
            by_resource[Qualified(group, plural)] = evaluator_of(Qualified(group, plural))
    return by_resource


def is_counted(quota: Object, evaluator: Evaluator, value: Object) -> bool:
    """Whether a quota limits something that the object uses."""
    return any(map(evaluator.counts, hard(quota))) and is_in_scopes(quota, evaluator, value)


def is_in_scopes(quota: Object, evaluator: Evaluator, value: Object) -> bool:
    spec = quota.get("spec") or {}
    selectors = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    selectors += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(evaluator.is_in(selector, value) for selector in selectors)


def hard(quota: Object) -> Resources:
    """The limits in the status."""
    return quantities((quota.get("status") or {}).get("hard"))


def used(quota: Object) -> Resources:
    """What the status says is used."""
    return quantities((quota.get("status") or {}).get("used"))


def printed(resources: Resources) -> dict[str, str]:
    """As in an object."""
    return {name: str(resources[name]) for name in sorted(resources)}


def difference(new: Resources, old: Resources) -> Resources:
    """What is used in addition; nothing is negative (SubtractWithNonNegativeResult)."""
    differences = {name: subtract(item, old[name]) if name in old else item for name, item in new.items()}
    return {name: item if sign(item) > 0 else _ZERO for name, item in differences.items()}


def equal(left: Resources, right: Resources) -> bool:
    return left.keys() == right.keys() and all(compare(left[name], right[name]) == 0 for name in left)


# -- objects of any kind ----------------------------------------------------------------------------------------------


def count_name(resource: Qualified) -> str:
    return f"count/{resource}"


def _count_of(resource: Qualified) -> Evaluator:
    names = {count_name(resource)} | ({resource.name} if not resource.group and resource.name in _ALIASES else set())
    return Evaluator(
        names.__contains__, _creations, lambda *_: dict.fromkeys(names, _ONE), _in_no_scope, _lacks_nothing
    )


def _creations(operation: Operation, subresource: str) -> bool:
    return operation == "CREATE" and not subresource


def _in_no_scope(selector: Object, value: Object) -> bool:  # noqa: ARG001
    return False


def _lacks_nothing(names: Iterable[str], value: Object) -> str:  # noqa: ARG001
    return ""


def _selects(selector: Object, values: Iterable[str]) -> bool:
    """Whether the operator of a scope selector accepts the values that an object has, of which there may be none."""
    present, wanted = {value for value in values if value}, set(selector.get("values") or ())
    match selector.get("operator"):
        case "In":
            return bool(present & wanted)
        case "NotIn":
            return not present or bool(present - wanted)
        case "DoesNotExist":
            return not present
    return bool(present)


# -- pods -------------------------------------------------------------------------------------------------------------

PODS: Final = Qualified("", "pods")
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_POD_NAMES: Final = frozenset(
    {count_name(PODS), "pods", *_COMPUTE} | {f"{which}.{name}" for which in ("requests", "limits") for name in _COMPUTE}
)
_REQUIRED: Final = frozenset(f"{which}{name}" for which in ("", "requests.", "limits.") for name in ("cpu", "memory"))
"""A quota with one of these names refuses pods whose containers do not state it."""
_HUGE: Final = "hugepages-"


def _counts_pods(name: str) -> bool:
    if name in _POD_NAMES or name.startswith((_HUGE, f"requests.{_HUGE}")):
        return True
    return name.startswith("requests.") and not _is_native(name)


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_extended(name: str) -> bool:
    return not _is_native(name) and not name.startswith("requests.")


def _computed(requests: Resources, limits: Resources) -> Resources:
    """The names in quotas for requests and limits (podComputeUsageHelper)."""
    computed = {"pods": _ONE}
    for name in _COMPUTE:
        if name in requests:
            computed[name] = computed[f"requests.{name}"] = requests[name]
        if name in limits:
            computed[f"limits.{name}"] = limits[name]
    for name, quantity in requests.items():
        if name.startswith(_HUGE):
            computed[name] = computed[f"requests.{name}"] = quantity
        elif _is_extended(name):
            computed[f"requests.{name}"] = quantity
    return computed


def _pod_uses(pod: Object, now: float) -> Resources:
    """A pod that has ended is only counted as an object."""
    uses = {count_name(PODS): _ONE}
    if has_ended(pod, now):
        return uses
    spec = pod.get("spec") or {}
    return uses | _computed(of_pod(spec, "requests", overhead=True), of_pod(spec, "limits", overhead=True))


def has_ended(pod: Object, now: float) -> bool:
    """Whether a pod uses no resources any more: it has finished, or should have been deleted by now."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return True
    metadata = pod["metadata"]
    deleted, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    return bool(deleted and grace is not None and now > unix_nanos(deleted) / 1e9 + grace)


def _pod_lacks(names: Iterable[str], pod: Object) -> str:
    spec = pod.get("spec") or {}
    required = _REQUIRED.intersection(names)
    if spec.get("resources"):
        required -= _computed(*(of_container(spec, which) for which in ("requests", "limits"))).keys()
    lacking: dict[str, set[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        computed = _computed(of_container(container, "requests"), of_container(container, "limits"))
        for name in required - computed.keys():
            lacking.setdefault(name, set()).add(container["name"])
    parts = (f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking))
    return f"must specify {'; '.join(parts)}" if lacking else ""


def _pod_is_in(selector: Object, pod: Object) -> bool:
    spec = pod.get("spec") or {}
    match selector.get("scopeName"):
        case "Terminating":
            return (spec.get("activeDeadlineSeconds") or 0) >= 0 and spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            return _selects(selector, [spec.get("priorityClassName") or ""])
        case "CrossNamespacePodAffinity":
            return _crosses_namespaces(spec.get("affinity") or {})
    return False


def _is_best_effort(pod: Object) -> bool:
    """Whether the quality of service is BestEffort: no container requests or limits cpu or memory."""
    spec = pod.get("spec") or {}
    holders = (spec, *(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    resources = (of_container(holder, which) for holder in holders for which in ("requests", "limits"))
    return not any(sign(amounts[name]) > 0 for amounts in resources for name in ("cpu", "memory") if name in amounts)


def _crosses_namespaces(affinity: Object) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        weighted = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [term.get("podAffinityTerm") or {} for term in weighted]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


# -- services ---------------------------------------------------------------------------------------------------------

SERVICES: Final = Qualified("", "services")
_SERVICE_NAMES: Final = frozenset({count_name(SERVICES), "services", "services.nodeports", "services.loadbalancers"})


def _service_uses(service: Object, _: float) -> Resources:
    spec = service.get("spec") or {}
    ports, balancers = 0, int(spec.get("type") == "LoadBalancer")
    if balancers and spec.get("allocateLoadBalancerNodePorts") is False:
        ports = sum(1 for port in spec.get("ports") or () if port.get("nodePort"))
    elif balancers or spec.get("type") == "NodePort":
        ports = len(spec.get("ports") or ())
    counts = {"services.nodeports": Quantity(ports), "services.loadbalancers": Quantity(balancers)}
    return {count_name(SERVICES): _ONE, "services": _ONE, **counts}


# -- claims -----------------------------------------------------------------------------------------------------------

CLAIMS: Final = Qualified("", "persistentvolumeclaims")
_CLAIM_NAMES: Final = ("persistentvolumeclaims", "requests.storage")
_OF_CLASS: Final = ".storageclass.storage.k8s.io/"


def _counts_claims(name: str) -> bool:
    return name in (count_name(CLAIMS), *_CLAIM_NAMES) or name.endswith(
        tuple(f"{_OF_CLASS}{item}" for item in _CLAIM_NAMES)
    )


def _claim_uses(claim: Object, _: float) -> Resources:
    uses = {count_name(CLAIMS): _ONE, "persistentvolumeclaims": _ONE}
    requested = _storage((claim.get("spec") or {}).get("resources"), "requests")
    allocated = _storage(claim.get("status"), "allocatedResources")
    if requested is not None:
        larger = allocated if allocated is not None and compare(allocated, requested) > 0 else requested
        uses["requests.storage"] = _whole(larger)
    name = class_of(claim)
    return uses | ({f"{name}{_OF_CLASS}{item}": uses[item] for item in _CLAIM_NAMES if item in uses} if name else {})


def _storage(value: Json, which: str) -> Quantity | None:
    text = ((value or {}).get(which) or {}).get("storage")
    return None if text is None else parse(str(text))


def _whole(quantity: Quantity) -> Quantity:
    """Rounded up to whole bytes."""
    if quantity.exponent >= 0:
        return quantity
    scale = 10**-quantity.exponent
    return Quantity(-(-quantity.digits // scale), 0, quantity.is_int64, quantity.format)


def _claim_is_in(selector: Object, claim: Object) -> bool:
    if selector.get("scopeName") != "VolumeAttributesClass":
        return False
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    names = (spec.get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), target)
    return _selects(selector, [name or "" for name in names])


_OWN: Final[dict[Qualified, Evaluator]] = {
    PODS: Evaluator(
        _counts_pods,
        lambda operation, subresource: (operation, subresource) in (("CREATE", ""), ("UPDATE", "resize")),
        _pod_uses,
        _pod_is_in,
        _pod_lacks,
    ),
    SERVICES: Evaluator(_SERVICE_NAMES.__contains__, lambda *_: True, _service_uses, _in_no_scope, _lacks_nothing),
    CLAIMS: Evaluator(
        _counts_claims, lambda _, subresource: subresource in ("", "status"), _claim_uses, _claim_is_in, _lacks_nothing
    ),
}


def total(quota: Object, of: Mapping[Qualified, tuple[Evaluator, Iterable[Object]]], now: float) -> Resources:
    """What objects use of a quota: those of each resource that determines a name in it. Raises ValueError."""
    limits = quantities((quota.get("spec") or {}).get("hard"))
    uses: Resources = {}
    for evaluator, values in of.values():
        uses = plus(uses, {name: _ZERO for name in limits if evaluator.counts(name)})
        for value in values:
            if is_in_scopes(quota, evaluator, value):
                uses = plus(uses, evaluator.uses(value, now))
    return {name: quantity for name, quantity in uses.items() if name in limits}
