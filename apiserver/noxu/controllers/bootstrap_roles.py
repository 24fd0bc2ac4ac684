"""Create the roles and bindings of `bootstrap_policy`, and complete them at each start.

As upstream's post-start hook rbac/bootstrap-roles (pkg/registry/rbac/rest, component-helpers' auth/rbac/
reconciliation): rules, subjects, labels, annotations and selectors that an object lacks are added, and those that it
has besides are kept. A binding to another role is replaced. Objects whose annotation says autoupdate "false" are left
alone.

It starts before the first request. New objects are stored directly, all in one commit, so that no webhook can refuse them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Final

from noxu.clock import rfc3339_now
from noxu.controllers import bootstrap_policy, controller, default_objects
from noxu.controllers.access_rules import GROUP, PLURALS
from noxu.controllers.bootstrap_policy import AUTOUPDATE
from noxu.controllers.controller import Controller, ControllerParts
from noxu.controllers.default_objects import FirstObject, template
from noxu.kinds.policy_rules import missing
from noxu.registry.cache import Change
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.resource import Resource
from noxu.registry.stored_object import key_of, object_at
from noxu.values import Object, equal
from noxu_storage.types import Conflict

_KEY: Final = "roles and bindings"


def reconciled(old: Object, wanted: Object) -> Object:
    """An existing object with what it lacks; `old` itself if it lacks nothing."""
    if (old["metadata"].get("annotations") or {}).get(AUTOUPDATE) == "false":
        return old
    new = {**old, "metadata": {**old["metadata"]}}
    for name in ("labels", "annotations"):
        new["metadata"][name] = wanted["metadata"][name] | (old["metadata"].get(name) or {})
    if "roleRef" in wanted:
        new["subjects"] = _extended(old.get("subjects"), wanted.get("subjects"))
        new["roleRef"] = wanted["roleRef"]
    else:
        new["rules"] = _rules(old.get("rules"), wanted.get("rules"))
    if "aggregationRule" in wanted:
        name = "clusterRoleSelectors"
        selectors = (old.get("aggregationRule") or {}).get(name)
        new["aggregationRule"] = {name: _extended(selectors, wanted["aggregationRule"][name])}
    return (
        old if equal({name: item for name, item in new.items() if item}, {k: v for k, v in old.items() if v}) else new
    )


def _extended(old: list[Object] | None, wanted: list[Object] | None) -> list[Object]:
    has = old or []
    return [*has, *(item for item in wanted or () if not any(equal(item, kept) for kept in has))]


def _rules(old: list[Object] | None, wanted: list[Object] | None) -> list[Object] | None:
    lacking = missing(old or (), wanted or ())
    return [*(old or ()), *lacking] if lacking else old


@cache
def _templates() -> list[tuple[str, Object, bytes]]:
    """(The plural, the manifest and the template of each object): the same for all servers."""
    manifests = bootstrap_policy.manifests()
    return [(name, manifest, template(manifest, controller.APISERVER_MANAGER)) for name, manifest in manifests]


class BootstrapRoleController(Controller[str]):
    """Works once, at the start."""

    name = "rbac-bootstrap-roles"
    follows = ((GROUP, "clusterroles"),)

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts)
        self.resources = {plural: parts.resource(GROUP, plural) for plural in PLURALS}

    def observe(self, change: Change) -> Iterable[str]:
        return ()

    def resync(self) -> Iterable[str]:
        return (_KEY,)

    def first_objects(self) -> Iterable[FirstObject]:
        for name, manifest, first in _templates():
            yield FirstObject(_KEY, self.resources[name], manifest, first)

    async def reconcile(self, key: str) -> None:
        await asyncio.gather(*(self._ensure(self.resources[name], row) for name, row in bootstrap_policy.manifests()))

    async def _ensure(self, resource: Resource, manifest: Object) -> None:
        metadata = manifest["metadata"]
        key = key_of(resource, metadata.get("namespace", ""), metadata["name"])
        entry = (await self.reader.collection(resource)).entries.get(key)
        if entry is None:
            uid = self.writer.environment.identifiers.new_uid()
            value = default_objects.stored(manifest, uid, rfc3339_now(self.clock), controller.APISERVER_MANAGER)
            with suppress(Conflict):
                await self.persistence.create(self.persistence.complete(key, value))
            return
        old = object_at(entry, resource)
        new = reconciled(old, manifest)
        if new is old:
            return
        if equal(new.get("roleRef"), old.get("roleRef")):
            await self._write(Action.REPLACE, resource, new)
        else:
            await self._write(Action.DELETE, resource, old)
            await self._ensure(resource, manifest)

    async def _write(self, action: Action, resource: Resource, value: Object) -> None:
        metadata = value["metadata"]
        body = Body({} if action is Action.DELETE else value)
        options = Options(field_manager=controller.APISERVER_MANAGER)
        where = metadata.get("namespace", "")
        request = WriteRequest(
            action, resource, where, metadata["name"], body=body, options=options, user=controller.APISERVER
        )
        await self.writer.write(request)
