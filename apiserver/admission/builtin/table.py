"""The plug-ins about built-in kinds: which resources each of them is consulted for, and in which order.

No other write has anything to do with them. A plug-in is imported when the first object of one of its resources is
written. ResourceQuota is not in the table: it counts objects of every kind.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, NamedTuple

from noxu.apiserver.admission.builtin.rules import Permits, Rules

_WITH_PODS: Final = (
    "/pods", "/podtemplates", "/replicationcontrollers", "apps/daemonsets", "apps/deployments", "apps/replicasets",
    "apps/statefulsets", "batch/cronjobs", "batch/jobs",
)  # fmt: skip
_CLAIMS: Final = "/persistentvolumeclaims"
_REQUESTS: Final = "certificates.k8s.io/certificatesigningrequests"


class Listed(NamedTuple):
    """A plug-in: its name in flags, the collections of its resources, and its rules."""

    name: str
    collections: tuple[str, ...]
    load: Callable[[Permits], Rules]


def _limit_ranges(_: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import limit_ranges

    return limit_ranges.RULES


def _service_accounts(_: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import service_accounts

    return service_accounts.RULES


def _node_taints(_: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import node_taints

    return node_taints.RULES


def _pod_security(_: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import pod_security

    return pod_security.RULES


def _priorities(_: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import priorities

    return priorities.RULES


def _tolerations(_: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import tolerations

    return tolerations.RULES


def _storage_classes(_: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import default_classes

    return default_classes.STORAGE


def _protection(_: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import volumes

    return volumes.PROTECTION


def _resize(_: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import volumes

    return volumes.RESIZE


def _runtime_classes(_: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import runtime_classes

    return runtime_classes.RULES


def _approval(permits: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import certificates

    return certificates.approval(permits)


def _signing(permits: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import certificates

    return certificates.signing(permits)


def _subjects(_: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import certificates

    return certificates.SUBJECT_RESTRICTION


def _ingress_classes(_: Permits) -> Rules:
    from noxu.apiserver.admission.builtin import default_classes

    return default_classes.INGRESS


TABLE: Final = (
    Listed("LimitRanger", ("/pods", _CLAIMS), _limit_ranges),
    Listed("ServiceAccount", ("/pods",), _service_accounts),
    Listed("TaintNodesByCondition", ("/nodes",), _node_taints),
    Listed("PodSecurity", ("/namespaces", *_WITH_PODS), _pod_security),
    Listed("Priority", ("/pods", "scheduling.k8s.io/priorityclasses"), _priorities),
    Listed("DefaultTolerationSeconds", ("/pods",), _tolerations),
    Listed("DefaultStorageClass", (_CLAIMS,), _storage_classes),
    Listed(
        "StorageObjectInUseProtection",
        (_CLAIMS, "/persistentvolumes", "storage.k8s.io/volumeattributesclasses"),
        _protection,
    ),
    Listed("PersistentVolumeClaimResize", (_CLAIMS,), _resize),
    Listed("RuntimeClass", ("/pods",), _runtime_classes),
    Listed("CertificateApproval", (_REQUESTS,), _approval),
    Listed("CertificateSigning", (_REQUESTS,), _signing),
    Listed("CertificateSubjectRestriction", (_REQUESTS,), _subjects),
    Listed("DefaultIngressClass", ("networking.k8s.io/ingresses",), _ingress_classes),
)
"""In the order in which they run, which is upstream's (AllOrderedPlugins)."""


class Consulted:
    """The plug-ins that are enabled, by collection."""

    def __init__(self, enabled: Container[str], permits: Permits) -> None:
        self._permits = permits
        self._listed: dict[str, list[Listed]] = {}
        for listed in TABLE:
            if listed.name in enabled:
                for collection in listed.collections:
                    self._listed.setdefault(collection, []).append(listed)
        self.collections = frozenset(self._listed)
        """The collections for which there are plug-ins."""
        self._rules: dict[str, tuple[tuple[str, Rules], ...]] = {}

    def rules(self, collection: str) -> tuple[tuple[str, Rules], ...]:
        """(name, rules) of the plug-ins for a collection, in order."""
        found = self._rules.get(collection)
        if found is None:
            found = tuple((listed.name, listed.load(self._permits)) for listed in self._listed.get(collection, ()))
            self._rules[collection] = found
        return found
