"""References to fields of the pod, and to resources of a container, in environment variables and files (downward API).

The rules are those of k8s.io/kubernetes: validateObjectFieldSelector and validateContainerResourceFieldSelector in
pkg/apis/core/validation, ConvertDownwardAPIFieldLabel in pkg/apis/core/pods, and pkg/fieldpath.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from noxu.api import field
from noxu.api.field import Path
from noxu.kinds import checks
from noxu.kinds.checks import Errors
from noxu.values import Object

_RESOURCES: Final = sorted(
    f"{verb}.{name}" for verb in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES: Final = ("requests.hugepages-", "limits.hugepages-")
_FIELDS: Final = frozenset(
    {"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
     "spec.restartPolicy", "spec.serviceAccountName", "spec.schedulerName", "status.phase", "status.hostIP",
     "status.hostIPs", "status.podIP", "status.podIPs", "spec.terminationGracePeriodSeconds"}
)  # fmt: skip
_subscript: Final = re.compile(r"(.+?)\['(.*)'\]", re.DOTALL).fullmatch
_BYTES: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVISORS: Final = {"cpu": ("1m", "1"), "memory": _BYTES, "ephemeral-storage": _BYTES}
_DIVIDED: Final = {"ephemeral-storage": "local ephemeral storage"}


def field_of_pod(reference: Object, supported: Collection[str], path: Path) -> Errors:
    """`metadata.name`, or one label or annotation: `metadata.labels['app']`. `supported` are the fields without subscript."""
    version, field_path = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version or not field_path:
        yield field.required(f"{path}.{'fieldPath' if version else 'apiVersion'}")
        return
    parts = _subscript(field_path)
    name = parts[1] if parts else field_path
    if version != "v1" or not (name in ("metadata.annotations", "metadata.labels") if parts else _converts(field_path)):
        why = (
            f"unsupported pod version: {version}"
            if version != "v1"
            else _unsupported(field_path, has_subscript=bool(parts))
        )
        yield field.invalid(f"{path}.fieldPath", field_path, f"error converting fieldPath: {why}")
    elif parts:
        yield from checks.qualified(parts[2].lower() if name == "metadata.annotations" else parts[2], path)
    elif _ALIASES.get(name, name) not in supported:
        yield field.not_supported(f"{path}.fieldPath", _ALIASES.get(name, name), sorted(supported))


_ALIASES: Final = {"spec.host": "spec.nodeName"}


def _converts(name: str) -> bool:
    return name in _FIELDS or name in _ALIASES


def _unsupported(name: str, *, has_subscript: bool) -> str:
    if has_subscript:
        return f"field label does not support subscript: {name}"
    return f"field label not supported: {name}"


def resource_of_container(reference: Object, path: Path, *, needs_container: bool) -> Errors:
    resource, divisor = reference.get("resource", ""), reference.get("divisor") or "0"
    if needs_container and not reference.get("containerName"):
        yield field.required(f"{path}.containerName")
    elif not resource:
        yield field.required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield field.not_supported(f"{path}.resource", resource, _RESOURCES)
    if divisor == "0":
        return
    name = resource.partition(".")[2]
    is_huge = resource.startswith(_HUGE_PAGES)
    allowed = _BYTES if is_huge else _DIVISORS.get(name) if resource in _RESOURCES else None
    if allowed is not None and divisor not in allowed:
        resource_name = "hugepages" if is_huge else _DIVIDED.get(name, name)
        values = "1m and 1" if name == "cpu" else ", ".join(_BYTES)
        rule = f"only divisor's values {values} are supported with the {resource_name} resource"
        yield field.invalid(f"{path}.divisor", resource, rule)
