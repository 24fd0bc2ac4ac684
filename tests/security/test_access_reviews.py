"""Access reviews: what they ask, and what their status says."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.registry.access import AccessAttributes, Decision, User
from noxu.security.authorization import rules_of
from noxu.security.rbac import MAX_LISTED, RolePolicy
from noxu.security.reviews import review, user_of
from noxu.values import Object
from tests.rows import rows

DEV = User("dev")
GET: Object = {"verb": "get", "resource": "pods"}


class Asked:
    """An authorizer that has one answer, and remembers the question."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.question: AccessAttributes | None = None

    def __call__(self, attributes: AccessAttributes) -> Decision:
        self.question = attributes
        return self.decision


QUESTIONS: list[tuple[str, Object, AccessAttributes]] = [
    ("a resource", {"resourceAttributes": GET}, AccessAttributes(DEV, "get", "", "*", "pods")),
    ("all attributes",
     {"resourceAttributes": {**GET, "group": "g", "version": "v2", "subresource": "s", "namespace": "ns", "name": "a"}},
     AccessAttributes(DEV, "get", "g", "v2", "pods", "s", "ns", "a")),
    ("no resource", {"resourceAttributes": {}}, AccessAttributes(DEV, "", "", "*")),
    ("a path", {"nonResourceAttributes": {"verb": "get", "path": "/x"}}, AccessAttributes(DEV, "get", path="/x")),
    ("no path", {"nonResourceAttributes": {"verb": "get"}}, AccessAttributes(DEV, "get", path="")),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "expected"), [row[1:] for row in QUESTIONS], ids=[row[0] for row in QUESTIONS])
def test_what_is_asked(spec: Object, expected: AccessAttributes) -> None:
    asked = Asked(Decision(allowed=True))
    review(asked, DEV, spec)
    assert asked.question == expected


def test_the_user_of_a_review() -> None:
    spec = {"user": "a", "uid": "1", "groups": ["g"], "extra": {"k": ["v", "w"]}}
    assert user_of(spec) == User("a", "1", ("g",), (("k", ("v", "w")),))
    assert user_of({"groups": ["g"]}) == User("", "", ("g",))


def fields(*requirements: Any, raw: str = "") -> Object:
    return {"resourceAttributes": {**GET, "fieldSelector": {"rawSelector": raw, "requirements": list(requirements)}}}


def labels(*requirements: Any, raw: str = "") -> Object:
    return {"resourceAttributes": {**GET, "labelSelector": {"rawSelector": raw, "requirements": list(requirements)}}}


def requirement(operator: str, *values: str) -> Object:
    return {"key": "a", "operator": operator, "values": list(values)}


ATTRIBUTES = "spec.resourceAttributes"
STATUSES: list[tuple[str, Decision, Object, Object]] = [
    ("allowed", Decision(True), {"resourceAttributes": GET}, {"allowed": True}),
    ("allowed for a reason", Decision(True, "why"), {"resourceAttributes": GET}, {"allowed": True, "reason": "why"}),
    ("refused", Decision(False), {"resourceAttributes": GET}, {"allowed": False}),
    ("refused for a reason", Decision(False, "why"), {"resourceAttributes": GET}, {"allowed": False, "reason": "why"}),
    ("failed", Decision(False, "", "out of order"), {"resourceAttributes": GET},
     {"allowed": False, "evaluationError": "out of order"}),
    ("a field selector", Decision(True), fields(raw="a=b"), {"allowed": True}),
    ("a malformed field selector", Decision(True), fields(raw="a"),
     {"allowed": True, "evaluationError": f"{ATTRIBUTES}.fieldSelector ignored due to parse error"}),
    ("one value of a field", Decision(True), fields(requirement("In", "b")), {"allowed": True}),
    ("several values of a field", Decision(True), fields(requirement("In", "b", "c")),
     {"allowed": True, "evaluationError": f"{ATTRIBUTES}.fieldSelector ignored due to parse error"}),
    ("a field that exists", Decision(True), fields(requirement("Exists")),
     {"allowed": True, "evaluationError": f"{ATTRIBUTES}.fieldSelector ignored due to parse error"}),
    ("one requirement of two", Decision(True), fields(requirement("NotIn", "b"), requirement("Exists")),
     {"allowed": True, "evaluationError": f"{ATTRIBUTES}.fieldSelector partially ignored due to parse error"}),
    ("a label selector", Decision(True), labels(raw="a in (b,c)"), {"allowed": True}),
    ("a malformed label selector", Decision(True), labels(raw="a in"),
     {"allowed": True, "evaluationError": f"{ATTRIBUTES}.labelSelector ignored due to parse error"}),
    ("values of a label", Decision(True), labels(requirement("In", "b", "c"), requirement("Exists")), {"allowed": True}),
    ("an operator of the future", Decision(True), labels(requirement("Like", "b"), requirement("Exists")),
     {"allowed": True, "evaluationError": f"{ATTRIBUTES}.labelSelector partially ignored due to parse error"}),
]  # fmt: skip


@rows(("decision", "spec", "expected"), [row[1:] for row in STATUSES], ids=[row[0] for row in STATUSES])
def test_the_status(decision: Decision, spec: Object, expected: Object) -> None:
    assert review(Asked(decision), DEV, spec) == expected


def test_the_rules_of_a_user() -> None:
    policy = RolePolicy()
    rules = [
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]},
        {"verbs": ["get"], "nonResourceURLs": ["/x"]},
    ]
    subjects = [{"kind": "User", "name": "dev"}]
    policy.put_role("", "r", {"rules": rules})
    policy.put_binding("", "b", {"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": subjects})
    policy.put_binding("ns", "b", {"roleRef": {"kind": "Role", "name": "gone"}, "subjects": subjects})
    missing = 'role.rbac.authorization.k8s.io "gone" not found'
    assert rules_of(["RBAC"], policy)(DEV, "ns") == ([rules[0]], [rules[1]], missing, False)
    assert rules_of(["RBAC"], policy)(DEV, "other") == ([rules[0]], [rules[1]], "", False)
    assert rules_of(["RBAC"], policy)(User("x"), "ns") == ([], [], "", False)
    everything = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    assert rules_of(["RBAC", "AlwaysAllow"], policy)(User("x"), "ns").resources == everything
    assert rules_of(["Node", "AlwaysDeny"], policy)(DEV, "ns") == ([], [], "", False)


def test_small_bindings_of_a_large_role_are_not_listed_without_end() -> None:
    policy = RolePolicy()
    rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["r" * (MAX_LISTED // 4 - 100)]}]
    policy.put_role("", "r", {"rules": rules})
    for n in range(5):
        policy.put_binding(
            "",
            f"b{n}",
            {"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "User", "name": "dev"}]},
        )
    found = rules_of(["RBAC"], policy)(DEV, "ns")
    assert (found.resources, found.incomplete) == (rules * 4, True)
    assert found.error == "there are more rules than a review lists"
    assert [one.manifest for one in policy.rules_held(DEV, "ns")[0]] == rules, "Each role counts once."
