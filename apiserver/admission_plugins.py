"""Which admission plug-ins run, in the syntax of upstream's flags (AdmissionOptions of k8s.io/apiserver).

`--disable-admission-plugins A,B` and `--enable-admission-plugins A,B` can be repeated; neither the order nor repetitions
matter, and no plug-in may be in both lists. All plug-ins are enabled by default. Plug-ins that only kube-apiserver has
cannot be enabled; disabling them has no effect, so that the flags of a cluster can be copied.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from typing import Final

PLUGINS: Final = (
    "NamespaceLifecycle",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
)
"""The plug-ins in the order in which they run: upstream's RecommendedPluginOrder."""

OF_KUBE_APISERVER: Final = frozenset(
    {
        "AlwaysAdmit",
        "AlwaysDeny",
        "AlwaysPullImages",
        "CertificateApproval",
        "CertificateSigning",
        "CertificateSubjectRestriction",
        "ClusterTrustBundleAttest",
        "DefaultIngressClass",
        "DefaultStorageClass",
        "DefaultTolerationSeconds",
        "DenyServiceExternalIPs",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "ImagePolicyWebhook",
        "JobValidation",
        "LimitPodHardAntiAffinityTopology",
        "LimitRanger",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "NodeDeclaredFeatureValidator",
        "NodeRestriction",
        "OwnerReferencesPermissionEnforcement",
        "PersistentVolumeClaimResize",
        "PodGroupProtection",
        "PodGroupWorkloadExists",
        "PodNodeSelector",
        "PodResizeValidator",
        "PodSecurity",
        "PodTolerationRestriction",
        "PodTopologyLabels",
        "Priority",
        "ResourceQuota",
        "RuntimeClass",
        "ServiceAccount",
        "StorageObjectInUseProtection",
        "TaintNodesByCondition",
    }
)
"""The plug-ins that kube-apiserver has in addition (1.37)."""

_ALTERNATIVES: Final = f"available: {', '.join(PLUGINS)}"


def names(flags: Iterable[str]) -> list[str]:
    """The names in the values of a flag: each value is a line of CSV, as for pflag's StringSlice. Raises ValueError."""
    found: list[str] = []
    for flag in flags:
        try:
            found += next(csv.reader(flag.splitlines(), strict=True), [])
        except csv.Error as error:
            raise ValueError(f"invalid list of admission plug-ins {json.dumps(flag)}: {error}") from None
    return found


def select(enable: Iterable[str] = (), disable: Iterable[str] = ()) -> frozenset[str]:
    """The plug-ins that run. Raises ValueError with all errors."""
    enable, disable = list(dict.fromkeys(enable)), list(dict.fromkeys(disable))
    problems = []
    for name in enable:
        if name in OF_KUBE_APISERVER:
            why = f"is one of kube-apiserver's that this server does not have ({_ALTERNATIVES})"
            problems.append(f"enable-admission-plugins plugin {json.dumps(name)} {why}")
        elif name not in PLUGINS:
            problems.append(_unknown("enable", name))
    problems += [_unknown("disable", name) for name in disable if name not in PLUGINS and name not in OF_KUBE_APISERVER]
    if overlap := sorted(set(enable) & set(disable)):
        problems.append(f"[{' '.join(overlap)}] in enable-admission-plugins and disable-admission-plugins overlapped")
    if problems:
        raise ValueError("; ".join(problems))
    return frozenset(PLUGINS).difference(disable)


def _unknown(flag: str, name: str) -> str:
    return f"{flag}-admission-plugins plugin {json.dumps(name)} is unknown ({_ALTERNATIVES})"
