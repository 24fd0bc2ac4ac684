"""core/v1: PersistentVolume and PersistentVolumeClaim.

The rules are those of k8s.io/kubernetes: ValidatePersistentVolume, ValidatePersistentVolumeClaim and their updates in
pkg/apis/core/validation. The differences that upstream prints below some errors are left out.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.go import quantity
from noxu.kinds import checks
from noxu.kinds.checks import Errors
from noxu.kinds.kind import Context, Rules
from noxu.kinds.placement import node_selector
from noxu.kinds.resource_requirements import access_modes, claim_spec, class_name, compare, positive
from noxu.values import Json, Object, copy, equal

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_BOTH_TYPES: Final = "may not specify more than 1 volume type"
_RESIZE_STATUSES: Final = [
    "ControllerResizeFailed", "ControllerResizeInProgress", "NodeResizeFailed", "NodeResizeInProgress", "NodeResizePending"
]  # fmt: skip


# -- sources of volumes -----------------------------------------------------------------------------------------------


def _no_backsteps(text: str, path: Path) -> Errors:
    if ".." in text.split("/"):
        yield field.invalid(path, text, "must not contain '..'")


def _host_path(source: Object, path: Path) -> Errors:
    if not source.get("path"):
        yield field.required(f"{path}.path")
        return
    yield from _no_backsteps(source["path"], f"{path}.path")
    yield from checks.choice(source.get("type"), "core/v1.HostPathType", f"{path}.type")


def _nfs(source: Object, path: Path) -> Errors:
    yield from _required("server", "path")(source, path)
    if not source.get("path", "").startswith("/"):
        yield field.invalid(f"{path}.path", source.get("path", ""), "must be an absolute path")


def _local(source: Object, path: Path) -> Errors:
    if not source.get("path"):
        yield field.required(f"{path}.path")
    else:
        yield from _no_backsteps(source["path"], f"{path}.path")


def _csi(source: Object, path: Path) -> Errors:
    yield from checks.csi_driver_name(source.get("driver", ""), f"{path}.driver")
    if not source.get("volumeHandle"):
        yield field.required(f"{path}.volumeHandle")
    for name in (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ):
        secret = source.get(name)
        if secret is not None:
            yield from _required("name", "namespace")(secret, f"{path}.{name}")


def _required(*names: str) -> Callable[[Object, Path], Errors]:
    """The check of a source that only has required fields."""

    def check(source: Object, path: Path) -> Errors:
        return (field.required(f"{path}.{name}") for name in names if not source.get(name))

    return check


_SOURCES: Final[dict[str, Callable[[Object, Path], Errors]]] = {
    "hostPath": _host_path,
    "gcePersistentDisk": _required("pdName"),
    "awsElasticBlockStore": _required("volumeID"),
    "glusterfs": _required("endpoints", "path"),
    "flocker": _required(),
    "nfs": _nfs,
    "rbd": _required("monitors", "image"),
    "quobyte": _required("registry", "volume"),
    "cephfs": _required("monitors"),
    "iscsi": _required("targetPortal", "iqn"),
    "cinder": _required("volumeID"),
    "fc": _required(),
    "flexVolume": _required("driver"),
    "azureFile": _required("secretName", "shareName"),
    "vsphereVolume": _required("volumePath"),
    "photonPersistentDisk": _required("pdID"),
    "portworxVolume": _required("volumeID"),
    "azureDisk": _required("diskName", "diskURI"),
    "scaleIO": _required("gateway", "system", "volumeName"),
    "local": _local,
    "storageos": _required(),
    "csi": _csi,
}
"""In the order in which upstream looks at them."""
_PRINTED_AS: Final = {"gcePersistentDisk": "persistentDisk"}


# -- PersistentVolume -------------------------------------------------------------------------------------------------


def _validate_volume(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if context.subresource:
        return []
    errors = list(volume_spec(new.get("spec") or {}, "spec"))
    return errors if old is None else errors + list(_volume_update(new.get("spec") or {}, old.get("spec") or {}))


def volume_spec(spec: Object, path: Path) -> Errors:
    modes, capacity = spec.get("accessModes") or [], spec.get("capacity") or {}
    if not modes:
        yield field.required(f"{path}.accessModes")
    yield from access_modes(modes, f"{path}.accessModes")
    if not capacity:
        yield field.required(f"{path}.capacity")
    if capacity.keys() != {"storage"}:
        yield field.not_supported(f"{path}.capacity", capacity or None, ["storage"])
    for name, amount in sorted(capacity.items()):
        yield from positive(amount, f"{path}.capacity[{name}]")
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy:
        yield from checks.choice(
            policy, "core/v1.PersistentVolumeReclaimPolicy", f"{path}.persistentVolumeReclaimPolicy"
        )
    if spec.get("nodeAffinity") is not None:
        yield from _node_affinity(spec["nodeAffinity"], f"{path}.nodeAffinity")
    yield from _source(spec, path)
    host_path = (spec.get("hostPath") or {}).get("path", "")
    if policy == "Recycle" and host_path and posixpath.normpath(host_path) in ("/", "//"):
        rule = "may not be 'recycle' for a hostPath mount of '/'"
        yield field.forbidden(f"{path}.persistentVolumeReclaimPolicy", rule)
    if spec.get("storageClassName"):
        yield from class_name(spec["storageClassName"], f"{path}.storageClassName")
    yield from checks.choice(spec.get("volumeMode"), "core/v1.PersistentVolumeMode", f"{path}.volumeMode")
    attributes = spec.get("volumeAttributesClassName")
    if attributes is not None:
        if not attributes:
            yield field.required(f"{path}.volumeAttributesClassName", "an empty string is disallowed")
        else:
            yield from class_name(attributes, f"{path}.volumeAttributesClassName")
        if spec.get("csi") is None:
            yield field.required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")


def _source(spec: Object, path: Path) -> Errors:
    present = [name for name in _SOURCES if spec.get(name) is not None]
    if not present:
        yield field.required(path, "must specify a volume type")
        return
    first, *rest = present
    yield from _SOURCES[first](spec[first], f"{path}.{_PRINTED_AS.get(first, first)}")
    if first == "local" and not (spec.get("nodeAffinity") or {}).get("required"):
        yield field.required(f"{path}.nodeAffinity", "Local volume requires node affinity")
    yield from (field.forbidden(f"{path}.{name}", _BOTH_TYPES) for name in rest)


def _node_affinity(affinity: Object, path: Path) -> Errors:
    if affinity.get("required") is None:
        yield field.required(f"{path}.required", "must specify required node constraints")
    else:
        yield from node_selector(affinity["required"], f"{path}.required")


def _volume_update(new: Object, old: Object) -> Errors:
    if not equal(_sources(new, old), _sources(old, old)):
        yield field.forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
    yield from checks.immutable(new.get("volumeMode"), old.get("volumeMode"), "volumeMode")
    if old.get("nodeAffinity") is not None:
        yield from checks.immutable(
            new.get("nodeAffinity"), old["nodeAffinity"], "nodeAffinity", "core/v1.VolumeNodeAffinity"
        )
    if old.get("volumeAttributesClassName") is not None and new.get("volumeAttributesClassName") is None:
        yield field.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden")


def _sources(spec: Object, old: Object) -> Json:
    """The sources; a secret for the expansion may be added to CSI."""
    sources = {name: spec[name] for name in _SOURCES if spec.get(name) is not None}
    before = old.get("csi")
    if before is not None and before.get("controllerExpandSecretRef") is None and "csi" in sources:
        sources["csi"] = {name: item for name, item in sources["csi"].items() if name != "controllerExpandSecretRef"}
    return sources


def _complete_volume(new: Object, old: Object | None, context: Context) -> None:
    """The phase has a time, which changes with it unless the client sets it."""
    if not context.subresource or old is None:
        return
    status, before = new.setdefault("status", {}), old.get("status") or {}
    moved = status.get("phase") != before.get("phase")
    if moved and status.get("lastPhaseTransitionTime") == before.get("lastPhaseTransitionTime"):
        status["lastPhaseTransitionTime"] = context.now


# -- PersistentVolumeClaim --------------------------------------------------------------------------------------------


def _validate_claim(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if context.subresource:
        return list(_claim_status(new.get("status") or {}))
    errors = list(claim_spec(new.get("spec") or {}, "spec", None if old is None else old.get("spec") or {}))
    return errors if old is None else errors + list(_claim_update(new, old))


_IMMUTABLE_SPEC: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _claim_update(new: Object, old: Object) -> Errors:
    """The volume name can be set once, as can a class; a bound claim can grow."""
    spec, before = copy(new.get("spec") or {}), copy(old.get("spec") or {})
    if not before.get("volumeName"):
        _take(before, spec, "volumeName")
    yield from _class_update(new, old, spec, before)
    requests = (spec.get("resources") or {}).get("requests")
    amount_before = ((before.get("resources") or {}).get("requests") or {}).get("storage", "0")
    amount = (requests or {}).get("storage", "0")
    if (new.get("status") or {}).get("phase") == "Bound" and requests is not None:
        requests["storage"] = amount_before
    _take(spec, before, "volumeAttributesClassName")
    if not _same(spec, before):
        yield field.forbidden("spec", _IMMUTABLE_SPEC)
    if compare(amount, amount_before) < 0:
        capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
        if compare(amount, capacity) <= 0:
            yield field.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")
    yield from checks.immutable(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode")
    attributes, attributes_before = ((value.get("spec") or {}).get("volumeAttributesClassName") for value in (new, old))
    if attributes_before is not None and not attributes:
        new_value = "nil" if attributes is None else "an empty string"
        yield field.forbidden(
            "spec.volumeAttributesClassName", f"update from non-nil value to {new_value} is forbidden"
        )


def _class_update(new: Object, old: Object, spec: Object, before: Object) -> Errors:
    """A claim without a class can get one; with the old annotation, only the class that it names."""
    annotation, annotation_before = (
        (value["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION) for value in (new, old)
    )
    name, name_before = spec.get("storageClassName"), before.get("storageClassName")
    if (
        annotation_before is not None
        and name_before is None
        and name == annotation_before
        and annotation in (None, annotation_before)
    ):
        spec.pop("storageClassName", None)
        return
    if annotation != annotation_before:
        path = f"metadata.annotations[{_CLASS_ANNOTATION}]"
        yield field.invalid(path, annotation or "", checks.IMMUTABLE)
    if name is not None and name_before is None and annotation_before in (None, name):
        spec.pop("storageClassName", None)


def _take(target: Object, source: Object, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _same(new: Object, old: Object) -> bool:
    """Semantic equality: quantities are compared as such."""
    left, right = copy(new), copy(old)
    for spec in (left, right):
        for amounts in (spec.get("resources") or {}).values():
            for name, text in amounts.items() if isinstance(amounts, dict) else ():
                parsed = quantity.parse(text)
                amounts[name] = str(quantity.Quantity(parsed.digits, parsed.exponent, parsed.is_int64))
    return equal(left, right)


def _claim_status(status: Object) -> Errors:
    for name, amount in sorted((status.get("capacity") or {}).items()):
        yield from _not_negative(amount, f"status.capacity[{name}]")
    for name, state in sorted((status.get("allocatedResourceStatuses") or {}).items()):
        path = "status.allocatedResourceStatus"
        yield from _claim_resource(name, path)
        if state not in _RESIZE_STATUSES:
            yield field.not_supported(path, as_json(name), _RESIZE_STATUSES)
    for name, amount in sorted((status.get("allocatedResources") or {}).items()):
        wrong = list(_claim_resource(name, "status.allocatedResources"))
        yield from wrong or _not_negative(amount, f"status.allocatedResources[{name}]")


def _not_negative(text: str, path: Path) -> Errors:
    amount = quantity.parse(text)
    if amount.digits < 0:
        yield field.invalid(path, quantity.as_int64(amount) or text, "must be a valid resource quantity")


def _claim_resource(name: str, path: Path) -> Errors:
    wrong = list(checks.qualified(name, path))
    yield from wrong
    is_native = "/" not in name or "kubernetes.io/" in name
    if not wrong and is_native and name != "storage":
        yield field.not_supported(path, name, ["storage"])


RULES: Final = {
    "PersistentVolume": Rules(complete=_complete_volume, validate=_validate_volume),
    "PersistentVolumeClaim": Rules(validate=_validate_claim),
}
