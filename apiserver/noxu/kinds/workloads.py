"""apps/v1: Deployment, ReplicaSet, StatefulSet, DaemonSet, ControllerRevision; and core/v1's ReplicationController.

The rules are those of k8s.io/kubernetes: pkg/apis/apps/validation, ValidateReplicationController in
pkg/apis/core/validation, and the strategies in pkg/registry/apps and pkg/registry/core/replicationcontroller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import dns1123_label
from noxu.api.selectors import label_selector
from noxu.kinds import checks, pod_warnings
from noxu.kinds.checks import Errors, label_selector_errors
from noxu.kinds.kind import Context, Rules
from noxu.kinds.pod_specs import template
from noxu.kinds.resource_requirements import claim_spec
from noxu.values import Json, Object, equal

_SELECTOR: Final = "meta/v1.LabelSelector"
_MISMATCH: Final = "`selector` does not match template `labels`"
_TOO_MANY: Final = "cannot be greater than status.replicas"


# -- selectors and templates ------------------------------------------------------------------------------------------


def _selector(spec: Object, kind: str) -> Errors:
    """A selector that is required, and selects something."""
    selector, path = spec.get("selector"), "spec.selector"
    if selector is None:
        yield field.required(path)
        return
    yield from label_selector_errors(selector, path)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield field.invalid(path, as_json({}), f"empty selector is invalid for {kind}")


def matches_template(selector: Object | None, spec: Object, *, empty: bool = False) -> bool | None:
    """Whether a selector matches the labels of the template; None if it is invalid. `empty`: an empty one has to, too."""
    try:
        parsed = label_selector(selector)
    except ValueError:
        return None
    labels: dict[str, str] = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    return (parsed.empty and not empty) or parsed.matches(labels)


def mismatch(spec: Object, path: Path) -> FieldError:
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    return field.invalid(f"{path}.metadata.labels", labels or None, _MISMATCH)


def _selected_template(spec: Object, kind: str, detail: str = "invalid label selector") -> Errors:
    """The template: it has the labels that are selected, and its pods run for ever."""
    matches = matches_template(spec.get("selector"), spec)
    if matches is None:
        yield field.invalid("spec.selector", checks.struct_json(_SELECTOR, spec["selector"]), detail)
        return
    if not matches:
        yield mismatch(spec, "spec.template")
    yield from template(spec.get("template") or {}, "spec.template")
    yield from _for_ever(spec, kind)


def _for_ever(spec: Object, kind: str) -> Errors:
    pod: Object = (spec.get("template") or {}).get("spec") or {}
    policy = pod.get("restartPolicy", "")
    if policy != "Always":
        yield field.not_supported("spec.template.spec.restartPolicy", as_json(policy), ["Always"])
    if pod.get("activeDeadlineSeconds") is not None:
        rule = f"activeDeadlineSeconds in {kind} is not Supported"
        yield field.forbidden("spec.template.spec.activeDeadlineSeconds", rule)


def _immutable_selector(new: Object, old: Object | None) -> Errors:
    if old is not None:
        before = (old.get("spec") or {}).get("selector")
        yield from checks.immutable(new["spec"].get("selector"), before, "spec.selector", _SELECTOR)


# -- rolling updates --------------------------------------------------------------------------------------------------


def _amount(value: int | str | None) -> int:
    """A number, or the number of a percentage."""
    percentage = checks.parsed_percentage(value)
    return percentage if percentage is not None else value if isinstance(value, int) else 0


def _at_most_all(value: int | str, path: Path) -> Errors:
    percentage = checks.parsed_percentage(value)
    if percentage is not None and percentage > 100:
        yield field.invalid(path, value, "must not be greater than 100%")


def _strategy_json(strategy: Object) -> Json:
    """A strategy of an unknown type in messages, which print the internal version."""
    rolling = strategy.get("rollingUpdate")
    names = {"maxUnavailable": "MaxUnavailable", "maxSurge": "MaxSurge", "partition": "Partition"}
    shown = None if rolling is None else {names[name]: value for name, value in rolling.items()}
    return as_json({"Type": strategy.get("type", ""), "RollingUpdate": shown})


def _deployment_strategy(strategy: Object) -> Errors:
    kind, rolling, path = strategy.get("type", ""), strategy.get("rollingUpdate"), "spec.strategy"
    if kind == "Recreate":
        if rolling is not None:
            rule = "may not be specified when strategy `type` is 'Recreate'"
            yield field.forbidden(f"{path}.rollingUpdate", rule)
    elif kind != "RollingUpdate":
        yield field.not_supported(path, _strategy_json(strategy), ["Recreate", "RollingUpdate"])
    elif rolling is None:
        yield field.required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")
    else:
        unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
        path = f"{path}.rollingUpdate"
        yield from checks.int_or_percentage(unavailable, f"{path}.maxUnavailable")
        yield from checks.int_or_percentage(surge, f"{path}.maxSurge")
        if not _amount(unavailable) and not _amount(surge):
            yield field.invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
        yield from _at_most_all(unavailable, f"{path}.maxUnavailable")


def _daemon_set_strategy(strategy: Object) -> Errors:
    kind, rolling, path = strategy.get("type", ""), strategy.get("rollingUpdate"), "spec.updateStrategy"
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        yield field.not_supported(path, _strategy_json(strategy), ["RollingUpdate", "OnDelete"])
        return
    path = f"{path}.rollingUpdate"
    if rolling is None:
        yield field.required(path)
        return
    values = {name: rolling.get(name, 0) for name in ("maxUnavailable", "maxSurge")}
    for check in (checks.int_or_percentage, _at_most_all):
        for name, value in values.items():
            yield from check(value, f"{path}.{name}")
    unavailable, surge = map(_amount, values.values())
    if unavailable and surge:
        rule = "may not be set when maxUnavailable is non-zero"
        yield field.invalid(f"{path}.maxSurge", values["maxSurge"], rule)
    elif not unavailable and not surge:
        yield field.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _stateful_set_strategy(strategy: Object) -> Errors:
    kind, rolling, path = strategy.get("type", ""), strategy.get("rollingUpdate"), "spec.updateStrategy"
    if not kind:
        yield field.required(path)
    elif kind == "OnDelete":
        if rolling is not None:
            shown = as_json({"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")})
            rule = "only allowed for updateStrategy 'RollingUpdate'"
            yield field.invalid(f"{path}.rollingUpdate", shown, rule)
    elif kind != "RollingUpdate":
        yield field.invalid(path, _strategy_json(strategy), "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None:
        path = f"{path}.rollingUpdate"
        yield from checks.nonnegative(rolling.get("partition"), f"{path}.partition")
        unavailable = rolling.get("maxUnavailable")
        if unavailable is not None:
            path = f"{path}.maxUnavailable"
            yield from checks.int_or_percentage(unavailable, path)
            if not _amount(unavailable):
                yield field.invalid(path, unavailable, "cannot be 0")
            yield from _at_most_all(unavailable, path)


# -- specs ------------------------------------------------------------------------------------------------------------


def _counts(spec: Object, *names: str) -> Errors:
    for name in names:
        yield from checks.nonnegative(spec.get(name), f"spec.{name}")


def _deployment(new: Object, old: Object | None) -> Errors:
    spec: Object = new["spec"]
    yield from _counts(spec, "replicas")
    yield from _selector(spec, "deployment")
    yield from _selected_template(spec, "ReplicaSet")
    yield from _deployment_strategy(spec.get("strategy") or {})
    yield from _counts(spec, "minReadySeconds", "revisionHistoryLimit")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        yield from _counts(spec, "progressDeadlineSeconds")
        if deadline <= spec.get("minReadySeconds", 0):
            yield field.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    yield from _immutable_selector(new, old)


def _replica_set(new: Object, old: Object | None) -> Errors:
    spec: Object = new["spec"]
    yield from _counts(spec, "replicas", "minReadySeconds")
    yield from _selector(spec, "deployment")
    yield from _selected_template(spec, "ReplicaSet")
    yield from _immutable_selector(new, old)


def _daemon_set(new: Object, old: Object | None) -> Errors:
    spec: Object = new["spec"]
    selector: Object | None = spec.get("selector")
    yield from label_selector_errors(selector or {}, "spec.selector")
    if matches_template(selector, spec, empty=True) is False:
        yield mismatch(spec, "spec.template")
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield field.invalid("spec.selector", as_json({}), "empty selector is invalid for daemonset")
    yield from template(spec.get("template") or {}, "spec.template")
    yield from _for_ever(spec, "DaemonSet")
    yield from _counts(spec, "minReadySeconds")
    yield from _daemon_set_strategy(spec.get("updateStrategy") or {})
    yield from _counts(spec, "revisionHistoryLimit")
    yield from _immutable_selector(new, old)


_KEPT: Final = (("selector", _SELECTOR), ("volumeClaimTemplates", ""), ("serviceName", ""), ("podManagementPolicy", ""))
"""What does not change in a StatefulSet, with the type of structs."""


def _stateful_set(new: Object, old: Object | None) -> Errors:
    spec: Object = new["spec"]
    before: Object = {} if old is None else old.get("spec") or {}
    policy = spec.get("podManagementPolicy", "")
    if not policy:
        yield field.required("spec.podManagementPolicy")
    elif policy not in ("OrderedReady", "Parallel"):
        rule = "must be 'OrderedReady' or 'Parallel'"
        yield field.invalid("spec.podManagementPolicy", as_json(policy), rule)
    yield from _stateful_set_strategy(spec.get("updateStrategy") or {})
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for name, value in retention.items():
        if value not in ("Retain", "Delete"):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
            yield field.not_supported(path, as_json(value), ["Retain", "Delete"])
    yield from _counts(spec, "replicas", "minReadySeconds")
    yield from checks.nonnegative((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start")
    if old is None and spec.get("serviceName"):
        yield from checks.label(spec["serviceName"], "spec.serviceName")
    yield from _selector(spec, "statefulset")
    yield from _stateful_template(spec, before)
    if old is None:  # they never change; those that were stored before they were checked remain valid
        for n, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            yield from claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{n}].spec")
    else:
        for name, struct in _KEPT:
            yield from checks.immutable(spec.get(name), before.get(name), f"spec.{name}", struct)


def _stateful_template(spec: Object, old: Object) -> Errors:
    """The pods mount the claims that are made for them. A template that was stored remains valid."""
    matches = matches_template(spec.get("selector"), spec)
    if matches is None:
        yield field.invalid("spec.selector", checks.struct_json(_SELECTOR, spec["selector"]), "")
    elif not matches:
        yield mismatch(spec, "spec.template")
    if matches is not None and not equal(spec.get("template"), old.get("template")):
        claims = spec.get("volumeClaimTemplates") or ()
        mounted: dict[str, Object] = {
            (claim.get("metadata") or {}).get("name", ""): {"persistentVolumeClaim": {}} for claim in claims
        }
        yield from template(spec.get("template") or {}, "spec.template", mounted=mounted)
    yield from _for_ever(spec, "StatefulSet")


def _replication_controller(new: Object, old: Object | None) -> Errors:  # noqa: ARG001
    spec: Object = new.get("spec") or {}
    yield from _counts(spec, "minReadySeconds")
    selector: dict[str, str] = spec.get("selector") or {}
    if not selector:
        yield field.required("spec.selector")
    yield from _counts(spec, "replicas")
    if spec.get("template") is None:
        yield field.required("spec.template")
        return
    labels: dict[str, str] = (spec["template"].get("metadata") or {}).get("labels") or {}
    if any(labels.get(name) != value for name, value in selector.items()):
        yield mismatch(spec, "spec.template")
    yield from template(spec["template"], "spec.template")
    yield from _for_ever(spec, "ReplicationController")


def _controller_revision(new: Object, old: Object | None) -> Errors:
    if new.get("data") is None:
        yield field.required("data", "data is mandatory")
    yield from checks.nonnegative(new.get("revision"), "revision")
    if old is not None:
        yield from checks.immutable(new.get("data"), old.get("data"), "data")


# -- status -----------------------------------------------------------------------------------------------------------

Limits = tuple[tuple[str, str, str], ...]
"""(a counter, the counter that it does not exceed, the message)."""


def _within(*names: str) -> Limits:
    return tuple((name, "replicas", _TOO_MANY) for name in names)


_AVAILABLE: Final = ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas")
_STATUS: Final[dict[str, tuple[tuple[str, ...], Limits]]] = {
    "Deployment": (
        ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
         "unavailableReplicas", "terminatingReplicas", "collisionCount"),
        (*_within("updatedReplicas", "readyReplicas", "availableReplicas"), _AVAILABLE),
    ),
    "ReplicaSet": (
        ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas",
         "observedGeneration"),
        (*_within("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), _AVAILABLE),
    ),
    "ReplicationController": (
        ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"),
        (*_within("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), _AVAILABLE),
    ),
    "StatefulSet": (
        ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
         "collisionCount"),
        (*_within("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
         ("availableReplicas", "readyReplicas", "cannot be greater than status.readyReplicas")),
    ),
    "DaemonSet": (
        ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
         "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"),
        (),
    ),
}  # fmt: skip
"""The counters of a status, which are never negative, and their limits; in upstream's order."""


