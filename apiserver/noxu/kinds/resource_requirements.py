"""Requests and limits: names of resources, quantities, the quality of service of a pod; the specs of volume claims.

The rules are those of k8s.io/kubernetes: validateResourceRequirements and ValidatePersistentVolumeClaimSpec in
pkg/apis/core/validation, the names in pkg/apis/core/helper, and pkg/apis/core/helper/qos. Upstream walks maps in any
order; here names are sorted. Templates in pods and StatefulSets have the spec of a PersistentVolumeClaim, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import Final

from noxu.api import field
from noxu.api.field import Path, Verbatim, as_json
from noxu.api.names import dns1123_subdomain, label_name, qualified_name, subdomain_name
from noxu.go import quantity
from noxu.go.quantity import Quantity
from noxu.kinds import checks
from noxu.kinds.checks import Errors, label_selector_errors
from noxu.values import Object

CPU: Final = "cpu"
MEMORY: Final = "memory"
HUGE_PAGES: Final = "hugepages-"
_REQUESTS: Final = "requests."
_CONTAINER: Final = frozenset({CPU, MEMORY, "ephemeral-storage"})
_INTEGER: Final = frozenset(
    {"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
     "services.nodeports", "services.loadbalancers"}
)  # fmt: skip
_STANDARD: Final = (
    _INTEGER
    | _CONTAINER
    | {f"{verb}.{name}" for verb in ("requests", "limits") for name in _CONTAINER}
    | {"storage", "requests.storage"}
)

parse: Final = lru_cache(maxsize=1024)(quantity.parse)
"""A quantity that was decoded, and is valid."""
_ZERO: Final = Quantity(0)

NameCheck = Callable[[str, Path], Errors]


def compare(left: str, right: str) -> int:
    return 0 if left == right else quantity.compare(parse(left), parse(right))


def is_integer(text: str) -> bool:
    amount = parse(text)
    return amount.exponent >= 0 or amount.digits % 10**-amount.exponent == 0


def is_native(name: str) -> bool:
    """Whether a resource is in the namespace kubernetes.io, where names without a prefix are."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    return not is_native(name) and not name.startswith(_REQUESTS) and not qualified_name(_REQUESTS + name)


def may_overcommit(name: str) -> bool:
    return is_native(name) and not name.startswith(HUGE_PAGES)


def standard_name(name: str, path: Path) -> Errors:
    """A standard name, or one with a prefix (validateResourceName)."""
    texts = qualified_name(name)
    yield from (field.invalid(path, as_json(name), text) for text in texts)
    is_known = name in _STANDARD or name.startswith((HUGE_PAGES, _REQUESTS + HUGE_PAGES))
    if not texts and "/" not in name and not is_known:
        yield field.invalid(path, as_json(name), "must be a standard resource type or fully qualified")


