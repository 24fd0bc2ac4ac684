"""Reviews: of access, of rules, of the own user, and of tokens (pkg/registry/authorization and authentication).

Without an authorizer every user may do everything, so access reviews allow everything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from noxu.apiserver.api import errors
from noxu.apiserver.registry.draft import Draft
from noxu.apiserver.security.authentication import Authenticators
from noxu.apiserver.security.token_reviews import review_token, user_info
from noxu.apiserver.values import Object

_EVERYTHING: Final[Object] = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


@dataclass(frozen=True, slots=True)
class Reviews:
    """The registry's `Reviewer`."""

    authenticator: Authenticators

    async def __call__(self, draft: Draft) -> Object:
        """The status of a review. Raises ApiError."""
        status = _METHODS[draft.resource.kind](self, draft, draft.new.get("spec", {}))
        return status if isinstance(status, dict) else await status

    def access(self, draft: Draft, spec: Object) -> Object:
        return {"allowed": True}

    def rules(self, draft: Draft, spec: Object) -> Object:
        if not spec.get("namespace"):
            raise errors.bad_request("no namespace on request")
        return _EVERYTHING

    def own_user(self, draft: Draft, spec: Object) -> Object:
        return {"userInfo": user_info(draft.request.user)}

    def token_user(self, draft: Draft, spec: Object) -> Awaitable[Object]:
        return review_token(self.authenticator, spec)


_METHODS: Final[dict[str, Callable[[Reviews, Draft, Object], Object | Awaitable[Object]]]] = {
    "SelfSubjectAccessReview": Reviews.access,
    "SubjectAccessReview": Reviews.access,
    "LocalSubjectAccessReview": Reviews.access,
    "SelfSubjectRulesReview": Reviews.rules,
    "SelfSubjectReview": Reviews.own_user,
    "TokenReview": Reviews.token_user,
}
