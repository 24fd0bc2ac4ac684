"""Keep the rules of access up to date with the roles and bindings.

It starts before the first request, and a change acts before its writer is answered: the next request sees it. If the cache
is reset, the rules of before hold until all objects are listed again; writers of roles and bindings wait for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from noxu.apiserver.clock import Clock
from noxu.apiserver.controllers.controller import Controller
from noxu.apiserver.registry.change import Change
from noxu.apiserver.registry.entry import Entry, object_at
from noxu.apiserver.registry.reader import Reader
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.values import Object
from noxu.storage.types import Key

GROUP: Final = "rbac.authorization.k8s.io"
PLURALS: Final = ("clusterroles", "roles", "clusterrolebindings", "rolebindings")


class Rules(Protocol):
    """What follows the objects: `namespace` is "" for those of the cluster."""

    def put_role(self, namespace: str, name: str, role: Object) -> None: ...

    def remove_role(self, namespace: str, name: str) -> None: ...

    def put_binding(self, namespace: str, name: str, binding: Object) -> None: ...

    def remove_binding(self, namespace: str, name: str) -> None: ...


class AccessRuleController(Controller[str]):
    """There is nothing to reconcile: rules change when a change is observed."""

    name = "rbac-rules"

    def __init__(self, reader: Reader, resources: dict[str, Resource], rules: Rules, clock: Clock) -> None:
        """`resources` are those of PLURALS."""
        first, *others = (resources[plural] for plural in PLURALS)
        super().__init__(reader, first, clock, *others)
        self._resources = {resource.collection: resource for resource in resources.values()}
        bindings = {resources[plural].collection for plural in PLURALS if plural.endswith("bindings")}
        self._put = {name: rules.put_binding if name in bindings else rules.put_role for name in self._resources}
        self._remove: dict[str, Callable[[str, str], None]] = {
            name: rules.remove_binding if name in bindings else rules.remove_role for name in self._resources
        }
        self._known: set[Key] = set()

    def observe(self, change: Change) -> Iterable[str]:
        if change.entry is None:
            self._forget(change.key)
        else:
            self._learn(change.entry)
        return ()

    def resync(self) -> Iterable[str]:
        entries = [entry for found in (self.collection, *self.others) for entry in found.entries.values()]
        for key in self._known - {entry.key for entry in entries}:
            self._forget(key)
        for entry in entries:
            self._learn(entry)
        return ()

    def _learn(self, entry: Entry) -> None:
        key = entry.key
        value = object_at(entry, self._resources[key.collection])
        self._known.add(key)
        self._put[key.collection](entry.namespace, key.name, value)

    def _forget(self, key: Key) -> None:
        self._known.discard(key)
        self._remove[key.collection](key.partition[:-1], key.name)

    async def reconcile(self, key: str) -> None:
        """Nothing is left to do."""
