"""autoscaling/v2 and v1: HorizontalPodAutoscaler.

The rules are those of k8s.io/kubernetes pkg/apis/autoscaling/validation. Objects of v1 are validated as v2, which they are
stored as, so that errors name fields of v2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import path_segment_name
from noxu.go import quantity
from noxu.kinds import autoscaler_versions, checks
from noxu.kinds.autoscaler_versions import V1
from noxu.kinds.checks import Errors
from noxu.kinds.kind import Context, Rules
from noxu.kinds.resource_requirements import container_name
from noxu.values import Object

_MAX_PERIOD: Final = 1800  # seconds
_MAX_WINDOW: Final = 3600  # seconds
_SELECT_POLICIES: Final = ["Disabled", "Max", "Min"]
_POLICIES: Final = ["Percent", "Pods"]
_TARGETS: Final = ("Utilization", "Value", "AverageValue")
_RAW: Final = "must set either a target raw value or a target utilization"
_NOT_BOTH: Final = "may not set both a target raw value and a target utilization"


def _default(value: Object) -> None:
    """Behaviour of one direction gets the defaults of that direction; a v1 object is as v2 would be shown in v1."""
    if value.get("apiVersion") == V1:
        shown = autoscaler_versions.to_v1(autoscaler_versions.to_v2(value))
        value.clear()
        value.update(shown)


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if new.get("apiVersion") == V1:
        new = autoscaler_versions.to_v2(new)
        old = old if old is None else autoscaler_versions.to_v2(old)
    if context.subresource:
        status: Object = new.get("status") or {}
        counters = ("currentReplicas", "desiredReplicas")
        return [error for name in counters for error in checks.nonnegative(status.get(name), f"status.{name}")]
    before = ((old or {}).get("spec") or {}).get("minReplicas")
    return list(_spec(new.get("spec") or {}, lowest=0 if before == 0 else 1))


def _spec(spec: Object, *, lowest: int) -> Errors:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if least is not None and least < lowest:
        yield field.invalid("spec.minReplicas", least, f"must be greater than or equal to {lowest}")
    if most == 0:
        yield field.required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 1:
        yield field.invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
    if least is not None and most < least:
        yield field.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    yield from _reference(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef")
    metrics: list[Object] = spec.get("metrics") or []
    yield from checks.each(metrics, "spec.metrics", _metric)
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        rule = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield field.forbidden("spec.metrics", rule)
    for direction in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(direction)
        if rules is not None:
            yield from _scaling(rules, f"spec.behavior.{direction}")


def _reference(reference: Object, path: Path) -> Errors:
    for name in ("kind", "name"):
        value = reference.get(name, "")
        if not value:
            yield field.required(f"{path}.{name}")
        else:
            yield from checks.named(value, path_segment_name, f"{path}.{name}")


def _scaling(rules: Object, path: Path) -> Errors:
    window, select, policies = (rules.get(name) for name in ("stabilizationWindowSeconds", "selectPolicy", "policies"))
    if window is not None and window < 0:
        rule = "must be greater than or equal to zero"
        yield field.invalid(f"{path}.stabilizationWindowSeconds", window, rule)
    if window is not None and window > _MAX_WINDOW:
        rule = f"must be less than or equal to {_MAX_WINDOW}"
        yield field.invalid(f"{path}.stabilizationWindowSeconds", window, rule)
    if select is not None and select not in _SELECT_POLICIES:
        yield field.not_supported(f"{path}.selectPolicy", as_json(select), _SELECT_POLICIES)
    if not policies:
        yield field.required(f"{path}.policies", "must specify at least one Policy")
    yield from checks.each(policies, f"{path}.policies", _scaling_policy)
    tolerance = rules.get("tolerance")
    if tolerance is not None and quantity.parse(tolerance).digits < 0:
        yield field.invalid(f"{path}.tolerance", tolerance, checks.NEGATIVE)


def _scaling_policy(policy: Object, path: Path) -> Errors:
    if policy.get("type", "") not in _POLICIES:
        yield field.not_supported(f"{path}.type", as_json(policy.get("type", "")), _POLICIES)
    for name in ("value", "periodSeconds"):
        if policy.get(name, 0) <= 0:
            yield field.invalid(f"{path}.{name}", policy.get(name, 0), "must be greater than zero")
    if policy.get("periodSeconds", 0) > _MAX_PERIOD:
        rule = f"must be less than or equal to {_MAX_PERIOD}"
        yield field.invalid(f"{path}.periodSeconds", policy["periodSeconds"], rule)


# -- metrics ----------------------------------------------------------------------------------------------------------


def _metric(metric: Object, path: Path) -> Errors:
    """Exactly the source that `type` names."""
    kind = metric.get("type", "")
    if not kind:
        yield field.required(f"{path}.type", "must specify a metric source type")
    if kind not in _SOURCE_OF:
        yield field.not_supported(f"{path}.type", as_json(kind), sorted(_SOURCE_OF))
    present = [name for name in _SOURCES if metric.get(name) is not None]
    if present:
        yield from _SOURCES[present[0]](metric[present[0]], f"{path}.{present[0]}")
    expected = _SOURCE_OF.get(kind, "")
    if not expected:
        yield field.not_supported(f"{path}.type", as_json(kind), sorted(_SOURCE_OF))
    elif expected not in present:
        yield field.required(f"{path}.{expected}", "must populate information for the given metric source")
    if len(present) != 1:
        others = (name for name in present if name != expected)
        yield from (field.forbidden(f"{path}.{name}", "must populate the given metric source only") for name in others)


def _target_of(source: Object) -> Object:
    target: Object = source.get("target") or {}
    return target


def _object(source: Object, path: Path) -> Errors:
    yield from _reference(source.get("describedObject") or {}, f"{path}.describedObject")
    yield from _identifier(source, path)
    target = _target_of(source)
    yield from _target(target, f"{path}.target")
    if target.get("value") is None and target.get("averageValue") is None:
        yield field.required(f"{path}.target.averageValue", "must set either a target value or averageValue")


def _external(source: Object, path: Path) -> Errors:
    yield from _identifier(source, path)
    target = _target_of(source)
    yield from _target(target, f"{path}.target")
    is_set = [target.get(name) is not None for name in ("value", "averageValue")]
    if not any(is_set):
        rule = "must set either a target value for metric or a per-pod target"
        yield field.required(f"{path}.target.averageValue", rule)
    if all(is_set):
        rule = "may not set both a target value for metric and a per-pod target"
        yield field.forbidden(f"{path}.target.value", rule)


def _pods(source: Object, path: Path) -> Errors:
    yield from _identifier(source, path)
    target = _target_of(source)
    yield from _target(target, f"{path}.target")
    if target.get("averageValue") is None:
        yield field.required(f"{path}.target.averageValue", "must specify a positive target averageValue")


def _resource(source: Object, path: Path) -> Errors:
    if not source.get("name"):
        yield field.required(f"{path}.name", "must specify a resource name")
    yield from _usage(_target_of(source), f"{path}.target")


def _container_resource(source: Object, path: Path) -> Errors:
    if not source.get("name"):
        yield field.required(f"{path}.name", "must specify a resource name")
    else:
        yield from container_name(source["name"], f"{path}.name")
    if not source.get("container"):
        yield field.required(f"{path}.container", "must specify a container")
    else:
        yield from checks.label(source["container"], f"{path}.container")
    yield from _usage(_target_of(source), f"{path}.target")


def _usage(target: Object, path: Path) -> Errors:
    """The target of a resource: a value or a percentage."""
    yield from _target(target, path)
    is_set = [target.get(name) is not None for name in ("averageUtilization", "averageValue")]
    if not any(is_set):
        yield field.required(f"{path}.averageUtilization", _RAW)
    if all(is_set):
        yield field.forbidden(f"{path}.averageValue", _NOT_BOTH)


def _target(target: Object, path: Path) -> Errors:
    kind = target.get("type", "")
    if not kind:
        yield field.required(f"{path}.type", "must specify a metric target type")
    if kind not in _TARGETS:
        yield field.invalid(f"{path}.type", as_json(kind), "must be either Utilization, Value, or AverageValue")
    for name in ("value", "averageValue"):
        given = target.get(name)
        if given is not None and quantity.parse(given).digits <= 0:
            yield field.invalid(f"{path}.{name}", given, "must be positive")
    percentage = target.get("averageUtilization")
    if percentage is not None and percentage < 1:
        yield field.invalid(f"{path}.averageUtilization", percentage, "must be greater than 0")


def _identifier(source: Object, path: Path) -> Errors:
    name = (source.get("metric") or {}).get("name", "")
    if not name:
        yield field.required(f"{path}.metric.name", "must specify a metric name")
    else:
        yield from checks.named(name, path_segment_name, f"{path}.metric.name")


_SOURCES: Final[dict[str, Callable[[Object, Path], Errors]]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}
"""In the order in which upstream looks at them."""
_SOURCE_OF: Final = {f"{name[0].upper()}{name[1:]}": name for name in _SOURCES}

RULES: Final = {"HorizontalPodAutoscaler": Rules(_default, validate=_validate)}
