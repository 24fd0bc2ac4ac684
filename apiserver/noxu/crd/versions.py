"""The versions of a CRD: the storage version, the served versions and their order."""

from __future__ import annotations

from typing import Final

from noxu.expressions import expression
from noxu.values import MAX_INT64, Object

_KUBE_AWARE: Final = expression(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?\Z")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


def version_priority(name: str) -> tuple[int, int, int, int, str]:
    """A sort key: v10, v2, v1, v1beta2, v1alpha1, and then all other names from A to Z."""
    match = _KUBE_AWARE.match(name)
    if match:
        major, minor = int(match[1]), int(match[3] or 0)
        if max(major, minor) <= MAX_INT64:
            return 0, _STABILITY[match[2]], -major, -minor, ""
    return 1, 0, 0, 0, name


def storage_version(crd: Object) -> str | None:
    """The storage version; None if there is none, which validation does not allow."""
    return next((version["name"] for version in crd["spec"]["versions"] or [] if version["storage"]), None)


def served_versions(crd: Object) -> list[str]:
    """The names of the served versions, the preferred one first."""
    names = (version["name"] for version in crd["spec"]["versions"] or [] if version["served"])
    return sorted(names, key=version_priority)


def version_of(crd: Object, name: str) -> Object | None:
    return next((version for version in crd["spec"]["versions"] or [] if version["name"] == name), None)


def deprecation_warning(crd: Object, name: str) -> str:
    """The warning in responses to requests at a version, "" if the version is not deprecated."""
    version = version_of(crd, name)
    if version is None or not version.get("deprecated"):
        return ""
    custom: str | None = version.get("deprecationWarning")
    if custom is not None:
        return custom
    group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
    warning = f"{group}/{name} {kind} is deprecated"
    newer = [
        other["name"]
        for other in crd["spec"]["versions"]
        if other["served"] and not other.get("deprecated") and version_priority(other["name"]) < version_priority(name)
    ]
    return f"{warning}; use {group}/{min(newer, key=version_priority)} {kind}" if newer else warning
