"""The admission chain: who judges a write, and in which order."""

from __future__ import annotations

from apiserver.admission.namespaces import NamespaceLifecycle
from apiserver.registry.pipeline import Draft
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry


class Chain:
    """The registry's `Admission`. It knows the registry, which does not know it: `registry` is set once both are there."""

    registry: Registry

    def __init__(self, namespaces: Resource) -> None:
        self._lifecycle = NamespaceLifecycle(namespaces)

    async def mutate(self, draft: Draft) -> bool:
        """Whether the object was changed. Raises ApiError to refuse."""
        await self._lifecycle.admit(self.registry, draft)
        return False

    async def validate(self, draft: Draft) -> None:
        """Raises ApiError to refuse."""
