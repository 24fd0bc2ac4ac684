"""Owners of a custom resource's replicas in its /scale subresource.

In a Scale, a manager owns `.spec.replicas` of an autoscaling/v1 Scale; in the custom resource that is the field at
specReplicasPath. (apimachinery's managedfields/scalehandler.go.) As there, an updater that owns the replicas in the
custom resource is a different manager in the Scale, because the apiVersion is part of its identity: any write to /scale
removes the field from its entry and, if it is still the owner, puts it into a new one without a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from noxu.apply.entries import Managers, Owned, decode, encode
from noxu.apply.fieldset import Path, contains, difference, field, of
from noxu.apply.tracker import Tracker
from noxu.apply.types import SCALE
from noxu.values import Json, Object

VERSION: Final = "autoscaling/v1"
REPLICAS: Final[Path] = ("f:spec", "f:replicas")

TRACKER: Final = Tracker(VERSION, "Scale", {VERSION: SCALE}, subresource="scale")
"""For `update` and `apply` of a Scale."""


def path_of(json_path: str) -> Path:
    """A specReplicasPath, `.spec.replicas`, as a path of elements."""
    return tuple(map(field, json_path.removeprefix(".").split(".")))


def to_scale(entries: Json, replicas: Mapping[str, Path | None]) -> list[Object]:
    """The managedFields of a Scale. `replicas` are the paths by apiVersion, None at a version without /scale."""
    found: Managers = {}
    for manager, owned in decode(entries).items():
        path = replicas.get(owned.version)
        if path and contains(owned.fields, path):
            found[manager] = Owned(of(REPLICAS), VERSION, owned.time)
    return encode(found)


def to_parent(entries: Json, scale_entries: Json, version: str, replicas: Mapping[str, Path | None]) -> list[Object]:
    """The managedFields of a custom resource, formerly `entries`, after its Scale was written at that apiVersion."""
    parents = decode(entries)
    scales = decode(scale_entries)
    found: Managers = {}
    for manager, owned in parents.items():
        if owned.version not in replicas:
            continue  # the version does not exist any more
        path = replicas[owned.version]
        if not path or not contains(owned.fields, path):
            found[manager] = owned
        elif manager in scales:
            found[manager] = owned
            del scales[manager]
        elif fields := difference(owned.fields, of(path)):
            found[manager] = Owned(fields, owned.version, owned.time)
    written = replicas[version]
    for manager, owned in scales.items():
        if written and contains(owned.fields, REPLICAS):
            before = parents.get(manager)
            found[manager] = Owned(of(written), version, before.time if before else "")
    return encode(found)
