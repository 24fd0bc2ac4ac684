"""Answers reviews: who asks, what somebody may do, whose token this is (pkg/registry/authorization and authentication).

Every user may do everything here, so access reviews say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from noxu.apiserver.api import errors
from noxu.apiserver.clock import Clock
from noxu.apiserver.registry.draft import Draft
from noxu.apiserver.security.tokens import Tokens
from noxu.apiserver.values import Object

_EVERYTHING: Final[Object] = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


@dataclass(frozen=True, slots=True)
class Reviews:
    """The registry's `Reviewer`."""

    tokens: Tokens
    clock: Clock

    async def __call__(self, draft: Draft) -> Object:
        """The status of a review. Raises ApiError."""
        return _STATUS[draft.resource.kind](self, draft, draft.new.get("spec", {}))

    def allowed(self, draft: Draft, spec: Object) -> Object:
        return {"allowed": True}

    def rules(self, draft: Draft, spec: Object) -> Object:
        if not spec.get("namespace"):
            raise errors.bad_request("no namespace on request")
        return _EVERYTHING

    def who_asks(self, draft: Draft, spec: Object) -> Object:
        user = draft.request.user
        extra = {name: list(values) for name, values in user.extra}
        return {"userInfo": {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}}

    def whose_token(self, draft: Draft, spec: Object) -> Object:
        token = spec.get("token", "")
        if not token:
            raise errors.bad_request("token is required for TokenReview in authentication")
        claims = self.tokens.read(token, self.clock.now())
        audiences = spec.get("audiences") or []
        if claims is None or (audiences and not set(audiences) & set(claims["aud"])):
            return {"user": {}, "error": "invalid bearer token"}
        account = claims["kubernetes.io"]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account['namespace']}", "system:authenticated")
        return {
            "authenticated": True,
            "user": {"username": claims["sub"], "uid": account["serviceaccount"]["uid"], "groups": list(groups)},
            "audiences": [one for one in claims["aud"] if not audiences or one in audiences],
        }


_STATUS: Final[dict[str, Callable[[Reviews, Draft, Object], Object]]] = {
    "SelfSubjectAccessReview": Reviews.allowed,
    "SubjectAccessReview": Reviews.allowed,
    "LocalSubjectAccessReview": Reviews.allowed,
    "SelfSubjectRulesReview": Reviews.rules,
    "SelfSubjectReview": Reviews.who_asks,
    "TokenReview": Reviews.whose_token,
}
