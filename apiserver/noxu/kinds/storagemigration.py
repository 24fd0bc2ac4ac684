"""storagemigration.k8s.io/v1: StorageVersionMigration. A controller runs it (controllers.storage_migrations).

The rules are those of k8s.io/kubernetes pkg/apis/storagemigration/validation.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError
from noxu.go.text import quote
from noxu.kinds import checks, conditions
from noxu.kinds.checks import Errors
from noxu.kinds.kind import Context, Rules
from noxu.values import MAX_INT64, Object

_FINAL: Final = (("Succeeded", "success", "Success"), ("Failed", "failed", "Failed"))


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if context.subresource:
        return list(_status(new.get("status") or {}, (old or {}).get("status") or {}))
    resource: Object = (new.get("spec") or {}).get("resource") or {}
    errors = [] if resource.get("resource") else [field.required("spec.resource.resource", "resource is required")]
    if old is not None:
        before: Object = (old.get("spec") or {}).get("resource") or {}
        for name in ("group", "resource"):
            errors += checks.immutable(resource.get(name, ""), before.get(name, ""), name)
    return errors


def _status(status: Object, before: Object) -> Errors:
    path, version = "status.resourceVersion", status.get("resourceVersion", "")
    if version and (not version.isdecimal() or len(version) > 19 or int(version) > MAX_INT64):
        why = f"failed to parse resource version {quote(version)}: strconv.ParseInt: parsing {quote(version)}: invalid syntax"
        yield field.invalid(path, version, why)
    given: list[Object] | None = status.get("conditions") or None
    yield from conditions.errors(given, "status.conditions")
    if before.get("resourceVersion") and before["resourceVersion"] != version:
        yield field.invalid(path, version, "cannot be updated")
    path = "status.conditions"
    true, were_true = _true(given or []), _true(before.get("conditions") or [])
    if {"Succeeded", "Failed"} <= true:
        rule = "Both success and failed conditions cannot be true at the same time"
        yield field.invalid(path, given, rule)
    for kind, word, _ in _FINAL:
        if {kind, "Running"} <= true:
            yield field.invalid(path, given, f"Running condition cannot be true when {word} condition is true")
    for kind, _, word in _FINAL:
        if kind in were_true and kind not in true:
            yield field.invalid(path, given, f"{word} condition cannot be set to false once it is true")


def _true(given: list[Object]) -> set[str]:
    return {condition.get("type", "") for condition in given if condition.get("status") == "True"}


RULES: Final = {"StorageVersionMigration": Rules(validate=_validate)}
