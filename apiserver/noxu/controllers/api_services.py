"""The APIServices of definitions, and APIServices that ask for another API server.

The rules are those of kube-aggregator's autoregister_controller.go and of pkg/controlplane/controller/crdregistration: every
group version of a definition has an APIService with the label `automanaged: true`, which comes and goes with it, and whose
changes are reverted. An APIService without the label belongs to a client. Those of built-in group versions are created by
`bootstrap`, once.

An APIService with a service asks for requests to be forwarded, which is not supported. The served resources have its
group version, so such requests are refused instead of not being found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

from noxu.api.errors import ApiError
from noxu.controllers import controller
from noxu.controllers.controller import Controller, ControllerParts
from noxu.controllers.default_objects import ALWAYS, AUTOMANAGED, ON_START, api_service
from noxu.registry.cache import Change
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.resource import Resource
from noxu.registry.served_resources import AGGREGATOR, CUSTOM_PRIORITY, PRIORITIES
from noxu.registry.stored_object import StoredObject, key_of, object_at
from noxu.values import Object

GroupVersion = tuple[str, str]

_SERVICE: Final = b'"service":{'  # JSON in the store: of a group version that another server has
_FOLLOWS: Final = f'"{AUTOMANAGED}":"{ALWAYS}"'.encode()
_CONFLICTS: Final = ("AlreadyExists", "Conflict", "NotFound")


def elsewhere(entry: StoredObject, resource: Resource) -> GroupVersion | None:
    """The group version for which an APIService asks for another server, None if it does not."""
    if _SERVICE not in entry.stored:
        return None
    spec = object_at(entry, resource)["spec"]
    return None if spec.get("service") is None else (spec.get("group", ""), spec["version"])


class APIServiceController(Controller[str]):
    """Keeps these APIServices, and the group versions of other servers. Keys are names of APIServices."""

    name = "kube-apiserver-autoregistration"
    follows = ((AGGREGATOR, "apiservices"),)

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts)
        self._served: dict[str, GroupVersion] = {}  # by name of the APIService: the group versions of definitions
        self._elsewhere: dict[str, GroupVersion] = {}  # likewise: those of other servers
        self.served_resources.followers.append(self._follow)

    def _take_over(self, idle: Self) -> None:
        super()._take_over(idle)
        self._served, self._elsewhere = idle._served, idle._elsewhere.copy()

    def _follow(self) -> None:
        """The served resources have changed."""
        if self.is_synchronised:
            for name in self._update_served():
                self.queue.add(name)

    def _update_served(self) -> set[str]:
        """The names of the APIServices whose group versions have come or gone."""
        defined = self.served_resources.current.defined.values()
        served = {
            f"{version}.{group}": (group, version)
            for group, version in frozenset().union(*(versions.group_versions for versions in defined))
            if group != AGGREGATOR and (group, version) not in PRIORITIES
        }
        changed = served.keys() ^ self._served.keys()
        self._served = served
        return changed

    def observe(self, change: Change) -> Iterable[str]:
        name = change.key.name
        self._note(name, change.entry)
        self._publish()
        return [name] if name in self._served or (change.entry and _FOLLOWS in change.entry.stored) else ()

    def resync(self) -> Iterable[str]:
        entries = self.collection.entries
        self._elsewhere = {}
        for key, entry in entries.items():
            self._note(key.name, entry)
        self._publish()
        self._update_served()
        return {*self._served, *(key.name for key, entry in entries.items() if _FOLLOWS in entry.stored)}

    def _note(self, name: str, entry: StoredObject | None) -> None:
        """Remember whether an APIService asks for another server."""
        self._elsewhere.pop(name, None)
        found = None if entry is None else elsewhere(entry, self.resource)
        if found is not None:
            self._elsewhere[name] = found

    def _publish(self) -> None:
        elsewhere = frozenset(self._elsewhere.values())
        if elsewhere != self.served_resources.current.elsewhere:
            self.served_resources.replace(self.served_resources.current.with_elsewhere(elsewhere))

    async def reconcile(self, name: str) -> None:
        """Create, revert or delete one APIService (checkAPIService)."""
        entry = self.collection.entries.get(key_of(self.resource, "", name))
        stored = None if entry is None else object_at(entry, self.resource)
        wanted = api_service(*self._served[name], CUSTOM_PRIORITY, ALWAYS) if name in self._served else None
        if stored is None:
            if wanted is not None:
                await self._write(Action.CREATE, "", wanted)
            return
        managed = (stored["metadata"].get("labels") or {}).get(AUTOMANAGED)
        if managed not in (ALWAYS, ON_START):
            return
        if wanted is None:
            if managed == ALWAYS:
                await self._write(Action.DELETE, name, None)
        elif stored["spec"] != wanted["spec"]:
            await self._write(Action.REPLACE, name, {**stored, "spec": wanted["spec"]})

    async def _write(self, action: Action, name: str, value: Object | None) -> None:
        """Raises ApiError. A conflict is no failure: its change is observed."""
        request = WriteRequest(
            action,
            self.resource,
            "",
            name,
            body=Body({} if value is None else value),
            options=Options(field_manager=controller.APISERVER_MANAGER),
            user=controller.APISERVER,
        )
        try:
            await self.writer.write(request)
        except ApiError as error:
            if error.reason not in _CONFLICTS:
                raise
