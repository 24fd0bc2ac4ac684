"""Which volume fits a claim, and how the two name each other: for the binder, provisioners and the scheduler.

Sources: component-helpers/storage/volume/pv_helpers.go, index.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from noxu.api.selectors import label_selector
from noxu.go import quantity
from noxu.values import Object
from noxu.workloads.objects import STORAGE_CLASSES, VOLUMES, Objects
from noxu.workloads.pods import is_terminating
from noxu.workloads.writes import NamespacedName

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
OLD_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""The provisioner of a class whose volumes persons make."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
OLD_DEFAULT_CLASS: Final = "storageclass.beta.kubernetes.io/is-default-class"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_NOTHING: Final = "0"


def annotation(value: Object, name: str) -> str | None:
    found: str | None = (value["metadata"].get("annotations") or {}).get(name)
    return found


def with_annotations(value: Object, added: dict[str, str]) -> Object:
    """The same object if nothing is added."""
    if not added:
        return value
    metadata = value["metadata"]
    return {**value, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **added}}}


def class_name(value: Object) -> str:
    """That of a claim or a volume, "" if it has none. The older annotation comes first."""
    return annotation(value, _OLD_CLASS) or value["spec"].get("storageClassName") or ""


def names_class(claim: Object) -> bool:
    """Whether a claim asks for a class, or for none (""): then it gets no default."""
    return annotation(claim, _OLD_CLASS) is not None or claim["spec"].get("storageClassName") is not None


def class_of(objects: Objects, value: Object) -> Object | None:
    name = class_name(value)
    return objects.get(STORAGE_CLASSES, NamespacedName("", name)) if name else None


def default_class(objects: Objects) -> Object | None:
    """The youngest of the classes that are marked as default, the first by name among several of that age."""
    marked = [
        found
        for found in objects.all(STORAGE_CLASSES)
        if "true" in (annotation(found, DEFAULT_CLASS), annotation(found, OLD_DEFAULT_CLASS))
    ]
    by_name = sorted(marked, key=lambda found: str(found["metadata"]["name"]))
    return max(by_name, key=lambda found: str(found["metadata"]["creationTimestamp"]), default=None)


def waits_for_consumer(objects: Objects, claim: Object) -> bool:
    """Whether it is bound only when a pod that uses it is scheduled (IsDelayBindingMode)."""
    return (class_of(objects, claim) or {}).get("volumeBindingMode") == "WaitForFirstConsumer"


def is_bound_to(volume: Object, claim: Object) -> bool:
    """Whether a volume is bound to a claim, or reserved for it by name."""
    reference = volume["spec"].get("claimRef")
    if reference is None:
        return False
    metadata = claim["metadata"]
    same = reference.get("name") == metadata["name"] and reference.get("namespace") == metadata["namespace"]
    return same and reference.get("uid", "") in ("", metadata["uid"])


def claim_reference(claim: Object) -> Object:
    metadata = claim["metadata"]
    return {
        "kind": "PersistentVolumeClaim",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "apiVersion": "v1",
        "resourceVersion": metadata.get("resourceVersion"),
    }


def requested(claim: Object) -> quantity.Quantity:
    return quantity.parse(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage") or _NOTHING)


def capacity(value: Object) -> quantity.Quantity:
    """Of a volume, or of the `status` of a claim."""
    return quantity.parse((value.get("capacity") or {}).get("storage") or _NOTHING)


def has_modes(volume: Object, claim: Object) -> bool:
    return set(claim["spec"].get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ())


def has_volume_mode(volume: Object, claim: Object) -> bool:
    """Both are file systems, or both are block devices."""
    return (volume["spec"].get("volumeMode") or "Filesystem") == (claim["spec"].get("volumeMode") or "Filesystem")


def best_volume(objects: Objects, claim: Object, *, reserved_only: bool) -> Object | None:
    """The volume that is reserved for a claim; else the smallest that fits among those with the fewest access modes.

    `reserved_only`: the scheduler chooses among the others.
    """
    fitting = [found for found in objects.all(VOLUMES) if _may_fit(found, claim)]
    reserved = [found for found in fitting if is_bound_to(found, claim)]
    if reserved:
        return min(reserved, key=_modes)
    if reserved_only:
        return None
    free = [found for found in fitting if _is_free(found, claim)]
    return _smallest(found for found in free if _modes(found) == min(map(_modes, free)))


def _modes(volume: Object) -> int:
    return len(volume["spec"].get("accessModes") or ())


def _may_fit(volume: Object, claim: Object) -> bool:
    return (
        (volume["spec"].get("claimRef") is None or is_bound_to(volume, claim))
        and has_modes(volume, claim)
        and has_volume_mode(volume, claim)
        and not is_terminating(volume)
        and quantity.compare(capacity(volume["spec"]), requested(claim)) >= 0
    )


def _is_free(volume: Object, claim: Object) -> bool:
    attributes = "volumeAttributesClassName"
    return (
        (volume.get("status") or {}).get("phase") == "Available"
        and class_name(volume) == class_name(claim)
        and (volume["spec"].get(attributes) or "") == (claim["spec"].get(attributes) or "")
        and _is_selected(volume, claim["spec"].get("selector"))
    )


def _is_selected(volume: Object, selector: Object | None) -> bool:
    """Without a selector any volume is."""
    return selector is None or label_selector(selector).matches(volume["metadata"].get("labels") or {})


def _smallest(volumes: Iterable[Object]) -> Object | None:
    best: Object | None = None
    for volume in sorted(volumes, key=lambda found: str(found["metadata"]["name"])):
        if best is None or quantity.compare(capacity(volume["spec"]), capacity(best["spec"])) < 0:
            best = volume
    return best


def mismatch(volume: Object, claim: Object) -> str:
    """Why a volume that a claim names does not fit it, "" if it does (checkVolumeSatisfyClaim)."""
    reasons: Sequence[tuple[bool, str]] = (
        (is_terminating(volume), f'the volume is marked for deletion "{volume["metadata"]["name"]}"'),
        (quantity.compare(capacity(volume["spec"]), requested(claim)) < 0, "requested PV is too small"),
        (class_name(volume) != class_name(claim), "storageClassName does not match"),
        (not has_volume_mode(volume, claim), "incompatible volumeMode"),
        (not has_modes(volume, claim), "incompatible accessMode"),
    )
    return next((text for is_so, text in reasons if is_so), "")
