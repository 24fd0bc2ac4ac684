"""autoscaling/v2 and v1: HorizontalPodAutoscaler.

The rules are those of k8s.io/kubernetes pkg/apis/autoscaling/validation. Objects of v1 are stored and validated as v2,
so that errors name fields of v2.

v1 has one metric, the utilization of CPU. Annotations of v1, which v2 does not have, hold the rest as JSON: other
metrics, the status of all metrics, conditions, behaviour (k8s.io/kubernetes pkg/apis/autoscaling/v1/conversion.go).

    v2 spec.metrics [cpu 70%, memory 1Gi]   →   v1 spec.targetCPUUtilizationPercentage 70, and the annotation
                                                autoscaling.alpha.kubernetes.io/metrics with memory

The JSON of metrics has its own names, flatter than those of v2; the JSON of behaviour has Go's names, because upstream
encodes its internal struct. An annotation that cannot be read is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import path_segment_name
from noxu.go import json as go_json
from noxu.go import quantity
from noxu.go.structs import decode
from noxu.go.text import compact_json
from noxu.kinds import checks
from noxu.kinds.checks import Errors
from noxu.kinds.facts import struct
from noxu.kinds.kind import Context, Rules
from noxu.kinds.resource_requirements import container_name
from noxu.values import Json, Object, copy

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
        shown = to_v1(to_v2(value))
        value.clear()
        value.update(shown)


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if new.get("apiVersion") == V1:
        new = to_v2(new)
        old = old if old is None else to_v2(old)
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
        surplus = (name for name in present if name != expected)
        yield from (field.forbidden(f"{path}.{name}", "must populate the given metric source only") for name in surplus)


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
        amount = target.get(name)
        if amount is not None and quantity.parse(amount).digits <= 0:
            yield field.invalid(f"{path}.{name}", amount, "must be positive")
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


# -- autoscaler versions ----------------------------------------------------------------------------------------------


V1: Final = "autoscaling/v1"
V2: Final = "autoscaling/v2"

_V1_STRUCT: Final = struct("autoscaling/v1.HorizontalPodAutoscaler")
_V2_STRUCT: Final = struct("autoscaling/v2.HorizontalPodAutoscaler")
_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS, _STATUSES = f"{_PREFIX}metrics", f"{_PREFIX}current-metrics"
_CONDITIONS, _BEHAVIOR = f"{_PREFIX}conditions", f"{_PREFIX}behavior"
_ANNOTATIONS: Final = (_METRICS, _STATUSES, _CONDITIONS, _BEHAVIOR)
_DEFAULT_UTILIZATION: Final = 80
_SAME_IN_SPEC: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
_SAME_IN_STATUS: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")


def to_v1(value: Object) -> Object:
    """The v1 view of an object of v2; not the same object."""
    spec: Object = value.get("spec") or {}
    status: Object = value.get("status") or {}
    metrics: list[Object] = spec.get("metrics") or []
    new_spec: Object = {name: spec[name] for name in _SAME_IN_SPEC if name in spec}
    utilizations = [utilization for metric in metrics if (utilization := _cpu(metric, "target")) is not None]
    if utilizations:
        new_spec["targetCPUUtilizationPercentage"] = utilizations[0]
    new_status: Object = {name: status[name] for name in _SAME_IN_STATUS if name in status}
    current = [
        utilization
        for metric in status.get("currentMetrics") or ()
        if (utilization := _cpu(metric, "current")) is not None
    ]
    if current:
        new_status["currentCPUUtilizationPercentage"] = current[-1]
    other_metrics = [metric for metric in metrics if _cpu(metric, "target") is None]
    annotations = {
        _METRICS: [_metric_to_v1(metric, _SPECS) for metric in other_metrics],
        _STATUSES: [_metric_to_v1(metric, _CURRENT) for metric in status.get("currentMetrics") or ()],
        _BEHAVIOR: _behavior_to_go(spec.get("behavior")),
        _CONDITIONS: status.get("conditions"),
    }
    written = {name: _encoded(content) for name, content in annotations.items() if content}
    metadata = _with_annotations(value.get("metadata") or {}, written)
    kind = value.get("kind", "")
    view = {"kind": kind, "apiVersion": V1, "metadata": metadata, "spec": new_spec, "status": new_status}
    decoded: Object = decode(_V1_STRUCT, copy(view)).value
    return decoded


def to_v2(value: Object) -> Object:
    """The v2 view of an object of v1; not the same object."""
    spec: Object = value.get("spec") or {}
    status: Object = value.get("status") or {}
    metadata: Object = value.get("metadata") or {}
    annotations: dict[str, str] = metadata.get("annotations") or {}
    new_spec: Object = {name: spec[name] for name in _SAME_IN_SPEC if name in spec}
    metrics = [_metric_to_v2(metric, _SPECS) for metric in _list(annotations.get(_METRICS))]
    if spec.get("targetCPUUtilizationPercentage") is not None:
        metrics.append(_cpu_metric("target", spec["targetCPUUtilizationPercentage"]))
    new_spec["metrics"] = metrics or [_cpu_metric("target", _DEFAULT_UTILIZATION)]
    behavior = _behavior_from_go(_decoded_object(annotations.get(_BEHAVIOR)))
    if behavior:
        new_spec["behavior"] = behavior
    new_status: Object = {name: status[name] for name in _SAME_IN_STATUS if name in status}
    statuses = [_metric_to_v2(metric, _CURRENT) for metric in _list(annotations.get(_STATUSES))]
    if not statuses and status.get("currentCPUUtilizationPercentage") is not None:
        statuses = [_cpu_metric("current", status["currentCPUUtilizationPercentage"])]
    new_status["currentMetrics"] = statuses or None
    conditions = _list(annotations.get(_CONDITIONS))
    if conditions:
        new_status["conditions"] = conditions
    result = {
        "kind": value.get("kind", ""),
        "apiVersion": V2,
        "metadata": _with_annotations(metadata, {}),
        "spec": new_spec,
        "status": new_status,
    }
    decoded = decode(_V2_STRUCT, copy(result))
    if decoded.error and annotations.keys() & set(_ANNOTATIONS):  # an annotation has values of other types
        return to_v2({**value, "metadata": _with_annotations(metadata, {})})
    converted: Object = decoded.value
    return converted


def _with_annotations(metadata: Object, added: dict[str, str]) -> Object:
    """The metadata with these annotations of the conversion, and no others of it."""
    other_annotations = {
        name: text for name, text in (metadata.get("annotations") or {}).items() if name not in _ANNOTATIONS
    }
    new = {name: item for name, item in metadata.items() if name != "annotations"}
    return {**new, "annotations": {**other_annotations, **added}} if other_annotations or added else new


def _cpu(metric: Object, part: str) -> int | None:
    """The utilization of a metric of CPU, None if it is another metric."""
    resource = metric.get("resource") if metric.get("type") == "Resource" else None
    if resource is None or resource.get("name") != "cpu":
        return None
    utilization: int | None = (resource.get(part) or {}).get("averageUtilization")
    return utilization


def _cpu_metric(part: str, utilization: int) -> Object:
    kind = {"type": "Utilization"} if part == "target" else {}
    return {"type": "Resource", "resource": {"name": "cpu", part: {**kind, "averageUtilization": utilization}}}


# -- the JSON of annotations ------------------------------------------------------------------------------------------


def _encoded(content: Json) -> str:
    return compact_json(content, sort_keys=False)


def _decoded(text: str | None) -> Json:
    if text is None:
        return None
    try:
        return go_json.read(text.encode("utf-8", "surrogatepass")).value
    except go_json.JsonSyntaxError:
        return None


def _list(text: str | None) -> list[Object]:
    decoded = _decoded(text)
    is_list = isinstance(decoded, list) and all(isinstance(item, dict) for item in decoded)
    return decoded if is_list else []


def _decoded_object(text: str | None) -> Object:
    decoded = _decoded(text)
    return decoded if isinstance(decoded, dict) else {}


# Sources of metrics: (path in v2, name in v1), in the order of v1's fields. Values that v1 always has are with a zero.
_REFERENCE: Final = ("kind", "name", "apiVersion")
_Fields = tuple[tuple[str, str, Json], ...]
_SPECS: Final[dict[str, _Fields]] = {
    "object": (("describedObject", "target", None), ("metric.name", "metricName", ""), ("target.value", "targetValue", "0"),
               ("metric.selector", "selector", None), ("target.averageValue", "averageValue", None)),
    "pods": (("metric.name", "metricName", ""), ("target.averageValue", "targetAverageValue", "0"),
             ("metric.selector", "selector", None)),
    "resource": (("name", "name", ""), ("target.averageUtilization", "targetAverageUtilization", None),
                 ("target.averageValue", "targetAverageValue", None)),
    "containerResource": (("name", "name", ""), ("target.averageUtilization", "targetAverageUtilization", None),
                          ("target.averageValue", "targetAverageValue", None), ("container", "container", "")),
    "external": (("metric.name", "metricName", ""), ("metric.selector", "metricSelector", None),
                 ("target.value", "targetValue", None), ("target.averageValue", "targetAverageValue", None)),
}  # fmt: skip
_CURRENT: Final[dict[str, _Fields]] = {
    "object": (("describedObject", "target", None), ("metric.name", "metricName", ""), ("current.value", "currentValue", "0"),
               ("metric.selector", "selector", None), ("current.averageValue", "averageValue", None)),
    "pods": (("metric.name", "metricName", ""), ("current.averageValue", "currentAverageValue", "0"),
             ("metric.selector", "selector", None)),
    "resource": (("name", "name", ""), ("current.averageUtilization", "currentAverageUtilization", None),
                 ("current.averageValue", "currentAverageValue", "0")),
    "containerResource": (("name", "name", ""), ("current.averageUtilization", "currentAverageUtilization", None),
                          ("current.averageValue", "currentAverageValue", "0"), ("container", "container", "")),
    "external": (("metric.name", "metricName", ""), ("metric.selector", "metricSelector", None),
                 ("current.value", "currentValue", "0"), ("current.averageValue", "currentAverageValue", None)),
}  # fmt: skip


def _metric_to_v1(metric: Object, sources: dict[str, _Fields]) -> Object:
    new: Object = {"type": metric.get("type", "")}
    for kind, fields in sources.items():
        source = metric.get(kind)
        if source is None:
            continue
        flat: Object = {}
        for path, name, zero in fields:
            outer, _, inner = path.partition(".")
            item = source.get(outer)
            item = (item or {}).get(inner) if inner else item
            if item is None:
                item = zero
            if item is not None:
                flat[name] = item
        new[kind] = flat
    return new


def _metric_to_v2(metric: Object, sources: dict[str, _Fields]) -> Object:
    new: Object = {"type": metric.get("type", "")}
    for kind, fields in sources.items():
        flat = metric.get(kind)
        if not isinstance(flat, dict):
            continue
        source: Object = {}
        for path, name, zero in fields:
            outer, _, inner = path.partition(".")
            item = flat.get(name, zero)
            if item is None:
                continue
            if inner:
                source.setdefault(outer, {})[inner] = item
            else:
                source[outer] = item
        if sources is _SPECS:
            target = source.setdefault("target", {})
            source["target"] = {"type": _TARGET_TYPES[kind](target), **target}
        new[kind] = source
    return new


_TARGET_TYPES: Final[dict[str, Callable[[Object], str]]] = {
    "object": lambda target: "AverageValue" if target.get("averageValue") is not None else "Value",
    "pods": lambda _: "AverageValue",
    "resource": lambda target: "AverageValue" if target.get("averageUtilization") is None else "Utilization",
    "containerResource": lambda target: "AverageValue" if target.get("averageUtilization") is None else "Utilization",
    "external": lambda target: "AverageValue" if target.get("value") is None else "Value",
}

# Behaviour, by the names of Go's fields in their order. Go reads names in any case.
_RULES: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY: Final = ("type", "value", "periodSeconds")


def _go_name(name: str) -> str:
    return f"{name[0].upper()}{name[1:]}"


def _behavior_to_go(behavior: Object | None) -> Object | None:
    if behavior is None:
        return None
    return {_go_name(name): _rules_to_go(behavior.get(name)) for name in ("scaleUp", "scaleDown")}


def _rules_to_go(rules: Object | None) -> Object | None:
    if rules is None:
        return None
    new: Object = {}
    for name in _RULES:
        item = rules.get(name)
        if name == "policies" and item is not None:
            item = [{_go_name(part): policy.get(part) for part in _POLICY} for policy in item]
        new[_go_name(name)] = item
    return new


def _caseless(value: Json, names: tuple[str, ...]) -> Object:
    if not isinstance(value, dict):
        return {}
    by_lower_case = {name.lower(): item for name, item in value.items()}
    return {name: by_lower_case[name.lower()] for name in names if by_lower_case.get(name.lower()) is not None}


def _behavior_from_go(value: Object) -> Object:
    behavior = {}
    for direction, rules in _caseless(value, ("scaleUp", "scaleDown")).items():
        renamed = _caseless(rules, _RULES)
        if isinstance(renamed.get("policies"), list):
            renamed["policies"] = [_caseless(policy, _POLICY) for policy in renamed["policies"]]
        behavior[direction] = renamed
    return behavior
