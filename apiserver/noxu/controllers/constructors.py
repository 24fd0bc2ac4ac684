"""The controllers of kube-controller-manager by their names, which `manager` has, and how they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from noxu.controllers.access_rules import ClusterRoleAggregationController
from noxu.controllers.account_tokens import TokenController
from noxu.controllers.certificate_signing import SigningController
from noxu.controllers.controller import ControllerParts, Reconciler
from noxu.controllers.garbage_collector import GarbageCollector
from noxu.controllers.manager import enabled
from noxu.controllers.namespace_objects import RootCAPublisher, ServiceAccountController
from noxu.controllers.namespaces import NamespaceController
from noxu.controllers.policy_status import PolicyStatusController
from noxu.controllers.resource_quotas import ResourceQuotaController
from noxu.controllers.storage_migrations import StorageMigrationController
from noxu.controllers.volume_protection import AttributesClassProtection, ClaimProtection, VolumeProtection

MAKERS: Final[dict[str, Callable[[ControllerParts], Reconciler[Any]]]] = {
    made.name: made
    for made in (
        AttributesClassProtection,
        ClaimProtection,
        ClusterRoleAggregationController,
        GarbageCollector,
        NamespaceController,
        PolicyStatusController,
        ResourceQuotaController,
        RootCAPublisher,
        ServiceAccountController,
        SigningController,
        StorageMigrationController,
        TokenController,
        VolumeProtection,
    )
}


def make(items: Sequence[str], parts: ControllerParts) -> list[Reconciler[Any]]:
    """Make the controllers that a list enables, without running them."""
    return [MAKERS[item.name](parts) for item in enabled(items)]
