"""Clean objects for a file: keep what people have chosen, remove what servers add, allocate and observe.

Removed are the status of kinds with a status subresource, metadata that servers set, allocated values (unless a manager
owns them, and so has chosen them), and fields that controllers and admission will add again. Objects that servers make
by themselves are left out: those of a new server and, by these rules, those of other clusters.

The files of `noxu export`: one for all objects, or a folder with one for each object.

A folder begins with the objects that others depend on, in the order in which `kubectl apply -R -f DIR` and `noxu serve
DIR` read it:

    DIR/1-definitions/widgets.example.com.yaml
    DIR/2-namespaces/attic.yaml
    DIR/3-prerequisites/clusterroles.rbac.authorization.k8s.io_reader.yaml      kinds that others refer to
    DIR/4-objects/attic/widgets.example.com_small.yaml
    DIR/5-admission/…                                                           what has a say in the writes of others

Each file begins with MARK. A file without it belongs to somebody else, and is never overwritten.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.apply.merging import ANNOTATION
from noxu.files import write_whole
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
    copied: Object = copy(value)
    metadata = copied.get("metadata") or {}
    managed = metadata.get("managedFields") or []
    if has_status:
        copied.pop("status", None)
    kept = {name: metadata[name] for name in _METADATA if metadata.get(name)}
    if "annotations" in kept:
        kept["annotations"] = {name: text for name, text in kept["annotations"].items() if name not in _ANNOTATIONS}
    if "finalizers" in kept:
        kept["finalizers"] = [name for name in kept["finalizers"] if name not in _FINALIZERS]
    copied["metadata"] = kept
    if clean := _OF_KINDS.get((group, str(value.get("kind")))):
        clean(copied, managed)
    copied["metadata"] = {name: field for name, field in kept.items() if field}
    return copied


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
    _remove_items(spec, "volumes", lambda volume: str(volume.get("name")).startswith(_TOKENS))
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        _remove_items(container, "volumeMounts", lambda mount: str(mount.get("name")).startswith(_TOKENS))


def _remove_items(holder: Object, name: str, goes: Callable[[Object], bool]) -> None:
    """Remove items of a list, and the list if it is empty then."""
    items = holder.get(name)
    if items:
        holder[name] = [item for item in items if not goes(item)]
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


# -- files -------------------------------------------------------------------------------------------------------------


MARK: Final = b"# Written by noxu export, which overwrites it.\n"
SUFFIXES: Final = (".yaml", ".yml")
DEFINITIONS: Final = "1-definitions"
NAMESPACES: Final = "2-namespaces"
PREREQUISITES: Final = "3-prerequisites"
OBJECTS: Final = "4-objects"
ADMISSION: Final = "5-admission"
FOLDERS: Final = (DEFINITIONS, NAMESPACES, PREREQUISITES, OBJECTS, ADMISSION)
_MAX_NAME: Final = 180  # characters of a file's name
_UNSAFE: Final = re.compile(r"[^a-z0-9.-]|^\.|values")  # `NAME-values.yaml` are values of Helm, where files are read


class Exported(NamedTuple):
    """An object, cleaned, and the names of its resource. `namespace` is "" for cluster scope."""

    group: str
    plural: str
    kind: str
    namespace: str
    name: str
    value: Object


class ForeignFile(Exception):
    """A file would be overwritten that this command has not written; the message names it."""


def document(value: Object) -> bytes:
    """An object as YAML."""
    return codec.to_yaml(value)


def stream(objects: Iterable[Exported]) -> Iterator[bytes]:
    """The parts of one YAML text with all objects."""
    for n, item in enumerate(objects):
        if n:
            yield b"---\n"
        yield document(item.value)


def write_file(path: Path, objects: Iterable[Exported]) -> None:
    """Raises ForeignFile, OSError."""
    check([path])
    write_whole(path, MARK + b"".join(stream(objects)))


def write_folder(folder: Path, objects: Iterable[Exported]) -> list[Path]:
    """Write a file for each object. Returns files of earlier exports that have other objects. Raises ForeignFile, OSError."""
    files = {folder / path_of(item): item for item in objects}
    check(files)
    former = set(_own_files(folder))
    for path, item in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, MARK + document(item.value))
    return sorted(former - files.keys())


def check(paths: Iterable[Path] | Mapping[Path, Exported]) -> None:
    """Raises ForeignFile for the first file that exists and is not one of this command."""
    for path in paths:
        if path.exists() and not is_own(path):
            raise ForeignFile(f"{path} exists and was not written by noxu export, so it is not overwritten")


def is_own(path: Path) -> bool:
    """Whether a file was written by this command."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK


def _own_files(folder: Path) -> Iterator[Path]:
    for part in FOLDERS:
        yield from (path for path in (folder / part).rglob("*.yaml") if is_own(path))


def path_of(exported: Exported) -> Path:
    """The file of an object in a folder."""
    place = rank(exported.group, exported.kind)
    if place < len(FOLDERS[:2]):  # definitions, namespaces
        return Path(FOLDERS[place], _file(exported.name))
    folder = PREREQUISITES if place < FIRST_OF_OTHERS else OBJECTS if place == FIRST_OF_OTHERS else ADMISSION
    plural = f"{exported.plural}.{exported.group}" if exported.group else exported.plural
    return Path(folder, safe(exported.namespace), _file(f"{plural}_", exported.name))


def _file(*parts: str) -> str:
    *prefix, name = parts
    stem = "".join(prefix) + safe(name)
    if len(stem) > _MAX_NAME:
        stem = f"{stem[:_MAX_NAME]}_{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return f"{stem}.yaml"


def safe(name: str) -> str:
    """A name as part of a path: other characters than of DNS names are percent-encoded, capitals too (`A` and `a` may be one)."""
    return _UNSAFE.sub(lambda match: match[0][:-1] + "".join(f"%{byte:02x}" for byte in match[0][-1].encode()), name)
