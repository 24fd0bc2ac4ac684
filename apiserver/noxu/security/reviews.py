"""Reviews: of access, of rules, of the own user, and of tokens (pkg/registry/authorization and authentication).

A review asks the authorizers as a request does, so it gives the answer that a request would get.

Access reviews: the question in a spec, and the status that answers it (pkg/registry/authorization/util).

Requirements of selectors that are invalid or unknown are left out, which makes the question a wider one. The status says so.

Reviews of users: TokenReview and SelfSubjectReview (pkg/registry/authentication).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from noxu.api import errors
from noxu.api.selectors import label_selector, parse_fields, parse_labels
from noxu.registry.access import AccessAttributes, Authorize, User
from noxu.registry.draft import Draft
from noxu.registry.offload import offload_if_long
from noxu.security.authentication import Authenticators
from noxu.security.authorization import RulesOf
from noxu.security.credentials import Rejected
from noxu.values import Object

T = TypeVar("T")


def user_of(spec: Object) -> User:
    """The user about whom a SubjectAccessReview asks."""
    extra = tuple((name, tuple(values)) for name, values in (spec.get("extra") or {}).items())
    return User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)


def review(authorize: Authorize, user: User, spec: Object) -> Object:
    """The status of a review."""
    attributes: Object = spec.get("resourceAttributes") or {}
    decision = authorize(_question(user, spec))
    notes = [decision.error, *(_note(name, attributes.get(name)) for name in _SELECTORS)]
    error = "; ".join(filter(None, notes))
    status: Object = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status | ({"evaluationError": error} if error else {})


def _question(user: User, spec: Object) -> AccessAttributes:
    about: Object | None = spec.get("resourceAttributes")
    if about is None:
        about = spec.get("nonResourceAttributes") or {}
        return AccessAttributes(user, about.get("verb", ""), path=about.get("path", ""))
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return AccessAttributes(user, version=about.get("version") or "*", **{name: about.get(name, "") for name in names})


def _check_raw_fields(text: str) -> None:
    parse_fields(text)


def _check_raw_labels(text: str) -> None:
    parse_labels(text)


def _check_field(requirement: Object) -> None:
    """A field can be compared with one value."""
    if requirement.get("operator") not in ("In", "NotIn") or len(requirement.get("values") or ()) != 1:
        raise ValueError


def _check_label(requirement: Object) -> None:
    label_selector({"matchExpressions": [requirement]})


_SELECTORS: Final[dict[str, tuple[Callable[[str], None], Callable[[Object], None]]]] = {
    "fieldSelector": (_check_raw_fields, _check_field),
    "labelSelector": (_check_raw_labels, _check_label),
}
"""By attribute: what checks its text, and what checks a requirement. They raise ValueError."""


def _note(name: str, selector: Object | None) -> str:
    """What the status says about a selector, "" if all of it counts."""
    if not selector:
        return ""
    check_raw, check = _SELECTORS[name]
    requirements = selector.get("requirements") or []
    invalid = sum(not _passes(check, requirement) for requirement in requirements)
    if not requirements and selector.get("rawSelector"):
        invalid = not _passes(check_raw, selector["rawSelector"])
    if not invalid:
        return ""
    how = "partially ignored" if invalid < len(requirements) else "ignored"
    return f"spec.resourceAttributes.{name} {how} due to parse error"


def _passes(check: Callable[[T], None], value: T) -> bool:
    try:
        check(value)
    except ValueError:
        return False
    return True


# -- token reviews ----------------------------------------------------------------------------------------------------


async def review_token(authenticator: Authenticators, spec: Object) -> Object:
    """The status of a TokenReview. Raises ApiError."""
    token = spec.get("token", "")
    if not token:
        raise errors.bad_request("token is required for TokenReview in authentication")
    try:
        user, audiences = await authenticator.identify(token, spec.get("audiences") or ())
    except Rejected as rejected:
        return {"user": {}, "error": str(rejected)}
    info = {name: value for name, value in user_info(user).items() if value}
    return {"authenticated": True, "user": info, "audiences": list(audiences)}


def user_info(user: User) -> Object:
    """A user as the API represents it."""
    extra = {name: list(values) for name, values in user.extra}
    return {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}


# -- reviews ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reviews:
    """The registry's `Reviewer`."""

    authenticator: Authenticators
    rules_of: RulesOf

    async def __call__(self, draft: Draft) -> Object:
        """The status of a review. Raises ApiError."""
        status = _METHODS[draft.resource.kind](self, draft, draft.new.get("spec", {}))
        return status if isinstance(status, dict) else await status

    def own_access(self, draft: Draft, spec: Object) -> Object:
        return review(draft.request.authorize, draft.request.user, spec)

    def access(self, draft: Draft, spec: Object) -> Object:
        return review(draft.request.authorize, user_of(spec), spec)

    async def rules(self, draft: Draft, spec: Object) -> Object:
        if not spec.get("namespace"):
            raise errors.bad_request("no namespace on request")
        listed = await offload_if_long(0, self.rules_of, draft.request.user, spec["namespace"])
        status: Object = {
            "resourceRules": listed.resources,
            "nonResourceRules": listed.paths,
            "incomplete": listed.incomplete,
        }
        return status | ({"evaluationError": listed.error} if listed.error else {})

    def own_user(self, draft: Draft, spec: Object) -> Object:
        """The answer is a new object (selfsubjectreview's REST storage): of the metadata that was sent nothing remains."""
        draft.new["metadata"] = {"creationTimestamp": draft.now}
        return {"userInfo": user_info(draft.request.user)}

    def token_user(self, draft: Draft, spec: Object) -> Awaitable[Object]:
        return review_token(self.authenticator, spec)


_METHODS: Final[dict[str, Callable[[Reviews, Draft, Object], Object | Awaitable[Object]]]] = {
    "SelfSubjectAccessReview": Reviews.own_access,
    "SubjectAccessReview": Reviews.access,
    "LocalSubjectAccessReview": Reviews.access,
    "SelfSubjectRulesReview": Reviews.rules,
    "SelfSubjectReview": Reviews.own_user,
    "TokenReview": Reviews.token_user,
}
