"""Keep the rules of access up to date with the roles and bindings.

It starts before the first request, and a change acts before its writer is answered: the next request sees it. Large
objects are compiled in a thread, and their writers wait for it. If the cache is reset, the former rules hold until all
objects are listed again; writers of roles and bindings wait for that, too.

Aggregated ClusterRoles have the rules of all ClusterRoles that their selectors match.

Upstream's clusterrole-aggregation-controller (pkg/controller/clusterroleaggregation): for each selector in order, the rules
of the roles that it matches, sorted by name and without the role itself; equal rules once. They are applied as the fields
of the controller, so that rules which are written by hand are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, Self, TypeAlias

from noxu.api import codec
from noxu.api.selectors import label_selector
from noxu.controllers import controller
from noxu.controllers.controller import Controller, ControllerParts
from noxu.registry.cache import Change
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.resource import APPLY_PATCH
from noxu.registry.stored_object import StoredObject, object_at
from noxu.values import Json, Object, equal
from noxu_storage.types import Key

GROUP: Final = "rbac.authorization.k8s.io"
PLURALS: Final = ("clusterroles", "roles", "clusterrolebindings", "rolebindings")


Put: TypeAlias = Callable[[], None]
"""Makes what has been compiled count."""


class CompiledRules(Protocol):
    """What follows the objects: `namespace` is "" for those of the cluster. Compiling, in any thread, changes nothing."""

    def compile_role(self, namespace: str, name: str, role: Object) -> Put: ...

    def remove_role(self, namespace: str, name: str) -> None: ...

    def compile_binding(self, namespace: str, name: str, binding: Object) -> Put: ...

    def remove_binding(self, namespace: str, name: str) -> None: ...

    def take_over(self, other: Any) -> None:
        """Have what another object of the same class has."""


class AccessRuleController(Controller[str]):
    """Rules change when a change is observed, those of large objects when their name is reconciled."""

    name = "rbac-rules"

    def __init__(self, parts: ControllerParts, rules: CompiledRules) -> None:
        resources = {plural: parts.resource(GROUP, plural) for plural in PLURALS}
        super().__init__(parts, *resources.values())
        self._rules = rules
        self._resources = {resource.collection: resource for resource in resources.values()}
        bindings = {resources[plural].collection for plural in PLURALS if plural.endswith("bindings")}
        self._compilers: dict[str, Callable[[str, str, Object], Put]] = {
            name: rules.compile_binding if name in bindings else rules.compile_role for name in self._resources
        }
        self._remove: dict[str, Callable[[str, str], None]] = {
            name: rules.remove_binding if name in bindings else rules.remove_role for name in self._resources
        }
        self._known: set[Key] = set()
        self._large: dict[Key, StoredObject] = {}
        """Objects that are not compiled yet, in their newest state."""

    def observe(self, change: Change) -> Iterable[str]:
        if change.entry is None:
            self._forget(change.key)
            return ()
        return self._learn(change.entry)

    def _take_over(self, idle: Self) -> None:
        super()._take_over(idle)
        self._rules.take_over(idle._rules)
        self._known = idle._known.copy()

    def resync(self) -> Iterable[str]:
        entries = [entry for collection in (self.collection, *self.others) for entry in collection.entries.values()]
        for key in self._known - {entry.key for entry in entries}:
            self._forget(key)
        return [name for entry in entries for name in self._learn(entry)]

    def _learn(self, entry: StoredObject) -> Iterable[str]:
        """Make an object count at once, or return its name, which is then to be reconciled."""
        self._known.add(entry.key)
        if len(entry.stored) > LOOP_LIMIT:
            self._large[entry.key] = entry
            return (entry.key.name,)
        self._large.pop(entry.key, None)
        self._compile(entry)()
        return ()

    def _compile(self, entry: StoredObject) -> Put:
        key = entry.key
        value = object_at(entry, self._resources[key.collection])
        return self._compilers[key.collection](entry.namespace, key.name, value)

    def _forget(self, key: Key) -> None:
        self._known.discard(key)
        self._large.pop(key, None)
        self._remove[key.collection](key.partition[:-1], key.name)

    async def reconcile(self, key: str) -> None:
        """Compile the large objects of a name. What has changed in the meantime is not made to count."""
        for entry in [entry for entry in self._large.values() if entry.key.name == key]:
            put = await offload(len(entry.stored), self._compile, entry)
            if self._large.get(entry.key) is entry:
                del self._large[entry.key]
                put()


# -- cluster roles ----------------------------------------------------------------------------------------------------


def aggregated(role: Object, roles: Mapping[str, Object]) -> list[Json]:
    """The rules of an aggregated role; `roles` are all roles by name."""
    rules: list[Json] = []
    for terms in role["aggregationRule"].get("clusterRoleSelectors") or ():
        selector = label_selector(terms)
        for name in sorted(roles):
            added = roles[name]
            if name == role["metadata"]["name"] or not selector.matches(added["metadata"].get("labels") or {}):
                continue
            rules += [rule for rule in added.get("rules") or () if not any(equal(rule, kept) for kept in rules)]
    return rules


class ClusterRoleAggregationController(Controller[Key]):
    """Reconciles each aggregated role after any change of a role."""

    name = "clusterrole-aggregation-controller"
    follows = ((GROUP, "clusterroles"),)
    user = controller.controller("clusterrole-aggregation-controller")

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts)
        self._roles: dict[Key, Object] = {}

    def _take_over(self, idle: Self) -> None:
        super()._take_over(idle)
        self._roles = idle._roles.copy()

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
        rules = aggregated(role, {key.name: cluster_role for key, cluster_role in self._roles.items()})
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
