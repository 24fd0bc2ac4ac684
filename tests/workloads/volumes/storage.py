"""Volumes, claims and classes, as tests of volumes set them up."""

from __future__ import annotations

from typing import Any

from noxu.go.time import format_time
from noxu.values import Object
from tests.workloads.plays import NOW

UID = "uid-of-claim"


def claim(storage: str = "1Gi", *modes: str, name: str = "c", **more: Any) -> Object:
    """A claim `default/c`; `annotations`, `deleted` and `status` are not of the spec."""
    metadata: Object = {"name": name, "namespace": "default", "uid": more.pop("uid", UID)}
    metadata["annotations"] = more.pop("annotations", {})
    if more.pop("deleted", False):
        metadata |= {"deletionTimestamp": format_time(NOW), "finalizers": ["kubernetes.io/pvc-protection"]}
    status = more.pop("status", {"phase": "Pending"})
    resources = {"requests": {"storage": storage}}
    spec = {"accessModes": list(modes or ("ReadWriteOnce",)), "resources": resources, "storageClassName": "", **more}
    spec = {field: value for field, value in spec.items() if value is not None}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status}


def volume(name: str = "v", storage: str = "1Gi", *modes: str, **more: Any) -> Object:
    """A volume; `labels`, `annotations`, `deleted` and `phase` are not of the spec."""
    metadata: Object = {"name": name, "labels": more.pop("labels", {}), "annotations": more.pop("annotations", {})}
    if more.pop("deleted", False):
        metadata |= {"deletionTimestamp": format_time(NOW), "finalizers": ["kubernetes.io/pv-protection"]}
    status = {"phase": more.pop("phase", "Available")}
    spec = {
        "capacity": {"storage": storage},
        "accessModes": list(modes or ("ReadWriteOnce",)),
        "persistentVolumeReclaimPolicy": "Retain",
        "nfs": {},
        **more,
    }
    spec = {field: value for field, value in spec.items() if value is not None}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": status}


def reserved(name: str = "c", uid: str = "", namespace: str = "default") -> Object:
    """The claimRef of a volume."""
    made = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name}
    return made | ({"uid": uid} if uid else {})


def storage_class(name: str = "fast", provisioner: str = "example.com/disks", **more: Any) -> Object:
    annotations, created = more.pop("annotations", {}), more.pop("created", NOW)
    metadata = {"name": name, "annotations": annotations, "creationTimestamp": format_time(created)}
    made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata}
    return {**made, "provisioner": provisioner, "volumeBindingMode": "Immediate", **more}
