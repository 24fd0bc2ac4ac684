"""What of an object belongs into a file: what people have chosen, without what servers add, allocate and observe.

Left out are the status of kinds that have one apart, metadata that servers set, values that were allocated (unless a manager
owns them: then somebody has chosen them), and what controllers and admission add to objects and will add again. Whole objects
are left out that servers make by themselves: those that a new server has, too, and by these rules those of other clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from noxu.apply.merging import ANNOTATION
from noxu.values import Json, Object, copy

_METADATA: Final = ("name", "namespace", "labels", "annotations", "finalizers")
_ANNOTATIONS: Final = frozenset({
    ANNOTATION,
    "noxu.dev/invalid",
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubernetes.io/service-account.uid",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
})  # fmt: skip
_FINALIZERS: Final = frozenset({
    "customresourcecleanup.apiextensions.k8s.io", "foregroundDeletion", "kubernetes", "kubernetes.io/pv-protection",
    "kubernetes.io/pvc-protection", "networking.k8s.io/service-cidr-finalizer", "orphan", "service.kubernetes.io/load-balancer-cleanup",
})  # fmt: skip
_JOB_LABELS: Final = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)
_TOKENS: Final = "kube-api-access-"

NEVER: Final = frozenset({
    ("", "Event"), ("events.k8s.io", "Event"), ("coordination.k8s.io", "Lease"), ("coordination.k8s.io", "LeaseCandidate"),
    ("certificates.k8s.io", "CertificateSigningRequest"), ("", "ComponentStatus"), ("storage.k8s.io", "VolumeAttachment"),
    ("storage.k8s.io", "CSIStorageCapacity"), ("storage.k8s.io", "CSINode"), ("internal.apiserver.k8s.io", "StorageVersion"),
    ("networking.k8s.io", "IPAddress"),
})  # fmt: skip
"""Kinds that say what happens; they are exported only if they are named."""


def cleaned(value: Object, group: str, *, has_status: bool) -> Object:
    """An object as it belongs into a file. `has_status`: its status is a subresource."""
    found: Object = copy(value)
    metadata = found.get("metadata") or {}
    managed = metadata.get("managedFields") or []
    if has_status:
        found.pop("status", None)
    kept = {name: metadata[name] for name in _METADATA if metadata.get(name)}
    if "annotations" in kept:
        kept["annotations"] = {name: text for name, text in kept["annotations"].items() if name not in _ANNOTATIONS}
    if "finalizers" in kept:
        kept["finalizers"] = [name for name in kept["finalizers"] if name not in _FINALIZERS]
    found["metadata"] = kept
    if clean := _OF_KINDS.get((group, str(value.get("kind")))):
        clean(found, managed)
    found["metadata"] = {name: each for name, each in kept.items() if each}
    return found


_SYSTEM: Final = ("extension-apiserver-authentication", "kube-apiserver-legacy-service-account-token-tracking")


def is_made_by_servers(value: Object, group: str) -> bool:
    """Whether servers make an object by themselves, whatever it contains."""
    kind, metadata = str(value.get("kind")), value.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    name, namespace = str(metadata.get("name")), metadata.get("namespace")
    return (
        (kind, name) == ("ConfigMap", "kube-root-ca.crt")
        or (kind == "ConfigMap" and namespace == "kube-system" and name in _SYSTEM)
        or (kind, name) == ("ServiceCIDR", "kubernetes")
        or (kind == "Secret" and value.get("type") == "kubernetes.io/service-account-token")
        or (namespace == "default" and name == "kubernetes" and kind in ("Service", "Endpoints", "EndpointSlice"))
        or labels.get("kubernetes.io/bootstrapping") == "rbac-defaults"
        or labels.get("endpointslice.kubernetes.io/managed-by", "").endswith(".k8s.io")
        or labels.get("endpoints.kubernetes.io/managed-by") == "endpoint-controller"
        or (kind == "Endpoints" and "endpoints.kubernetes.io/last-change-trigger-time" in annotations)
        or bool(labels.get("kube-aggregator.kubernetes.io/automanaged"))
        or annotations.get("apf.kubernetes.io/autoupdate-spec") == "true"
        or (group == "scheduling.k8s.io" and name.startswith("system-"))
    )


def _has_owner(managed: Json, *path: str) -> bool:
    """Whether a manager owns a field, or an item of a list at it: then somebody has chosen its value."""
    for entry in managed if isinstance(managed, list) else ():
        nodes: list[Json] = [entry.get("fieldsV1") or {}]
        for name in path:
            nodes = [
                child
                for node in nodes
                for element, child in node.items()
                if element == f"f:{name}" or (name == "*" and element.startswith("k:"))
            ]
        if nodes:
            return True
    return False


def _namespace(value: Object, _: Json) -> None:
    value.pop("spec", None)
    labels = value["metadata"].get("labels") or {}
    labels.pop("kubernetes.io/metadata.name", None)


def _service(value: Object, managed: Json) -> None:
    spec = value.get("spec") or {}
    if spec.get("clusterIP") != "None" and not _has_owner(managed, "spec", "clusterIP"):
        for name in ("clusterIP", "clusterIPs"):
            spec.pop(name, None)
    for name in ("ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"):
        if not _has_owner(managed, "spec", name):
            spec.pop(name, None)
    if not _has_owner(managed, "spec", "ports", "*", "nodePort"):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)


def _claim(value: Object, managed: Json) -> None:
    if not _has_owner(managed, "spec", "volumeName"):
        (value.get("spec") or {}).pop("volumeName", None)


def _volume(value: Object, _: Json) -> None:
    claim = (value.get("spec") or {}).get("claimRef") or {}
    for name in ("uid", "resourceVersion"):
        claim.pop(name, None)


def _pod(value: Object, managed: Json) -> None:
    spec = value.get("spec") or {}
    if not _has_owner(managed, "spec", "nodeName"):
        spec.pop("nodeName", None)
    spec.pop("ephemeralContainers", None)  # pods are not created with them
    _remove_items(spec, "volumes", lambda each: str(each.get("name")).startswith(_TOKENS))
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        _remove_items(container, "volumeMounts", lambda each: str(each.get("name")).startswith(_TOKENS))


def _remove_items(holder: Object, name: str, goes: Callable[[Object], bool]) -> None:
    """Remove items of a list, and the list if it is empty then."""
    items = holder.get(name)
    if items:
        holder[name] = [each for each in items if not goes(each)]
        if not holder[name]:
            del holder[name]


def _job(value: Object, _: Json) -> None:
    """The selector and the labels that a server generates have the uid of the job."""
    spec = value.get("spec") or {}
    if spec.get("manualSelector"):
        return
    spec.pop("selector", None)
    template = (spec.get("template") or {}).get("metadata") or {}
    for holder in (template, value["metadata"]):
        labels = holder.get("labels") or {}
        for name in _JOB_LABELS:
            labels.pop(name, None)
        if not labels:
            holder.pop("labels", None)


_OF_KINDS: Final[Mapping[tuple[str, str], Callable[[Object, Json], None]]] = {
    ("", "Namespace"): _namespace,
    ("", "Service"): _service,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "PersistentVolume"): _volume,
    ("", "Pod"): _pod,
    ("batch", "Job"): _job,
}

ORDER: Final = (
    "CustomResourceDefinition", "Namespace", "PriorityClass", "StorageClass", "RuntimeClass", "IngressClass",
    "DeviceClass", "VolumeAttributesClass", "ResourceQuota", "LimitRange",
    "ServiceAccount", "Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "ClusterRole", "ClusterRoleBinding",
    "Role", "RoleBinding", "Service",
)  # fmt: skip
"""Of kinds that others refer to; then come all others, and at last what has a say in the writes of others."""
_LAST: Final = ("admissionregistration.k8s.io", "apiregistration.k8s.io")


FIRST_OF_OTHERS: Final = len(ORDER)


def rank(group: str, kind: str) -> int:
    """The place of a kind in the order in which objects can be created."""
    if group in _LAST:
        return FIRST_OF_OTHERS + 1
    return ORDER.index(kind) if kind in ORDER and (group.endswith(".k8s.io") or not group) else FIRST_OF_OTHERS
