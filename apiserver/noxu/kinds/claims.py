"""The specs of PersistentVolumeClaims, and of the templates for claims in pods and StatefulSets.

The rules are those of k8s.io/kubernetes: ValidatePersistentVolumeClaimSpec in pkg/apis/core/validation.
"""

from __future__ import annotations

from noxu.api import field
from noxu.api.field import Path, Verbatim, as_json
from noxu.api.names import dns1123_subdomain, label_name, subdomain_name
from noxu.go import quantity
from noxu.kinds import checks
from noxu.kinds.checks import Errors
from noxu.kinds.selectors import label_selector_errors
from noxu.values import Object


def access_modes(modes: list[str], path: Path) -> Errors:
    known = checks.choices("core/v1.PersistentVolumeAccessMode")
    for mode in modes:
        if mode not in known:
            yield field.not_supported(path, as_json(mode), known)
    if "ReadWriteOncePod" in modes and any(mode in known and mode != "ReadWriteOncePod" for mode in modes):
        yield field.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def positive(text: str, path: Path) -> Errors:
    if quantity.parse(text).digits <= 0:
        yield field.invalid(path, text, checks.NOT_POSITIVE)


def class_name(name: str, path: Path) -> Errors:
    return checks.named(name, subdomain_name, path)


def claim_spec(spec: Object, path: Path, old: Object | None = None) -> Errors:
    """The spec of a claim, or of a template for claims (ValidatePersistentVolumeClaimSpec)."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield field.required(f"{path}.accessModes", "at least 1 access mode is required")
    if spec.get("selector") is not None:
        before = (old or {}).get("selector")
        any_value = before is not None and bool(label_selector_errors(before, path))
        yield from label_selector_errors(spec["selector"], f"{path}.selector", any_value=any_value)
    yield from access_modes(modes, f"{path}.accessModes")
    amount = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if amount is None:
        yield field.required(f"{path}.resources[storage]")
    else:
        yield from positive(amount, f"{path}.resources[storage]")
    if spec.get("storageClassName"):
        yield from class_name(spec["storageClassName"], f"{path}.storageClassName")
    yield from checks.choice(spec.get("volumeMode"), "core/v1.PersistentVolumeMode", f"{path}.volumeMode")
    yield from _data_sources(spec, old or {}, path)
    if spec.get("volumeAttributesClassName"):
        yield from class_name(spec["volumeAttributesClassName"], f"{path}.volumeAttributesClassName")


def _data_sources(spec: Object, old: Object, path: Path) -> Errors:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    any_group = any((old.get(name) or {}).get("apiGroup") is not None for name in ("dataSource", "dataSourceRef"))
    for name, given in (("dataSource", source), ("dataSourceRef", reference)):
        if given is not None:
            yield from _data_source(given, f"{path}.{name}", any_group=any_group)
    namespace = (reference or {}).get("namespace")
    if namespace:
        yield from checks.named(namespace, label_name, f"{path}.dataSourceRef.namespace")
    if source is None or reference is None:
        return
    shown = Verbatim(f"{path}.dataSource")  # upstream prints a path, without quotes
    if namespace:
        yield field.invalid(path, shown, "may not be specified when dataSourceRef.namespace is specified")
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        yield field.invalid(path, shown, "must match dataSourceRef")


def _data_source(given: Object, path: Path, *, any_group: bool) -> Errors:
    for name in ("name", "kind"):
        if not given.get(name):
            yield field.required(f"{path}.{name}")
    group, kind = given.get("apiGroup") or "", given.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        yield field.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    if group and not any_group:
        yield from (field.invalid(f"{path}.apiGroup", group, text) for text in dns1123_subdomain(group))
