"""RBAC: what roles and bindings allow, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.registry.access import AccessAttributes, User
from noxu.security.rbac import MANY, RoleKey, RolePolicy
from noxu.values import Object
from tests.rows import rows
from tests.timing import cpu_seconds

DEV = User("dev", groups=("team", "system:authenticated"))
ROBOT = User("system:serviceaccount:ns:robot", groups=("system:serviceaccounts", "system:authenticated"))


def rule(verbs: str, resources: str = "", groups: str = "", names: str = "", urls: str = "") -> Object:
    """A rule of words; the core group is written as `core`."""
    made: Object = {"verbs": verbs.split()}
    if resources:
        made["resources"] = resources.split()
        made["apiGroups"] = [group.replace("core", "") for group in (groups or "core").split()]
    if names:
        made["resourceNames"] = names.split()
    if urls:
        made["nonResourceURLs"] = urls.split()
    return made


def role(*rules: Object) -> Object:
    return {"rules": list(rules)}


def binding(name: str, *subjects: Object, kind: str = "ClusterRole") -> Object:
    return {"roleRef": {"kind": kind, "name": name}, "subjects": list(subjects)}


def subject(kind: str, name: str, namespace: str = "") -> Object:
    return {"kind": kind, "name": name} | ({"namespace": namespace} if namespace else {})


TO_DEV = subject("User", "dev")


def asked(
    verb: str, resource: str, namespace: str = "", name: str = "", group: str = "", user: User = DEV
) -> AccessAttributes:
    plural, _, subresource = resource.partition("/")
    return AccessAttributes(user, verb, group, "v1", plural, subresource, namespace, name)


def asked_path(verb: str, path: str, user: User = DEV) -> AccessAttributes:
    return AccessAttributes(user, verb, path=path)


def policy_of(*rules: Object) -> RolePolicy:
    """A policy that grants these rules to dev in the whole cluster."""
    policy = RolePolicy()
    policy.put_role("", "r", role(*rules))
    policy.put_binding("", "b", binding("r", TO_DEV))
    return policy


WIDGETS: dict[str, Any] = {"group": "example.com"}
RULES: list[tuple[str, Object, AccessAttributes, bool]] = [
    ("the verb is listed", rule("get list", "pods"), asked("list", "pods"), True),
    ("the verb is not listed", rule("get list", "pods"), asked("watch", "pods"), False),
    ("every verb", rule("*", "pods"), asked("escalate", "pods"), True),
    ("a verb is no pattern", rule("ge*", "pods"), asked("get", "pods"), False),
    ("a method without a verb, and every verb", rule("*", "pods"), asked("", "pods"), True),
    ("the group is listed", rule("get", "widgets", "apps example.com"), asked("get", "widgets", **WIDGETS), True),
    ("the group is another", rule("get", "widgets", "apps"), asked("get", "widgets", **WIDGETS), False),
    ("the core group is not every group", rule("get", "widgets"), asked("get", "widgets", **WIDGETS), False),
    ("every group", rule("get", "widgets", "*"), asked("get", "widgets", **WIDGETS), True),
    ("a resource does not include its subresources", rule("get", "pods"), asked("get", "pods/log"), False),
    ("a subresource does not include its resource", rule("get", "pods/log"), asked("get", "pods"), False),
    ("a subresource", rule("get", "pods/log"), asked("get", "pods/log"), True),
    ("every resource includes subresources", rule("get", "*"), asked("get", "pods/log"), True),
    ("pods/* is no pattern", rule("get", "pods/*"), asked("get", "pods/log"), False),
    ("pods/* does not include pods", rule("get", "pods/*"), asked("get", "pods"), False),
    ("a subresource of every resource", rule("get", "*/scale"), asked("get", "deployments/scale"), True),
    ("another subresource", rule("get", "*/scale"), asked("get", "deployments/status"), False),
    ("a subresource of every resource is not the resource", rule("get", "*/scale"), asked("get", "deployments"), False),
    ("*/* is no pattern", rule("get", "*/*"), asked("get", "pods/log"), False),
    ("the name is listed", rule("get", "pods", names="a b"), asked("get", "pods", name="b"), True),
    ("the name is another", rule("get", "pods", names="a b"), asked("get", "pods", name="c"), False),
    ("names do not include the collection", rule("list", "pods", names="a"), asked("list", "pods"), False),
    ("a name is no pattern", rule("get", "pods", names="*"), asked("get", "pods", name="a"), False),
    ("a name is no pattern, so it is a name", rule("get", "pods", names="*"), asked("get", "pods", name="*"), True),
    ("the hundredth name", rule("get", "pods", names=" ".join(map(str, range(100)))), asked("get", "pods", name="99"), True),
    ("a path", rule("get", urls="/healthz"), asked_path("get", "/healthz"), True),
    ("below a path", rule("get", urls="/healthz"), asked_path("get", "/healthz/etcd"), False),
    ("every path", rule("get", urls="*"), asked_path("get", "/x"), True),
    ("no path at all, and every path", rule("get", urls="*"), asked_path("get", ""), True),
    ("a prefix", rule("get", urls="/healthz/*"), asked_path("get", "/healthz/etcd"), True),
    ("a prefix ends with its slash", rule("get", urls="/healthz/*"), asked_path("get", "/healthz"), False),
    ("a prefix within a segment", rule("get", urls="/health*"), asked_path("get", "/healthz"), True),
    ("several stars end a prefix", rule("get", urls="/healthz/**"), asked_path("get", "/healthz/a"), True),
    ("a star in the middle is no pattern", rule("get", urls="/a*/b"), asked_path("get", "/a1/b"), False),
    ("another method", rule("get", urls="/healthz"), asked_path("post", "/healthz"), False),
    ("resources grant no paths", rule("*", "*", "*"), asked_path("get", "/healthz"), False),
    ("paths grant no resources", rule("*", urls="*"), asked("get", "pods"), False),
    ("a resource without a name, and every resource", rule("get", "*"), asked("get", "", name="pods"), True),
]  # fmt: skip


@rows(("granted", "request_", "expected"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_a_rule(granted: Object, request_: AccessAttributes, expected: bool) -> None:
    assert policy_of(granted).authorize(request_).allowed is expected


@rows(("granted", "request_", "expected"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_a_rule_among_many_bindings(granted: Object, request_: AccessAttributes, expected: bool) -> None:
    policy = policy_of(granted)
    for n in range(2 * MANY):
        policy.put_role("", f"other-{n}", role(rule("get", f"others-{n}")))
        policy.put_binding("", f"other-{n}", binding(f"other-{n}", TO_DEV))
    assert policy.authorize(request_).allowed is expected


PODS = rule("get", "pods")
SUBJECTS: list[tuple[str, Object, User, bool]] = [
    ("the user", TO_DEV, DEV, True),
    ("another user", subject("User", "Dev"), DEV, False),
    ("a group of the user", subject("Group", "team"), DEV, True),
    ("a group is no user", subject("User", "team"), DEV, False),
    ("a user is no group", subject("Group", "dev"), DEV, False),
    ("every authenticated user", subject("Group", "system:authenticated"), ROBOT, True),
    ("a service account", subject("ServiceAccount", "robot", "ns"), ROBOT, True),
    ("the same account of another namespace", subject("ServiceAccount", "robot", "other"), ROBOT, False),
    ("a service account as a user", subject("User", ROBOT.name), ROBOT, True),
    ("an unknown kind", subject("Robot", "dev"), DEV, False),
]  # fmt: skip


@rows(("to", "user", "expected"), [row[1:] for row in SUBJECTS], ids=[row[0] for row in SUBJECTS])
def test_a_subject(to: Object, user: User, expected: bool) -> None:
    policy = RolePolicy()
    policy.put_role("", "r", role(PODS))
    policy.put_binding("", "b", binding("r", subject("User", "another"), to))
    assert policy.authorize(asked("get", "pods", user=user)).allowed is expected
    assert policy.authorize(asked("get", "pods", "any", "p", user=user)).allowed is expected


def test_a_service_account_without_a_namespace_is_that_of_the_role_binding() -> None:
    policy = RolePolicy()
    policy.put_role("ns", "r", role(PODS))
    policy.put_binding("ns", "b", binding("r", subject("ServiceAccount", "robot"), kind="Role"))
    assert policy.authorize(asked("get", "pods", "ns", user=ROBOT)).allowed
    policy = RolePolicy()
    policy.put_role("", "r", role(PODS))
    policy.put_binding("", "b", binding("r", subject("ServiceAccount", "robot")))
    assert not policy.authorize(asked("get", "pods", "ns", user=ROBOT)).allowed


def test_a_role_binding_is_for_its_namespace() -> None:
    policy = RolePolicy()
    policy.put_role("", "r", role(PODS, rule("get", urls="*")))
    policy.put_binding("ns", "b", binding("r", TO_DEV))
    assert policy.authorize(asked("get", "pods", "ns")).allowed
    assert not policy.authorize(asked("get", "pods", "other")).allowed
    assert not policy.authorize(asked("get", "pods")).allowed
    assert not policy.authorize(asked_path("get", "/healthz")).allowed


def test_a_role_is_that_of_the_namespace() -> None:
    policy = RolePolicy()
    policy.put_role("other", "r", role(PODS))
    policy.put_binding("ns", "b", binding("r", TO_DEV, kind="Role"))
    assert not policy.authorize(asked("get", "pods", "ns")).allowed
    policy.put_role("ns", "r", role(PODS))
    assert policy.authorize(asked("get", "pods", "ns")).allowed


REASONS: list[tuple[str, str, Object, User, str]] = [
    ("a user", "", binding("r", TO_DEV), DEV, 'ClusterRoleBinding "b" of ClusterRole "r" to User "dev"'),
    ("a group", "", binding("r", subject("Group", "team")), DEV, 'ClusterRoleBinding "b" of ClusterRole "r" to Group "team"'),
    ("in a namespace", "ns", binding("r", TO_DEV), DEV, 'RoleBinding "b/ns" of ClusterRole "r" to User "dev"'),
    ("an account", "ns", binding("r", subject("ServiceAccount", "robot"), kind="Role"), ROBOT,
     'RoleBinding "b/ns" of Role "r" to ServiceAccount "robot/ns"'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("namespace", "bound", "user", "expected"), [row[1:] for row in REASONS], ids=[row[0] for row in REASONS]
)
def test_the_reason_names_the_binding(namespace: str, bound: Object, user: User, expected: str) -> None:
    policy = RolePolicy()
    policy.put_role("", "r", role(PODS))
    policy.put_role("ns", "r", role(PODS))
    policy.put_binding(namespace, "b", bound)
    assert policy.authorize(asked("get", "pods", "ns", user=user)).reason == f"RBAC: allowed by {expected}"


MISSING = 'clusterrole.rbac.authorization.k8s.io "nope" not found'


@pytest.mark.parametrize(
    ("bindings", "expected"),
    [
        ([], ""),
        ([("", "a", binding("nope", TO_DEV))], f"RBAC: {MISSING}"),
        ([("", "a", binding("nope", TO_DEV)), ("", "b", binding("nope", TO_DEV))], f"RBAC: {MISSING}"),
        ([("", "a", binding("nope", TO_DEV)), ("ns", "a", binding("x", TO_DEV, kind="Role"))],
         f'RBAC: [{MISSING}, role.rbac.authorization.k8s.io "x" not found]'),
        ([("other", "a", binding("nope", TO_DEV))], ""),
        ([("", "a", binding("nope", TO_DEV, kind="X"))], 'RBAC: unsupported role reference kind: "X"'),
    ],
    ids=["without bindings", "a binding to a missing role", "two bindings to it", "two missing roles",
         "a binding elsewhere", "a kind that does not exist"],
)  # fmt: skip
def test_a_refusal_names_missing_roles(bindings: Sequence[tuple[str, str, Object]], expected: str) -> None:
    policy = RolePolicy()
    for row in bindings:
        policy.put_binding(*row)
    decision = policy.authorize(asked("get", "pods", "ns"))
    assert (decision.allowed, decision.reason, decision.error) == (False, expected, "")


def test_changes_act_at_once() -> None:
    policy, question = RolePolicy(), asked("get", "pods", "ns")
    steps: list[tuple[str, Any, bool]] = [
        ("a binding without a role", lambda: policy.put_binding("ns", "b", binding("r", TO_DEV, kind="Role")), False),
        ("its role", lambda: policy.put_role("ns", "r", role(PODS)), True),
        ("the role without rules", lambda: policy.put_role("ns", "r", {"rules": None}), False),
        ("the role again", lambda: policy.put_role("ns", "r", role(PODS)), True),
        (
            "another subject",
            lambda: policy.put_binding("ns", "b", binding("r", subject("User", "x"), kind="Role")),
            False,
        ),
        (
            "the same subject twice",
            lambda: policy.put_binding("ns", "b", binding("r", TO_DEV, TO_DEV, kind="Role")),
            True,
        ),
        ("another binding is removed", lambda: policy.remove_binding("ns", "c"), True),
        ("the role is removed", lambda: policy.remove_role("ns", "r"), False),
        ("the role once more", lambda: policy.put_role("ns", "r", role(PODS)), True),
        ("the binding is removed", lambda: policy.remove_binding("ns", "b"), False),
    ]
    for name, change, expected in steps:
        change()
        assert policy.authorize(question).allowed is expected, name
    assert not policy._namespaces


def test_rules_come_in_the_order_of_bindings() -> None:
    policy = RolePolicy()
    for name in "cab":
        policy.put_role("", name, role(rule("get", name)))
        policy.put_binding("", name, binding(name, TO_DEV, subject("Group", "team")))
    policy.put_binding("ns", "a", binding("b", TO_DEV))
    policy.put_binding("ns", "z", binding("gone", TO_DEV))
    rules, missing, complete = policy.rules_of(DEV, "ns")
    assert [one.resources for one in rules] == [("a",), ("b",), ("c",), ("b",)]
    assert (missing, complete) == ([RoleKey("ClusterRole", "", "gone")], True)
    assert [one.resources for one in policy.rules_of(DEV, "")[0]] == [("a",), ("b",), ("c",)]
    found = policy.role(RoleKey("ClusterRole", "", "a"))
    assert found is not None


# -- against an oracle that reads the objects as upstream does -----------------------------------------------------------

_words = st.sampled_from(["*", "get", "list"])
_resources = st.sampled_from(["*", "pods", "pods/log", "*/log", "pods/*"])
_rules = st.builds(
    lambda verbs, groups, resources, names: {
        "verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names
    },
    st.lists(_words, max_size=2),
    st.lists(st.sampled_from(["", "*", "g"]), max_size=2),
    st.lists(_resources, max_size=2),
    st.lists(st.sampled_from(["a", "b"]), max_size=1),
)  # fmt: skip
_subjects = st.builds(
    subject, st.sampled_from(["User", "Group", "ServiceAccount"]), st.sampled_from(["dev", "team", "robot"]),
    st.sampled_from(["", "ns", "other"])
)  # fmt: skip
_changes = st.lists(
    st.one_of(
        st.tuples(st.just("role"), st.sampled_from(["", "ns"]), st.sampled_from("ab"),
                  st.none() | st.lists(_rules, max_size=3)),
        st.tuples(st.just("binding"), st.sampled_from(["", "ns"]), st.sampled_from("abcdefghijkl"),
                  st.none() | st.tuples(st.sampled_from(["Role", "ClusterRole"]), st.sampled_from("ab"),
                                        st.lists(_subjects, max_size=3))),
    ),
    max_size=40,
)  # fmt: skip


def applies(to: Object, user: User, namespace: str) -> bool:
    if to["kind"] == "User":
        return bool(user.name == to["name"])
    if to["kind"] == "Group":
        return to["name"] in user.groups
    of = to.get("namespace") or namespace
    return bool(of) and user.name == f"system:serviceaccount:{of}:{to['name']}"


def matches(one: Object, question: AccessAttributes) -> bool:
    resource = f"{question.resource}/{question.subresource}" if question.subresource else question.resource
    return (
        any(verb in ("*", question.verb) for verb in one["verbs"])
        and any(group in ("*", question.group) for group in one["apiGroups"])
        and any(
            given in ("*", resource) or (bool(question.subresource) and given == f"*/{question.subresource}")
            for given in one["resources"]
        )
        and (not one["resourceNames"] or question.name in one["resourceNames"])
    )


def allowed(roles: dict[Any, Any], bindings: dict[Any, Any], question: AccessAttributes) -> bool:
    for (namespace, _), (kind, name, subjects) in bindings.items():
        if namespace not in ("", question.namespace):
            continue
        rules = roles.get((namespace if kind == "Role" else "", name)) or []
        if kind == "Role" and not namespace:
            continue
        if any(applies(to, question.user, namespace) for to in subjects) and any(
            matches(one, question) for one in rules
        ):
            return True
    return False


@given(_changes)
def test_the_answers_are_those_of_a_reader_of_all_objects(changes: list[Any]) -> None:
    policy, roles, bindings = RolePolicy(), {}, {}
    for what, namespace, name, value in changes:
        if what == "role":
            (roles.pop((namespace, name), None) if value is None else roles.update({(namespace, name): value}))
            if value is None:
                policy.remove_role(namespace, name)
            else:
                policy.put_role(namespace, name, {"rules": value})
        elif value is None:
            bindings.pop((namespace, name), None)
            policy.remove_binding(namespace, name)
        else:
            bindings[namespace, name] = value
            policy.put_binding(namespace, name, binding(value[1], *value[2], kind=value[0]))
    for user in (DEV, ROBOT):
        for namespace in ("", "ns", "other"):
            for resource in ("pods", "pods/log", "nodes"):
                question = asked("get", resource, namespace, "a", user=user)
                assert policy.authorize(question).allowed is allowed(roles, bindings, question)


@pytest.mark.slow
def test_a_change_of_another_role_costs_users_with_many_bindings_little() -> None:
    policy = RolePolicy()
    for n in range(MANY + 1):
        policy.put_role("", f"r{n}", role(*(rule("get", f"a{i}") for i in range(1000))))
        policy.put_binding("", f"b{n}", binding(f"r{n}", TO_DEV))
    policy.put_role("", "last", role())
    policy.put_binding("", "last", binding("last", TO_DEV))

    def after_a_change(name: str) -> None:
        policy.put_role("", name, role())
        policy.authorize(asked("get", "other"))

    assert cpu_seconds(lambda: after_a_change("another")) < cpu_seconds(lambda: after_a_change("last")) / 3
    policy.put_role("", "last", role(rule("get", "other")))
    assert policy.authorize(asked("get", "other")).allowed


def test_many_bindings_to_a_role_cost_what_one_does() -> None:
    policy = RolePolicy()
    policy.put_role("", "r", role(*(rule("get", "a", names=f"n{i}") for i in range(1000))))
    policy.put_binding("", "b", binding("r", TO_DEV))
    once = cpu_seconds(lambda: policy.authorize(asked("get", "a", name="x")))
    for n in range(MANY):
        policy.put_binding("", f"b{n}", binding("r", TO_DEV))
    assert cpu_seconds(lambda: policy.authorize(asked("get", "a", name="x"))) < 5 * once
    assert policy.authorize(asked("get", "a", name="n1")).reason.startswith('RBAC: allowed by ClusterRoleBinding "b" ')
