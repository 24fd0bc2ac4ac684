"""Protection of storage in use: a claim stays while a pod uses it, a volume while it is bound to a claim.

Admission adds the finalizers when the objects are created. When such an object is being deleted, and nothing uses it,
these controllers remove their finalizer (pkg/controller/volume/pvcprotection, pvprotection and vacprotection).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from noxu.controllers import controller
from noxu.controllers.controller import Controller
from noxu.registry.access import User
from noxu.registry.cache import Change
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.stored_object import StoredObject, object_at
from noxu.values import Object, copy
from noxu_storage.types import Key

_FINISHED = ("Succeeded", "Failed")


class ProtectionController(Controller[Key]):
    """Removes `finalizer` from objects that are being deleted and not in use: by those of the other resources."""

    finalizer: ClassVar[str]
    user: ClassVar[User]

    @abstractmethod
    def in_use(self, name: str, namespace: str, value: Object) -> bool:
        """Whether something uses the object."""

    def observe(self, change: Change) -> Iterable[Key]:
        if change.key.collection == self.resource.collection:
            return [change.key] if change.entry is not None and self._is_held(change.entry) else ()
        return self.resync()

    def resync(self) -> Iterable[Key]:
        return [key for key, entry in self.collection.entries.items() if self._is_held(entry)]

    def _is_held(self, entry: StoredObject) -> bool:
        return b'"deletionTimestamp"' in entry.stored and self.finalizer.encode() in entry.stored

    async def reconcile(self, key: Key) -> None:
        entry = self.collection.entries.get(key)
        if entry is None or not self._is_held(entry):
            return
        value = copy(object_at(entry, self.resource))
        metadata = value["metadata"]
        namespace = key.partition[:-1]
        if not metadata.get("deletionTimestamp") or self.in_use(key.name, namespace, value):
            return
        metadata["finalizers"] = [name for name in metadata.get("finalizers") or () if name != self.finalizer]
        options = Options(field_manager=controller.CONTROLLER_MANAGER)
        request = WriteRequest(
            Action.REPLACE, self.resource, namespace, key.name, body=Body(value), options=options, user=self.user
        )
        await self.writer.write(request)


class ClaimProtection(ProtectionController):
    """A claim is in use while a pod that has not finished names it."""

    name = "persistentvolumeclaim-protection-controller"
    follows = (("", "persistentvolumeclaims"), ("", "pods"))
    finalizer = "kubernetes.io/pvc-protection"
    user = controller.controller("pvc-protection-controller")

    def in_use(self, name: str, namespace: str, value: Object) -> bool:
        for key, entry in self.others[0].entries.items():
            if key.partition[:-1] == namespace and name.encode() in entry.stored:
                pod = object_at(entry, self.other_resources[0])
                if pod.get("status", {}).get("phase") not in _FINISHED and name in _claims(pod):
                    return True
        return False


def _claims(pod: Object) -> set[str]:
    """The names of the claims that a pod uses; those of ephemeral volumes have the pod's name in front."""
    claims = set()
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            claims.add(volume["persistentVolumeClaim"].get("claimName", ""))
        elif volume.get("ephemeral"):
            claims.add(f"{pod['metadata']['name']}-{volume['name']}")
    return claims


class VolumeProtection(ProtectionController):
    """A volume is in use while it is bound."""

    name = "persistentvolume-protection-controller"
    follows = (("", "persistentvolumes"), ("", "persistentvolumeclaims"))
    finalizer = "kubernetes.io/pv-protection"
    user = controller.controller("pv-protection-controller")

    def in_use(self, name: str, namespace: str, value: Object) -> bool:
        return bool(value.get("status", {}).get("phase") == "Bound")


class AttributesClassProtection(ProtectionController):
    """A class of attributes is in use while a claim or a volume names it."""

    name = "volumeattributesclass-protection-controller"
    follows = (
        ("storage.k8s.io", "volumeattributesclasses"),
        ("", "persistentvolumeclaims"),
        ("", "persistentvolumes"),
    )
    finalizer = "kubernetes.io/vac-protection"
    user = controller.controller("volumeattributesclass-protection-controller")

    def in_use(self, name: str, namespace: str, value: Object) -> bool:
        for collection, resource in zip(self.others, self.other_resources, strict=True):
            for entry in collection.entries.values():
                if name.encode() in entry.stored and name in _attributes_classes(object_at(entry, resource)):
                    return True
        return False


def _attributes_classes(value: Object) -> tuple[str | None, ...]:
    """The classes that a claim has, had and gets, or that of a volume."""
    spec, status = value["spec"], value.get("status") or {}
    return (
        spec.get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
