"""Controllers that keep one object in every active namespace: the ConfigMap `kube-root-ca.crt`, the account `default`.

They create it, repair it, and create it again when it is deleted. They follow the namespaces and the collection of
these objects. In a namespace that is being deleted they create nothing.

The ConfigMap `kube-root-ca.crt` of every namespace (upstream's root-ca-certificate-publisher-controller).

Clients in a namespace verify the server by it. Its data are always the CA of the server's certificate: the empty text as
long as the server has no TLS.

The service account `default` of every namespace (upstream's serviceaccount-controller).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import lru_cache
from typing import ClassVar, Final, Self

from noxu.admission.chain import is_terminating
from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.controllers import controller
from noxu.controllers.controller import Controller, ControllerParts
from noxu.controllers.default_objects import SYSTEM_NAMESPACES, FirstObject, template
from noxu.registry.access import User
from noxu.registry.cache import Change
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.stored_object import StoredObject, key_of, object_at
from noxu.values import Object


@lru_cache(maxsize=8)
def _templates(wanted: bytes) -> list[tuple[str, Object, bytes]]:
    """(The namespace, the manifest and the template of an object in each system namespace.) `wanted` is its JSON."""
    templates = []
    for namespace in SYSTEM_NAMESPACES:
        manifest: Object = codec.decode_stored(wanted)
        manifest["metadata"]["namespace"] = namespace
        templates.append((namespace, manifest, template(manifest, controller.CONTROLLER_MANAGER)))
    return templates


class NamespaceObjectController(Controller[str]):
    """Keys are the names of namespaces."""

    object_name: ClassVar[str]
    user: ClassVar[User]
    workers = 4

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts)
        [self.objects] = self.other_resources

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
        for namespace, manifest, first in _templates(codec.encode(self.wanted(), sort_keys=False)):
            yield FirstObject(namespace, self.objects, manifest, first)

    async def reconcile(self, namespace: str) -> None:
        state = self._state(namespace)
        entry, stored = state
        if entry is None or is_terminating(entry, self.resource):
            return
        if stored is None:
            if key_of(self.objects, namespace, self.object_name) in self.others[0].corrupt:
                return  # it exists, and cannot be read
            request = self._request(Action.CREATE, namespace, self.wanted())
        elif (repaired := self.repaired(object_at(stored, self.objects))) is not None:
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
        options = Options(field_manager=controller.CONTROLLER_MANAGER)
        return WriteRequest(action, self.objects, namespace, body=Body(value), options=options, user=self.user)


# -- root ca ----------------------------------------------------------------------------------------------------------


DESCRIBED: Final = "kubernetes.io/description"
DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal "
    "service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)


class RootCAPublisher(NamespaceObjectController):
    """Creates the ConfigMap, also when it was deleted, and reverts changes to its data."""

    name = "root-ca-certificate-publisher-controller"
    follows = (("", "namespaces"), ("", "configmaps"))
    object_name = "kube-root-ca.crt"
    user = controller.controller("root-ca-cert-publisher")

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts)
        self.data = {"ca.crt": parts.root_ca}

    def _take_over(self, idle: Self) -> None:
        super()._take_over(idle)
        if self.data != idle.data:  # a server with TLS has a CA of its own
            for key in self.collection.keys:
                self.queue.add(key.name)

    def wanted(self) -> Object:
        metadata = {"name": self.object_name, "annotations": {DESCRIBED: DESCRIPTION}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(self.data)}

    def repaired(self, current: Object) -> Object | None:
        annotations = current["metadata"].get("annotations") or {}
        if current.get("data") == self.data and annotations.get(DESCRIBED):
            return None
        metadata = {**current["metadata"], "annotations": {**annotations, DESCRIBED: DESCRIPTION}}
        return {**current, "metadata": metadata, "data": dict(self.data)}


# -- service accounts -------------------------------------------------------------------------------------------------


class ServiceAccountController(NamespaceObjectController):
    """Creates the account, also when it was deleted."""

    name = "serviceaccount-controller"
    follows = (("", "namespaces"), ("", "serviceaccounts"))
    object_name = "default"
    user = controller.controller("service-account-controller")

    def wanted(self) -> Object:
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": self.object_name}}
