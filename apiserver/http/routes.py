"""Which handler answers which verb on which subresource. Watches are streams, and not here."""

from __future__ import annotations

from typing import Final

from apiserver.api import errors
from apiserver.http import handlers, reviews, scale
from apiserver.http.handlers import Handler
from apiserver.registry.resource import Resource

HANDLERS: Final[dict[tuple[str, str], Handler]] = {
    ("", "get"): handlers.get,
    ("", "list"): handlers.list_,
    ("", "create"): handlers.create,
    ("", "update"): handlers.update,
    ("", "patch"): handlers.patch_,
    ("", "delete"): handlers.delete,
    ("", "deletecollection"): handlers.delete_collection,
    ("status", "get"): handlers.get,
    ("status", "update"): handlers.update,
    ("status", "patch"): handlers.patch_,
    ("scale", "get"): scale.get,
    ("scale", "update"): scale.update,
    ("scale", "patch"): scale.patch,
    ("finalize", "update"): handlers.update,
    ("token", "create"): reviews.create_token,
}
"""By subresource and verb."""


def handler_of(resource: Resource, subresource: str, verb: str) -> Handler:
    """Raises ApiError MethodNotAllowed."""
    handler = HANDLERS.get((subresource, verb))
    if handler is None or (not subresource and verb not in resource.verbs):
        raise errors.method_not_allowed(resource.what, verb)
    return handler if resource.stored else reviews.create
