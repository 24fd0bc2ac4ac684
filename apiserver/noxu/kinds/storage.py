"""storage.k8s.io/v1: StorageClass, VolumeAttributesClass, VolumeAttachment, CSIDriver, CSINode, CSIStorageCapacity.

The rules are those of k8s.io/kubernetes pkg/apis/storage/validation.

storagemigration.k8s.io/v1: StorageVersionMigration, which a controller runs (controllers.storage_migrations).

The rules are those of k8s.io/kubernetes pkg/apis/storagemigration/validation.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import subdomain_name
from noxu.go import quantity
from noxu.go.text import quote
from noxu.kinds import checks
from noxu.kinds.checks import Errors, label_selector_errors
from noxu.kinds.kind import Context, Rules
from noxu.kinds.matching import repeats
from noxu.values import MAX_INT64, Object, equal

_MAX_PARAMETERS: Final = 512
_MAX_SIZE: Final = 256 * 1024
_MAX_ERROR: Final = 1024
_MAX_NODE_ID: Final = 256
_RECLAIM_POLICIES: Final = ["Delete", "Retain"]
_LIFECYCLE_MODES: Final = ["Persistent", "Ephemeral"]
_MIN_TOKEN_SECONDS: Final = 600
_MIN_UPDATE_PERIOD: Final = 10
_ONE_SOURCE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def _size(values: dict[str, str]) -> int:
    return sum(len(part.encode("utf-8", "replace")) for item in values.items() for part in item)


# -- classes ----------------------------------------------------------------------------------------------------------


def _validate_class(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return list(_class(new) if old is None else _class_update(new, old))


def _class(new: Object) -> Errors:
    provisioner = new.get("provisioner", "")
    if not provisioner:
        yield field.required("provisioner")
    else:
        yield from checks.qualified(provisioner.lower(), "provisioner")
    yield from _parameters(new.get("parameters") or {})
    policy = new.get("reclaimPolicy")
    if policy and policy not in _RECLAIM_POLICIES:
        yield field.not_supported("reclaimPolicy", as_json(policy), _RECLAIM_POLICIES)
    mode = new.get("volumeBindingMode")
    if mode is None:
        yield field.required("volumeBindingMode")
    yield from checks.choice(mode, "storage/v1.VolumeBindingMode", "volumeBindingMode")
    yield from _topologies(new.get("allowedTopologies") or [])


def _parameters(parameters: dict[str, str]) -> Errors:
    if len(parameters) > _MAX_PARAMETERS:
        yield field.too_long("parameters", _MAX_PARAMETERS)
        return
    if "" in parameters:
        yield field.invalid("parameters", "", "field can not be empty.")
    if _size(parameters) > _MAX_SIZE:
        yield field.too_long("parameters", _MAX_SIZE)


def _topologies(terms: list[Object]) -> Errors:
    seen: set[frozenset[tuple[str, frozenset[str]]]] = set()
    for n, term in enumerate(terms):
        path = f"allowedTopologies[{n}]"
        requirements: dict[str, frozenset[str]] = {}
        for m, requirement in enumerate(term.get("matchLabelExpressions") or ()):
            where, name = f"{path}.matchLabelExpressions[{m}]", requirement.get("key", "")
            values: list[str] = requirement.get("values") or []
            yield from checks.qualified(name, f"{where}.key")
            if not values:
                yield field.required(f"{where}.values")
            for k in sorted(repeats(values)):
                yield field.duplicate(f"{where}.values[{k}]", values[k])
            if name in requirements:
                yield field.duplicate(f"{where}.key", name)
            requirements[name] = frozenset(values)
        whole = frozenset(requirements.items())
        if whole in seen:
            yield field.duplicate(f"{path}.matchLabelExpressions", "")
        seen.add(whole)


def _class_update(new: Object, old: Object) -> Errors:
    if not equal(new.get("parameters") or {}, old.get("parameters") or {}):
        yield field.forbidden("parameters", "updates to parameters are forbidden.")
    for name in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
        yield from checks.immutable(new.get(name), old.get(name), name)


def _validate_attributes_class(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    if old is None:
        errors = [] if new.get("driverName") else [field.required("driverName")]
        if new.get("driverName"):
            errors += checks.qualified(new["driverName"].lower(), "driverName")
        parameters: dict[str, str] = new.get("parameters") or {}
        if not parameters:
            errors.append(field.required("parameters", "must contain at least one key/value pair"))
        return errors + list(_parameters(parameters))
    errors = []
    if new.get("driverName", "") != old.get("driverName", ""):
        errors.append(field.forbidden("driverName", "updates to driverName are forbidden."))
    if not equal(new.get("parameters") or {}, old.get("parameters") or {}):
        errors.append(field.forbidden("parameters", "updates to parameters are forbidden."))
    return errors


# -- VolumeAttachment -------------------------------------------------------------------------------------------------


def _validate_attachment(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec: Object = new.get("spec") or {}
    errors = list(_attachment(spec, new.get("status") or {}))
    if old is not None:
        errors += checks.immutable(spec, old.get("spec") or {}, "spec", "storage/v1.VolumeAttachmentSpec")
    return errors


def _attachment(spec: Object, status: Object) -> Errors:
    yield from checks.csi_driver_name(spec.get("attacher", ""), "spec.attacher")
    source: Object = spec.get("source") or {}
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if name is None and inline is None:
        yield field.required("spec.source", _ONE_SOURCE)
    elif name is not None and inline is not None:
        yield field.forbidden("spec.source", _ONE_SOURCE)
    elif name is not None and not name:
        yield field.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")
    elif name:
        yield from checks.named(name, subdomain_name, "spec.source.persistentVolumeName")
    yield from checks.named(spec.get("nodeName", ""), subdomain_name, "spec.nodeName")
    if _size(status.get("attachmentMetadata") or {}) > _MAX_SIZE:
        yield field.too_long("status.attachmentMetadata", _MAX_SIZE)
    for kind in ("attachError", "detachError"):
        message = (status.get(kind) or {}).get("message", "")
        if len(message.encode("utf-8", "replace")) > _MAX_ERROR:
            yield field.too_long(f"status.{kind}.message", _MAX_SIZE)  # upstream names the other limit


# -- CSI --------------------------------------------------------------------------------------------------------------


def _validate_driver(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec: Object = new.get("spec") or {}
    errors = list(_driver(spec, "spec"))
    if old is not None:
        before: Object = old.get("spec") or {}
        for name in ("attachRequired", "fsGroupPolicy", "podInfoOnMount", "volumeLifecycleModes"):
            shown = "attachedRequired" if name == "attachRequired" else name
            errors += checks.immutable(spec.get(name), before.get(name), f"spec.{shown}")
    return errors


def _driver(spec: Object, path: Path) -> Errors:
    required = (("attachRequired", "attachedRequired"), ("podInfoOnMount",) * 2, ("storageCapacity",) * 2)
    for name, shown in required:
        if spec.get(name) is None:
            yield field.required(f"{path}.{shown}")
    yield from checks.choice(spec.get("fsGroupPolicy"), "storage/v1.FSGroupPolicy", f"{path}.fsGroupPolicy")
    yield from _token_requests(spec.get("tokenRequests") or [], f"{path}.tokenRequests")
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in _LIFECYCLE_MODES:
            yield field.not_supported(f"{path}.volumeLifecycleModes", as_json(mode), _LIFECYCLE_MODES)
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _MIN_UPDATE_PERIOD:
        rule = f"must be greater than or equal to {_MIN_UPDATE_PERIOD} seconds"
        yield field.invalid(f"{path}.nodeAllocatableUpdatePeriodSeconds", period, rule)


def _token_requests(requests: list[Object], path: Path) -> Errors:
    seen = set()
    for n, request in enumerate(requests):
        audience, seconds = request.get("audience", ""), request.get("expirationSeconds")
        if audience in seen:
            yield field.duplicate(f"{path}[{n}].audience", audience)
            continue
        seen.add(audience)
        where = f"{path}[{n}].expirationSeconds"
        if seconds is not None and seconds < _MIN_TOKEN_SECONDS:
            yield field.invalid(where, seconds, "may not specify a duration less than 10 minutes")
        if seconds is not None and seconds > 1 << 32:
            yield field.invalid(where, seconds, "may not specify a duration larger than 2^32 seconds")


def _validate_node(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    drivers: list[Object] = (new.get("spec") or {}).get("drivers") or []
    errors = list(_node_drivers(drivers))
    before = {driver.get("name"): driver for driver in ((old or {}).get("spec") or {}).get("drivers") or ()}
    for driver in drivers:
        if driver.get("name") in before:
            errors += checks.immutable(driver, before[driver["name"]], "CSINodeDriver", "storage/v1.CSINodeDriver")
    return errors


def _node_drivers(drivers: list[Object]) -> Errors:
    seen = set()
    for n, driver in enumerate(drivers):
        path, name, node = f"spec.drivers[{n}]", driver.get("name", ""), driver.get("nodeID", "")
        yield from checks.csi_driver_name(name, f"{path}.name")
        if not node:
            yield field.required(f"{path}.nodeID")
        if len(node) > _MAX_NODE_ID:
            yield field.invalid(f"{path}.nodeID", node, f"must be {_MAX_NODE_ID} characters or less")
        yield from checks.nonnegative((driver.get("allocatable") or {}).get("count"), f"{path}.allocatable.count")
        if name in seen:
            yield field.duplicate(f"{path}.name", name)
        seen.add(name)
        keys: list[str] = driver.get("topologyKeys") or []
        again = repeats(keys)
        for m, key in enumerate(keys):
            if not key:
                yield field.required(path)
            if m in again:
                yield field.duplicate(path, key)
            yield from checks.qualified(key, path)


def _validate_capacity(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    if old is not None:
        topologies = new.get("nodeTopology"), old.get("nodeTopology")
        errors = list(checks.immutable(*topologies, "nodeTopology", "meta/v1.LabelSelector"))
        names = new.get("storageClassName", ""), old.get("storageClassName", "")
        return errors + list(checks.immutable(*names, "storageClassName"))
    errors = label_selector_errors(new.get("nodeTopology") or {}, "nodeTopology")
    errors += checks.named(new.get("storageClassName", ""), subdomain_name, "storageClassName")
    amount = new.get("capacity")
    if amount is not None and quantity.parse(amount).digits < 0:
        errors.append(field.invalid("capacity", amount, checks.NEGATIVE))
    return errors


RULES: Final = {
    "StorageClass": Rules(validate=_validate_class),
    "VolumeAttributesClass": Rules(validate=_validate_attributes_class),
    "VolumeAttachment": Rules(validate=_validate_attachment),
    "CSIDriver": Rules(validate=_validate_driver),
    "CSINode": Rules(validate=_validate_node),
    "CSIStorageCapacity": Rules(validate=_validate_capacity),
}


# -- storagemigration -------------------------------------------------------------------------------------------------


_FINAL: Final = (("Succeeded", "success", "Success"), ("Failed", "failed", "Failed"))


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if context.subresource:
        return list(_status(new.get("status") or {}, (old or {}).get("status") or {}))
    resource: Object = (new.get("spec") or {}).get("resource") or {}
    errors = [] if resource.get("resource") else [field.required("spec.resource.resource", "resource is required")]
    if old is not None:
        before: Object = (old.get("spec") or {}).get("resource") or {}
        for name in ("group", "resource"):
            errors += checks.immutable(resource.get(name, ""), before.get(name, ""), name)
    return errors


def _status(status: Object, before: Object) -> Errors:
    path, version = "status.resourceVersion", status.get("resourceVersion", "")
    if version and (not version.isdecimal() or len(version) > 19 or int(version) > MAX_INT64):
        why = f"failed to parse resource version {quote(version)}: strconv.ParseInt: parsing {quote(version)}: invalid syntax"
        yield field.invalid(path, version, why)
    conditions: list[Object] | None = status.get("conditions") or None
    yield from checks.errors(conditions, "status.conditions")
    if before.get("resourceVersion") and before["resourceVersion"] != version:
        yield field.invalid(path, version, "cannot be updated")
    path = "status.conditions"
    true, were_true = _true(conditions or []), _true(before.get("conditions") or [])
    if {"Succeeded", "Failed"} <= true:
        rule = "Both success and failed conditions cannot be true at the same time"
        yield field.invalid(path, conditions, rule)
    for kind, word, _ in _FINAL:
        if {kind, "Running"} <= true:
            yield field.invalid(path, conditions, f"Running condition cannot be true when {word} condition is true")
    for kind, _, word in _FINAL:
        if kind in were_true and kind not in true:
            yield field.invalid(path, conditions, f"{word} condition cannot be set to false once it is true")


def _true(conditions: list[Object]) -> set[str]:
    return {condition.get("type", "") for condition in conditions if condition.get("status") == "True"}


MIGRATION_RULES: Final = {"StorageVersionMigration": Rules(validate=_validate)}
