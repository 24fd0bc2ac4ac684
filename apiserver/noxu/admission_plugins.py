"""Which admission plug-ins run, in the syntax of upstream's flags (AdmissionOptions of k8s.io/apiserver).

`--disable-admission-plugins A,B` and `--enable-admission-plugins A,B` can be repeated; neither the order nor repetitions
matter, and no plug-in may be in both lists. The plug-ins that upstream enables by default are enabled (DefaultOffAdmissionPlugins
of kube-apiserver has the others), with one exception: ServiceAccount refuses all pods if no controller creates the account
`default` in each namespace, so it is enabled only where one does. Plug-ins that only kube-apiserver has cannot be enabled;
disabling them has no effect, so that the flags of a cluster can be copied.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from noxu.similar_names import meant

GROUP: Final = "admissionregistration.k8s.io"
"""The API group of their configuration."""
PLUGINS: Final = (
    "NamespaceLifecycle",
    "LimitRanger",
    "ServiceAccount",
    "TaintNodesByCondition",
    "PodSecurity",
    "Priority",
    "DefaultTolerationSeconds",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
)
"""The plug-ins in the order in which they run: upstream's AllOrderedPlugins."""

OFF: Final = frozenset({"OwnerReferencesPermissionEnforcement"})
"""The plug-ins that have to be enabled."""

WITH_CONTROLLERS: Final = frozenset({"ServiceAccount"})
"""The plug-ins that have to be enabled where no controllers run."""

OF_KUBE_APISERVER: Final = frozenset(
    {
        "AlwaysAdmit",
        "AlwaysDeny",
        "AlwaysPullImages",
        "ClusterTrustBundleAttest",
        "DenyServiceExternalIPs",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "ImagePolicyWebhook",
        "JobValidation",
        "LimitPodHardAntiAffinityTopology",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "NodeDeclaredFeatureValidator",
        "NodeRestriction",
        "PodGroupProtection",
        "PodGroupWorkloadExists",
        "PodNodeSelector",
        "PodResizeValidator",
        "PodTolerationRestriction",
        "PodTopologyLabels",
    }
)
"""The plug-ins that kube-apiserver has in addition (1.37)."""


def default(*, controllers: bool) -> frozenset[str]:
    """The plug-ins that are enabled by default. `controllers`: whether one creates the accounts of namespaces."""
    return frozenset(PLUGINS) - OFF - (frozenset() if controllers else WITH_CONTROLLERS)


DEFAULT: Final = default(controllers=False)
_ALTERNATIVES: Final = f"available: {', '.join(PLUGINS)}"


def names(flags: Iterable[str]) -> list[str]:
    """The names in the values of a flag: each value is a line of CSV, as for pflag's StringSlice. Raises ValueError."""
    flags = list(flags)
    if not flags:
        return []
    import csv  # the options are rarely given

    found: list[str] = []
    for flag in flags:
        try:
            found += next(csv.reader(flag.splitlines(), strict=True), [])
        except csv.Error as error:
            raise ValueError(f"invalid list of admission plug-ins {json.dumps(flag)}: {error}") from None
    return found


def select(enable: Iterable[str] = (), disable: Iterable[str] = (), *, controllers: bool = False) -> frozenset[str]:
    """The plug-ins that run; `controllers` as for `default`. Raises ValueError with all errors."""
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
    return default(controllers=controllers).union(enable).difference(disable)


def _unknown(flag: str, name: str) -> str:
    return f"{flag}-admission-plugins plugin {json.dumps(name)} is unknown ({_ALTERNATIVES}){meant(name, PLUGINS)}"
