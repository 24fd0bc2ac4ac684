"""The plug-ins about built-in kinds: which resources each of them is consulted for, and in which order.

They cost writes of other resources nothing. A plug-in is imported when the first object of one of its resources is
written. ResourceQuota is not in the table: it counts objects of every kind.
"""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache
from importlib import import_module
from typing import Final, NamedTuple

from noxu.admission.builtin.rules import PluginRules

_WITH_PODS: Final = (
    "/pods", "/podtemplates", "/replicationcontrollers", "apps/daemonsets", "apps/deployments", "apps/replicasets",
    "apps/statefulsets", "batch/cronjobs", "batch/jobs",
)  # fmt: skip
_CLAIMS: Final = "/persistentvolumeclaims"
_REQUESTS: Final = "certificates.k8s.io/certificatesigningrequests"


class Listed(NamedTuple):
    """A plug-in: its name in flags, the collections of its resources, and where in this package its rules are."""

    name: str
    collections: tuple[str, ...]
    rules: str

    def load(self) -> PluginRules:
        module, _, name = self.rules.partition(".")
        rules: PluginRules = getattr(import_module(f"{__package__}.{module}"), name)
        return rules


TABLE: Final = (
    Listed("LimitRanger", ("/pods", _CLAIMS), "limit_ranges.RULES"),
    Listed("ServiceAccount", ("/pods",), "service_accounts.RULES"),
    Listed("TaintNodesByCondition", ("/nodes",), "pods.NODE_TAINTS"),
    Listed("PodSecurity", ("/namespaces", *_WITH_PODS), "pod_security.RULES"),
    Listed("Priority", ("/pods", "scheduling.k8s.io/priorityclasses"), "pods.PRIORITY"),
    Listed("DefaultTolerationSeconds", ("/pods",), "pods.TOLERATIONS"),
    Listed("DefaultStorageClass", (_CLAIMS,), "volumes.DEFAULT_STORAGE"),
    Listed(
        "StorageObjectInUseProtection",
        (_CLAIMS, "/persistentvolumes", "storage.k8s.io/volumeattributesclasses"),
        "volumes.PROTECTION",
    ),
    Listed("PersistentVolumeClaimResize", (_CLAIMS,), "volumes.RESIZE"),
    Listed("RuntimeClass", ("/pods",), "pods.RUNTIME_CLASS"),
    Listed("CertificateApproval", (_REQUESTS,), "certificates.APPROVAL"),
    Listed("CertificateSigning", (_REQUESTS,), "certificates.SIGNING"),
    Listed("CertificateSubjectRestriction", (_REQUESTS,), "certificates.SUBJECT_RESTRICTION"),
    Listed("DefaultIngressClass", ("networking.k8s.io/ingresses",), "volumes.DEFAULT_INGRESS"),
)
"""In the order in which they run, which is upstream's (AllOrderedPlugins)."""


OF_STATUS: Final = frozenset({_REQUESTS})
"""The collections whose plug-ins look at writes to /status, too. Those of others leave them alone."""


@lru_cache(maxsize=8)
def consulted(enabled: frozenset[str]) -> Consulted:
    """The plug-ins that are enabled. The same for all servers: only what is loaded is added later."""
    return Consulted(enabled)


class Consulted:
    """The plug-ins that are enabled, by collection."""

    def __init__(self, enabled: Container[str]) -> None:
        self._listed: dict[str, list[Listed]] = {}
        for listed in TABLE:
            if listed.name in enabled:
                for collection in listed.collections:
                    self._listed.setdefault(collection, []).append(listed)
        self.collections = frozenset(self._listed)
        """The collections for which there are plug-ins."""
        self._rules: dict[str, tuple[tuple[str, PluginRules], ...]] = {}

    def rules(self, collection: str) -> tuple[tuple[str, PluginRules], ...]:
        """(name, rules) of the plug-ins for a collection, in order."""
        loaded = self._rules.get(collection)
        if loaded is None:
            loaded = tuple((listed.name, listed.load()) for listed in self._listed.get(collection, ()))
            self._rules[collection] = loaded
        return loaded
