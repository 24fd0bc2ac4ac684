"""How the controllers of kube-controller-manager are made, by their names (`manager` has these)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from noxu.controllers.access_rules import ClusterRoleAggregationController
from noxu.controllers.account_tokens import TokenController
from noxu.controllers.certificate_signing import SigningController
from noxu.controllers.controller import Reconciler
from noxu.controllers.garbage_collector import GarbageCollector
from noxu.controllers.manager import ControllerParts, enabled
from noxu.controllers.namespace_objects import RootCAPublisher, ServiceAccountController
from noxu.controllers.namespaces import NamespaceController
from noxu.controllers.policy_status import PolicyStatusController
from noxu.controllers.resource_quotas import ResourceQuotaController
from noxu.controllers.storage_migrations import StorageMigrationController
from noxu.controllers.volume_protection import AttributesClassProtection, ClaimProtection, VolumeProtection


def _garbage_collector(parts: ControllerParts) -> Reconciler[Any]:
    return GarbageCollector(parts.reader, parts.writer, parts.served_resources, parts.clock)


def _namespaces(parts: ControllerParts) -> Reconciler[Any]:
    namespaces = parts.resource("", "namespaces")
    return NamespaceController(parts.reader, parts.writer, parts.served_resources, namespaces, parts.clock)


def _policy_status(parts: ControllerParts) -> Reconciler[Any]:
    policies = parts.resource("admissionregistration.k8s.io", "validatingadmissionpolicies")
    return PolicyStatusController(parts.reader, parts.persistence, parts.served_resources, policies, parts.clock)


def _resource_quotas(parts: ControllerParts) -> Reconciler[Any]:
    quotas = parts.resource("", "resourcequotas")
    return ResourceQuotaController(parts.reader, parts.persistence, parts.served_resources, quotas, parts.clock)


def _root_ca(parts: ControllerParts) -> Reconciler[Any]:
    namespaces, config_maps = parts.resource("", "namespaces"), parts.resource("", "configmaps")
    return RootCAPublisher(parts.reader, parts.writer, namespaces, config_maps, parts.clock, parts.root_ca)


def _service_accounts(parts: ControllerParts) -> Reconciler[Any]:
    namespaces, accounts = parts.resource("", "namespaces"), parts.resource("", "serviceaccounts")
    return ServiceAccountController(parts.reader, parts.writer, namespaces, accounts, parts.clock)


def _account_tokens(parts: ControllerParts) -> Reconciler[Any]:
    secrets, accounts = parts.resource("", "secrets"), parts.resource("", "serviceaccounts")
    assert parts.sign_token is not None
    return TokenController(parts.reader, parts.writer, secrets, accounts, parts.clock, parts.sign_token, parts.root_ca)


def _certificate_signing(parts: ControllerParts) -> Reconciler[Any]:
    requests = parts.resource("certificates.k8s.io", "certificatesigningrequests")
    return SigningController(parts.reader, parts.writer, requests, parts.clock, parts.signing_ca)


def _cluster_roles(parts: ControllerParts) -> Reconciler[Any]:
    roles = parts.resource("rbac.authorization.k8s.io", "clusterroles")
    return ClusterRoleAggregationController(parts.reader, parts.writer, roles, parts.clock)


def _claim_protection(parts: ControllerParts) -> Reconciler[Any]:
    claims, pods = parts.resource("", "persistentvolumeclaims"), parts.resource("", "pods")
    return ClaimProtection(parts.reader, parts.writer, claims, pods, parts.clock)


def _volume_protection(parts: ControllerParts) -> Reconciler[Any]:
    volumes, claims = parts.resource("", "persistentvolumes"), parts.resource("", "persistentvolumeclaims")
    return VolumeProtection(parts.reader, parts.writer, volumes, claims, parts.clock)


def _attributes_class_protection(parts: ControllerParts) -> Reconciler[Any]:
    classes = parts.resource("storage.k8s.io", "volumeattributesclasses")
    claims, volumes = parts.resource("", "persistentvolumeclaims"), parts.resource("", "persistentvolumes")
    return AttributesClassProtection(parts.reader, parts.writer, classes, claims, volumes, parts.clock)


def _storage_migrations(parts: ControllerParts) -> Reconciler[Any]:
    migrations = parts.resource("storagemigration.k8s.io", "storageversionmigrations")
    definitions = parts.resource("apiextensions.k8s.io", "customresourcedefinitions")
    return StorageMigrationController(
        parts.reader, parts.writer, parts.served_resources, migrations, definitions, parts.clock
    )


MAKERS: Final[dict[str, Callable[[ControllerParts], Reconciler[Any]]]] = {
    "certificatesigningrequest-signing-controller": _certificate_signing,
    "clusterrole-aggregation-controller": _cluster_roles,
    "garbage-collector-controller": _garbage_collector,
    "namespace-controller": _namespaces,
    "persistentvolume-protection-controller": _volume_protection,
    "persistentvolumeclaim-protection-controller": _claim_protection,
    "resourcequota-controller": _resource_quotas,
    "root-ca-certificate-publisher-controller": _root_ca,
    "serviceaccount-controller": _service_accounts,
    "serviceaccount-token-controller": _account_tokens,
    "storage-version-migrator-controller": _storage_migrations,
    "validatingadmissionpolicy-status-controller": _policy_status,
    "volumeattributesclass-protection-controller": _attributes_class_protection,
}


def make(items: Sequence[str], parts: ControllerParts) -> list[Reconciler[Any]]:
    """Make the controllers that a list enables, without running them."""
    return [MAKERS[item.name](parts) for item in enabled(items)]
