"""What the pod failure policy of a Job says about a failed pod, and when its success policy is met.

The rules are those of pod_failure_policy.go and success_policy.go: the first rule that matches decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from noxu.values import Object
from noxu.workloads.job import indexes
from noxu.workloads.job.indexes import Intervals


class FailureVerdict(NamedTuple):
    """About a failed pod: whether it counts towards the backoff limits, and why the whole Job fails (`message`), if so.

    `action`: the action of the rule that matches, "" if none does.
    """

    counts: bool = True
    action: str = ""
    message: str = ""


COUNTED: Final = FailureVerdict()


def verdict(policy: Object | None, pod: Object) -> FailureVerdict:
    """What a pod failure policy says about a failed pod."""
    status = pod.get("status") or {}
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        why = _reason(rule, status)
        if not why:
            continue
        action = rule["action"]
        if action != "FailJob":
            return FailureVerdict(action != "Ignore", action)
        metadata = pod["metadata"]
        where = f"{metadata.get('namespace', '')}/{metadata['name']}"
        return FailureVerdict(True, action, f"{why.format(where)} matching FailJob rule at index {number}")
    return COUNTED


def _reason(rule: Object, status: Object) -> str:
    """Why a rule matches, with `{}` in place of the pod; "": it does not."""
    if rule.get("onExitCodes") is not None:
        containers = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
        for container in containers:
            code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
            if code and _matches_code(rule["onExitCodes"], container["name"], code):
                return f"Container {container['name']} for pod {{}} failed with exit code {code}"
        return ""
    for condition in status.get("conditions") or ():
        for pattern in rule.get("onPodConditions") or ():
            if condition["type"] == pattern["type"] and condition["status"] == pattern.get("status", "True"):
                return f"Pod {{}} has condition {condition['type']}"
    return ""


def _matches_code(requirement: Object, container: str, code: int) -> bool:
    if requirement.get("containerName") not in (None, container):
        return False
    is_listed = code in (requirement.get("values") or ())
    return {"In": is_listed, "NotIn": not is_listed}.get(requirement["operator"], False)


def criterion_met(policy: Object | None, completions: int, succeeded: Intervals) -> str:
    """The message about the rule of a success policy that is met, "" if none is."""
    rules: Iterable[Object] = (policy or {}).get("rules") or ()
    for number, rule in enumerate(rules):
        if succeeded and _is_met(rule, completions, succeeded):
            return f"Matched rules at index {number}"
    return ""


def _is_met(rule: Object, completions: int, succeeded: Intervals) -> bool:
    count: int | None = rule.get("succeededCount")
    if rule.get("succeededIndexes") is None:
        return count is not None and indexes.total(succeeded) >= count
    required = indexes.parse(rule["succeededIndexes"], completions)
    if not required:
        return False
    found = indexes.common(required, succeeded)
    return found == indexes.total(required) or (count is not None and found >= count)
