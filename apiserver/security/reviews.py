"""Reviews: of access, of rules, of the own user, and of tokens (pkg/registry/authorization and authentication).

Without an authorizer every user may do everything, so access reviews allow everything.
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
        return _METHODS[draft.resource.kind](self, draft, draft.new.get("spec", {}))

    def access(self, draft: Draft, spec: Object) -> Object:
        return {"allowed": True}

    def rules(self, draft: Draft, spec: Object) -> Object:
        if not spec.get("namespace"):
            raise errors.bad_request("no namespace on request")
        return _EVERYTHING

    def own_user(self, draft: Draft, spec: Object) -> Object:
        user = draft.request.user
        extra = {name: list(values) for name, values in user.extra}
        return {"userInfo": {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}}

    def token_user(self, draft: Draft, spec: Object) -> Object:
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
            "audiences": [audience for audience in claims["aud"] if not audiences or audience in audiences],
        }


_METHODS: Final[dict[str, Callable[[Reviews, Draft, Object], Object]]] = {
    "SelfSubjectAccessReview": Reviews.access,
    "SubjectAccessReview": Reviews.access,
    "LocalSubjectAccessReview": Reviews.access,
    "SelfSubjectRulesReview": Reviews.rules,
    "SelfSubjectReview": Reviews.own_user,
    "TokenReview": Reviews.token_user,
}
