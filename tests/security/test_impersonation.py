"""Impersonation: whom the headers name, what has to be allowed, and who the user is then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from noxu.api.errors import ApiError
from noxu.registry.access import ALLOWED, AccessAttributes, Decision, User, allow_everything
from noxu.security.impersonation import MAX_PARTS, Extra, account_of, extra_key, impersonate, node_of, wanted
from tests.rows import rows

DEV = User("dev", groups=("g",))
PODS = AccessAttributes(DEV, "list", resource="pods", namespace="ns")
ACCOUNT = "system:serviceaccount:ns:sa"


def headers(*pairs: tuple[str, str]) -> CIMultiDict[str]:
    return CIMultiDict([(f"Impersonate-{name}", value) for name, value in pairs])


NAMED: list[tuple[str, list[tuple[str, str]], User | None]] = [
    ("nothing", [], None),
    ("a user", [("User", "bob")], User("bob", groups=())),
    ("groups", [("User", "bob"), ("Group", "a, b"), ("group", "c")], User("bob", groups=("a, b", "c"))),
    ("a uid", [("User", "bob"), ("Uid", "1")], User("bob", "1", ())),
    ("extra", [("User", "bob"), ("Extra-Scopes", "b"), ("extra-scopes", "a"), ("Extra-Acme.com%2FX", "c")],
     User("bob", groups=(), extra=(("acme.com/x", ("c",)), ("scopes", ("b", "a"))))),
    ("bytes that are no UTF-8", [("User", "b\udcff")], User("b�", groups=())),
]  # fmt: skip


@pytest.mark.parametrize(("given", "user"), [row[1:] for row in NAMED], ids=[row[0] for row in NAMED])
def test_the_user_that_is_named(given: list[tuple[str, str]], user: User | None) -> None:
    assert wanted(headers(*given)) == user


def without_name(uid: str, groups: str, extra: str) -> str:
    user = f'&user.DefaultInfo{{Name:"", UID:"{uid}", Groups:[]string{groups}, Extra:map[string][]string{extra}}}'
    return f"requested {user} without impersonating a user name"


NAMELESS: list[tuple[str, list[tuple[str, str]], str]] = [
    ("a group", [("Group", "g")], without_name("", '{"g"}', "(nil)")),
    ("an empty user", [("User", ""), ("Group", "g"), ("Group", "h")], without_name("", '{"g", "h"}', "(nil)")),
    ("a uid", [("Uid", "1")], without_name("1", "(nil)", "(nil)")),
    ("extra", [("Extra-b", "2"), ("Extra-a", "1"), ("Extra-b", "3")],
     without_name("", "(nil)", '{"a":[]string{"1"}, "b":[]string{"2", "3"}}')),
]  # fmt: skip


def test_a_user_with_very_many_groups_and_extra_is_refused() -> None:
    groups, extra = [("Group", "g")] * (MAX_PARTS - 1), [("Extra-a", "1")]
    assert wanted(headers(("User", "u"), *groups, *extra)) is not None
    with pytest.raises(ApiError, match="too many groups and values of extra to impersonate"):
        wanted(headers(("User", "u"), *groups, *extra, *extra))


@pytest.mark.parametrize(("given", "message"), [row[1:] for row in NAMELESS], ids=[row[0] for row in NAMELESS])
def test_without_a_name_it_is_refused(given: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        wanted(headers(*given))
    assert (caught.value.code, caught.value.reason, caught.value.message) == (400, "BadRequest", message)


KEYS = [
    ("Scopes", "scopes"), ("acme.com%2Fscopes", "acme.com/scopes"), ("%E4%B8%AD", "中"), ("a%2", "a%2"), ("a%zz", "a%zz"),
    ("a%4Gb", "a%4gb"), ("%ff", "�"), ("", ""), ("%41", "A"),
]  # fmt: skip


@pytest.mark.parametrize(("encoded", "key"), KEYS)
def test_keys_are_in_lower_case_and_decoded(encoded: str, key: str) -> None:
    assert extra_key(encoded) == key


USERS: list[tuple[str, User, tuple[str, ...]]] = [
    ("a user", User("bob", groups=()), ("system:authenticated",)),
    ("a user with groups", User("bob", groups=("g",)), ("g", "system:authenticated")),
    ("an authenticated one", User("bob", groups=("system:authenticated",)), ("system:authenticated",)),
    ("an unauthenticated one", User("bob", groups=("system:unauthenticated",)), ("system:unauthenticated",)),
    ("the anonymous user", User("system:anonymous", groups=()), ("system:unauthenticated",)),
    ("a service account", User(ACCOUNT, groups=()),
     ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")),
    ("a service account with groups", User(ACCOUNT, groups=("g",)), ("g", "system:authenticated")),
    ("a node", User("system:node:n", groups=()), ("system:nodes", "system:authenticated")),
]  # fmt: skip


@pytest.mark.parametrize(("other", "groups"), [row[1:] for row in USERS], ids=[row[0] for row in USERS])
def test_the_groups_of_the_other_user(other: User, groups: tuple[str, ...]) -> None:
    found = impersonate(allow_everything, PODS, other)
    assert found.user == other._replace(groups=groups)


class Rights:
    """Allows what is listed, and records what is asked for: `verb group/resource/subresource namespace/name`."""

    def __init__(self, *allowed: str) -> None:
        self._allowed = allowed
        self.asked: list[str] = []

    def __call__(self, asked: AccessAttributes) -> Decision:
        resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
        group = asked.group.partition(".")[0]
        text = f"{asked.verb} {group}/{resource} {asked.namespace}/{asked.name}"
        self.asked.append(text)
        return ALLOWED if text in self._allowed else Decision(allowed=False)


def outcome(rights: Callable[[AccessAttributes], Decision], other: User, asked: AccessAttributes = PODS) -> Any:
    """The constraint, or the message of the refusal."""
    try:
        return impersonate(rights, asked, other).constraint
    except ApiError as refused:
        return refused.message if (refused.code, refused.reason) == (403, "Forbidden") else refused


BOB = User("bob", groups=())
ALL_OF_BOB = User("bob", "1", ("g", "h"), (("acme.com/k", ("v", "w")),))
MODES: list[tuple[str, User, list[str], str]] = [
    ("a user", BOB, ["impersonate-on:user-info:list /pods ns/", "impersonate:user-info authentication/users /bob"],
     "impersonate:user-info"),
    ("everything of a user", ALL_OF_BOB,
     ["impersonate-on:user-info:list /pods ns/", *(f"impersonate:user-info authentication/{what}" for what in (
         "users /bob", "uids /1", "groups /g", "groups /h", "userextras/acme.com/k /v", "userextras/acme.com/k /w"))],
     "impersonate:user-info"),
    ("a service account", User(ACCOUNT, groups=()),
     ["impersonate-on:serviceaccount:list /pods ns/", "impersonate:serviceaccount authentication/serviceaccounts ns/sa"],
     "impersonate:serviceaccount"),
    ("a node", User("system:node:n", groups=()),
     ["impersonate-on:arbitrary-node:list /pods ns/", "impersonate:arbitrary-node authentication/nodes /n"],
     "impersonate:arbitrary-node"),
]  # fmt: skip


@pytest.mark.parametrize(("other", "needed", "constraint"), [row[1:] for row in MODES], ids=[row[0] for row in MODES])
def test_constrained_impersonation_needs_all_of(other: User, needed: list[str], constraint: str) -> None:
    rights = Rights(*needed)
    assert outcome(rights, other) == constraint
    assert rights.asked == needed
    for missing in needed:
        assert "is forbidden" in outcome(Rights(*(one for one in needed if one != missing)), other)


LEGACY: list[tuple[str, User, list[str]]] = [
    ("a user", BOB, ["users /bob"]),
    ("everything of a user", ALL_OF_BOB, ["users /bob", "groups /g", "groups /h"]),
    ("a service account", User(ACCOUNT, groups=()), ["serviceaccounts ns/sa"]),
    ("a service account with groups", User(ACCOUNT, groups=("g",)), ["serviceaccounts ns/sa", "groups /g"]),
    ("a node", User("system:node:n", groups=()), ["users /system:node:n"]),
    ("masters", User("bob", groups=("system:masters",)), ["users /bob", "groups /system:masters"]),
]


@pytest.mark.parametrize(("other", "needed"), [row[1:] for row in LEGACY], ids=[row[0] for row in LEGACY])
def test_the_verb_impersonate_allows_every_request(other: User, needed: list[str]) -> None:
    more = ["uids /1", "userextras/acme.com/k /v", "userextras/acme.com/k /w"] if other is ALL_OF_BOB else []
    allowed = [f"impersonate /{one}" for one in needed] + [f"impersonate authentication/{one}" for one in more]
    assert outcome(Rights(*allowed), other) == ""
    for missing in allowed:
        assert "is forbidden" in outcome(Rights(*(one for one in allowed if one != missing)), other)


def test_the_first_refusal_is_told() -> None:
    refused = 'pods is forbidden: User "dev" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "ns"'
    assert outcome(Rights(), BOB) == refused
    assert outcome(Rights(), User(ACCOUNT, groups=("g",))) == (
        'serviceaccounts "sa" is forbidden: User "dev" cannot impersonate resource "serviceaccounts" in API group "" in the '
        'namespace "ns"'
    )


def test_a_path_is_refused_by_its_name() -> None:
    assert outcome(Rights(), BOB, AccessAttributes(DEV, "get", path="/metrics")) == (
        'forbidden: User "dev" cannot impersonate-on:user-info:get path "/metrics"'
    )


def constrained(asked: AccessAttributes) -> Decision:
    """Allows everything but the verb of the legacy mode."""
    return Decision(asked.verb != "impersonate")


REFUSED: list[tuple[str, tuple[str, ...], Extra, str]] = [
    ("masters", ("system:masters",), (), "impersonating the system:masters group is not allowed"),
    ("a group without a name", ("",), (), "impersonating the empty string group is not allowed"),
    ("a key without a domain", (), (("scopes", ("a",)),), "impersonating an invalid key in extra is not allowed: extra.key: "
     'Invalid value: "scopes": must be a domain-prefixed path (such as "acme.io/foo")'),
    ("an empty key", (), (("", ("a",)),), "impersonating the empty string key in extra is not allowed"),
    ("a key in capitals", (), (("acme.com/X", ("a",)),), 'impersonating a non-lowercase key in extra is not allowed: "acme.com/X"'),
    ("an empty value", (), (("acme.com/x", ("",)),), "impersonating the empty string value in extra is not allowed"),
]  # fmt: skip


@pytest.mark.parametrize(("groups", "extra", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_only_the_verb_impersonate_allows(groups: tuple[str, ...], extra: Extra, message: str) -> None:
    other = User("bob", groups=groups, extra=extra)
    assert outcome(constrained, other).endswith(f": {message}")
    assert outcome(allow_everything, other) == ""


def test_many_groups_are_asked_for_at_once() -> None:
    rights = Rights(
        "impersonate-on:user-info:list /pods ns/",
        "impersonate:user-info authentication/users /bob",
        "impersonate:user-info authentication/groups /*",
        "impersonate:user-info authentication/userextras/* /*",
    )
    other = User("bob", groups=("a", "b", "c", "d"), extra=(("acme.com/k", ("1", "2", "3", "4")),))
    assert outcome(rights, other) == "impersonate:user-info"
    assert len(rights.asked) == 4


def test_the_node_of_ones_own_pod() -> None:
    """What is asked for is the same on every node."""
    extra = (("authentication.kubernetes.io/node-name", ("n",)), ("authentication.kubernetes.io/node-uid", ("u",)))
    requestor = User(ACCOUNT, groups=("g",), extra=extra)
    seen: list[AccessAttributes] = []

    def rights(asked: AccessAttributes) -> Decision:
        seen.append(asked)
        return Decision("associated-node" in asked.verb)

    node = User("system:node:n", groups=())
    found = impersonate(rights, PODS._replace(user=requestor), node)
    assert (found.constraint, found.user.groups) == (
        "impersonate:associated-node",
        ("system:nodes", "system:authenticated"),
    )
    assert [(one.verb, one.resource, one.name) for one in seen] == [
        ("impersonate-on:associated-node:list", "pods", ""), ("impersonate:associated-node", "nodes", "*"),
    ]  # fmt: skip
    keys = tuple(key for key, _ in extra)
    assert {one.user.extra for one in seen} == {(("authentication.kubernetes.io/associated-node-keys", keys),)}
    for other in (User("system:node:m", groups=()), node._replace(uid="1"), BOB):
        assert outcome(rights, other, PODS._replace(user=requestor)).endswith(' in the namespace "ns"') or other.uid


ACCOUNTS = [
    (ACCOUNT, ("ns", "sa")), ("system:serviceaccount:ns:a.b", ("ns", "a.b")), ("system:serviceaccount:n.s:a", None),
    ("system:serviceaccount:ns", None), ("system:serviceaccount:ns:", None), ("system:serviceaccount::a", None),
    ("system:serviceaccount:ns:a:b", None), ("system:serviceaccount:ns:A", None), ("bob", None), ("", None),
]  # fmt: skip


@rows(("user", "account"), ACCOUNTS)
def test_users_of_service_accounts(user: str, account: tuple[str, str] | None) -> None:
    assert account_of(user) == account


def test_users_of_nodes() -> None:
    assert [node_of(user) for user in ("system:node:n", "system:node:", "system:node:A", "n", "")] == [
        "n",
        "",
        "",
        "",
        "",
    ]


@given(
    st.lists(
        st.tuples(st.sampled_from(["User", "Group", "Uid", "Extra-", "Extra-a", "Extra-%2f", "Extra-é"]), st.text())
    )
)
def test_any_headers_name_a_user_or_not(pairs: list[tuple[str, str]]) -> None:
    try:
        other = wanted(headers(*pairs))
    except ApiError as refused:
        code = refused.code
    else:
        code = 400
        if other is not None:
            outcome(allow_everything, other)
            outcome(constrained, other)
    assert code == 400