def _status(kind: str, new: Object, old: Object) -> Errors:
    counters, limits = _STATUS[kind]
    status, before = new.get("status") or {}, old.get("status") or {}
    for name in counters:
        yield from checks.nonnegative(status.get(name), f"status.{name}")
    for name, limit, rule in limits:
        if status.get(name, 0) > status.get(limit, 0):
            yield field.invalid(f"status.{name}", status.get(name, 0), rule)
    if "collisionCount" in counters and before.get("collisionCount") is not None:
        count = status.get("collisionCount")
        if count is None or count < before["collisionCount"]:
            yield field.invalid("status.collisionCount", count or 0, "cannot be decremented")


def _validation(
    kind: str, check: Callable[[Object, Object | None], Errors]
) -> Callable[[Object, Object | None, Context], list[FieldError]]:
    """The validation of a kind and its status."""

    def validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:
        if old is not None and context.subresource == "status":
            return list(_status(kind, new, old))
        return [*checks.finalizers(new["metadata"]), *check(new, old)]

    return validate


# -- what the server sets ---------------------------------------------------------------------------------------------

_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def _complete_daemon_set(new: Object, old: Object | None, context: Context) -> None:
    """Count the changes of the template, in an annotation."""
    if context.subresource:
        return
    annotations: dict[str, str] = new["metadata"].setdefault("annotations", {})
    if old is None:
        count = max(_template_generation(annotations), 1)
    else:
        count = _template_generation(old["metadata"].get("annotations") or {})
        count += not equal((new.get("spec") or {}).get("template"), (old.get("spec") or {}).get("template"))
    annotations[_TEMPLATE_GENERATION] = str(count)


