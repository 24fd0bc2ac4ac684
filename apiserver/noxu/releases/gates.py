"""Feature gates by release: since when a gate exists, and what its default became.

From pkg/features/kube_features.go of k8s.io/apiserver and of k8s.io/apiextensions-apiserver, the gates that concern
CustomResourceDefinitions, their objects and admission. A gate that is locked cannot be set to another value than its
default. Upstream removes gates some releases after that; here they stay, because setting them to their default does no harm.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Gate(NamedTuple):
    """What a gate is from a release on. `stage`: alpha, beta, GA or deprecated."""

    since: int
    default: bool
    stage: str
    locked: bool = False


GATES: Final[dict[str, tuple[Gate, ...]]] = {
    "AdmissionWebhookMatchConditions": (Gate(28, True, "beta"), Gate(30, True, "GA", locked=True)),
    "AggregatedDiscoveryEndpoint": (Gate(27, True, "beta"), Gate(30, True, "GA", locked=True)),
    "AuthorizeWithSelectors": (Gate(31, False, "alpha"), Gate(32, True, "beta"), Gate(34, True, "GA", locked=True)),
    "CBORServingAndStorage": (Gate(32, False, "alpha"),),
    "CRDObservedGenerationTracking": (Gate(35, False, "beta"), Gate(36, True, "beta")),
    "CRDValidationRatcheting": (Gate(28, False, "alpha"), Gate(30, True, "beta"), Gate(33, True, "GA", locked=True)),
    "CustomResourceFieldSelectors": (
        Gate(30, False, "alpha"),
        Gate(31, True, "beta"),
        Gate(32, True, "GA", locked=True),
    ),
    "MutatingAdmissionPolicy": (Gate(32, False, "alpha"), Gate(34, False, "beta"), Gate(36, True, "GA")),
    "RetryGenerateName": (Gate(30, False, "alpha"), Gate(31, True, "beta"), Gate(32, True, "GA", locked=True)),
    "StrictCostEnforcementForVAP": (Gate(31, False, "beta"), Gate(32, True, "GA", locked=True)),
    "StrictCostEnforcementForWebhooks": (Gate(31, False, "beta"), Gate(32, True, "GA", locked=True)),
    "ValidatingAdmissionPolicy": (Gate(28, False, "beta"), Gate(30, True, "GA", locked=True)),
    "WatchList": (Gate(27, False, "alpha"), Gate(32, True, "beta"), Gate(33, False, "beta"), Gate(34, True, "beta")),
    "WatchListCompression": (Gate(37, True, "beta"),),
}


def gate(name: str, release: int) -> Gate | None:
    """The gate as it is in a release, None if the release has none of that name."""
    history = [entry for entry in GATES[name] if entry.since <= release]
    return history[-1] if history else None


def is_default(name: str, release: int) -> bool:
    """Whether a feature is enabled where nothing sets its gate."""
    found = gate(name, release)
    return found is not None and found.default
