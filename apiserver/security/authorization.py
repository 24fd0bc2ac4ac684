"""The refusal of a request that its user may not make (pkg/endpoints/handlers/responsewriters/errors.go)."""

from __future__ import annotations

from noxu.apiserver.api.errors import ApiError, Qualified, forbidden
from noxu.apiserver.go.text import quote
from noxu.apiserver.registry.access import Attributes, Decision


def refusal(asked: Attributes, decision: Decision) -> ApiError:
    """The error of a request that is not allowed."""
    because = f": {decision.reason}" if decision.reason else ""
    if asked.path:
        message = f"forbidden: User {quote(asked.user.name)} cannot {asked.verb} path {quote(asked.path)}{because}"
        return ApiError(403, message, "Forbidden", {})
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    scope = f"in the namespace {quote(asked.namespace)}" if asked.namespace else "at the cluster scope"
    return forbidden(
        Qualified(asked.group, asked.resource),
        asked.name,
        f"User {quote(asked.user.name)} cannot {asked.verb} resource {quote(resource)} in API group "
        f"{quote(asked.group)} {scope}{because}",
    )
