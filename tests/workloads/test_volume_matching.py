"""Which volume is chosen for a claim (upstream's index_test.go)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from noxu.values import Object
from noxu.workloads.objects import STORAGE_CLASSES, VOLUMES, Objects
from noxu.workloads.volume_matching import best_volume, default_class, mismatch
from tests.rows import rows
from tests.workloads.plays import NOW
from tests.workloads.volumes.storage import UID, claim, reserved, storage_class, volume

RWO, ROX, RWX = "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"


def chosen(wanted: Object, *volumes: Object, **more: Any) -> str:
    objects = Objects((VOLUMES, found) for found in volumes)
    best = best_volume(objects, wanted, **{"reserved_only": False, **more})
    return "" if best is None else str(best["metadata"]["name"])


SIZES = [volume("ten", "10Gi"), volume("two", "2Gi"), volume("one", "1Gi"), volume("three", "3Gi")]


@rows(
    "situation, wanted, volumes, expected",
    [
        ("there is none", claim(), [], ""),
        ("the smallest that is large enough", claim("2Gi"), SIZES, "two"),
        ("units are compared by value", claim("1500Mi"), SIZES, "two"),
        ("all are too small", claim("11Gi"), SIZES, ""),
        ("the first by name of the same size", claim(), [volume("b"), volume("a")], "a"),
        ("fewer access modes before less capacity", claim("1Gi", RWO), [volume("many", "1Gi", RWO, ROX), volume("few", "5Gi", RWO)], "few"),
        ("all access modes are needed", claim("1Gi", RWO, ROX), [volume("few", "5Gi", RWO), volume("many", "9Gi", RWO, ROX, RWX)], "many"),
        ("no volume has the access mode", claim("1Gi", RWX), SIZES, ""),
        ("a block device is no file system", claim(), [volume(volumeMode="Block")], ""),
        ("a block device", claim(volumeMode="Block"), [volume("file"), volume("block", volumeMode="Block")], "block"),
        ("of the same class", claim(storageClassName="fast"), [volume("a"), volume("b", "9Gi", storageClassName="fast")], "b"),
        ("of no class", claim(), [volume(storageClassName="fast")], ""),
        ("the class of an older annotation", claim(annotations={"volume.beta.kubernetes.io/storage-class": "fast"}), [volume("a"), volume("b", storageClassName="fast")], "b"),
        ("of the same attributes", claim(volumeAttributesClassName="gold"), [volume("a"), volume("b", volumeAttributesClassName="gold")], "b"),
        ("selected", claim(selector={"matchLabels": {"a": "b"}}), [volume("a"), volume("b", "5Gi", labels={"a": "b"})], "b"),
        ("none is selected", claim(selector={"matchLabels": {"a": "b"}}), [volume("a")], ""),
        ("one that is released is not free", claim(), [volume(phase="Released")], ""),
        ("one that is new is not free yet", claim(), [volume(phase="Pending")], ""),
        ("one that is being deleted", claim(), [volume(deleted=True)], ""),
        ("one that is another claim's", claim(), [volume(claimRef=reserved("d"))], ""),
        ("one that was that of an older claim of this name", claim(), [volume(claimRef=reserved(uid="old"))], ""),
        ("one that is reserved for it", claim(), [volume("a"), volume("b", "9Gi", claimRef=reserved())], "b"),
        ("one that is bound to it", claim(), [volume("a"), volume("b", "9Gi", claimRef=reserved(uid=UID), phase="Bound")], "b"),
        ("one that is reserved and too small", claim("5Gi"), [volume("a", claimRef=reserved())], ""),
        ("one that is reserved needs no label", claim(selector={"matchLabels": {"a": "b"}}), [volume(claimRef=reserved())], "v"),
    ],
)  # fmt: skip
def test_the_best_volume(situation: str, wanted: Object, volumes: list[Object], expected: str) -> None:
    assert chosen(wanted, *volumes) == expected, situation


def test_a_claim_that_waits_gets_only_what_is_reserved() -> None:
    assert chosen(claim(), volume(), reserved_only=True) == ""
    assert chosen(claim(), volume("a"), volume("b", claimRef=reserved()), reserved_only=True) == "b"


@rows(
    "wanted, found, expected",
    [
        (claim(), volume(), ""),
        (claim("2Gi"), volume(), "requested PV is too small"),
        (claim(storageClassName="fast"), volume(), "storageClassName does not match"),
        (claim(volumeMode="Block"), volume(), "incompatible volumeMode"),
        (claim("1Gi", RWX), volume(), "incompatible accessMode"),
        (claim("2Gi"), volume(deleted=True), 'the volume is marked for deletion "v"'),
    ],
)
def test_why_a_volume_does_not_fit(wanted: Object, found: Object, expected: str) -> None:
    assert mismatch(found, wanted) == expected


def test_the_youngest_default_class_is_the_default() -> None:
    is_default = {"storageclass.kubernetes.io/is-default-class": "true"}
    old_default = {"storageclass.beta.kubernetes.io/is-default-class": "true"}
    classes = [
        storage_class("plain"),
        storage_class("old", annotations=is_default, created=NOW - timedelta(days=1)),
        storage_class("b", annotations=old_default),
        storage_class("a", annotations=is_default),
        storage_class("off", annotations={"storageclass.kubernetes.io/is-default-class": "false"}),
    ]
    found = default_class(Objects((STORAGE_CLASSES, value) for value in classes))
    assert found is not None
    assert found["metadata"]["name"] == "a"
    assert default_class(Objects((STORAGE_CLASSES, value) for value in classes[:1])) is None
