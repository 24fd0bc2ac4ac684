"""core/v1: ResourceQuota and LimitRange.

The rules are those of k8s.io/kubernetes: ValidateResourceQuota and ValidateLimitRange in pkg/apis/core/validation, and the
names of resources in pkg/apis/core/helper.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.kinds import checks
from noxu.kinds.checks import Errors
from noxu.kinds.kind import Context, Rules
from noxu.kinds.resource_requirements import (
    HUGE_PAGES,
    compare,
    container_name,
    may_overcommit,
    parse,
    quantity_value,
    standard_name,
)
from noxu.values import Object

_COMPUTE: Final = frozenset(
    {"cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage", "limits.cpu",
     "limits.memory", "limits.ephemeral-storage"}
)  # fmt: skip
_STORAGE: Final = frozenset({"requests.storage", "persistentvolumeclaims"})
_COUNTS: Final = frozenset(
    {"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "persistentvolumeclaims", "configmaps",
     "services.nodeports", "services.loadbalancers"}
)  # fmt: skip
_EXISTS_ONLY: Final = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_CONFLICTS: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_MUST_EXIST: Final = (
    "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


# -- ResourceQuota ----------------------------------------------------------------------------------------------------


def _is_standard(name: str) -> bool:
    return name in _COMPUTE | _STORAGE | _COUNTS or name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))


def _fits(scope: str, name: str) -> bool:
    """Whether a scope can be applied to a resource (IsResourceQuotaScopeValidForResource)."""
    if scope == "BestEffort":
        return name == "pods"
    if scope == "VolumeAttributesClass":
        return name in _STORAGE
    if scope in ("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"):
        return name in _COMPUTE or name == "pods" or name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))
    return True


def _amounts(amounts: dict[str, str] | None, path: Path) -> Errors:
    for name, text in sorted((amounts or {}).items()):
        where = f"{path}[{name}]"
        yield from standard_name(name, where)
        if "/" not in name and not _is_standard(name):
            yield field.invalid(where, as_json(name), "must be a standard resource for quota")
        yield from quantity_value(name, text, where)


def _validate_quota(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if context.subresource:
        status: Object = new.get("status") or {}
        return [error for kind in ("hard", "used") for error in _amounts(status.get(kind), f"status.{kind}")]
    spec: Object = new.get("spec") or {}
    errors = list(_quota(spec))
    if old is not None:
        scopes, before = spec.get("scopes") or [], (old.get("spec") or {}).get("scopes") or []
        if set(scopes) != set(before):
            errors.append(field.invalid("spec.scopes", scopes, checks.IMMUTABLE))
    return errors


def _quota(spec: Object) -> Errors:
    hard, scopes = spec.get("hard") or {}, spec.get("scopes") or []
    yield from _amounts(hard, "spec.hard")
    yield from _scopes(scopes, scopes, hard, "spec.scopes")
    if spec.get("scopeSelector") is not None:
        yield from _selector(spec["scopeSelector"], hard, scopes, "spec.scopeSelector.matchExpressions")


def _scopes(scopes: list[str], shown: list[str], hard: Iterable[str], path: Path) -> Errors:
    for scope in scopes:
        if scope not in checks.choices("core/v1.ResourceQuotaScope"):
            yield field.invalid(path, shown, "unsupported scope")
        for name in sorted(hard):
            if _is_standard(name) and not _fits(scope, name):
                yield field.invalid(path, shown, "unsupported scope applied to resource")
    yield from _conflicts(scopes, shown, path)


def _conflicts(scopes: list[str], shown: list[str], path: Path) -> Errors:
    for pair in _CONFLICTS:
        if pair <= set(scopes):
            yield field.invalid(path, shown, "conflicting scopes")


def _selector(selector: Object, hard: Iterable[str], scopes: list[str], path: Path) -> Errors:
    requirements: list[Object] = selector.get("matchExpressions") or []
    for requirement in requirements:
        scope, operator = requirement.get("scopeName", ""), requirement.get("operator", "")
        values = requirement.get("values") or []
        if scope not in checks.choices("core/v1.ResourceQuotaScope"):
            yield field.invalid(f"{path}.scopeName", as_json(scope), "unsupported scope")
        for name in sorted(hard):
            if _is_standard(name) and not _fits(scope, name):
                shown = checks.struct_json("core/v1.ScopeSelector", selector)
                yield field.invalid(path, shown, "unsupported scope applied to resource")
        if scope in _EXISTS_ONLY and operator != "Exists":
            yield field.invalid(f"{path}.operator", as_json(operator), _MUST_EXIST)
        if operator in ("In", "NotIn"):
            if not values:
                rule = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield field.required(f"{path}.values", rule)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                rule = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield field.invalid(f"{path}.values", values, rule)
        else:
            yield field.invalid(f"{path}.operator", as_json(operator), "not a valid selector operator")
    yield from _conflicts([requirement.get("scopeName", "") for requirement in requirements], scopes, path)


# -- LimitRange -------------------------------------------------------------------------------------------------------


def _validate_limits(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return list(_limits((new.get("spec") or {}).get("limits") or []))


def _limits(limits: list[Object]) -> Errors:
    seen = set()
    for n, limit in enumerate(limits):
        path, kind = f"spec.limits[{n}]", limit.get("type", "")
        wrong = list(checks.qualified(kind, f"{path}.type"))
        yield from wrong
        if not wrong and "/" not in kind and kind not in checks.choices("core/v1.LimitType"):
            yield field.invalid(f"{path}.type", as_json(kind), "must be a standard limit type or fully qualified")
        if kind in seen:
            yield field.duplicate(f"{path}.type", as_json(kind))
        seen.add(kind)
        yield from _limit(limit, kind, path)


def _limit(limit: Object, kind: str, path: Path) -> Errors:
    name_errors = container_name if kind in ("Pod", "Container") else standard_name
    parts = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
    by_part: dict[str, dict[str, str]] = {part: limit.get(part) or {} for part in parts}
    for part in parts:
        if kind == "Pod" and part in ("default", "defaultRequest"):
            if by_part[part]:
                yield field.forbidden(f"{path}.{part}", "may not be specified when `type` is 'Pod'")
            by_part[part] = {}
        if part == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim" and not _has_storage(limit):
            rule = "either minimum or maximum storage value is required, but neither was provided"
            yield field.required(f"{path}.limits", rule)
        for name in sorted(by_part[part]):
            yield from name_errors(name, f"{path}.{part}[{name}]")
    for name in sorted({name for amounts in by_part.values() for name in amounts}):
        yield from _order(name, {part: amounts.get(name) for part, amounts in by_part.items()}, path)


def _has_storage(limit: Object) -> bool:
    return any("storage" in (limit.get(part) or {}) for part in ("min", "max"))


_ORDERS: Final = (  # (the smaller, the larger, the field of the error, the printed part, their words)
    ("min", "max", "min", "min", "min value", "max value"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest", "min value", "default request value"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest", "default request value", "max value"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest", "default request value", "default limit value"),
    ("min", "default", "default", "min", "min value", "default value"),
    ("default", "max", "default", "max", "default value", "max value"),
)


def _order(name: str, amounts: dict[str, str | None], path: Path) -> Errors:
    for low, high, where, printed, low_word, high_word in _ORDERS:
        less, more = amounts[low], amounts[high]
        if less is not None and more is not None and compare(less, more) > 0:
            rule = f"{low_word} {less} is greater than {high_word} {more}"
            yield field.invalid(f"{path}.{where}[{name}]", amounts[printed], rule)
    ratio, least, most = amounts["maxLimitRequestRatio"], amounts["min"], amounts["max"]
    if ratio is not None:
        where = f"{path}.maxLimitRequestRatio[{name}]"
        if compare(ratio, "1") < 0:
            yield field.invalid(where, ratio, f"ratio {ratio} is less than 1")
        if least is not None and most is not None and parse(least).digits:
            largest = _value(most) / _value(least)
            if _value(ratio) > largest:
                yield field.invalid(where, ratio, f"ratio {ratio} is greater than max/min = {largest:f}")
    default, request = amounts["default"], amounts["defaultRequest"]
    if not may_overcommit(name) and default is not None and request is not None and compare(default, request):
        rule = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield field.invalid(f"{path}.defaultRequest[{name}]", request, rule)


def _value(text: str) -> float:
    amount = parse(text)
    return float(amount.digits) * 10.0**amount.exponent


RULES: Final = {"ResourceQuota": Rules(validate=_validate_quota), "LimitRange": Rules(validate=_validate_limits)}
