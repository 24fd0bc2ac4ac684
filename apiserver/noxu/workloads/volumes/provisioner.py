"""Simulated storage: the class `standard`, and its provisioner, which makes, deletes and resizes volumes that hold nothing.

It does what an external provisioner and an external resizer do (sig-storage-lib-external-provisioner, external-resizer), for all
classes whose provisioner is `noxu.dev/simulated`:

    a claim has the annotation of the provisioner    a volume `pvc-UID` of the requested size, reserved for it
    a volume is Released, and its policy is Delete   it is deleted
    a bound claim asks for more                      the volume and the claim get the new capacity at once

`standard` is the default class, as in kind: claims wait for their first consumer. It is made once, when a server starts that
has no class.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from noxu.api.errors import ApiError
from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.go import quantity
from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.objects import CLAIMS, STORAGE_CLASSES, VOLUMES, Objects, name_of
from noxu.workloads.pods import is_terminating
from noxu.workloads.volume_matching import (
    DEFAULT_CLASS,
    PROVISIONED_BY,
    PROVISIONER,
    SELECTED_NODE,
    annotation,
    capacity,
    claim_reference,
    class_name,
    class_of,
    requested,
)
from noxu.workloads.writes import (
    NORMAL,
    WARNING,
    Create,
    Delete,
    Kind,
    NamespacedName,
    NewEvent,
    Replace,
    Result,
    Steps,
    Write,
    done_or_gone,
    stored,
    with_status,
)

SIMULATED: Final = "noxu.dev/simulated"
DRIVER: Final = "simulated.noxu.dev"
STANDARD: Final = "standard"

_Writing = Generator[Sequence[Write], Sequence[Result], None]


def standard_class() -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STANDARD, "annotations": {DEFAULT_CLASS: "true"}},
        "provisioner": SIMULATED,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }


class StandardStorageClass(WorkloadController):
    """Its only key is the name of the class."""

    name = "standard-storage-class"
    kind = STORAGE_CLASSES

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self._is_made = False

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        return ()

    def keys(self, objects: Objects) -> Iterable[NamespacedName]:
        return () if self._is_made else (NamespacedName("", STANDARD),)

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        yield from standard_class_steps(objects, key, now)
        self._is_made = True
        return None


def standard_class_steps(objects: Objects, key: NamespacedName, now: datetime) -> Steps:  # noqa: ARG001
    if next(objects.all(STORAGE_CLASSES), None) is None:
        [result] = yield [Create(STORAGE_CLASSES, standard_class())]
        if not (isinstance(result, ApiError) and result.reason == "AlreadyExists"):
            stored(result)
    return None


class SimulatedProvisioner(WorkloadController):
    """Keys are the names of claims, and of volumes, which have no namespace."""

    name = "simulated-provisioner"
    kind = CLAIMS
    looks_at = (VOLUMES, STORAGE_CLASSES)
    component = SIMULATED

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        return affected_storage(objects, kind, new)

    def keys(self, objects: Objects) -> Iterable[NamespacedName]:
        return [name_of(value) for kind in (CLAIMS, VOLUMES) for value in objects.all(kind)]

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        return storage_steps(objects, key, now)


def affected_storage(objects: Objects, kind: Kind, new: Object | None) -> Iterator[NamespacedName]:
    if new is not None and kind != STORAGE_CLASSES:
        yield name_of(new)
    elif new is not None:
        yield from (name_of(claim) for claim in objects.all(CLAIMS) if class_name(claim) == new["metadata"]["name"])


def storage_steps(objects: Objects, key: NamespacedName, now: datetime) -> Steps:  # noqa: ARG001
    if not key.namespace:
        volume = objects.get(VOLUMES, key)
        if volume is not None and _is_to_delete(volume):
            done_or_gone((yield [Delete(VOLUMES, volume)]))
        return None
    claim = objects.get(CLAIMS, key)
    if claim is None or is_terminating(claim):
        return None
    found = class_of(objects, claim)
    if found is None or found["provisioner"] != SIMULATED:
        return None
    if claim["spec"].get("volumeName"):
        yield from _resize(objects, claim, found)
    elif _is_asked(claim, found) and objects.get(VOLUMES, NamespacedName("", volume_name(claim))) is None:
        yield from _provision(claim, found)
    return None


def _is_asked(claim: Object, storage_class: Object) -> bool:
    """Whether the provisioner has to make a volume for a claim, now."""
    may_wait = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
    return annotation(claim, PROVISIONER) == SIMULATED and (not may_wait or bool(annotation(claim, SELECTED_NODE)))


def volume_name(claim: Object) -> str:
    return f"pvc-{claim['metadata']['uid']}"


def _provision(claim: Object, storage_class: Object) -> _Writing:
    name, namespace = claim["metadata"]["name"], claim["metadata"]["namespace"]
    text = f'External provisioner is provisioning volume for claim "{namespace}/{name}"'
    yield [NewEvent(claim, NORMAL, "Provisioning", text)]
    [result] = yield [Create(VOLUMES, new_volume(claim, storage_class))]
    if isinstance(result, ApiError) and result.reason != "AlreadyExists":
        text = f'failed to provision volume with StorageClass "{class_name(claim)}": {result.message}'
        yield [NewEvent(claim, WARNING, "ProvisioningFailed", text)]
        raise result
    yield [NewEvent(claim, NORMAL, "ProvisioningSucceeded", f"Successfully provisioned volume {volume_name(claim)}")]


def new_volume(claim: Object, storage_class: Object) -> Object:
    spec = claim["spec"]
    made: Object = {
        "capacity": {"storage": str(requested(claim))},
        "csi": {"driver": DRIVER, "volumeHandle": volume_name(claim)},
        "accessModes": spec.get("accessModes") or [],
        "claimRef": claim_reference(claim),
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class["metadata"]["name"],
    }
    if storage_class.get("mountOptions"):
        made["mountOptions"] = storage_class["mountOptions"]
    for field in ("volumeMode", "volumeAttributesClassName"):
        if spec.get(field):
            made[field] = spec[field]
    metadata = {"name": volume_name(claim), "annotations": {PROVISIONED_BY: SIMULATED}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": made}


def _is_to_delete(volume: Object) -> bool:
    return (
        annotation(volume, PROVISIONED_BY) == SIMULATED
        and (volume.get("status") or {}).get("phase") == "Released"
        and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        and not is_terminating(volume)
    )


def _resize(objects: Objects, claim: Object, storage_class: Object) -> _Writing:
    """Give a bound claim the capacity that it asks for, if that is more than it has."""
    status, wanted = claim.get("status") or {}, requested(claim)
    volume = objects.get(VOLUMES, NamespacedName("", claim["spec"]["volumeName"]))
    if volume is None or status.get("phase") != "Bound" or not storage_class.get("allowVolumeExpansion"):
        return
    if annotation(volume, PROVISIONED_BY) != SIMULATED or quantity.compare(wanted, capacity(status)) <= 0:
        return
    yield [NewEvent(claim, NORMAL, "Resizing", f"External resizer is resizing volume {volume['metadata']['name']}")]
    if quantity.compare(wanted, capacity(volume["spec"])) > 0:
        spec = {**volume["spec"], "capacity": {**volume["spec"]["capacity"], "storage": str(wanted)}}
        [result] = yield [Replace(VOLUMES, {**volume, "spec": spec})]
        stored(result)
    grown = {**status, "capacity": {**(status.get("capacity") or {}), "storage": str(wanted)}}
    [result] = yield [Replace(CLAIMS, with_status(claim, grown), "status")]
    stored(result)
    yield [NewEvent(claim, NORMAL, "VolumeResizeSuccessful", "Resize volume succeeded")]
