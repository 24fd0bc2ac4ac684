"""scheduling.k8s.io/v1: PriorityClass; policy/v1: PodDisruptionBudget.

The rules are those of k8s.io/kubernetes pkg/apis/scheduling/validation and pkg/apis/policy/validation.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.kinds import checks
from noxu.kinds.checks import Errors, label_selector_errors
from noxu.kinds.kind import Context, Rules
from noxu.values import Object

SYSTEM: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_RESERVED: Final = "system-"
_HIGHEST: Final = 1_000_000_000


def _validate_class(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
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


RULES: Final = {"PriorityClass": Rules(validate=_validate_class)}


# -- disruption -------------------------------------------------------------------------------------------------------


_EVICTION_POLICIES: Final = ["AlwaysAllow", "IfHealthyBudget"]
_COUNTERS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def _validate_budget(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if context.subresource:
        return list(_status(new.get("status") or {}))
    spec: Object = new.get("spec") or {}
    before = ((old or {}).get("spec") or {}).get("selector")
    return list(_spec(spec, any_value=bool(before and label_selector_errors(before, ""))))


def _spec(spec: Object, *, any_value: bool) -> Errors:
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = checks.struct_json("policy/v1.PodDisruptionBudgetSpec", spec)
        yield field.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name, value in (("minAvailable", least), ("maxUnavailable", most)):
        if value is not None:
            yield from checks.int_or_percentage(value, f"spec.{name}")
            yield from _no_more_than_all(value, f"spec.{name}")
    if spec.get("selector") is not None:
        yield from label_selector_errors(spec["selector"], "spec.selector", any_value=any_value)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION_POLICIES:
        yield field.not_supported("spec.unhealthyPodEvictionPolicy", as_json(policy), _EVICTION_POLICIES)


def _no_more_than_all(value: int | str, path: Path) -> Errors:
    percentage = checks.parsed_percentage(value)
    if percentage is not None and percentage > 100:
        yield field.invalid(path, value, "must not be greater than 100%")


def _status(status: Object) -> Errors:
    yield from checks.errors(status.get("conditions"), "status.conditions")
    for name in _COUNTERS:
        yield from checks.nonnegative(status.get(name), f"status.{name}")


DISRUPTION_RULES: Final = {"PodDisruptionBudget": Rules(validate=_validate_budget)}
