"""Aggregated ClusterRoles: their rules are those of all ClusterRoles that their selectors match.

Upstream's clusterrole-aggregation-controller (pkg/controller/clusterroleaggregation): for each selector in order, the rules
of the roles that it matches, sorted by name and without the role itself; equal rules once. They are applied as the fields
of the controller, so that rules which are written by hand are replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from noxu.api import codec
from noxu.clock import Clock
from noxu.controllers import users
from noxu.controllers.controller import Controller
from noxu.registry.cache import Change
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.patch_types import APPLY_PATCH
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.stored_object import object_at
from noxu.registry.writer import Writer
from noxu.values import Json, Object, equal
from noxu_storage.types import Key


def aggregated(role: Object, roles: Mapping[str, Object]) -> list[Json]:
    """The rules of an aggregated role; `roles` are all roles by name."""
    from noxu.api.selectors import label_selector  # with the first aggregated role

    found: list[Json] = []
    for given in role["aggregationRule"].get("clusterRoleSelectors") or ():
        selector = label_selector(given)
        for name in sorted(roles):
            other = roles[name]
            if name == role["metadata"]["name"] or not selector.matches(other["metadata"].get("labels") or {}):
                continue
            found += [rule for rule in other.get("rules") or () if not any(equal(rule, known) for known in found)]
    return found


class ClusterRoleAggregationController(Controller[Key]):
    """Reconciles each aggregated role after any change of a role."""

    name = "clusterrole-aggregation-controller"
    user = users.controller("clusterrole-aggregation-controller")

    def __init__(self, reader: Reader, writer: Writer, cluster_roles: Resource, clock: Clock) -> None:
        super().__init__(reader, cluster_roles, clock)
        self.writer = writer
        self._roles: dict[Key, Object] = {}

    def observe(self, change: Change) -> Iterable[Key]:
        if change.entry is None:
            self._roles.pop(change.key, None)
        else:
            self._roles[change.key] = object_at(change.entry, self.resource)
        return self._aggregated()

    def resync(self) -> Iterable[Key]:
        self._roles = {key: object_at(entry, self.resource) for key, entry in self.collection.entries.items()}
        return self._aggregated()

    def _aggregated(self) -> list[Key]:
        return [key for key, role in self._roles.items() if role.get("aggregationRule") is not None]

    async def reconcile(self, key: Key) -> None:
        role = self._roles.get(key)
        if role is None or role.get("aggregationRule") is None:
            return
        rules = aggregated(role, {key.name: each for key, each in self._roles.items()})
        if equal(rules, role.get("rules") or []):
            return
        wanted = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": key.name},
            "rules": rules,
        }
        body = Body(codec.encode(wanted, sort_keys=False), APPLY_PATCH)
        options = Options(field_manager=self.name, force=True)
        request = WriteRequest(Action.APPLY, self.resource, name=key.name, body=body, options=options, user=self.user)
        await self.writer.write(request)
