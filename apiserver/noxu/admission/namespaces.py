"""Namespaced objects need an existing namespace (upstream's NamespaceLifecycle)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from noxu.api import errors
from noxu.api.errors import ApiError, Qualified
from noxu.registry.cache import Collection
from noxu.registry.draft import Draft
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject, object_at
from noxu_storage.types import Key

IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
_ACCESS_REVIEWS: Final = frozenset({Qualified("authorization.k8s.io", "localsubjectaccessreviews")})
"""They are answered for every namespace: a refusal would say which namespaces exist."""


class NamespaceLifecycle:
    """Refuses creation in a missing or terminating namespace, and deletion of three namespaces."""

    def __init__(self, namespaces: Resource) -> None:
        self._namespaces = namespaces

    def admit(self, draft: Draft) -> Awaitable[None] | None:
        """Check a write; the result is awaitable if the namespaces are not loaded yet. Raises ApiError to refuse."""
        resource = draft.resource
        if resource is self._namespaces:
            if draft.operation == "DELETE" and draft.name in IMMORTAL:
                raise errors.forbidden(resource.group_resource, draft.name, "this namespace may not be deleted")
            return None
        if draft.operation != "CREATE" or not resource.namespaced or resource.group_resource in _ACCESS_REVIEWS:
            return None
        collection = draft.environment.reader.cache.collections.get(self._namespaces.collection)
        if collection is None:
            return self._load_and_check(draft)
        self._check(draft, collection)
        return None

    async def _load_and_check(self, draft: Draft) -> None:
        self._check(draft, await draft.environment.reader.collection(self._namespaces))

    def check_again(self, draft: Draft) -> None:
        """Check right before a new object is stored: the namespace may have changed since `admit`. Raises ApiError.

        Nothing waits between this and the write's place in the store's queue. So everything that was admitted before a
        namespace became terminating is stored before what its controller writes, which therefore finds it.
        """
        collection = draft.environment.reader.cache.collections.get(self._namespaces.collection)
        if draft.resource.namespaced and collection is not None:  # None: the cache was reset meanwhile
            self._check(draft, collection)

    def _namespace(self, draft: Draft, collection: Collection) -> StoredObject | None:
        return collection.entries.get(Key(collection.name, "", draft.request.namespace))

    def _check(self, draft: Draft, collection: Collection) -> None:
        entry = self._namespace(draft, collection)
        if entry is None:
            raise errors.not_found(self._namespaces.group_resource, draft.request.namespace)
        if is_terminating(entry, self._namespaces):
            raise _terminating(draft)


def is_terminating(entry: StoredObject, namespaces: Resource) -> bool:
    """Whether a namespace is being deleted."""
    if b"Terminating" not in entry.stored:
        return False
    return bool(object_at(entry, namespaces).get("status", {}).get("phase") == "Terminating")


def _terminating(draft: Draft) -> ApiError:
    namespace = draft.request.namespace
    metadata = draft.new.get("metadata") or {}
    name = draft.name or metadata.get("name") or metadata.get("generateName") or "Unknown"  # NewForbidden's order
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = errors.forbidden(draft.request.target.group_resource, name, why)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    error.details = {**(error.details or {}), "causes": [cause]}
    return error
