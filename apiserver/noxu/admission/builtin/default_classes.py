"""DefaultStorageClass and DefaultIngressClass: claims and ingresses without a class get the default one.

Sources: plugin/pkg/admission/storage/storageclass/setdefault and plugin/pkg/admission/network/defaultingressclass.
"""

from __future__ import annotations

from typing import Final

from noxu.admission.attributes import Attributes
from noxu.admission.builtin.lookups import newest_default, objects
from noxu.admission.builtin.rules import Rules

_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"


async def _set_storage_class(request: Attributes) -> None:
    new = request.draft.new
    if request.operation != "CREATE" or request.subresource or new["spec"].get("storageClassName") is not None:
        return
    if _STORAGE_CLASS in (new["metadata"].get("annotations") or {}):
        return
    found = newest_default(
        await objects(request, "storage.k8s.io", "storageclasses"),
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    )
    if found is not None:
        new["spec"]["storageClassName"] = found["metadata"]["name"]


async def _set_ingress_class(request: Attributes) -> None:
    new = request.draft.new
    spec = new.setdefault("spec", {})
    if request.operation != "CREATE" or request.subresource or spec.get("ingressClassName") is not None:
        return
    if _INGRESS_CLASS in (new["metadata"].get("annotations") or {}):
        return
    classes = await objects(request, "networking.k8s.io", "ingressclasses")
    found = newest_default(classes, "ingressclass.kubernetes.io/is-default-class")
    if found is not None:
        spec["ingressClassName"] = found["metadata"]["name"]


STORAGE: Final = Rules(mutate=_set_storage_class)
INGRESS: Final = Rules(mutate=_set_ingress_class)
