"""The priorities of the built-in group versions: the order of discovery, and what their APIServices say.

Groups with a higher priority come first, those with the same one by name (k8s.io/kubernetes, pkg/controlplane/apiserver/
aggregator.go and cmd/kube-apiserver/app/aggregator.go). The group of APIServices itself comes before all others.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from noxu.crd.types import version_priority


class Priority(NamedTuple):
    """groupPriorityMinimum and versionPriority."""

    group: int
    version: int


AGGREGATOR: Final = "apiregistration.k8s.io"
CUSTOM: Final = Priority(1000, 100)
"""Of the group versions of CustomResourceDefinitions."""
PRIORITIES: Final = {
    ("", "v1"): Priority(18000, 1),
    ("apps", "v1"): Priority(17800, 15),
    ("events.k8s.io", "v1"): Priority(17750, 15),
    ("authentication.k8s.io", "v1"): Priority(17700, 15),
    ("authorization.k8s.io", "v1"): Priority(17600, 15),
    ("autoscaling", "v2"): Priority(17500, 30),
    ("autoscaling", "v1"): Priority(17500, 15),
    ("batch", "v1"): Priority(17400, 15),
    ("certificates.k8s.io", "v1"): Priority(17300, 15),
    ("networking.k8s.io", "v1"): Priority(17200, 15),
    ("policy", "v1"): Priority(17100, 15),
    ("rbac.authorization.k8s.io", "v1"): Priority(17000, 15),
    ("storage.k8s.io", "v1"): Priority(16800, 15),
    ("admissionregistration.k8s.io", "v1"): Priority(16700, 15),
    ("apiextensions.k8s.io", "v1"): Priority(16700, 15),
    ("scheduling.k8s.io", "v1"): Priority(16600, 15),
    ("coordination.k8s.io", "v1"): Priority(16500, 15),
    ("node.k8s.io", "v1"): Priority(16300, 15),
    ("discovery.k8s.io", "v1"): Priority(16200, 15),
    ("resource.k8s.io", "v1"): Priority(16200, 20),
    ("flowcontrol.apiserver.k8s.io", "v1"): Priority(16100, 21),
    ("storagemigration.k8s.io", "v1"): Priority(15800, 15),
}
_GROUPS: Final = {group: priority.group for (group, _), priority in PRIORITIES.items()}


def order_in_group(group: str, version: str) -> tuple[int, object]:
    """The key by which the versions of a group are sorted: by their priority, then as versions of Kubernetes.

    In a built-in group, a version that only a definition has precedes the built-in ones (kube-aggregator's ByVersionPriority).
    """
    return -PRIORITIES.get((group, version), CUSTOM).version, version_priority(version)


def order(group: str) -> tuple[bool, int, str]:
    """The key by which groups are sorted."""
    return group != AGGREGATOR, -_GROUPS.get(group, CUSTOM.group), group