def container_name(name: str, path: Path) -> Errors:
    """The name of a resource that containers can have (validateContainerResourceName)."""
    if name in _CONTAINER:
        return
    yield from standard_name(name, path)
    if "/" not in name:
        if not name.startswith(HUGE_PAGES):
            yield field.invalid(path, as_json(name), "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield field.invalid(path, as_json(name), "doesn't follow extended resource name standard")


def _pod_name(name: str, path: Path) -> Errors:
    """The name of a resource that pods can have as a whole."""
    errors = list(standard_name(name, path))
    yield from errors
    if not errors and name not in (CPU, MEMORY) and not name.startswith(HUGE_PAGES):
        yield field.not_supported(path, as_json(name), [CPU, HUGE_PAGES, MEMORY])


def quantity_value(name: str, text: str, path: Path) -> Errors:
    """A quantity is not negative, and an integer if the resource is counted (ValidateResourceQuantityValue)."""
    if parse(text).digits < 0:
        yield field.invalid(path, text, checks.NEGATIVE)
    if (name in _INTEGER or is_extended(name)) and not is_integer(text):
        yield field.invalid(path, text, "must be an integer")


def _amount(name: str, text: str, path: Path, name_check: NameCheck) -> Errors:
    yield from name_check(name, path)
    yield from quantity_value(name, text, path)
    if name.startswith(HUGE_PAGES) and not _is_multiple(text, name.removeprefix(HUGE_PAGES)):
        yield field.invalid(path, text, f"{text} is not positive integer multiple of {name}")


def _is_multiple(text: str, page: str) -> bool:
    try:
        size = quantity.as_int64(parse(page))
    except ValueError:
        return False
    amount = parse(text)
    whole = amount.digits * 10**amount.exponent if 0 <= amount.exponent <= 18 else 0
    return bool(size) and size is not None and size > 0 and is_integer(text) and whole % size == 0


def requirements(
    resources: Object, claims: Collection[str], path: Path, *, name_check: NameCheck = container_name
) -> Errors:
    """Limits, requests and claims. `claims` are the names of the claims of the pod."""
    limits: dict[str, str] = resources.get("limits") or {}
    requests: dict[str, str] = resources.get("requests") or {}
    for name in sorted(limits):
        yield from _amount(name, limits[name], f"{path}.limits[{name}]", name_check)
    for name in sorted(requests):
        yield from _amount(name, requests[name], f"{path}.requests[{name}]", name_check)
        yield from _within_limit(name, requests[name], limits.get(name), path)
    names = limits.keys() | requests.keys()
    if not names & {CPU, MEMORY} and any(name.startswith(HUGE_PAGES) for name in names):
        yield field.forbidden(path, "HugePages require cpu or memory")
    if resources.get("claims"):
        yield from _claims(resources["claims"], claims, f"{path}.claims")


def _within_limit(name: str, request: str, limit: str | None, path: Path) -> Errors:
    if limit is None:
        if not may_overcommit(name):
            yield field.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    order = compare(request, limit)
    if order and not may_overcommit(name):
        yield field.invalid(f"{path}.requests", request, f"must be equal to {name} limit of {limit}")
    elif order > 0:
        yield field.invalid(f"{path}.requests", request, f"must be less than or equal to {name} limit of {limit}")


def _claims(claims: list[Object], declared: Collection[str], path: Path) -> Errors:
    """Each names a claim of the pod, and perhaps one of its requests; nothing is named twice."""
    seen: set[str] = set()
    requested: dict[str, int] = {}
    for n, claim in enumerate(claims):
        where, name, request = f"{path}[{n}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            yield field.required(where)
        elif name in seen:
            yield field.duplicate(where, name)
        else:
            if request:
                yield from checks.label(request, f"{where}.request")
            full = f"{name}/{request}" if request else name
            if full in seen:
                yield field.duplicate(where, full)
            elif not request:
                yield from (field.duplicate(where, name) for _ in range(requested.get(name, 0)))
            else:
                requested[name] = requested.get(name, 0) + 1
            seen.add(full)
        if name not in declared:
            suffix = f": {', '.join(sorted(declared))}" if declared else " which is empty"
            yield field.not_found(where, name, f"must be one of the names in pod.spec.resourceClaims{suffix}")


# -- pods as a whole --------------------------------------------------------------------------------------------------


def pod_requirements(spec: Object, claims: Collection[str], path: Path) -> Errors:
    """The errors of a pod's resources: they cover the sum of its containers' requests, and each container's limits."""
    resources = spec["resources"]
    if resources.get("claims"):
        yield field.forbidden(f"{path}.claims", "claims cannot be set for Resources at pod-level")
    yield from requirements(resources, claims, path, name_check=_pod_name)
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, total in sorted(_requested(spec).items()):
        request = requests.get(name, "0")
        if quantity.compare(total, parse(request)) > 0:
            rule = f"must be greater than or equal to aggregate container requests of {total}"
            yield field.invalid(f"{path}.requests[{name}]", request, rule)
    for n, container in enumerate(spec.get("containers") or ()):
        for name, limit in sorted((container["resources"].get("limits") or {}).items()):
            if name in limits and compare(limit, limits[name]) > 0:
                rule = f"must be less than or equal to pod limits of {limits[name]}"
                yield field.invalid(f"{path}.containers[{n}][{name}].limits", limit, rule)


def is_sidecar(container: Object) -> bool:
    """Whether an init container keeps running beside those that follow."""
    return bool(container.get("restartPolicy") == "Always")


def _requested(spec: Object) -> dict[str, Quantity]:
    """The requests of a pod's containers together; init containers run one by one, beside earlier sidecars."""
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(total, container["resources"].get("requests"))
    beside: dict[str, Quantity] = {}
    largest: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        requests = container["resources"].get("requests")
        if is_sidecar(container):
            _add(total, requests)
            _add(beside, requests)
            _raise(largest, beside)
        else:
            now = dict(beside)
            _add(now, requests)
            _raise(largest, now)
    _raise(total, largest)
    return total


def _add(total: dict[str, Quantity], more: dict[str, str] | None) -> None:
    for name, text in (more or {}).items():
        total[name] = quantity.add(total.get(name, _ZERO), parse(text))


def _raise(total: dict[str, Quantity], least: dict[str, Quantity]) -> None:
    for name, amount in least.items():
        if name not in total or quantity.compare(amount, total[name]) > 0:
            total[name] = amount


def quality_of_service(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort (qos.ComputePodQOS)."""
    pod: Object = spec.get("resources") or {}
    holders: Iterable[Object] = [pod] if pod else _resources(spec)
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    is_guaranteed = True
    for holder in holders:
        _add(requests, _computing(holder.get("requests")))
        computing = _computing(holder.get("limits"))
        _add(limits, computing)
        if len(computing) < 2 and (computing or not pod):
            is_guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    is_guaranteed = is_guaranteed and requests.keys() == limits.keys()
    if is_guaranteed and all(quantity.compare(amount, limits[name]) == 0 for name, amount in requests.items()):
        return "Guaranteed"
    return "Burstable"


def _resources(spec: Object) -> Iterator[Object]:
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            yield container["resources"]


def _computing(amounts: dict[str, str] | None) -> dict[str, str]:
    """Those of CPU and memory that are not zero."""
    if not amounts:
        return {}
    return {name: amounts[name] for name in (CPU, MEMORY) if name in amounts and parse(amounts[name]).digits > 0}


def fractional(amounts: dict[str, str] | None, path: Path) -> Iterator[str]:
    """Warnings about bytes that are no integer."""
    for name in (MEMORY, "ephemeral-storage"):
        text = (amounts or {}).get(name)
        if text is not None and not is_integer(text):
            yield f'{path}[{name}]: fractional byte value "{text}" is invalid, must be an integer'


# -- claims -----------------------------------------------------------------------------------------------------------


def access_modes(modes: list[str], path: Path) -> Errors:
    valid_modes = checks.choices("core/v1.PersistentVolumeAccessMode")
    for mode in modes:
        if mode not in valid_modes:
            yield field.not_supported(path, as_json(mode), valid_modes)
    if "ReadWriteOncePod" in modes and any(mode in valid_modes and mode != "ReadWriteOncePod" for mode in modes):
        yield field.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def positive(text: str, path: Path) -> Errors:
    if quantity.parse(text).digits <= 0:
        yield field.invalid(path, text, checks.NOT_POSITIVE)


def class_name(name: str, path: Path) -> Errors:
    return checks.named(name, subdomain_name, path)


def claim_spec(spec: Object, path: Path, old: Object | None = None) -> Errors:
    """The spec of a claim, or of a template for claims (ValidatePersistentVolumeClaimSpec)."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield field.required(f"{path}.accessModes", "at least 1 access mode is required")
    if spec.get("selector") is not None:
        before = (old or {}).get("selector")
        any_value = before is not None and bool(label_selector_errors(before, path))
        yield from label_selector_errors(spec["selector"], f"{path}.selector", any_value=any_value)
    yield from access_modes(modes, f"{path}.accessModes")
    amount = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if amount is None:
        yield field.required(f"{path}.resources[storage]")
    else:
        yield from positive(amount, f"{path}.resources[storage]")
    if spec.get("storageClassName"):
        yield from class_name(spec["storageClassName"], f"{path}.storageClassName")
    yield from checks.choice(spec.get("volumeMode"), "core/v1.PersistentVolumeMode", f"{path}.volumeMode")
    yield from _data_sources(spec, old or {}, path)
    if spec.get("volumeAttributesClassName"):
        yield from class_name(spec["volumeAttributesClassName"], f"{path}.volumeAttributesClassName")


def _data_sources(spec: Object, old: Object, path: Path) -> Errors:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    any_group = any((old.get(name) or {}).get("apiGroup") is not None for name in ("dataSource", "dataSourceRef"))
    for name, data_source in (("dataSource", source), ("dataSourceRef", reference)):
        if data_source is not None:
            yield from _data_source(data_source, f"{path}.{name}", any_group=any_group)
    namespace = (reference or {}).get("namespace")
    if namespace:
        yield from checks.named(namespace, label_name, f"{path}.dataSourceRef.namespace")
    if source is None or reference is None:
        return
    shown = Verbatim(f"{path}.dataSource")  # upstream prints a path, without quotes
    if namespace:
        yield field.invalid(path, shown, "may not be specified when dataSourceRef.namespace is specified")
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        yield field.invalid(path, shown, "must match dataSourceRef")


def _data_source(reference: Object, path: Path, *, any_group: bool) -> Errors:
    for name in ("name", "kind"):
        if not reference.get(name):
            yield field.required(f"{path}.{name}")
    group, kind = reference.get("apiGroup") or "", reference.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        yield field.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    if group and not any_group:
        yield from (field.invalid(f"{path}.apiGroup", group, text) for text in dns1123_subdomain(group))
