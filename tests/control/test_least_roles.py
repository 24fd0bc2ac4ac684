"""The least roles: they allow what was asked, and nothing of them can be left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.api import codec
from noxu.control.least_roles import LeastRule, NeededRight, least_rules, manifests, name_of, questions, refused
from noxu.control.recorded_requests import RecordedRequest
from tests.control.manners.recordings import request
from tests.rows import rows

G = "example.com"


def ask(text: str) -> NeededRight:
    """`VERB RESOURCE [NAMESPACE][/NAME]`, or `VERB /path`."""
    verb, what, *where = text.split()
    if what.startswith("/"):
        return NeededRight(verb, path=what)
    namespace, _, name = where[0].partition("/") if where else ("", "", "")
    return NeededRight(verb, G, what, namespace, name)


ROWS: list[tuple[str, list[str], dict[str, list[str]]]] = [
    ("nothing", [], {}),
    ("a list of all namespaces", ["list widgets"], {"": ["widgets: list"]}),
    ("an informer", ["watch widgets", "list widgets"], {"": ["widgets: list, watch"]}),
    ("one namespace", ["list widgets shop"], {"shop": ["widgets: list"]}),
    ("two namespaces", ["list widgets shop", "list widgets attic"], {"": ["widgets: list"]}),
    ("one namespace and all", ["list widgets shop", "list widgets"], {"": ["widgets: list"]}),
    ("one object", ["get widgets shop/a", "update widgets shop/a"], {"shop": ["widgets [a]: get, update"]}),
    ("two objects", ["get widgets shop/a", "get widgets shop/b"], {"shop": ["widgets: get"]}),
    ("one name in two namespaces", ["get widgets shop/a", "get widgets attic/a"], {"": ["widgets [a]: get"]}),
    ("a new object", ["create widgets shop"], {"shop": ["widgets: create"]}),
    (
        "a new object, and then it",
        ["create widgets shop", "get widgets shop/a"],
        {"shop": ["widgets: create", "widgets [a]: get"]},
    ),
    ("a collection and an object", ["list widgets shop", "list widgets shop/a"], {"shop": ["widgets: list"]}),
    (
        "each verb by itself",
        ["list widgets", "update widgets shop/a"],
        {"": ["widgets: list"], "shop": ["widgets [a]: update"]},
    ),
    (
        "a subresource is another resource",
        ["update widgets shop/a", "patch widgets/status shop/b"],
        {"shop": ["widgets [a]: update", "widgets/status [b]: patch"]},
    ),
    (
        "resources with the same verbs are one rule",
        ["list widgets", "list gadgets", "watch gadgets", "watch widgets"],
        {"": ["gadgets, widgets: list, watch"]},
    ),
    (
        "verbs in their order",
        [f"{verb} widgets" for verb in ("deletecollection", "bind", "patch", "create", "watch", "delete", "list")],
        {"": ["widgets: list, watch, create, patch, delete, deletecollection, bind"]},
    ),
    ("paths", ["get /metrics", "get /logs", "post /logs"], {"": ["/metrics: get", "/logs: get, post"]}),
]


def described(rule: LeastRule) -> str:
    what, names = ", ".join(rule.urls or rule.resources), ", ".join(rule.names)
    return f"{what}{f' [{names}]' if names else ''}: {', '.join(rule.verbs)}"


@rows("name, asked, expected", ROWS, ids=[row[0] for row in ROWS])
def test_the_rules(name: str, asked: list[str], expected: dict[str, list[str]]) -> None:
    asked_for = [ask(text) for text in asked]
    found = least_rules(asked_for)
    assert {namespace: [described(each) for each in of] for namespace, of in found.items()} == expected, name
    assert refused(manifests(found, "x"), asked_for) == []
    assert least_rules(reversed(asked_for)) == found


def test_without_names() -> None:
    assert [described(each) for each in least_rules([ask("get widgets shop/a")], names=False)["shop"]] == [
        "widgets: get"
    ]


# -- what requests ask -------------------------------------------------------------------------------------------------


def document(path: str, method: str = "GET") -> RecordedRequest:
    return dataclasses.replace(request("0 get a", resource="", path=path), method=method, verb="")


ASKED: list[tuple[str, RecordedRequest, list[NeededRight]]] = [
    ("a GET", request("0 get a"), [NeededRight("get", G, "widgets", "default", "a")]),
    ("a POST has no name", request("0 create a 201"), [NeededRight("create", G, "widgets", "default")]),
    ("a POST of a subresource", request("0 create a 201", subresource="eviction"), [
        NeededRight("create", G, "widgets/eviction", "default", "a")
    ]),
    ("a list", request("0 list"), [NeededRight("list", G, "widgets", "default")]),
    ("a list by name", request("0 list", query="fieldSelector=metadata.name%3Da"), [NeededRight("list", G, "widgets", "default", "a")]),
    ("a status", request("0 update a", subresource="status"), [NeededRight("update", G, "widgets/status", "default", "a")]),
    ("a PUT that creates", request("0 update a 201"), [
        NeededRight("update", G, "widgets", "default", "a"), NeededRight("create", G, "widgets", "default", "a")
    ]),
    ("a request that is refused", request("0 get a 403"), [NeededRight("get", G, "widgets", "default", "a")]),
    ("a client that is not known", request("0 get a 401"), []),
    ("another group", request("0 get a", resource="pods"), [NeededRight("get", "", "pods", "default", "a")]),
    ("a namespace", request("0 get shop", resource="namespaces", namespace="shop"), [NeededRight("get", "", "namespaces", "", "shop")]),
    ("a path", document("/metrics?x=1"), [NeededRight("get", path="/metrics")]),
    ("a path with escapes", document("/a%20b"), [NeededRight("get", path="/a b")]),
    ("another method", document("/metrics", "DELETE"), [NeededRight("delete", path="/metrics")]),
    ("discovery", document("/apis/example.com/v1"), []),
    ("health", document("/readyz"), []),
    ("a method of discovery that not everybody may use", document("/apis", "POST"), [NeededRight("post", path="/apis")]),
    ("what stands beside the API", document("/_noxu/report"), []),
    ("a path that would be a pattern", document("/metrics/*"), []),
    ("a resource that would be a pattern", request("0 list", resource="*"), []),
    ("a group that would be a pattern", request("0 list", resource="widgets.*"), []),
    ("a method without a verb", dataclasses.replace(request("0 get a"), verb=""), []),
]  # fmt: skip


@rows("name, asked, expected", ASKED, ids=[row[0] for row in ASKED])
def test_what_a_request_asks(name: str, asked: RecordedRequest, expected: list[NeededRight]) -> None:
    assert questions([asked, asked]) == expected, name


def test_discovery_on_request() -> None:
    assert questions([document("/apis")], discovery=True) == [NeededRight("get", path="/apis")]


# -- laws --------------------------------------------------------------------------------------------------------------

objects = st.builds(
    NeededRight,
    st.sampled_from(["get", "list", "watch", "create", "update", "delete"]),
    st.sampled_from(["", "apps", G]),
    st.sampled_from(["widgets", "gadgets", "widgets/status", "pods/log"]),
    st.sampled_from(["", "shop", "attic"]),
    st.sampled_from(["", "a", "b"]),
    st.just(""),
)
paths = st.sampled_from(
    [NeededRight(verb, path=path) for verb in ("get", "post") for path in ("/metrics", "/metrics/x", "/")]
)
many = st.lists(objects | paths, min_size=1, max_size=8, unique=True)


@given(many)
def test_everything_that_was_asked_is_allowed(asked: list[NeededRight]) -> None:
    assert refused(manifests(least_rules(asked), "x"), asked) == []
    assert refused(manifests(least_rules(asked, names=False), "x"), asked) == []


@given(many)
def test_no_rule_and_no_part_of_one_can_be_left_out(asked: list[NeededRight]) -> None:
    roles = manifests(least_rules(asked), "x")
    for role in roles:
        for smaller in parts(role):
            others = [smaller if each is role else each for each in roles]
            assert refused(others, asked) != [], smaller


def parts(role: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """The role without one rule, and without one of the values of a rule's lists."""
    rules = role["rules"]
    smaller = [role | {"rules": rules[:n] + rules[n + 1 :]} for n in range(len(rules))]
    for n, rule in enumerate(rules):
        for field in ("verbs", "resources", "nonResourceURLs"):
            for value in rule.get(field, ()):
                left = rule | {field: [each for each in rule[field] if each != value]}
                smaller.append(role | {"rules": [*rules[:n], left, *rules[n + 1 :]]})
    return smaller


