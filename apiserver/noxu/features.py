"""Features, admission plug-ins and modes of authorization by their names, in the syntax of upstream's flags.

`--feature-gates A=true,B=false`: features that upstream has locked to their default have no gate, except those that its
integration tests disable (with `--emulated-version`). Unknown gates are refused, because setting one would have no effect.
Defaults are those of the release of Kubernetes, and a gate that came later is unknown to it (`noxu.releases.gates`).

`--disable-admission-plugins A,B` and `--enable-admission-plugins A,B` (AdmissionOptions of k8s.io/apiserver) can be
repeated; neither the order nor repetitions matter, and no plug-in may be in both lists. The plug-ins that upstream enables by
default are enabled (DefaultOffAdmissionPlugins of kube-apiserver has the others), with one exception: ServiceAccount refuses all
pods if no controller creates the account `default` in each namespace, so it is enabled only where one does. Plug-ins that only
kube-apiserver has cannot be enabled; disabling them has no effect, so that the flags of a cluster can be copied.

`--authorization-mode` has the modes of pkg/kubeapiserver/authorizer/modes.

A name that does not exist is an error at once, because it would never have an effect. The message lists the names that
exist, and the one that was probably meant.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from noxu import releases
from noxu.releases import NEWEST, gates

# -- feature gates -----------------------------------------------------------------------------------------------------


class Features(NamedTuple):
    """The features that are enabled."""

    ratcheting: bool = True
    """KEP-4008: an update may leave fields invalid that it does not change."""
    cbor: bool = False
    """KEP-4222: requests and answers may be CBOR, and custom resources are stored as CBOR."""
    field_selectors: bool = True
    """KEP-4358: custom resources may have selectable fields."""
    watch_list_compression: bool = True
    """Watches that begin with all objects are compressed if their client accepts it."""
    release: int = NEWEST
    """The minor release of Kubernetes whose API this is: 31 stands for 1.31."""


GATES: Final = {
    "CRDValidationRatcheting": "ratcheting",
    "CBORServingAndStorage": "cbor",
    "CustomResourceFieldSelectors": "field_selectors",
    "WatchListCompression": "watch_list_compression",
}

# strconv.ParseBool
TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def of_release(release: int) -> Features:
    """The features that a release enables by default."""
    if release == NEWEST:
        return Features()
    return Features(release=release, **{name: gates.is_default(gate, release) for gate, name in GATES.items()})


def parse_gates(texts: Iterable[str], release: int = NEWEST) -> Features:
    """The features that flags enable in a release; of several values of a gate, the last one counts. Raises ValueError."""
    chosen: dict[str, Any] = {}
    for text in texts:
        for part in filter(None, text.split(",")):
            gate, equals, value = (word.strip() for word in part.partition("="))
            if not equals:
                raise ValueError(f"missing bool value for {gate}")
            if gate not in GATES:
                raise ValueError(f"unrecognized feature gate: {gate} (known: {', '.join(GATES)}){meant(gate, GATES)}")
            if gates.gate(gate, release) is None:
                raise ValueError(f"unrecognized feature gate: {gate} ({_came_with(gate)})")
            if value not in TRUE | FALSE:
                raise ValueError(f"invalid value of {gate}={value}: must be true or false")
            chosen[GATES[gate]] = value in TRUE
    return of_release(release)._replace(**chosen)


def _came_with(gate: str) -> str:
    return f"it came with Kubernetes {releases.named(gates.GATES[gate][0].since)}"


# -- admission plug-ins ------------------------------------------------------------------------------------------------


ADMISSION_GROUP: Final = "admissionregistration.k8s.io"
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

OFF_PLUGINS: Final = frozenset({"OwnerReferencesPermissionEnforcement"})
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


def default_plugins(*, controllers: bool) -> frozenset[str]:
    """The plug-ins that are enabled by default. `controllers`: whether one creates the accounts of namespaces."""
    return frozenset(PLUGINS) - OFF_PLUGINS - (frozenset() if controllers else WITH_CONTROLLERS)


DEFAULT_PLUGINS: Final = default_plugins(controllers=False)
_ALTERNATIVES: Final = f"available: {', '.join(PLUGINS)}"


def plugin_names(flags: Iterable[str]) -> list[str]:
    """The names in the values of a flag: each value is a line of CSV, as for pflag's StringSlice. Raises ValueError."""
    flags = list(flags)
    if not flags:
        return []
    import csv  # the options are rarely given

    names: list[str] = []
    for flag in flags:
        try:
            names += next(csv.reader(flag.splitlines(), strict=True), [])
        except csv.Error as error:
            raise ValueError(f"invalid list of admission plug-ins {json.dumps(flag)}: {error}") from None
    return names


