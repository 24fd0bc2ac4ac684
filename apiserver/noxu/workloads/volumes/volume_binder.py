"""Binds claims to volumes, and reclaims the volumes of claims that are gone (persistentvolume/pv_controller.go).

    claim    Pending   there is no volume for it, or it waits for its first consumer
             Bound     a volume and the claim name each other; the volume is bound first
             Lost      its volume is gone, or is another claim's
    volume   Available -> Bound -> Released -> gone, or Failed, or Available again, by its reclaim policy

Volumes for claims of a class are made by its provisioner, which learns from an annotation that it has to. The keys are the names
of claims, and of volumes, which have no namespace.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from noxu.values import Object, equal
from noxu.workloads.engine import WorkloadController
from noxu.workloads.objects import CLAIMS, STORAGE_CLASSES, VOLUMES, Objects, name_of
from noxu.workloads.volume_matching import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    OLD_PROVISIONER,
    PROVISIONED_BY,
    PROVISIONER,
    SELECTED_NODE,
    annotation,
    best_volume,
    claim_reference,
    class_name,
    class_of,
    default_class,
    has_volume_mode,
    is_bound_to,
    mismatch,
    names_class,
    waits_for_consumer,
    with_annotations,
)
from noxu.workloads.writes import (
    NORMAL,
    WARNING,
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

_Writing = Generator[Sequence[Write], Sequence[Result], None]
_Stored = Generator[Sequence[Write], Sequence[Result], Object]
"""Steps that give the object as it is stored then."""


class VolumeBinder(WorkloadController):
    name = "persistentvolume-binder-controller"
    kind = CLAIMS
    looks_at = (VOLUMES, STORAGE_CLASSES)
    account = "persistent-volume-binder"
    component = "persistentvolume-controller"

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        return affected_bindings(objects, kind, old, new)

    def keys(self, objects: Objects) -> Iterable[NamespacedName]:
        return [name_of(value) for kind in (CLAIMS, VOLUMES) for value in objects.all(kind)]

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        return binding_steps(objects, key, now)


def affected_bindings(objects: Objects, kind: Kind, old: Object | None, new: Object | None) -> Iterator[NamespacedName]:
    """The object, what it is bound to, and, for a free volume or a class, the claims that wait."""
    latest = new or old
    assert latest is not None
    if kind == CLAIMS:
        yield name_of(latest)
        if latest["spec"].get("volumeName"):
            yield NamespacedName("", latest["spec"]["volumeName"])
        return
    if kind == VOLUMES:
        yield name_of(latest)
        reference = latest["spec"].get("claimRef")
        if reference is not None:
            yield NamespacedName(reference.get("namespace", ""), reference.get("name", ""))
            return
    if new is not None:
        yield from (name_of(claim) for claim in objects.all(CLAIMS) if annotation(claim, BIND_COMPLETED) is None)


def binding_steps(objects: Objects, key: NamespacedName, now: datetime) -> Steps:  # noqa: ARG001
    if key.namespace:
        claim = objects.get(CLAIMS, key)
        if claim is not None and annotation(claim, BIND_COMPLETED) is None:
            yield from _sync_unbound_claim(objects, claim)
        elif claim is not None:
            yield from _sync_bound_claim(objects, claim)
        return None
    volume = objects.get(VOLUMES, key)
    if volume is not None:
        yield from _sync_volume(objects, volume)
    return None


# -- claims -----------------------------------------------------------------------------------------------------------


def _sync_unbound_claim(objects: Objects, claim: Object) -> _Writing:
    wanted = claim["spec"].get("volumeName")
    if wanted:
        yield from _sync_named_volume(claim, objects.get(VOLUMES, NamespacedName("", wanted)))
        return
    waits = waits_for_consumer(objects, claim)
    volume = best_volume(objects, claim, reserved_only=waits)
    if volume is not None:
        yield from _bind(volume, claim)
        return
    default = None if names_class(claim) else default_class(objects)
    if default is not None:
        spec = {**claim["spec"], "storageClassName": default["metadata"]["name"]}
        yield from _stored([Replace(CLAIMS, {**claim, "spec": spec})])
        return
    if waits and annotation(claim, SELECTED_NODE) is None:
        text = "waiting for first consumer to be created before binding"
        yield [NewEvent(claim, NORMAL, "WaitForFirstConsumer", text)]
    elif class_name(claim):
        yield from _ask_for_volume(objects, claim)
        return
    else:
        text = "no persistent volumes available for this claim and no storage class is set"
        yield [NewEvent(claim, NORMAL, "FailedBinding", text)]
    yield from _set_claim_phase(claim, "Pending", None)


def _sync_named_volume(claim: Object, volume: Object | None) -> _Writing:
    """A person has chosen the volume."""
    if volume is not None and volume["spec"].get("claimRef") is None:
        if not (why := mismatch(volume, claim)):
            yield from _bind(volume, claim)
            return
        yield [NewEvent(claim, WARNING, "VolumeMismatch", why)]
    elif volume is not None and is_bound_to(volume, claim):
        yield from _bind(volume, claim)
        return
    elif volume is not None:
        text = f'volume "{volume["metadata"]["name"]}" already bound to a different claim.'
        yield [NewEvent(claim, WARNING, "FailedBinding", text)]
    yield from _set_claim_phase(claim, "Pending", None)


_WAITING: Final = (
    "Waiting for a volume to be created either by the external provisioner '{}' or manually by the system administrator. "
    "If volume creation is delayed, please verify that the provisioner is running and correctly registered."
)


def _ask_for_volume(objects: Objects, claim: Object) -> _Writing:
    """Ask the provisioner of the class, with an annotation."""
    found = class_of(objects, claim)
    if found is None:
        text = f'storageclass.storage.k8s.io "{class_name(claim)}" not found'
        yield [NewEvent(claim, WARNING, "ProvisioningFailed", text)]
        return
    provisioner = found["provisioner"]
    if provisioner == NO_PROVISIONER:
        text = f"no volume plugin matched name: {NO_PROVISIONER}"
        yield [NewEvent(claim, WARNING, "ProvisioningFailed", text)]
        return
    if annotation(claim, PROVISIONER) == provisioner:
        return
    asked = with_annotations(claim, {OLD_PROVISIONER: provisioner, PROVISIONER: provisioner})
    claim = yield from _stored([Replace(CLAIMS, asked)])
    yield [NewEvent(claim, NORMAL, "ExternalProvisioning", _WAITING.format(provisioner))]


def _sync_bound_claim(objects: Objects, claim: Object) -> _Writing:
    wanted = claim["spec"].get("volumeName")
    volume = objects.get(VOLUMES, NamespacedName("", wanted)) if wanted else None
    if not wanted:
        text = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
        yield from _lose_claim(claim, "ClaimLost", text)
    elif volume is None:
        yield from _lose_claim(
            claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        )
    elif volume["spec"].get("claimRef") is None or volume["spec"]["claimRef"].get("uid") == claim["metadata"]["uid"]:
        yield from _bind(volume, claim)
    else:
        text = "Two claims are bound to the same volume, this one is bound incorrectly"
        yield from _lose_claim(claim, "ClaimMisbound", text)


def _lose_claim(claim: Object, reason: str, text: str) -> _Writing:
    if (claim.get("status") or {}).get("phase") == "Lost":
        return
    claim = yield from _set_claim_phase(claim, "Lost", None)
    yield [NewEvent(claim, WARNING, reason, text)]


def _set_claim_phase(claim: Object, phase: str, volume: Object | None) -> _Stored:
    """A claim that is bound has the access modes of its volume. It gets the capacity once: it may grow later."""
    status = dict(claim.get("status") or {})
    if volume is None:
        status.pop("accessModes", None)
        status.pop("capacity", None)
    else:
        status["accessModes"] = volume["spec"].get("accessModes") or []
        if status.get("phase") != phase:
            status["capacity"] = volume["spec"].get("capacity") or {}
            if volume["spec"].get("volumeAttributesClassName"):
                status["currentVolumeAttributesClassName"] = volume["spec"]["volumeAttributesClassName"]
    status["phase"] = phase
    if equal(status, claim.get("status") or {}):
        return claim
    return (yield from _stored([Replace(CLAIMS, with_status(claim, status), "status")]))


# -- both -------------------------------------------------------------------------------------------------------------


def _bind(volume: Object, claim: Object) -> _Writing:
    """Let a volume and a claim name each other, and set the phase of both."""
    bound = _bound_volume(volume, claim)
    if bound is not volume:
        volume = yield from _stored([Replace(VOLUMES, bound)])
    volume = yield from _set_volume_phase(volume, "Bound")
    bound = _bound_claim(claim, volume)
    if bound is not claim:
        claim = yield from _stored([Replace(CLAIMS, bound)])
    yield from _set_claim_phase(claim, "Bound", volume)


def _bound_volume(volume: Object, claim: Object) -> Object:
    """The same object if it is bound already."""
    metadata = claim["metadata"]
    if is_bound_to(volume, claim) and volume["spec"]["claimRef"].get("uid") == metadata["uid"]:
        return volume
    chosen = {} if is_bound_to(volume, claim) else {BOUND_BY_CONTROLLER: "yes"}
    return with_annotations({**volume, "spec": {**volume["spec"], "claimRef": claim_reference(claim)}}, chosen)


def _bound_claim(claim: Object, volume: Object) -> Object:
    name, added = volume["metadata"]["name"], {}
    if claim["spec"].get("volumeName") != name:
        claim = {**claim, "spec": {**claim["spec"], "volumeName": name}}
        added = {BOUND_BY_CONTROLLER: "yes"}
    if annotation(claim, BIND_COMPLETED) is None:
        added = {BIND_COMPLETED: "yes", **added}
    return with_annotations(claim, added)


def _stored(writes: Sequence[Replace]) -> _Stored:
    """Carry out one write."""
    [write] = writes
    [result] = yield writes
    return stored(result) or write.value


# -- volumes ----------------------------------------------------------------------------------------------------------


def _sync_volume(objects: Objects, volume: Object) -> _Writing:
    reference = volume["spec"].get("claimRef")
    if reference is None or not reference.get("uid"):
        yield from _set_volume_phase(volume, "Available")  # one that is reserved is bound with its claim
        return
    claim = objects.get(CLAIMS, NamespacedName(reference["namespace"], reference["name"]))
    if claim is None or claim["metadata"]["uid"] != reference["uid"]:
        yield from _reclaim(volume)
    elif not claim["spec"].get("volumeName"):
        if not has_volume_mode(volume, claim):
            yield list(_mode_events(volume, claim))
    elif claim["spec"]["volumeName"] == volume["metadata"]["name"]:
        yield from _set_volume_phase(volume, "Bound")
    elif annotation(volume, PROVISIONED_BY) is not None and _policy(volume) == "Delete":
        yield from _reclaim(volume)  # made for a claim that has got another one
    else:
        yield from _unbind(volume)


def _mode_events(volume: Object, claim: Object) -> Iterator[NewEvent]:
    names = claim["metadata"]["name"], volume["metadata"]["name"]
    text = (
        f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{names[0]}" due to incompatible volumeMode.'
    )
    yield NewEvent(volume, WARNING, "VolumeMismatch", text)
    text = (
        f'Cannot bind PersistentVolume "{names[1]}" to requested PersistentVolumeClaim due to incompatible volumeMode.'
    )
    yield NewEvent(claim, WARNING, "VolumeMismatch", text)


def _set_volume_phase(volume: Object, phase: str, message: str = "") -> _Stored:
    status = volume.get("status") or {}
    if status.get("phase") == phase:
        return volume
    changed = {name: value for name, value in status.items() if name != "message"} | {"phase": phase}
    if message:
        changed["message"] = message
    return (yield from _stored([Replace(VOLUMES, with_status(volume, changed), "status")]))


def _unbind(volume: Object) -> _Writing:
    """Take back a binding of the controller; one of a person's becomes a reservation again."""
    metadata, spec = dict(volume["metadata"]), dict(volume["spec"])
    if annotation(volume, BOUND_BY_CONTROLLER) is not None:
        del spec["claimRef"]
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != BOUND_BY_CONTROLLER}
    else:
        spec["claimRef"] = {name: value for name, value in spec["claimRef"].items() if name != "uid"}
    volume = yield from _stored([Replace(VOLUMES, {**volume, "metadata": metadata, "spec": spec})])
    yield from _set_volume_phase(volume, "Available")