@given(many, objects | paths)
def test_other_verbs_and_resources_are_refused(asked: list[NeededRight], other: NeededRight) -> None:
    known = {(each.verb, each.group, each.resource, each.path) for each in asked}
    if (other.verb, other.group, other.resource, other.path) not in known:
        assert refused(manifests(least_rules(asked), "x"), [other]) == [other]


@given(st.permutations([ask(text) for _, texts, _ in ROWS for text in texts]))
def test_the_order_of_requests_does_not_matter(asked: list[NeededRight]) -> None:
    assert least_rules(asked) == least_rules([ask(text) for _, texts, _ in ROWS for text in texts])


# -- manifests ---------------------------------------------------------------------------------------------------------


def test_the_manifests() -> None:
    rules = least_rules([ask("list widgets"), ask("update widgets shop/a"), ask("get /metrics")])
    text = "---\n".join(
        codec.to_yaml(each).decode() for each in manifests(rules, "operator", ["system:serviceaccount:shop:op"])
    )
    assert (
        text
        == """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: operator
rules:
- apiGroups:
  - example.com
  resources:
  - widgets
  verbs:
  - list
- nonResourceURLs:
  - /metrics
  verbs:
  - get
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: operator
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: operator
subjects:
- kind: ServiceAccount
  name: op
  namespace: shop
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: operator
  namespace: shop
rules:
- apiGroups:
  - example.com
  resourceNames:
  - a
  resources:
  - widgets
  verbs:
  - update
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: operator
  namespace: shop
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: operator
subjects:
- kind: ServiceAccount
  name: op
  namespace: shop
"""
    )


@pytest.mark.parametrize(
    ("agents", "name"),
    [
        ([], "observed"),
        (["operator/v1 (linux)", "operator/v2"], "operator"),
        (["operator/v1", "kubectl/v1"], "observed"),
        (["My Operator/1"], "my-operator"),
        (["../../x/1"], "observed"),
        (["<script>"], "script"),
        (["\u00e9\u00e9/1"], "observed"),
        (["a" * 100], "a" * 63),
        ([""], "observed"),
    ],
)
def test_the_name_of_roles(agents: list[str], name: str) -> None:
    assert name_of(agents) == name
