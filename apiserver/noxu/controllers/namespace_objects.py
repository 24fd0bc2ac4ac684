"""Controllers that keep one object in every active namespace: create it, repair it, and create it again when it is deleted.

They follow the namespaces and the collection of these objects. In a namespace that is being deleted they create nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import lru_cache
from typing import ClassVar

from noxu.admission.namespaces import is_terminating
from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.clock import Clock
from noxu.controllers import users
from noxu.controllers.controller import Controller
from noxu.controllers.default_objects import SYSTEM_NAMESPACES
from noxu.controllers.first_objects import FirstObject, template
from noxu.registry.access import User
from noxu.registry.cache import Change
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject, key_of, object_at
from noxu.registry.writer import Writer
from noxu.values import Object


@lru_cache(maxsize=8)
def _templates(wanted: bytes) -> list[tuple[str, Object, bytes]]:
    """(The namespace, the manifest and the template of an object in each system namespace.) `wanted` is its JSON."""
    found = []
    for namespace in SYSTEM_NAMESPACES:
        manifest: Object = codec.decode_stored(wanted)
        manifest["metadata"]["namespace"] = namespace
        found.append((namespace, manifest, template(manifest, users.CONTROLLER_MANAGER)))
    return found


class NamespaceObjectController(Controller[str]):
    """Keys are the names of namespaces."""

    object_name: ClassVar[str]
    user: ClassVar[User]
    workers = 4

    def __init__(self, reader: Reader, writer: Writer, namespaces: Resource, objects: Resource, clock: Clock) -> None:
        super().__init__(reader, namespaces, clock, objects)
        self.writer = writer
        self.objects = objects

    @abstractmethod
    def wanted(self) -> Object:
        """The object to create. It has all defaults, in the order of declaration."""

    def repaired(self, current: Object) -> Object | None:
        """What to replace an existing object by; None: nothing is wrong with it."""
        return None

    def observe(self, change: Change) -> Iterable[str]:
        if change.key.collection == self.resource.collection:
            return () if change.entry is None else [change.key.name]
        return [change.key.partition[:-1]] if change.key.name == self.object_name else ()

    def resync(self) -> Iterable[str]:
        return [key.name for key in self.collection.keys]

    def first_objects(self) -> Iterable[FirstObject]:
        for namespace, manifest, made in _templates(codec.encode(self.wanted(), sort_keys=False)):
            yield FirstObject(namespace, self.objects, manifest, made)

    async def reconcile(self, namespace: str) -> None:
        state = self._state(namespace)
        entry, found = state
        if entry is None or is_terminating(entry, self.resource):
            return
        if found is None:
            if key_of(self.objects, namespace, self.object_name) in self.others[0].corrupt:
                return  # it exists, and cannot be read
            request = self._request(Action.CREATE, namespace, self.wanted())
        elif (repaired := self.repaired(object_at(found, self.objects))) is not None:
            request = self._request(Action.REPLACE, namespace, repaired)._replace(name=self.object_name)
        else:
            return
        try:
            await self.writer.write(request)
        except ApiError:
            if self._state(namespace) == state:
                raise
            # the object or the namespace has changed meanwhile, so the key is in the queue again

    def _state(self, namespace: str) -> tuple[StoredObject | None, StoredObject | None]:
        """The namespace and the object in it."""
        return (
            self.collection.entries.get(key_of(self.resource, "", namespace)),
            self.others[0].entries.get(key_of(self.objects, namespace, self.object_name)),
        )

    def _request(self, action: Action, namespace: str, value: Object) -> WriteRequest:
        options = Options(field_manager=users.CONTROLLER_MANAGER)
        return WriteRequest(action, self.objects, namespace, body=Body(value), options=options, user=self.user)
