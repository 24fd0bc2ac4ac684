"""scheduling.k8s.io/v1: PriorityClass.

The rules are those of k8s.io/kubernetes pkg/apis/scheduling/validation.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError
from noxu.kinds import checks
from noxu.kinds.checks import Errors
from noxu.kinds.kind import Context, Rules
from noxu.values import Object

SYSTEM: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_RESERVED: Final = "system-"
_HIGHEST: Final = 1_000_000_000


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return list(_create(new) if old is None else _update(new, old))


def _create(new: Object) -> Errors:
    name, value = new["metadata"].get("name", ""), new.get("value", 0)
    if name.startswith(_RESERVED):
        why = _not_a_system_class(name, value, is_default=bool(new.get("globalDefault")))
        if why:
            rule = f"priority class names with '{_RESERVED}' prefix are reserved for system use only. error: {why}"
            yield field.forbidden("metadata.name", rule)
    elif value > _HIGHEST:
        yield field.forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    yield from checks.required_choice(new.get("preemptionPolicy"), "core/v1.PreemptionPolicy", "preemptionPolicy")


def _not_a_system_class(name: str, value: int, *, is_default: bool) -> str:
    """Why it is none of the classes of the system, "" if it is one (IsKnownSystemPriorityClass)."""
    if name not in SYSTEM:
        return f"{name} is not a known system priority class"
    if value != SYSTEM[name]:
        return f"value of {name} PriorityClass must be {SYSTEM[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def _update(new: Object, old: Object) -> Errors:
    if new.get("value", 0) != old.get("value", 0):
        yield field.forbidden("value", "may not be changed in an update.")
    yield from checks.immutable(new.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy")


RULES: Final = {"PriorityClass": Rules(validate=_validate)}
