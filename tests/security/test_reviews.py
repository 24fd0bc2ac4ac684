"""Reviews: access, rules, the own user, and tokens (pkg/registry/authorization and authentication)."""

from __future__ import annotations

from typing import Any, cast

import pytest

from noxu.api.errors import ApiError
from noxu.registry.access import ANONYMOUS, User
from noxu.registry.builtin import built_in_versions
from noxu.registry.draft import Action, WriteRequest, draft_for
from noxu.registry.served_resources import ServedResources
from noxu.security.authentication import Authenticators
from noxu.security.authorization import rules_of
from noxu.security.rbac import RolePolicy
from noxu.security.reviews import Reviews
from noxu.values import Object

CATALOG = ServedResources(built_in_versions())
ALL_RULES = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
ACCESS = {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}


async def status_of(group: str, plural: str, spec: Object, user: User = ANONYMOUS) -> Object:
    resource = CATALOG.find(group, "v1", plural)
    assert resource is not None
    draft = draft_for(WriteRequest(Action.REVIEW, resource, user=user))
    draft.new = {"spec": spec} if spec else {}
    return await Reviews(cast("Authenticators", None), rules_of(["AlwaysAllow"], RolePolicy()))(draft)


AUTHORIZATION, AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"
REVIEWS: list[tuple[str, str, str, Object, Object]] = [
    ("own access", AUTHORIZATION, "selfsubjectaccessreviews", ACCESS, {"allowed": True}),
    ("another user's access", AUTHORIZATION, "subjectaccessreviews", {"user": "x", **ACCESS}, {"allowed": True}),
    ("access in a namespace", AUTHORIZATION, "localsubjectaccessreviews", {"user": "x", **ACCESS}, {"allowed": True}),
    ("own rules", AUTHORIZATION, "selfsubjectrulesreviews", {"namespace": "ns"}, ALL_RULES),
]  # fmt: skip


@pytest.mark.parametrize(
    ("group", "plural", "spec", "expected"), [row[1:] for row in REVIEWS], ids=[row[0] for row in REVIEWS]
)
async def test_the_review_of(group: str, plural: str, spec: Object, expected: Object) -> None:
    assert await status_of(group, plural, spec) == expected


USERS: list[tuple[str, User, dict[str, Any]]] = [
    ("anonymous", User(), {"username": "system:anonymous", "uid": "", "groups": ["system:unauthenticated"], "extra": {}}),
    ("a user with everything", User("eve", "u", ("g", "h"), (("k", ("v", "w")),)),
     {"username": "eve", "uid": "u", "groups": ["g", "h"], "extra": {"k": ["v", "w"]}}),
]  # fmt: skip


@pytest.mark.parametrize(("user", "info"), [row[1:] for row in USERS], ids=[row[0] for row in USERS])
async def test_the_review_of_the_own_user(user: User, info: dict[str, Any]) -> None:
    assert await status_of(AUTHENTICATION, "selfsubjectreviews", {}, user) == {"userInfo": info}


REFUSED: list[tuple[str, str, str, Object, str]] = [
    ("rules of no namespace", AUTHORIZATION, "selfsubjectrulesreviews", {}, "no namespace on request"),
    ("no token", AUTHENTICATION, "tokenreviews", {}, "token is required for TokenReview in authentication"),
    ("an empty token", AUTHENTICATION, "tokenreviews", {"token": ""}, "token is required for TokenReview in authentication"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("group", "plural", "spec", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
async def test_a_review_that_is_refused(group: str, plural: str, spec: Object, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        await status_of(group, plural, spec)
    assert (caught.value.code, caught.value.message) == (400, message)


def test_every_review_that_is_served_is_answered() -> None:
    from noxu.security.reviews import _METHODS

    answered = {resource.kind for resource in CATALOG.resources if not resource.is_stored}
    assert answered - {"Binding"} == set(_METHODS), "A Binding binds a pod, as its subresource does."
