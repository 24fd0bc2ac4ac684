"""The ConfigMap `kube-root-ca.crt` of every namespace (upstream's root-ca-certificate-publisher-controller).

Clients in a namespace verify the server by it. Its data are always the CA of the server's certificate: the empty text as
long as the server has no TLS.
"""

from __future__ import annotations

from typing import Final

from noxu.clock import Clock
from noxu.controllers import users
from noxu.controllers.namespace_objects import NamespaceObjectController
from noxu.registry.draft import Writer
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.values import Object

DESCRIBED: Final = "kubernetes.io/description"
DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal "
    "service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)


class RootCAPublisher(NamespaceObjectController):
    """Creates the ConfigMap, also when it was deleted, and reverts changes to its data."""

    name = "root-ca-certificate-publisher-controller"
    object_name = "kube-root-ca.crt"
    user = users.controller("root-ca-cert-publisher")

    def __init__(
        self, reader: Reader, writer: Writer, namespaces: Resource, config_maps: Resource, clock: Clock, root_ca: str
    ) -> None:
        """`root_ca` is in PEM."""
        super().__init__(reader, writer, namespaces, config_maps, clock)
        self.data = {"ca.crt": root_ca}

    def wanted(self) -> Object:
        metadata = {"name": self.object_name, "annotations": {DESCRIBED: DESCRIPTION}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(self.data)}

    def repaired(self, current: Object) -> Object | None:
        annotations = current["metadata"].get("annotations") or {}
        if current.get("data") == self.data and annotations.get(DESCRIBED):
            return None
        metadata = {**current["metadata"], "annotations": {**annotations, DESCRIBED: DESCRIPTION}}
        return {**current, "metadata": metadata, "data": dict(self.data)}