def select_plugins(
    enable: Iterable[str] = (), disable: Iterable[str] = (), *, controllers: bool = False
) -> frozenset[str]:
    """The plug-ins that run; `controllers` as for `default`. Raises ValueError with all errors."""
    enable, disable = list(dict.fromkeys(enable)), list(dict.fromkeys(disable))
    problems = []
    for name in enable:
        if name in OF_KUBE_APISERVER:
            why = f"is one of kube-apiserver's that this server does not have ({_ALTERNATIVES})"
            problems.append(f"enable-admission-plugins plugin {json.dumps(name)} {why}")
        elif name not in PLUGINS:
            problems.append(_unknown_plugin("enable", name))
    problems += [
        _unknown_plugin("disable", name) for name in disable if name not in PLUGINS and name not in OF_KUBE_APISERVER
    ]
    if overlap := sorted(set(enable) & set(disable)):
        problems.append(f"[{' '.join(overlap)}] in enable-admission-plugins and disable-admission-plugins overlapped")
    if problems:
        raise ValueError("; ".join(problems))
    return default_plugins(controllers=controllers).union(enable).difference(disable)


def _unknown_plugin(flag: str, name: str) -> str:
    return f"{flag}-admission-plugins plugin {json.dumps(name)} is unknown ({_ALTERNATIVES}){meant(name, PLUGINS)}"


# -- modes of authorization --------------------------------------------------------------------------------------------


ALWAYS_ALLOW: Final = "AlwaysAllow"
RBAC: Final = "RBAC"
MODES: Final = (ALWAYS_ALLOW, "AlwaysDeny", "Node", RBAC)
_WITHOUT: Final = {
    "ABAC": "policies in a file",
    "Webhook": "another server",
}
"""Modes that this server does not have, and whom they ask."""


def modes(lists: Iterable[str]) -> tuple[str, ...]:
    """The modes in comma-separated lists. Raises ValueError."""
    items = tuple(mode for text in lists for mode in text.split(",") if text)
    if not items:
        raise ValueError("at least one authorization-mode must be passed")
    faults = [fault for mode in items if (fault := _fault_of_mode(mode))]
    if len(set(items)) != len(items):
        faults.append(f"authorization-mode {_quoted(items)} has mode specified more than once")
    if faults:
        raise ValueError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
    return items


def _fault_of_mode(mode: str) -> str:
    if mode in MODES:
        return ""
    if mode in _WITHOUT:
        return f"authorization-mode {mode} is not available: this server cannot ask {_WITHOUT[mode]}; it has {', '.join(MODES)}"
    return f'authorization-mode "{mode}" is not a valid mode{meant(mode, MODES)} (this server has {", ".join(MODES)})'


def _quoted(texts: Sequence[str]) -> str:
    """Go's `%q` of strings without special characters."""
    return "[" + " ".join(f'"{text}"' for text in texts) + "]"


# -- names that are probably misspelt ----------------------------------------------------------------------------------


_SHOWN: Final = 20  # names in a message


def nearest(name: str, candidates: Iterable[str]) -> str:
    """The known name that is most similar to a name, whatever their case is; "" if none is."""
    from difflib import get_close_matches  # imported late: rarely needed

    folded = {candidate.lower(): candidate for candidate in candidates}
    matches = get_close_matches(name.lower(), folded, n=1)
    return folded[matches[0]] if matches else ""


def meant(name: str, candidates: Iterable[str]) -> str:
    """`; did you mean NAME?`, the end of a message; "" if no known name is similar."""
    similar = nearest(name, candidates)
    return f"; did you mean {similar}?" if similar else ""


def check_name(name: str, accepted: Iterable[str], place: str) -> None:
    """Raises ValueError for an unknown name: `operations: "UPDAET" is none of CREATE, UPDATE, …; did you mean UPDATE?`."""
    accepted = tuple(accepted)
    if name not in accepted:
        raise ValueError(f'{place}: "{name}" is none of {listed_names(accepted)}{meant(name, accepted)}')


def listed_names(listed: Iterable[str]) -> str:
    """Names for a message: all, or the first ones and how many there are besides."""
    names = [name for name in listed if name]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
