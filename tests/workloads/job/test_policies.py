"""Pod failure policies and success policies (upstream's pod_failure_policy_test.go and success_policy_test.go)."""

from __future__ import annotations

from typing import Any

from noxu.values import Object
from noxu.workloads.job import indexes
from noxu.workloads.job.policies import COUNTED, FailureVerdict, criterion_met, verdict
from tests.rows import rows


def exits(action: str, operator: str, *codes: int, container: str | None = None) -> Object:
    requirement = {"operator": operator, "values": list(codes)}
    return {"action": action, "onExitCodes": requirement | ({"containerName": container} if container else {})}


def disrupted(action: str, status: str = "True") -> Object:
    return {"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": status}]}


def failed(conditions: dict[str, str] | None = None, init: dict[str, int] | None = None, **codes: int) -> Object:
    """A failed pod; `codes` are those with which its containers have ended."""

    def statuses(ends: dict[str, int]) -> list[Object]:
        return [{"name": name, "state": {"terminated": {"exitCode": code}}} for name, code in ends.items()]

    status: dict[str, Any] = {"phase": "Failed", "containerStatuses": statuses(codes)}
    status["initContainerStatuses"] = statuses(init or {})
    status["conditions"] = [{"type": kind, "status": value} for kind, value in (conditions or {}).items()]
    return {"metadata": {"name": "pod", "namespace": "ns"}, "status": status}


def failing(text: str) -> FailureVerdict:
    return FailureVerdict(True, "FailJob", text)


NOT_MATCHED = COUNTED
DISRUPTED = {"DisruptionTarget": "True"}


@rows(
    "situation, rules, pod, expected",
    [
        ("no rules", [], failed(c=1), NOT_MATCHED),
        ("a code that is ignored", [exits("Ignore", "In", 1, 2, 3)], failed(c=2), FailureVerdict(False, "Ignore")),
        ("a code that is counted", [exits("Count", "In", 1)], failed(c=1), FailureVerdict(True, "Count")),
        ("a code that fails an index", [exits("FailIndex", "In", 1)], failed(c=1), FailureVerdict(True, "FailIndex")),
        (
            "a code that fails the Job",
            [exits("FailJob", "In", 1, 2)],
            failed(c=2),
            failing("Container c for pod ns/pod failed with exit code 2 matching FailJob rule at index 0"),
        ),
        ("another code", [exits("FailJob", "In", 1)], failed(c=5), NOT_MATCHED),
        (
            "not one of the codes",
            [exits("FailJob", "NotIn", 5, 6)],
            failed(c=1),
            failing("Container c for pod ns/pod failed with exit code 1 matching FailJob rule at index 0"),
        ),
        ("one of the codes that are excepted", [exits("FailJob", "NotIn", 5, 6)], failed(c=5), NOT_MATCHED),
        ("0 never matches", [exits("FailJob", "NotIn", 1)], failed(c=0), NOT_MATCHED),
        ("the code of another container", [exits("FailJob", "In", 1, container="d")], failed(c=1), NOT_MATCHED),
        (
            "the code of one of two containers",
            [exits("FailJob", "In", 1, container="d")],
            failed(c=0, d=1),
            failing("Container d for pod ns/pod failed with exit code 1 matching FailJob rule at index 0"),
        ),
        (
            "the code of an init container",
            [exits("Ignore", "In", 9), exits("FailJob", "In", 1)],
            failed(init={"i": 1}),
            failing("Container i for pod ns/pod failed with exit code 1 matching FailJob rule at index 1"),
        ),
        ("an unknown operator", [exits("FailJob", "Near", 1)], failed(c=1), NOT_MATCHED),
        ("the first rule that matches", [exits("Ignore", "In", 1), exits("FailJob", "In", 1)], failed(c=1), FailureVerdict(False, "Ignore")),
        ("a condition that is ignored", [disrupted("Ignore")], failed(DISRUPTED, c=1), FailureVerdict(False, "Ignore")),
        ("a condition that is counted", [disrupted("Count")], failed(DISRUPTED), FailureVerdict(True, "Count")),
        (
            "a condition that fails the Job",
            [disrupted("FailJob")],
            failed(DISRUPTED),
            failing("Pod ns/pod has condition DisruptionTarget matching FailJob rule at index 0"),
        ),
        ("a condition that is false", [disrupted("FailJob")], failed({"DisruptionTarget": "False"}), NOT_MATCHED),
        ("a condition that should be false", [disrupted("Ignore", "False")], failed({"DisruptionTarget": "False"}), FailureVerdict(False, "Ignore")),
        ("a rule of the future", [{"action": "FailJob"}], failed(DISRUPTED, c=1), NOT_MATCHED),
    ],
)  # fmt: skip
def test_the_verdict_about_a_failed_pod(
    situation: str, rules: list[Object], pod: Object, expected: FailureVerdict
) -> None:
    assert verdict({"rules": rules}, pod) == expected, situation


def test_without_a_policy_every_failure_counts() -> None:
    assert verdict(None, failed(DISRUPTED, c=1)) == COUNTED


def rule(indexes: str | None = None, count: int | None = None) -> Object:
    made = {"succeededIndexes": indexes, "succeededCount": count}
    return {name: value for name, value in made.items() if value is not None}


@rows(
    "rules, succeeded, expected",
    [
        ([], "0-9", None),
        ([rule("0")], "", None),
        ([rule("0,2")], "0-3", 0),
        ([rule("0,2")], "0,1", None),
        ([rule("0-4", 2)], "1,3", 0),
        ([rule("0-4", 3)], "1,3,7", None),
        ([rule(count=2)], "5,9", 0),
        ([rule(count=3)], "5,9", None),
        ([rule("7"), rule(count=1)], "5", 1),
        ([rule("x"), rule("5")], "5", 1),
        ([rule("2-4,6-8")], "0-9", 0),
        ([rule("2-4,6-8", 4)], "3-7", 0),
        ([rule("8-12")], "8,9", 0),  # those that are out of range are not required
    ],
)
def test_a_success_policy_is_met(rules: list[Object], succeeded: str, expected: int | None) -> None:
    message = "" if expected is None else f"Matched rules at index {expected}"
    assert criterion_met({"rules": rules}, 10, indexes.parse(succeeded, 10)) == message


def test_without_a_success_policy_none_is_met() -> None:
    assert criterion_met(None, 10, indexes.parse("0-9", 10)) == ""
