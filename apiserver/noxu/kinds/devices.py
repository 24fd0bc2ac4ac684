"""resource.k8s.io/v1: DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceTaintRule.

The rules are the main ones of k8s.io/kubernetes pkg/apis/resource/validation: names, numbers, required and immutable
fields. CEL expressions are not compiled; counters, capacities and attributes of devices are not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import dns1123_subdomain, subdomain_name
from noxu.kinds import checks
from noxu.kinds.checks import Errors
from noxu.kinds.checks import csi_driver_name as driver_name
from noxu.kinds.kind import Context, Rules
from noxu.kinds.matching import repeats
from noxu.kinds.placement import node_selector
from noxu.values import Object, equal

_MAX_ITEMS: Final = 32
_MAX_SUBREQUESTS: Final = 8
_MAX_RESERVED: Final = 256
_MAX_DEVICES: Final = 128
_MAX_EXPRESSION: Final = 10 * 1024
_MAX_POOL: Final = 253
_MODES: Final = ["All", "ExactCount"]
_TAINT_EFFECTS: Final = ["None", "NoSchedule", "NoExecute"]
_NOT_A_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_ONE_KIND: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_PLACE: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
Check = Callable[[Object, Path], Errors]


def _limited(items: list[Object], limit: int, path: Path, check: Check, key: str = "") -> Errors:
    """The errors of items, and of their number; `key` is unique."""
    if len(items) > limit:
        yield field.too_many(path, len(items), limit)
    seen = set()
    for n, item in enumerate(items):
        yield from check(item, f"{path}[{n}]")
        if key and item.get(key) in seen:
            yield field.duplicate(f"{path}[{n}].{key}", item.get(key, ""))
        seen.add(item.get(key))


def _long_name(name: str, path: Path) -> Errors:
    if not name:
        yield field.required(path)
    else:
        yield from (field.invalid(path, name, text) for text in dns1123_subdomain(name))


def _selector(selector: Object, path: Path) -> Errors:
    cel = selector.get("cel")
    if cel is None:
        yield field.required(f"{path}.cel")
    elif len(cel.get("expression", "")) > _MAX_EXPRESSION:
        yield field.too_long(f"{path}.cel.expression", _MAX_EXPRESSION)


def _selectors(holder: Object, path: Path) -> Errors:
    return _limited(holder.get("selectors") or [], _MAX_ITEMS, f"{path}.selectors", _selector)


def _configuration(config: Object, path: Path) -> Errors:
    opaque = config.get("opaque")
    if opaque is None:
        yield field.required(f"{path}.opaque")
        return
    yield from driver_name(opaque.get("driver", ""), f"{path}.opaque.driver")
    parameters, where = opaque.get("parameters"), f"{path}.opaque.parameters"
    if parameters is None:
        yield field.required(where)
    elif not isinstance(parameters, dict):
        yield field.invalid(where, "<value omitted>", "parameters must be a valid JSON object")


# -- DeviceClass ------------------------------------------------------------------------------------------------------


def _validate_class(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec: Object = new.get("spec") or {}
    errors = list(_selectors(spec, "spec"))
    return errors + list(_limited(spec.get("config") or [], _MAX_ITEMS, "spec.config", _configuration))


# -- claims -----------------------------------------------------------------------------------------------------------


def _validate_claim(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if context.subresource:
        return list(_claim_status(new.get("status") or {}, (old or {}).get("status") or {}, new["metadata"]))
    spec: Object = new.get("spec") or {}
    errors = [] if old is None else list(checks.immutable(spec, old.get("spec") or {}, "spec", _CLAIM_SPEC))
    return errors + list(_claim(spec.get("devices") or {}, "spec.devices"))


def _validate_template(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec: Object = new.get("spec") or {}
    errors = [] if old is None else list(checks.immutable(spec, old.get("spec") or {}, "spec", _TEMPLATE_SPEC))
    errors += checks.labels((spec.get("metadata") or {}).get("labels"), "spec.metadata.labels")
    return errors + list(_claim((spec.get("spec") or {}).get("devices") or {}, "spec.spec.devices"))


_CLAIM_SPEC: Final = "resource/v1.ResourceClaimSpec"
_TEMPLATE_SPEC: Final = "resource/v1.ResourceClaimTemplateSpec"


def _claim(devices: Object, path: Path) -> Errors:
    requests: list[Object] = devices.get("requests") or []
    names = {request.get("name", "") for request in requests}
    for request in requests:
        names |= {f"{request.get('name', '')}/{sub.get('name', '')}" for sub in request.get("firstAvailable") or ()}

    def references(holder: Object, path: Path) -> Errors:
        named: list[str] = holder.get("requests") or []
        if len(named) > _MAX_ITEMS:
            yield field.too_many(f"{path}.requests", len(named), _MAX_ITEMS)
        again = repeats(named)
        for n, name in enumerate(named):
            if name not in names:
                yield field.invalid(f"{path}.requests[{n}]", name, _NOT_A_REQUEST)
            if n in again:
                yield field.duplicate(f"{path}.requests[{n}]", name)

    def constraint(item: Object, path: Path) -> Errors:
        yield from references(item, path)
        if item.get("matchAttribute") is None and item.get("distinctAttribute") is None:
            yield field.required(f"{path}.matchAttribute")

    def configuration(item: Object, path: Path) -> Errors:
        yield from references(item, path)
        yield from _configuration(item, path)

    yield from _limited(requests, _MAX_ITEMS, f"{path}.requests", _request, "name")
    yield from _limited(devices.get("constraints") or [], _MAX_ITEMS, f"{path}.constraints", constraint)
    yield from _limited(devices.get("config") or [], _MAX_ITEMS, f"{path}.config", configuration)


def _request(request: Object, path: Path) -> Errors:
    yield from checks.label(request.get("name", ""), f"{path}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not alternatives:
        yield field.required(path, _ONE_KIND)
    elif exactly is not None and alternatives:
        yield field.invalid(path, None, f"{_ONE_KIND}, but multiple fields are set")
    elif exactly is not None:
        yield from _exact(exactly, f"{path}.exactly")
    else:
        yield from _limited(alternatives, _MAX_SUBREQUESTS, f"{path}.firstAvailable", _subrequest, "name")


def _subrequest(request: Object, path: Path) -> Errors:
    yield from checks.label(request.get("name", ""), f"{path}.name")
    yield from _exact(request, path)


def _exact(request: Object, path: Path) -> Errors:
    yield from _long_name(request.get("deviceClassName", ""), f"{path}.deviceClassName")
    yield from _selectors(request, path)
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "All":
        if count:
            yield field.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount":
        if count <= 0:
            yield field.invalid(f"{path}.count", count, "must be greater than zero")
    else:
        yield field.not_supported(f"{path}.allocationMode", as_json(mode), _MODES)


def _claim_status(status: Object, before: Object, metadata: Object) -> Errors:
    reserved: list[Object] = status.get("reservedFor") or []
    path = "status.reservedFor"
    yield from _limited(reserved, _MAX_RESERVED, path, _consumer, "uid")
    if reserved and status.get("allocation") is None:
        yield field.forbidden(path, "may not be specified when `allocated` is not set")
    elif metadata.get("deletionTimestamp") and any(
        consumer not in (before.get("reservedFor") or []) for consumer in reserved
    ):
        rule = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield field.forbidden(path, rule)
    allocations = status.get("allocation"), before.get("allocation")
    if all(allocation is not None for allocation in allocations) and not equal(*allocations):
        shown = checks.struct_json("resource/v1.AllocationResult", allocations[0])
        yield field.invalid("status.allocation", shown, checks.IMMUTABLE)


def _consumer(reference: Object, path: Path) -> Errors:
    return (field.required(f"{path}.{name}") for name in ("resource", "name", "uid") if not reference.get(name))


# -- ResourceSlice ----------------------------------------------------------------------------------------------------


def _validate_slice(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec: Object = new.get("spec") or {}
    errors = list(_slice(spec))
    if old is not None:
        before: Object = old.get("spec") or {}
        pool, pool_before = ((value.get("pool") or {}).get("name", "") for value in (spec, before))
        errors += checks.immutable(pool, pool_before, "spec.pool.name")
        errors += checks.immutable(spec.get("driver", ""), before.get("driver", ""), "spec.driver")
        errors += checks.immutable(spec.get("nodeName"), before.get("nodeName"), "spec.nodeName")
    return errors


def _slice(spec: Object) -> Errors:
    yield from driver_name(spec.get("driver", ""), "spec.driver")
    pool: Object = spec.get("pool") or {}
    yield from _pool_name(pool.get("name", ""), "spec.pool.name")
    if pool.get("resourceSliceCount", 0) <= 0:
        count = pool.get("resourceSliceCount", 0)
        yield field.invalid("spec.pool.resourceSliceCount", count, "must be greater than zero")
    if pool.get("generation", 0) < 0:
        yield field.invalid("spec.pool.generation", pool["generation"], "must be greater than or equal to zero")
    places = [name for name in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection") if spec.get(name)]
    if spec.get("nodeName"):
        yield from checks.named(spec["nodeName"], subdomain_name, "spec.nodeName")
    if spec.get("nodeSelector") is not None:
        terms = spec["nodeSelector"].get("nodeSelectorTerms") or []
        yield from node_selector(spec["nodeSelector"], "spec.nodeSelector")
        if len(terms) != 1:
            path = "spec.nodeSelector.nodeSelectorTerms"
            yield field.invalid(path, terms, "must have exactly one node selector term")
    if not places:
        yield field.required("spec", _ONE_PLACE)
    elif len(places) > 1:
        shown = ", ".join(f"`{name}`" for name in places)
        yield field.invalid("spec", f"{{{shown}}}", f"{_ONE_PLACE}, but multiple fields are set")
    yield from _limited(spec.get("devices") or [], _MAX_DEVICES, "spec.devices", _device, "name")


def _pool_name(name: str, path: Path) -> Errors:
    if not name:
        yield field.required(path)
        return
    if len(name) > _MAX_POOL:
        yield field.too_long(path, _MAX_POOL)
    for part in name.split("/"):
        yield from (field.invalid(path, part, text) for text in dns1123_subdomain(part))


def _device(device: Object, path: Path) -> Errors:
    yield from checks.label(device.get("name", ""), f"{path}.name")
    yield from checks.each(device.get("taints"), f"{path}.taints", _taint)


def _taint(taint: Object, path: Path) -> Errors:
    yield from checks.qualified(taint.get("key", ""), f"{path}.key")
    effect = taint.get("effect", "")
    if not effect:
        yield field.required(f"{path}.effect")
    elif effect not in _TAINT_EFFECTS:
        yield field.not_supported(f"{path}.effect", as_json(effect), sorted(_TAINT_EFFECTS))


# -- DeviceTaintRule --------------------------------------------------------------------------------------------------


def _validate_taint_rule(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    if context.subresource:
        return list(checks.errors((new.get("status") or {}).get("conditions"), "status.conditions"))
    return list(_taint_rule(new.get("spec") or {}))


def _taint_rule(spec: Object) -> Errors:
    selector: Object = spec.get("deviceSelector") or {}
    if selector.get("driver") is not None:
        yield from driver_name(selector["driver"], "spec.deviceSelector.driver")
    if selector.get("pool") is not None:
        yield from _pool_name(selector["pool"], "spec.deviceSelector.pool")
    if selector.get("device") is not None:
        yield from checks.label(selector["device"], "spec.deviceSelector.device")
    yield from _taint(spec.get("taint") or {}, "spec.taint")


def _complete_taints(new: Object, old: Object | None, context: Context) -> None:  # noqa: ARG001
    """A taint has the time at which it was added (the defaults of resource.k8s.io)."""
    spec: Object = new.get("spec") or {}
    taints = [
        spec.get("taint"),
        *(taint for device in spec.get("devices") or () for taint in device.get("taints") or ()),
    ]
    for taint in taints:
        if taint is not None and not taint.get("timeAdded"):
            taint["timeAdded"] = context.now


RULES: Final = {
    "DeviceClass": Rules(validate=_validate_class),
    "ResourceClaim": Rules(validate=_validate_claim),
    "ResourceClaimTemplate": Rules(validate=_validate_template),
    "ResourceSlice": Rules(complete=_complete_taints, validate=_validate_slice),
    "DeviceTaintRule": Rules(complete=_complete_taints, validate=_validate_taint_rule),
}
