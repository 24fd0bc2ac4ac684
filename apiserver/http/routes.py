"""Which handler answers which verb on which subresource. Watches are streams, and not here."""

from __future__ import annotations

from typing import Final

from apiserver.http import handlers, scale
from apiserver.http.handlers import Handler

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
}
"""By subresource and verb."""
