"""batch/v1: Job and CronJob.

The rules are those of k8s.io/kubernetes: pkg/apis/batch/validation, pkg/registry/batch/{job,cronjob}/strategy.go and
pkg/api/job/warnings.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from noxu.api import field
from noxu.api.field import OMIT, FieldError, Path, as_json
from noxu.api.names import dns1123_label, dns1123_subdomain
from noxu.go.text import parse_int, quote
from noxu.kinds import checks, pod_warnings
from noxu.kinds.checks import Errors, label_selector_errors
from noxu.kinds.kind import Context, Rules
from noxu.kinds.pod_specs import template
from noxu.kinds.schedules import schedule_error, zone_error
from noxu.kinds.workloads import matches_template, mismatch, name_warnings, template_changed
from noxu.values import Json, Object, copy, equal

UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
"""The labels of the pods of a Job: those without prefix are older."""
_SELECTOR: Final = "meta/v1.LabelSelector"
_INDEXED: Final = "Indexed"
_SUFFIX: Final = 11  # bytes that a CronJob appends to its name
_MAX_NAME: Final = 63 - _SUFFIX

_MAX_PARALLELISM: Final = 100_000  # of an indexed Job
_MAX_FAILED_INDEXES: Final = 100_000
_MANY_COMPLETIONS: Final = 100_000
_MAX_PARALLELISM_OF_MANY: Final = 10_000
_MAX_FAILED_INDEXES_OF_MANY: Final = 10_000
_MAX_POLICY_RULES: Final = 20
_MAX_EXIT_CODES: Final = 255
_MAX_PATTERNS: Final = 20
_MAX_SUCCEEDED_INDEXES: Final = 64 * 1024
_MAX_MANAGER: Final = 63


# -- what the server sets ---------------------------------------------------------------------------------------------


def _complete(new: Object, old: Object | None, context: Context) -> None:  # noqa: ARG001
    """Select the pods of a new Job by its uid, unless the selector is chosen by hand."""
    spec: Object = new.setdefault("spec", {})
    if old is not None or spec.get("manualSelector"):
        return
    metadata = new["metadata"]
    labels = spec.setdefault("template", {}).setdefault("metadata", {}).setdefault("labels", {})
    for name in NAME_LABELS:
        labels.setdefault(name, metadata.get("name", ""))
    for name in UID_LABELS:
        labels.setdefault(name, metadata.get("uid", ""))
    selector: Object = spec.setdefault("selector", {})
    selector.setdefault("matchLabels", {}).setdefault(UID_LABELS[1], metadata.get("uid", ""))


# -- specs ------------------------------------------------------------------------------------------------------------


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if old is not None and context.subresource == "status":
        return list(_status_update(new, old))
    return list(_job(new, old))


def _job(new: Object, old: Object | None) -> Errors:
    spec: Object = new.get("spec") or {}
    yield from checks.finalizers(new["metadata"])
    yield from _generated_selector(new, old)
    yield from _spec(spec, "spec")
    selector: Object | None = spec.get("selector")
    if selector is None:
        yield field.required("spec.selector")
    else:
        yield from label_selector_errors(selector, "spec.selector")
    if matches_template(selector, spec, empty=True) is False:
        yield mismatch(spec, "spec.template")
    name = new["metadata"].get("name", "")
    if spec.get("completionMode") == _INDEXED and (spec.get("completions") or 0) > 0:
        host = f"{name}-{spec['completions'] - 1}"
        if dns1123_label(host):
            rule = f"will not able to create pod with invalid DNS label: {host}"
            yield field.invalid("metadata.name", name, rule)
    if old is not None:
        yield from _spec_update(spec, old.get("spec") or {}, old.get("status") or {})


def _generated_selector(new: Object, old: Object | None) -> Errors:
    """The pods have the name and the uid of the Job, and are selected by them."""
    spec: Object = new.get("spec") or {}
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    metadata = new["metadata"]
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    if not uid:
        yield field.required("metadata.uid")
    before = (((old or {}).get("spec") or {}).get("template") or {}).get("metadata") or {}
    has_new = old is None or all(label in (before.get("labels") or {}) for label in (UID_LABELS[1], NAME_LABELS[1]))
    expected = {UID_LABELS[0]: uid, NAME_LABELS[0]: name}
    if has_new:
        expected |= {UID_LABELS[1]: uid, NAME_LABELS[1]: name}
    labels: dict[str, str] = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    for label, value in expected.items():
        path = f"spec.template.metadata.labels[{label}]"
        if label not in labels:
            yield field.required(path, f"must be '{value}'")
        elif labels[label] != value:
            yield field.invalid(path, labels, f"must be '{value}'")
    if matches_template(spec["selector"], {"template": {"metadata": {"labels": expected}}}, empty=True) is False:
        selector = checks.struct_json(_SELECTOR, spec["selector"])
        yield field.invalid("spec.selector", selector, "`selector` not auto-generated")


_COUNTS: Final = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip


def _spec(spec: Object, path: Path) -> Errors:
    """The spec of a Job without its selector, also in a CronJob."""
    for name in _COUNTS:
        yield from checks.nonnegative(spec.get(name), f"{path}.{name}")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield field.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.get("managedBy") is not None:
        yield from _manager(spec["managedBy"], f"{path}.managedBy")
    mode = spec.get("completionMode")
    yield from checks.choice(mode, "batch/v1.CompletionMode", f"{path}.completionMode", declared=True)
    if mode == _INDEXED:
        yield from _indexed(spec, path)
    elif mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield field.invalid(f"{path}.{name}", spec[name], "requires indexed completion mode")
    if spec.get("podFailurePolicy") is not None:
        yield from _failure_policy(spec, f"{path}.podFailurePolicy")
    success = spec.get("successPolicy")
    if success is not None and mode != _INDEXED:
        value = checks.struct_json("batch/v1.SuccessPolicy", success)
        yield field.invalid(f"{path}.successPolicy", value, "requires indexed completion mode")
    elif success is not None:
        yield from _success_policy(success, spec.get("completions") or 0, f"{path}.successPolicy")
    replacement = spec.get("podReplacementPolicy")
    if spec.get("podFailurePolicy") is None:
        yield from checks.choice(replacement, "batch/v1.PodReplacementPolicy", f"{path}.podReplacementPolicy")
    elif replacement not in (None, "Failed"):
        yield field.not_supported(f"{path}.podReplacementPolicy", as_json(replacement), ["Failed"])
    yield from template(spec.get("template") or {}, f"{path}.template")
    yield from _restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _restart_policy(spec: Object, path: Path) -> Errors:
    """Pods of Jobs end."""
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "")
    if policy in ("", "Always"):
        yield field.required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield field.not_supported(path, as_json(policy), ["OnFailure", "Never"])
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        rule = 'only "Never" is supported when podFailurePolicy is specified'
        yield field.invalid(path, as_json(policy), rule)


_is_path: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+").fullmatch
_NOT_A_PATH: Final = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"


def _manager(name: str, path: Path) -> Errors:
    domain, _, rest = name.partition("/")
    if not name:
        yield field.required(path)
    elif not domain or not rest:
        yield field.invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from (field.invalid(path, domain, text) for text in dns1123_subdomain(domain))
        if not _is_path(rest):
            yield field.invalid(path, rest, _NOT_A_PATH)
    if len(name) > _MAX_MANAGER:
        yield field.too_long(path, _MAX_MANAGER)


def _indexed(spec: Object, path: Path) -> Errors:
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    failures = spec.get("maxFailedIndexes")
    if completions is None:
        yield field.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism > _MAX_PARALLELISM:
        rule = f"must be less than or equal to {_MAX_PARALLELISM} when completion mode is Indexed"
        yield field.invalid(f"{path}.parallelism", parallelism, rule)
    if completions is not None and failures is not None and failures > completions:
        yield field.invalid(f"{path}.maxFailedIndexes", failures, "must be less than or equal to completions")
    if failures is not None and failures > _MAX_FAILED_INDEXES:
        rule = f"must be less than or equal to {_MAX_FAILED_INDEXES}"
        yield field.invalid(f"{path}.maxFailedIndexes", failures, rule)
    if (completions or 0) <= _MANY_COMPLETIONS or spec.get("backoffLimitPerIndex") is None:
        return
    above = f"when completions are above {_MANY_COMPLETIONS} and used with backoff limit per index"
    if failures is None:
        rule = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        yield field.required(f"{path}.maxFailedIndexes", rule)
    if parallelism > _MAX_PARALLELISM_OF_MANY:
        rule = f"must be less than or equal to {_MAX_PARALLELISM_OF_MANY} {above}"
        yield field.invalid(f"{path}.parallelism", parallelism, rule)
    if failures is not None and failures > _MAX_FAILED_INDEXES_OF_MANY:
        rule = f"must be less than or equal to {_MAX_FAILED_INDEXES_OF_MANY} {above}"
        yield field.invalid(f"{path}.maxFailedIndexes", failures, rule)


def _valid_values(type_: str) -> str:
    return f"valid values: [{' '.join(map(quote, checks.choices(type_)))}]"


def _valued(value: str, type_: str, path: Path) -> Errors:
    """One of the values of a type; if it is empty, the message lists them."""
    if not value:
        yield field.required(path, _valid_values(type_))
    else:
        yield from checks.choice(value, type_, path)


def _failure_policy(spec: Object, path: Path) -> Errors:
    rules: list[Object] = spec["podFailurePolicy"].get("rules") or []
    if len(rules) > _MAX_POLICY_RULES:
        yield field.too_many(f"{path}.rules", len(rules), _MAX_POLICY_RULES)
    pod: Object = (spec.get("template") or {}).get("spec") or {}
    names = {container.get("name") for kind in ("containers", "initContainers") for container in pod.get(kind) or ()}
    for n, rule in enumerate(rules):
        where, action = f"{path}.rules[{n}]", rule.get("action", "")
        if action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                yield field.invalid(f"{where}.action", as_json(action), "requires the backoffLimitPerIndex to be set")
        else:
            yield from _valued(action, "batch/v1.PodFailurePolicyAction", f"{where}.action")
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is not None:
            yield from _exit_codes(codes, names, f"{where}.onExitCodes")
        if conditions:
            yield from _conditions(conditions, f"{where}.onPodConditions")
        if codes is not None and conditions:
            yield field.invalid(where, OMIT, "specifying both OnExitCodes and OnPodConditions is not supported")
        elif codes is None and not conditions:
            yield field.invalid(where, OMIT, "specifying one of OnExitCodes and OnPodConditions is required")


def _conditions(patterns: list[Object], path: Path) -> Errors:
    if len(patterns) > _MAX_PATTERNS:
        yield field.too_many(path, len(patterns), _MAX_PATTERNS)
    for n, pattern in enumerate(patterns):
        yield from checks.qualified(pattern.get("type", ""), f"{path}[{n}].type")
        yield from _valued(pattern.get("status", ""), "core/v1.ConditionStatus", f"{path}[{n}].status")


def _exit_codes(requirement: Object, names: set[Json], path: Path) -> Errors:
    operator, name, values = (
        requirement.get("operator", ""),
        requirement.get("containerName"),
        requirement.get("values") or [],
    )
    yield from _valued(operator, "batch/v1.PodFailurePolicyOnExitCodesOperator", f"{path}.operator")
    if name is not None and name not in names:
        rule = "must be one of the container or initContainer names in the pod template"
        yield field.invalid(f"{path}.containerName", name, rule)
    if not values:
        yield field.invalid(f"{path}.values", requirement.get("values"), "at least one value is required")
    elif len(values) > _MAX_EXIT_CODES:
        yield field.too_many(f"{path}.values", len(values), _MAX_EXIT_CODES)
    seen: set[int] = set()
    for n, value in enumerate(values):
        if operator == "In" and value == 0:
            yield field.invalid(f"{path}.values[{n}]", value, "must not be 0 for the In operator")
        if value in seen:
            yield field.duplicate(f"{path}.values[{n}]", value)
        seen.add(value)
    if values != sorted(values):
        yield field.invalid(f"{path}.values", values, "must be ordered")


def _success_policy(policy: Object, completions: int, path: Path) -> Errors:
    rules: list[Object] = policy.get("rules") or []
    if not rules:
        rule = "at least one rules must be specified when the successPolicy is specified"
        yield field.required(f"{path}.rules", rule)
    if len(rules) > _MAX_POLICY_RULES:
        yield field.too_many(f"{path}.rules", len(rules), _MAX_POLICY_RULES)
    for n, policy_rule in enumerate(rules):
        where, count, indexes = (
            f"{path}.rules[{n}]",
            policy_rule.get("succeededCount"),
            policy_rule.get("succeededIndexes"),
        )
        if count is None and indexes is None:
            yield field.required(where, "at least one of succeededCount or succeededIndexes must be specified")
        total = 0
        if indexes is not None:
            if len(indexes) > _MAX_SUCCEEDED_INDEXES:
                yield field.too_long(f"{where}.succeededIndexes", _MAX_SUCCEEDED_INDEXES)
            try:
                total = count_indexes(indexes, completions)
            except ValueError as error:
                why = f"error parsing succeededIndexes: {error}"
                yield field.invalid(f"{where}.succeededIndexes", indexes, why)
        if count is not None:
            where = f"{where}.succeededCount"
            yield from checks.nonnegative(count, where)
            if count > completions:
                rule = f"must be less than or equal to {completions} (the number of specified completions)"
                yield field.invalid(where, count, rule)
            if indexes is not None and count > total:
                bound = "the number of indexes in the specified succeededIndexes field"
                yield field.invalid(where, count, f"must be less than or equal to {total} ({bound})")


# -- indexes ----------------------------------------------------------------------------------------------------------


def count_indexes(text: str, completions: int) -> int:
    """The number of indexes in `1,3-5,7`: ascending, below the completions. Raises ValueError."""
    return sum(last - first + 1 for first, last in _intervals(text, completions))


def _intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    previous = -1
    for part in text.split(",") if text else ():
        first, last = _interval(part, completions)
        if previous >= first:
            raise ValueError(f"non-increasing order, previous: {previous}, current: {first}")
        yield first, last
        previous = last


def _interval(text: str, completions: int) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) > 2:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise ValueError(f"the fragment {quote(text)} {rule}")
    limits = []
    for part in parts:
        try:
            limits.append(parse_int(part))
        except ValueError:
            raise ValueError(f"cannot convert string to integer for index: {quote(part)}") from None
        if limits[-1] >= completions:
            raise ValueError(f"too large index: {quote(part)}")
    if len(limits) > 1 and limits[0] >= limits[1]:
        raise ValueError(f"non-increasing order, previous: {limits[0]}, current: {limits[1]}")
    return limits[0], limits[-1]


def _index_error(text: str, completions: int) -> str:
    try:
        count_indexes(text, completions)
    except ValueError as error:
        return str(error)
    return ""


def _valid_intervals(text: str, completions: int) -> list[tuple[int, int]]:
    intervals = []
    for part in text.split(",") if text else ():
        try:
            intervals.append(_interval(part, completions))
        except ValueError:
            continue  # the format is reported elsewhere
    return intervals


def _overlap(completed: str, failed: str, completions: int) -> int | None:
    """The first index that is in both."""
    completed_intervals, failed_intervals = (
        _valid_intervals(completed, completions),
        _valid_intervals(failed, completions),
    )
    n = m = 0
    while n < len(completed_intervals) and m < len(failed_intervals):
        (first, last), (start, end) = completed_intervals[n], failed_intervals[m]
        if first <= end and start <= last:
            return max(first, start)
        if first <= start:
            n += 1
        else:
            m += 1
    return None


# -- updates ----------------------------------------------------------------------------------------------------------

_IMMUTABLE: Final = (
    ("completionMode", ""),
    ("podFailurePolicy", "batch/v1.PodFailurePolicy"),
    ("backoffLimitPerIndex", ""),
    ("managedBy", ""),
    ("successPolicy", "batch/v1.SuccessPolicy"),
)


def _spec_update(spec: Object, old: Object, status: Object) -> Errors:
    completions, path = spec.get("completions"), "spec.completions"
    if spec.get("completionMode") != _INDEXED:
        yield from checks.immutable(completions, old.get("completions"), path)
    elif completions is not None and completions not in (old.get("completions"), spec.get("parallelism")):
        yield field.invalid(path, completions, "can only be modified in tandem with spec.parallelism")
    yield from checks.immutable(spec.get("selector"), old.get("selector"), "spec.selector", _SELECTOR)
    pod_template, before = spec.get("template") or {}, old.get("template") or {}
    if old.get("suspend") and not status.get("active"):
        before = _with_directives(before, pod_template)
    yield from checks.immutable(pod_template, before, "spec.template", "core/v1.PodTemplateSpec")
    for name, struct in _IMMUTABLE:
        yield from checks.immutable(spec.get(name), old.get(name), f"spec.{name}", struct)


def _with_directives(old: Object, new: Object) -> Object:
    """The old template with the fields that may change while a Job is suspended: scheduling, resources and metadata."""
    merged: Object = copy(old)
    spec, new_spec = merged.setdefault("spec", {}), new.get("spec") or {}
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        _take(spec, new_spec, name)
    metadata, new_metadata = merged.setdefault("metadata", {}), new.get("metadata") or {}
    for name in ("annotations", "labels"):
        _take(metadata, new_metadata, name)
    affinity: Object = spec.pop("affinity", None) or {}
    _take(affinity, new_spec.get("affinity") or {}, "nodeAffinity")
    if affinity or new_spec.get("affinity") is not None:
        spec["affinity"] = affinity
    for kind in ("containers", "initContainers"):
        for container, changed in zip(spec.get(kind) or (), new_spec.get(kind) or (), strict=False):
            _take(container, changed, "resources")
    return merged


def _take(value: Object, source: Object, name: str) -> None:
    if source.get(name) is None:
        value.pop(name, None)
    else:
        value[name] = source[name]


# -- status -----------------------------------------------------------------------------------------------------------


def _is_true(job: Object, kind: str) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == kind and condition.get("status") == "True" for condition in conditions)


_CONDITIONS: Final = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
_STATUS_COUNTS: Final = ("active", "succeeded", "failed", "ready", "terminating")


def _status_update(new: Object, old: Object) -> Errors:
    """Most rules hold for changed fields only, so that a status that breaks them can still be changed elsewhere."""
    status, before, spec = new.get("status") or {}, old.get("status") or {}, new.get("spec") or {}
    now = {kind: _is_true(new, kind) for kind in _CONDITIONS}
    was = {kind: _is_true(old, kind) for kind in _CONDITIONS}
    changed = {name for name in status.keys() | before.keys() if not equal(status.get(name), before.get(name))}
    changed |= {kind for kind in _CONDITIONS if now[kind] != was[kind]}
    if (now["Complete"] or now["Failed"]) != (was["Complete"] or was["Failed"]):
        changed.add("finished")
    for name in _STATUS_COUNTS:
        yield from checks.nonnegative(status.get(name), f"status.{name}")
    yield from _uncounted(status.get("uncountedTerminatedPods") or {})
    yield from _conditions_and_times(status, now, changed)
    yield from _finished(status, now, changed)
    yield from _indexes(status, spec, changed)
    if {"finished", "terminating"} & changed and (status.get("terminating") or 0) > 0 and _ended(now):
        yield field.invalid("status.terminating", status["terminating"], "terminating>0 is invalid for finished job")
    if {"ready", "active"} & changed and (status.get("ready") or 0) > (status.get("active") or 0):
        yield field.invalid("status.ready", status["ready"], "cannot set more ready pods than active")
    for criterion, failure in (("SuccessCriteriaMet", "Failed"), ("SuccessCriteriaMet", "FailureTarget")):
        if now[criterion] and now[failure]:
            shown = "Failed=true" if failure == "Failed" else "FailureTarget=true"
            yield _condition(f"cannot set {criterion}=True and {shown} conditions")
    if spec.get("successPolicy") is not None and now["Complete"] and not now["SuccessCriteriaMet"]:
        yield _condition("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")
    yield from _transitions(status, before, spec, now, was)


def _condition(rule: str) -> FieldError:
    return field.invalid("status.conditions", OMIT, rule)


def _ended(conditions: dict[str, bool]) -> bool:
    return conditions["Complete"] or conditions["Failed"]


def _uncounted(pods: Object) -> Errors:
    seen: set[str] = set()
    for kind in ("succeeded", "failed"):
        for n, uid in enumerate(pods.get(kind) or ()):
            where = f"status.uncountedTerminatedPods.{kind}[{n}]"
            if not uid:
                yield field.invalid(where, uid, "must not be empty")
            elif uid in seen:
                yield field.duplicate(where, uid)
            seen.add(uid)


def _conditions_and_times(status: Object, now: dict[str, bool], changed: set[str]) -> Errors:
    start, completion = status.get("startTime"), status.get("completionTime")
    if {"Complete", "Failed"} & changed and now["Complete"] and now["Failed"]:
        yield _condition("cannot set Complete=True and Failed=true conditions")
    if {"Complete", "FailureTarget"} & changed and now["Complete"] and now["FailureTarget"]:
        yield _condition("cannot set Complete=True and FailureTarget=true conditions")
    if {"Complete", "completionTime"} & changed:
        if completion is not None and not now["Complete"]:
            rule = "cannot set completionTime when there is no Complete=True condition"
            yield field.invalid("status.completionTime", completion, rule)
        if completion is None and now["Complete"]:
            yield field.required("status.completionTime", "completionTime is required for Complete jobs")
    if {"startTime", "completionTime"} & changed and start and completion and completion < start:
        yield field.invalid("status.completionTime", completion, "completionTime cannot be set before startTime")
    if {"Failed", "FailureTarget"} & changed and now["Failed"] and not now["FailureTarget"]:
        yield _condition("cannot set Failed=True condition without the FailureTarget=true condition")
    if {"Complete", "SuccessCriteriaMet"} & changed and now["Complete"] and not now["SuccessCriteriaMet"]:
        yield _condition("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")


def _finished(status: Object, now: dict[str, bool], changed: set[str]) -> Errors:
    if not _ended(now):
        return
    uncounted: Object = status.get("uncountedTerminatedPods") or {}
    if {"finished", "active"} & changed and (status.get("active") or 0) > 0:
        yield field.invalid("status.active", status["active"], "active>0 is invalid for finished job")
    if {"finished", "startTime"} & changed and status.get("startTime") is None:
        yield field.required("status.startTime", "startTime is required for finished job")
    if {"finished", "uncountedTerminatedPods"} & changed and (uncounted.get("failed") or uncounted.get("succeeded")):
        value = checks.struct_json("batch/v1.UncountedTerminatedPods", uncounted)
        rule = "uncountedTerminatedPods needs to be empty for finished job"
        yield field.invalid("status.uncountedTerminatedPods", value, rule)


def _indexes(status: Object, spec: Object, changed: set[str]) -> Errors:
    completions: int | None = spec.get("completions")
    per_index, completed = spec.get("backoffLimitPerIndex"), status.get("completedIndexes", "")
    failed: str | None = status.get("failedIndexes")
    path = "status.completedIndexes"
    if "completedIndexes" in changed and completions is not None and (why := _index_error(completed, completions)):
        yield field.invalid(path, completed, f"error parsing completedIndexes: {why}")
    if "failedIndexes" in changed and completions is not None and per_index is not None and failed is not None:
        why = _index_error(failed, completions)
        if why:
            yield field.invalid("status.failedIndexes", failed, f"error parsing failedIndexes: {why}")
    if "completedIndexes" in changed and completed and spec.get("completionMode") != _INDEXED:
        rule = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield field.invalid(path, completed, rule)
    if "failedIndexes" in changed and per_index is None and failed is not None:
        rule = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield field.invalid("status.failedIndexes", failed, rule)
    if {"failedIndexes", "completedIndexes"} & changed and completions is not None and failed is not None:
        both = _overlap(completed, failed, completions)
        if both is not None:
            rule = f"failedIndexes and completedIndexes overlap at index: {both}"
            yield field.invalid("status.failedIndexes", failed, rule)


def _transitions(status: Object, old: Object, spec: Object, now: dict[str, bool], was: dict[str, bool]) -> Errors:
    for kind in ("Failed", "Complete", "FailureTarget"):
        if was[kind] and not now[kind]:
            yield _condition(f"cannot disable the terminal {kind}=True condition")
    if (status.get("failed") or 0) < (old.get("failed") or 0):
        yield field.invalid("status.failed", status.get("failed") or 0, "cannot decrease the failed counter")
    is_elastic = spec.get("completionMode") == _INDEXED and spec.get("completions") == spec.get("parallelism")
    if not is_elastic and (status.get("succeeded") or 0) < (old.get("succeeded") or 0):
        yield field.invalid("status.succeeded", status.get("succeeded") or 0, "cannot decrease the succeeded counter")
    completion, start = status.get("completionTime"), old.get("startTime")
    if completion is not None and old.get("completionTime") not in (None, completion):
        yield field.invalid("status.completionTime", completion, "completionTime cannot be mutated")
    if start is not None and status.get("startTime") != start and not spec.get("suspend"):
        yield field.required("status.startTime", "startTime cannot be removed for unsuspended job")
    if was["SuccessCriteriaMet"] and not now["SuccessCriteriaMet"]:
        yield _condition("cannot disable the SuccessCriteriaMet=True condition")
    if was["Complete"] and not was["SuccessCriteriaMet"] and now["SuccessCriteriaMet"]:
        yield _condition("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")


# -- CronJobs ---------------------------------------------------------------------------------------------------------


def _validate_cron_job(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    return [] if context.subresource == "status" else list(_cron_job(new, old))


def _cron_job(new: Object, old: Object | None) -> Errors:
    spec: Object = new.get("spec") or {}
    before: Object = {} if old is None else old.get("spec") or {}
    yield from checks.finalizers(new["metadata"])
    yield from _schedule(spec, before)
    yield from checks.nonnegative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    zone = spec.get("timeZone")
    if zone is not None and zone != before.get("timeZone") and (why := zone_error(zone)):
        yield field.invalid("spec.timeZone", zone, why)
    policy = spec.get("concurrencyPolicy")
    yield from checks.required_choice(policy, "batch/v1.ConcurrencyPolicy", "spec.concurrencyPolicy", declared=True)
    job: Object = (spec.get("jobTemplate") or {}).get("spec") or {}
    path = "spec.jobTemplate.spec"
    yield from _spec(job, path)
    if job.get("selector") is not None:
        selector = checks.struct_json(_SELECTOR, job["selector"])
        yield field.invalid(f"{path}.selector", selector, "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield field.not_supported(f"{path}.manualSelector", True, ["nil", "false"])
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from checks.nonnegative(spec.get(name), f"spec.{name}")
    name = new["metadata"].get("name", "")
    if old is None and len(name) > _MAX_NAME:
        yield field.invalid("metadata.name", name, f"must be no more than {_MAX_NAME} characters")


def _schedule(spec: Object, old: Object) -> Errors:
    """Schedules with a time zone are only left in stored objects."""
    schedule, path = spec.get("schedule", ""), "spec.schedule"
    if not schedule:
        yield field.required(path)
        return
    if why := schedule_error(schedule):
        yield field.invalid(path, schedule, why)
    had_zone = "TZ" in old.get("schedule", "")
    if "TZ" in schedule and not had_zone:
        rule = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield field.invalid(path, schedule, rule)
    elif "TZ" in schedule and spec.get("timeZone") is not None:
        rule = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        yield field.invalid(path, schedule, rule)


# -- warnings ---------------------------------------------------------------------------------------------------------


def _spec_warnings(spec: Object, path: Path) -> Iterator[str]:
    is_large = (spec.get("completions") or 0) > _MANY_COMPLETIONS
    if (
        spec.get("completionMode") == _INDEXED
        and is_large
        and (spec.get("parallelism") or 0) > _MAX_PARALLELISM_OF_MANY
    ):
        yield (
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
            "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    yield from pod_warnings.warnings(spec.get("template") or {}, f"{path}.template")


def _warnings(new: Object, old: Object | None) -> list[str]:
    changed = template_changed(new, old)
    return name_warnings(new, old) + (list(_spec_warnings(new.get("spec") or {}, "spec")) if changed else [])


def _cron_job_warnings(new: Object, old: Object | None) -> list[str]:
    spec: Object = new.get("spec") or {}
    warnings = name_warnings(new, old)
    if template_changed(new, old):
        warnings += _spec_warnings((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")
    if old is not None and "TZ" in spec.get("schedule", ""):
        warnings.append(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )
    return warnings


RULES: Final = {
    "CronJob": Rules(validate=_validate_cron_job, warnings=_cron_job_warnings),
    "Job": Rules(complete=_complete, validate=_validate, warnings=_warnings),
}
