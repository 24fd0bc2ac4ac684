"""Reviews: of access, of rules, of the own user, and of tokens (pkg/registry/authorization and authentication).

Access is reviewed by asking what requests ask, so a review says what a request would be answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from noxu.api import errors
from noxu.registry.draft import Draft
from noxu.registry.offload import offload_if_long
from noxu.security import access_reviews
from noxu.security.authentication import Authenticators
from noxu.security.authorization import RulesOf
from noxu.security.token_reviews import review_token, user_info
from noxu.values import Object


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
        return access_reviews.review(draft.request.authorize, draft.request.user, spec)

    def access(self, draft: Draft, spec: Object) -> Object:
        return access_reviews.review(draft.request.authorize, access_reviews.user_of(spec), spec)

    async def rules(self, draft: Draft, spec: Object) -> Object:
        if not spec.get("namespace"):
            raise errors.bad_request("no namespace on request")
        found = await offload_if_long(0, self.rules_of, draft.request.user, spec["namespace"])
        status: Object = {
            "resourceRules": found.resources,
            "nonResourceRules": found.paths,
            "incomplete": found.incomplete,
        }
        return status | ({"evaluationError": found.error} if found.error else {})

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
