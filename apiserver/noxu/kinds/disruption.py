"""policy/v1: PodDisruptionBudget.

The rules are those of k8s.io/kubernetes pkg/apis/policy/validation.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.kinds import checks, conditions
from noxu.kinds.checks import Errors
from noxu.kinds.kind import Context, Rules
from noxu.kinds.selectors import label_selector_errors
from noxu.values import Object

_EVICTION_POLICIES: Final = ["AlwaysAllow", "IfHealthyBudget"]
_COUNTERS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:
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
    yield from conditions.errors(status.get("conditions"), "status.conditions")
    for name in _COUNTERS:
        yield from checks.nonnegative(status.get(name), f"status.{name}")


RULES: Final = {"PodDisruptionBudget": Rules(validate=_validate)}
