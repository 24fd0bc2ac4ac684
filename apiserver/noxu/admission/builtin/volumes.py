"""The plug-ins about claims, volumes and ingresses: protection, resizing and default classes.

StorageObjectInUseProtection and PersistentVolumeClaimResize: rules for claims and volumes.

Sources: plugin/pkg/admission/storage/storageobjectinuseprotection and plugin/pkg/admission/storage/persistentvolume/resize.

DefaultStorageClass and DefaultIngressClass: claims and ingresses without a class get the default one.

Sources: plugin/pkg/admission/storage/storageclass/setdefault and plugin/pkg/admission/network/defaultingressclass.
"""

from __future__ import annotations

from typing import Final

from noxu.admission.attributes import Attributes
from noxu.admission.builtin.rules import PluginRules, find, newest_default, objects
from noxu.go.quantity import Quantity, compare, parse
from noxu.values import Object

FINALIZERS: Final = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
    "volumeattributesclasses": "kubernetes.io/vac-protection",
}
"""Objects with these finalizers are deleted when nothing uses them."""
_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


async def _protect(request: Attributes) -> None:
    if request.operation != "CREATE" or request.subresource:
        return
    metadata, finalizer = request.draft.new["metadata"], FINALIZERS[request.resource.plural]
    finalizers = metadata.get("finalizers") or []
    if finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]


async def _allow_growth(request: Attributes) -> None:
    """A claim may grow if it is bound and its class allows that."""
    new, old = request.draft.new, request.draft.old
    if old is None or request.subresource or compare(_size(new), _size(old)) <= 0:
        return
    from noxu.admission.attributes import (
        refusal,  # the quota controller, which needs `class_of`, starts without it
    )

    if (old.get("status") or {}).get("phase") != "Bound":
        raise refusal(request, "Only bound persistent volume claims can be expanded")
    name = class_of(new)
    storage_class = (
        await find(request, "storage.k8s.io", "storageclasses", name) if name and name == class_of(old) else None
    )
    if storage_class is None or not storage_class.get("allowVolumeExpansion"):
        why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
        raise refusal(request, why)


def _size(claim: Object) -> Quantity:
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return parse(requests.get("storage") or "0")


def class_of(claim: Object) -> str:
    """The name of a claim's storage class, "" if it has none (GetPersistentVolumeClaimClass)."""
    annotations = claim["metadata"].get("annotations") or {}
    return str(
        annotations[_STORAGE_CLASS] if _STORAGE_CLASS in annotations else claim["spec"].get("storageClassName") or ""
    )


PROTECTION: Final = PluginRules(mutate=_protect)
RESIZE: Final = PluginRules(validate=_allow_growth)


# -- default classes --------------------------------------------------------------------------------------------------


_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"


async def _set_storage_class(request: Attributes) -> None:
    new = request.draft.new
    if request.operation != "CREATE" or request.subresource or new["spec"].get("storageClassName") is not None:
        return
    if _STORAGE_CLASS in (new["metadata"].get("annotations") or {}):
        return
    default = newest_default(
        await objects(request, "storage.k8s.io", "storageclasses"),
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    )
    if default is not None:
        new["spec"]["storageClassName"] = default["metadata"]["name"]


async def _set_ingress_class(request: Attributes) -> None:
    new = request.draft.new
    spec = new.setdefault("spec", {})
    if request.operation != "CREATE" or request.subresource or spec.get("ingressClassName") is not None:
        return
    if _INGRESS_CLASS in (new["metadata"].get("annotations") or {}):
        return
    classes = await objects(request, "networking.k8s.io", "ingressclasses")
    default = newest_default(classes, "ingressclass.kubernetes.io/is-default-class")
    if default is not None:
        spec["ingressClassName"] = default["metadata"]["name"]


DEFAULT_STORAGE: Final = PluginRules(mutate=_set_storage_class)
DEFAULT_INGRESS: Final = PluginRules(mutate=_set_ingress_class)