def _template_generation(annotations: dict[str, str]) -> int:
    text = annotations.get(_TEMPLATE_GENERATION, "")
    return int(text[:18]) if text.removeprefix("-").isdecimal() and text.isascii() else 0


# -- warnings ---------------------------------------------------------------------------------------------------------


def template_changed(new: Object, old: Object | None) -> bool:
    """Whether warnings about a template are due: for new objects, and whenever the generation changes."""
    return old is None or new["metadata"].get("generation") != old["metadata"].get("generation")


def _warnings(new: Object, old: Object | None) -> list[str]:
    if not template_changed(new, old):
        return []
    return list(pod_warnings.warnings((new.get("spec") or {}).get("template") or {}, "spec.template"))


def name_warnings(new: Object, old: Object | None) -> list[str]:
    """The name of a new workload should be a label, because its pods and their hosts are named after it."""
    texts = dns1123_label(new["metadata"].get("name", "")) if old is None else []
    return [f"{_NAMED_AFTER}: [{' '.join(texts)}]"] if texts else []


_NAMED_AFTER: Final = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is "
    "recommended"
)


def _named_warnings(new: Object, old: Object | None) -> list[str]:
    return name_warnings(new, old) + _warnings(new, old)


_CHECKS: Final[dict[str, Callable[[Any, Any], Errors]]] = {
    "Deployment": _deployment,
    "ReplicaSet": _replica_set,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "ReplicationController": _replication_controller,
}
_RULES: Final = {
    kind: Rules(
        complete=_complete_daemon_set if kind == "DaemonSet" else Rules().complete,
        validate=_validation(kind, check),
        warnings=_warnings if kind in ("StatefulSet", "DaemonSet") else _named_warnings,
    )
    for kind, check in _CHECKS.items()
}
CORE_RULES: Final = {"ReplicationController": _RULES.pop("ReplicationController")}
RULES: Final = _RULES | {
    "ControllerRevision": Rules(validate=lambda new, old, _: [*_controller_revision(new, old)]),
}
