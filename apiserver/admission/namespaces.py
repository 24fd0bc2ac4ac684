"""Objects live in namespaces that exist (upstream's NamespaceLifecycle)."""

from __future__ import annotations

from typing import Final

from apiserver.api import errors
from apiserver.api.errors import ApiError
from apiserver.api.types import Object
from apiserver.registry.entry import key_of, object_at
from apiserver.registry.pipeline import Draft
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry

IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle:
    """Nothing is created in a namespace that is missing or terminating, and three namespaces are never deleted."""

    def __init__(self, namespaces: Resource) -> None:
        self._namespaces = namespaces

    async def admit(self, registry: Registry, draft: Draft) -> None:
        """Raises ApiError."""
        resource = draft.resource
        if resource is self._namespaces:
            if draft.operation == "DELETE" and draft.name in IMMORTAL:
                raise errors.forbidden(resource.what, draft.name, "this namespace may not be deleted")
            return
        if draft.operation != "CREATE" or not resource.namespaced:
            return
        collection = await registry.collection(self._namespaces)
        entry = collection.entries.get(key_of(self._namespaces, "", draft.namespace))
        if entry is None:
            raise errors.not_found(self._namespaces.what, draft.namespace)
        if b"Terminating" in entry.stored and _is_terminating(object_at(entry, self._namespaces)):
            raise _terminating(draft)


def _is_terminating(namespace: Object) -> bool:
    return bool(namespace.get("status", {}).get("phase") == "Terminating")


def _terminating(draft: Draft) -> ApiError:
    namespace = draft.namespace
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = errors.forbidden(draft.resource.what, draft.metadata.get("name", ""), why)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    error.details = {**(error.details or {}), "causes": [cause]}
    return error
