"""Writes of built-in kinds through a chain with some plug-ins, without a server."""

from __future__ import annotations

from typing import Any

from noxu.admission.chain import Chain
from noxu.admission.plugins import resource_quotas
from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.registry.access import Authorize, allow_everything
from noxu.registry.draft import Action, Draft, WriteRequest, draft_for
from noxu.registry.resource import Resource
from noxu.registry.stored_object import key_of
from noxu.values import Object, copy
from noxu_storage.memory import MemoryStore
from tests.admission.requests import environment

NOW = "2026-01-02T03:04:05Z"


class Cluster:
    """A namespace `default`, and what is put into the store."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.environment = environment(self.store)

    def resource(self, value: Object) -> Resource:
        group, _, _ = value["apiVersion"].rpartition("/")
        found = [
            each
            for each in self.environment.served_resources.current.resources
            if (each.group, each.kind) == (group, value["kind"])
        ]
        return found[0]

    def typed(self, value: Object) -> Object:
        resource = self.resource(value)
        decoded, unknown = resource.codec.decode(resource, copy(value))
        assert not unknown, unknown
        resource.codec.default(resource, decoded)
        return decoded

    async def put(self, *values: Object) -> None:
        for value in values:
            resource = self.resource(value)
            namespace = value["metadata"].get("namespace", "default") if resource.namespaced else ""
            stored = codec.encode(resource.codec.written(self.typed(value)), sort_keys=False)
            await self.store.put(key_of(resource, namespace, value["metadata"]["name"]), stored, expected=0)

    async def write(
        self,
        *plugins: str,
        new: Object,
        old: Object | None = None,
        subresource: str = "",
        chain: Chain | None = None,
        body: Object | None = None,
        authorize: Authorize = allow_everything,
    ) -> Draft:
        """Create `new`, or replace `old` by it. `body` is that of a subresource of another kind. Raises ApiError."""
        resource = self.resource(new)
        if chain is None:
            chain = Chain(self.environment.served_resources.current, plugins)
            if "ResourceQuota" in plugins:
                chain.validating.append(resource_quotas(self.environment.served_resources.current))
        action = Action.CREATE if old is None else Action.REPLACE
        namespace = "default" if resource.namespaced else ""
        name = new["metadata"].get("name", "") if old is not None else ""
        request = WriteRequest(action, resource, namespace, name, subresource, authorize=authorize)
        draft = draft_for(request, self.environment)
        draft.new, draft.old, draft.now = self.typed(new), old and self.typed(old), NOW
        if body is not None:
            draft.new = body
        for check in (chain.mutate, chain.validate):
            if (waits := check(draft)) is not None:
                await waits
        return draft

    async def refusal(self, *plugins: str, **request: Any) -> str:
        """Why a write is refused: the message without `RESOURCE "NAME" is forbidden: `; "" if it is admitted."""
        try:
            await self.write(*plugins, **request)
        except ApiError as error:
            return (
                error.message.partition(" is forbidden: ")[2] if error.code == 403 else f"{error.code} {error.message}"
            )
        return ""


def pod(metadata: Object | None = None, **spec: Any) -> Object:
    containers = spec.pop("containers", [{"name": "c", "image": "nginx"}])
    metadata = {"name": "p", **(metadata or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def container(name: str = "c", **fields: Any) -> Object:
    return {"name": name, "image": "nginx", **fields}


def needs(requests: Object | None = None, limits: Object | None = None, name: str = "c") -> Object:
    """A container with resources."""
    resources = {"requests": requests, "limits": limits}
    return container(name, resources={which: value for which, value in resources.items() if value})


def of_kind(kind: str, api_version: str = "v1", name: str = "x", **fields: Any) -> Object:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def claim(size: str = "1Gi", *, phase: str = "Pending", metadata: Object | None = None, **spec: Any) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return of_kind("PersistentVolumeClaim", metadata=metadata or {}, spec=spec, status={"phase": phase})
