"""The service account `default` of every namespace (upstream's serviceaccount-controller)."""

from __future__ import annotations

from noxu.controllers import users
from noxu.controllers.namespace_objects import NamespaceObjectController
from noxu.values import Object


class ServiceAccountController(NamespaceObjectController):
    """Creates the account, also when it was deleted."""

    name = "serviceaccount-controller"
    object_name = "default"
    user = users.controller("service-account-controller")

    def wanted(self) -> Object:
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": self.object_name}}
