"""Reviews of users: TokenReview and SelfSubjectReview (pkg/registry/authentication)."""

from __future__ import annotations

from noxu.api import errors
from noxu.registry.access import User
from noxu.security.authentication import Authenticators
from noxu.security.credentials import Rejected
from noxu.values import Object


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