def _policy(volume: Object) -> str:
    return str(volume["spec"].get("persistentVolumeReclaimPolicy") or "Retain")


def _reclaim(volume: Object) -> _Writing:
    if (volume.get("status") or {}).get("phase") not in ("Released", "Failed"):
        volume = yield from _set_volume_phase(volume, "Released")
    policy = _policy(volume)
    if policy == "Delete":
        yield from _delete(volume)
    elif policy == "Recycle":
        yield from _recycle(volume)


def _recycle(volume: Object) -> _Writing:
    if not {"nfs", "hostPath"} & volume["spec"].keys():
        yield from _fail(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!")
        return
    yield [NewEvent(volume, NORMAL, "VolumeRecycled", "Volume recycled")]
    yield from _unbind(volume)


def _delete(volume: Object) -> _Writing:
    """Its provisioner deletes what it has made; of the others only directories in /tmp/ can be deleted."""
    if annotation(volume, PROVISIONED_BY) is not None or volume["spec"].get("csi") is not None:
        return
    name, directory = volume["metadata"]["name"], volume["spec"].get("hostPath")
    if directory is None:
        text = f'error getting deleter volume plugin for volume "{name}": no deletable volume plugin matched'
        yield from _fail(volume, "VolumeFailedDelete", text)
    elif not directory["path"].startswith("/tmp/"):  # noqa: S108
        text = f"host_path deleter only supports /tmp/.+ but received provided {directory['path']}"
        yield from _fail(volume, "VolumeFailedDelete", text)
    else:
        done_or_gone((yield [Delete(VOLUMES, volume)]))


def _fail(volume: Object, reason: str, text: str) -> _Writing:
    if (volume.get("status") or {}).get("phase") == "Failed":
        return
    volume = yield from _set_volume_phase(volume, "Failed", text)
    yield [NewEvent(volume, WARNING, reason, text)]
