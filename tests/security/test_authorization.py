"""The modes of authorization, and the texts of refusals."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from noxu import features
from noxu.registry.access import AccessAttributes, Decision, User
from noxu.security.authorization import authorizer, refusal
from noxu.security.rbac import RolePolicy
from noxu.values import Object
from tests.rows import rows

DEV = User("dev", groups=("system:authenticated",))
MASTER = User("root", groups=("system:masters",))
GET = AccessAttributes(DEV, "get", "example.com", "v1", "widgets", "", "ns", "w1")


def policy(*, missing: bool = False) -> RolePolicy:
    """dev may get widgets, or has a binding to a role that does not exist."""
    found = RolePolicy()
    if not missing:
        rule = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}
        found.put_role("", "r", {"rules": [rule]})
    subjects = [{"kind": "User", "name": "dev"}]
    found.put_binding("", "b", {"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": subjects})
    return found


YES = Decision(allowed=True)
BOUND = 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "dev"'
GONE = 'RBAC: clusterrole.rbac.authorization.k8s.io "r" not found'
DENIED = "Everything is forbidden."
MODES: list[tuple[str, str, bool, AccessAttributes, Decision]] = [
    ("everything is allowed", "AlwaysAllow", True, GET, YES),
    ("everything is forbidden", "AlwaysDeny", False, GET, Decision(False, DENIED)),
    ("but not to masters", "AlwaysDeny", False, GET._replace(user=MASTER), YES),
    ("a role allows it", "RBAC", False, GET, Decision(True, BOUND)),
    ("no role allows it", "RBAC", False, GET._replace(verb="list"), Decision(False)),
    ("masters need no roles", "RBAC", True, GET._replace(user=MASTER), YES),
    ("a role is missing", "RBAC", True, GET, Decision(False, GONE)),
    ("nodes are not asked", "Node,RBAC", False, GET, Decision(True, BOUND)),
    ("forbidding everything is no opinion", "AlwaysDeny,RBAC", False, GET, Decision(True, BOUND)),
    ("the reasons of several", "AlwaysDeny,RBAC", True, GET, Decision(False, f"{DENIED}\n{GONE}")),
    ("the first yes counts", "RBAC,AlwaysAllow", False, GET._replace(verb="list"), YES),
]  # fmt: skip


@rows(("modes", "missing", "asked", "expected"), [row[1:] for row in MODES], ids=[row[0] for row in MODES])
def test_the_modes(modes: str, missing: bool, asked: AccessAttributes, expected: Decision) -> None:
    assert authorizer(modes.split(","), policy(missing=missing))(asked) == expected


HAS = "(this server has AlwaysAllow, AlwaysDeny, Node, RBAC)"
LISTS: list[tuple[str, Sequence[str], tuple[str, ...] | str]] = [
    ("one", ["RBAC"], ("RBAC",)),
    ("several", ["Node,RBAC"], ("Node", "RBAC")),
    ("the flag twice", ["Node", "RBAC"], ("Node", "RBAC")),
    ("none", [""], "at least one authorization-mode must be passed"),
    ("an unknown one", ["rbac"], f'authorization-mode "rbac" is not a valid mode; did you mean RBAC? {HAS}'),
    ("one twice", ["RBAC,RBAC"], 'authorization-mode ["RBAC" "RBAC"] has mode specified more than once'),
    ("two faults", ["X", "Y"],
     f'[authorization-mode "X" is not a valid mode {HAS}, authorization-mode "Y" is not a valid mode {HAS}]'),
    ("one that this server does not have", ["Webhook"],
     "authorization-mode Webhook is not available: this server cannot ask another server; it has AlwaysAllow, AlwaysDeny, "
     "Node, RBAC"),
]  # fmt: skip


@pytest.mark.parametrize(("lists", "expected"), [row[1:] for row in LISTS], ids=[row[0] for row in LISTS])
def test_the_flag(lists: Sequence[str], expected: tuple[str, ...] | str) -> None:
    try:
        found: tuple[str, ...] | str = features.modes(lists)
    except ValueError as error:
        found = str(error)
    assert found == expected


WIDGETS = {"group": "example.com", "kind": "widgets"}
REFUSALS: list[tuple[str, AccessAttributes, str, str, Object]] = [
    ("a collection in a namespace", GET._replace(verb="list", name=""), "",
     'widgets.example.com is forbidden: User "dev" cannot list resource "widgets" in API group "example.com" in the '
     'namespace "ns"', WIDGETS),
    ("an object", GET, "",
     'widgets.example.com "w1" is forbidden: User "dev" cannot get resource "widgets" in API group "example.com" in the '
     'namespace "ns"', {"name": "w1", **WIDGETS}),
    ("the cluster", AccessAttributes(DEV, "list", "", "v1", "pods"), "",
     'pods is forbidden: User "dev" cannot list resource "pods" in API group "" at the cluster scope', {"kind": "pods"}),
    ("a subresource", GET._replace(verb="patch", subresource="status"), "",
     'widgets.example.com "w1" is forbidden: User "dev" cannot patch resource "widgets/status" in API group "example.com" '
     'in the namespace "ns"', {"name": "w1", **WIDGETS}),
    ("a path", AccessAttributes(DEV, "get", path="/metrics"), "", 'forbidden: User "dev" cannot get path "/metrics"', {}),
    ("no resource", AccessAttributes(DEV, "get", "", "v1", "", name="pods"), "",
     'forbidden: User "dev" cannot get resource "" in API group "" at the cluster scope', {"name": "pods"}),
    ("a reason", AccessAttributes(DEV, "get", path="/"), "a <reason>",
     'forbidden: User "dev" cannot get path "/": a <reason>', {}),
    ("what browsers would take for HTML", AccessAttributes(User("<b>&"), "get", path="/<i>"), "",
     'forbidden: User "&lt;b&gt;&amp;" cannot get path "/&lt;i&gt;"', {}),
    ("quotes and control characters", AccessAttributes(User('a"\n'), "get", path="/\x01"), "",
     'forbidden: User "a\\"\\n" cannot get path "/\\x01"', {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "reason", "message", "details"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS]
)
def test_the_text_of_a_refusal(asked: AccessAttributes, reason: str, message: str, details: Object) -> None:
    assert refusal(asked, Decision(False, reason)).status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "Forbidden",
        "details": details,
        "code": 403,
    }


def test_an_authorizer_that_fails_is_an_internal_error_in_plain_text() -> None:
    error = refusal(GET, Decision(False, "no", "out of order"), '/apis?"')
    assert (error.code, error.text) == (500, 'Internal Server Error: "/apis?\\"": out of order')
