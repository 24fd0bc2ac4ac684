"""Volumes of pods: one source per volume, and the fields that each source requires.

The rules are those of k8s.io/kubernetes pkg/apis/core/validation: ValidateVolumes and the functions for each source. The
texts name some sources in their own way (`persistentDisk`, `cephfs`, `downwarAPI`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from noxu.api import field
from noxu.api.field import Path
from noxu.api.meta import validate_annotations
from noxu.api.names import subdomain_name
from noxu.go import quantity
from noxu.go.text import quote
from noxu.kinds import checks, references
from noxu.kinds.checks import Errors, label_selector_errors
from noxu.kinds.resource_requirements import claim_spec
from noxu.values import Object

MAX_MODE: Final = 0o777
_NOT_A_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_MANY: Final = "may not specify more than 1 volume type"
_FIELDS: Final = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
"""The fields of a pod that files can show."""


def volumes(items: list[Object], path: Path, named: dict[str, Object], *, pod: str | None) -> Errors:
    """The errors of all volumes; valid ones are put into `named`. `pod` is the name of a pod, None in a template."""
    created = {f"{pod}-{volume['name']}" for volume in items if pod and volume.get("ephemeral")}
    for n, volume in enumerate(items):
        where, name = f"{path}[{n}]", volume.get("name", "")
        errors = list(_source(volume, where, name, pod))
        if not name:
            errors.append(field.required(f"{where}.name"))
        else:
            errors += checks.label(name, f"{where}.name")
        if name in named:
            errors.append(field.duplicate(f"{where}.name", name))
        if not errors:
            named[name] = volume
        yield from errors
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
        if claim in created:
            rule = "must not reference a PVC that gets created for an ephemeral volume"
            yield field.invalid(f"{where}.persistentVolumeClaim.claimName", claim, rule)


def _source(volume: Object, path: Path, name: str, pod: str | None) -> Errors:
    chosen = ""
    for source in volume if len(volume) <= 2 else _ORDER:
        settings = volume.get(source)
        check = _SOURCES.get(source)
        if settings is None or check is None:
            continue
        if chosen:
            yield field.forbidden(f"{path}.{_MISNAMED_AGAIN.get(source, source)}", _MANY)
        else:
            chosen = source
            yield from check(settings, f"{path}.{_MISNAMED.get(source, source)}")
            if source == "image" and pod is not None and not settings.get("reference"):
                yield field.required(f"{path}.image.reference")
            if source == "ephemeral" and pod and name:
                for text in subdomain_name(f"{pod}-{name}", False):
                    yield field.invalid(f"{path}.name", name, f"PVC name {quote(f'{pod}-{name}')}: {text}")
        portal = settings.get("targetPortal", "")
        if source == "iscsi" and settings.get("initiatorName") is not None and len(f"{name}:{portal}") > 64:
            yield field.invalid(f"{path}.name", name, _LONG_PORTAL)
    if not chosen:
        yield field.required(path, "must specify a volume type")


_LONG_PORTAL: Final = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."


def mode(value: int | None, path: Path) -> Errors:
    """The permissions of a file."""
    if value is not None and not 0 <= value <= MAX_MODE:
        yield field.invalid(path, value, _NOT_A_MODE)


def _needs(*names: str) -> Callable[[Object, Path], Errors]:
    """The check of a source that only has required fields."""

    def check(source: Object, path: Path) -> Errors:
        yield from (field.required(f"{path}.{name}") for name in names if not source.get(name))

    return check


def _empty_dir(source: Object, path: Path) -> Errors:
    size = source.get("sizeLimit")
    if size is not None and quantity.parse(size).digits < 0:
        yield field.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def host_path(source: Object, path: Path) -> Errors:
    if not source.get("path"):
        yield field.required(f"{path}.path")
        return
    yield from checks.no_backsteps(source["path"], f"{path}.path")
    yield from checks.choice(source.get("type"), "core/v1.HostPathType", f"{path}.type")


def _git_repo(source: Object, path: Path) -> Errors:
    if not source.get("repository"):
        yield field.required(f"{path}.repository")
    yield from checks.descending(source.get("directory", ""), f"{path}.directory")


def _disk(name: str) -> Callable[[Object, Path], Errors]:
    def check(source: Object, path: Path) -> Errors:
        if not source.get(name):
            yield field.required(f"{path}.{name}")
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            yield field.invalid(f"{path}.partition", partition, "must be between 1 and 255, inclusive")

    return check


def _keys(name: str) -> Callable[[Object, Path], Errors]:
    """The check of a ConfigMap or a Secret whose keys become files."""

    def check(source: Object, path: Path) -> Errors:
        if not source.get(name):
            yield field.required(f"{path}.{name}")
        yield from mode(source.get("defaultMode"), f"{path}.defaultMode")
        yield from checks.each(source.get("items"), f"{path}.items", _key_to_path)

    return check


def _key_to_path(item: Object, path: Path) -> Errors:
    for name in ("key", "path"):
        if not item.get(name):
            yield field.required(f"{path}.{name}")
    yield from checks.not_reserved(item.get("path", ""), f"{path}.path")
    yield from mode(item.get("mode"), f"{path}.mode")


def _nfs(source: Object, path: Path) -> Errors:
    yield from _needs("server", "path")(source, path)
    if not source.get("path", "").startswith("/"):
        yield field.invalid(f"{path}.path", source.get("path", ""), "must be an absolute path")


_INITIATORS: Final = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)\Z", re.ASCII),
    "eui": re.compile(r"\Aeui.[A-Za-z0-9]{16}\Z"),
    "naa": re.compile(r"\Anaa.[A-Za-z0-9]{32}\Z"),
}


def _initiator(name: str, path: Path) -> Errors:
    pattern = _INITIATORS.get(name[:3])
    if pattern is None:
        yield field.invalid(path, name, "must be valid format starting with iqn, eui, or naa")
    elif not pattern.search(name):
        yield field.invalid(path, name, "must be valid format")


def _iscsi(source: Object, path: Path) -> Errors:
    if not source.get("targetPortal"):
        yield field.required(f"{path}.targetPortal")
    if not source.get("iqn"):
        yield field.required(f"{path}.iqn")
    else:
        yield from _initiator(source["iqn"], f"{path}.iqn")
    yield from checks.in_range(source.get("lun", 0), 0, 255, f"{path}.lun")
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        yield field.required(f"{path}.secretRef")
    if source.get("initiatorName") is not None:
        yield from _initiator(source["initiatorName"], f"{path}.initiatorname")


def _secret_reference(source: Object, path: Path) -> Errors:
    if source.get("secretRef") is not None and not source["secretRef"].get("name"):
        yield field.required(f"{path}.secretRef.name")


def _cinder(source: Object, path: Path) -> Errors:
    yield from _needs("volumeID")(source, path)
    yield from _secret_reference(source, path)


def _flocker(source: Object, path: Path) -> Errors:
    name, uid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uid:
        yield field.required(path, "one of datasetName and datasetUUID is required")
    if name and uid:
        yield field.invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        yield field.invalid(f"{path}.datasetName", name, "must not contain '/'")


def _quobyte(source: Object, path: Path) -> Errors:
    rule = "must be a host:port pair or multiple pairs separated by commas"
    registry = source.get("registry", "")
    if not registry:
        yield field.required(f"{path}.registry", rule)
    elif len(source.get("tenant", "")) >= 65:
        yield field.required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        yield from (
            field.invalid(f"{path}.registry", registry, rule) for pair in registry.split(",") if ":" not in pair
        )
    if not source.get("volume"):
        yield field.required(f"{path}.volume")


def _fibre_channel(source: Object, path: Path) -> Errors:
    names, ids = source.get("targetWWNs") or [], source.get("wwids") or []
    lun: int | None = source.get("lun")
    if not names and not ids:
        yield field.required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if names and ids:
        rule = "targetWWNs and wwids can not be specified simultaneously"
        yield field.invalid(f"{path}.targetWWNs", names, rule)
    if names and lun is None:
        yield field.required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif names and lun is not None:
        yield from checks.in_range(lun, 0, 255, f"{path}.lun")


def _flex(source: Object, path: Path) -> Errors:
    if not source.get("driver"):
        yield field.required(f"{path}.driver")
    for name in source.get("options") or ():
        domain = f".{name.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            rule = "kubernetes.io and k8s.io namespaces are reserved"
            yield field.invalid(f"{path}.options[{name}]", name, rule)


_MANAGED_DISK: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_DISK: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def _azure_disk(source: Object, path: Path) -> Errors:
    yield from _needs("diskName", "diskURI")(source, path)
    yield from checks.choice(source.get("cachingMode"), "core/v1.AzureDataDiskCachingMode", f"{path}.cachingMode")
    kind, uri = source.get("kind"), source.get("diskURI", "")
    yield from checks.choice(kind, "core/v1.AzureDataDiskKind", f"{path}.kind")
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        yield field.not_supported(f"{path}.diskURI", uri, [_MANAGED_DISK])
    elif kind not in (None, "Managed") and not uri.startswith("https://"):
        yield field.not_supported(f"{path}.diskURI", uri, [_BLOB_DISK])


def _storage_os(source: Object, path: Path) -> Errors:
    if not source.get("volumeName"):
        yield field.required(f"{path}.volumeName")
    else:
        yield from checks.label(source["volumeName"], f"{path}.volumeName")
    if source.get("volumeNamespace"):
        yield from checks.label(source["volumeNamespace"], f"{path}.volumeNamespace")
    yield from _secret_reference(source, path)


def _csi(source: Object, path: Path) -> Errors:
    yield from checks.csi_driver_name(source.get("driver", ""), f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        yield field.required(f"{path}.nodePublishSecretRef.name")
    elif secret is not None:
        yield from checks.named(secret["name"], subdomain_name, f"{path}.name")


def _ephemeral(source: Object, path: Path) -> Errors:
    template = source.get("volumeClaimTemplate")
    path = f"{path}.volumeClaimTemplate"
    if template is None:
        yield field.required(path)
        return
    metadata: Object = template.get("metadata") or {}
    yield from validate_annotations(metadata.get("annotations") or {}, f"{path}.metadata.annotations")
    yield from checks.labels(metadata.get("labels"), f"{path}.metadata.labels")
    for name in metadata:
        if name not in ("annotations", "labels"):
            yield field.forbidden(f"{path}.metadata.{name}", "cannot be set")
    yield from claim_spec(template.get("spec") or {}, f"{path}.spec")


def _image(source: Object, path: Path) -> Errors:
    yield from checks.required_choice(source.get("pullPolicy"), "core/v1.PullPolicy", f"{path}.pullPolicy")


# -- files of several sources -----------------------------------------------------------------------------------------


def _downward_file(file: Object, path: Path) -> Errors:
    if not file.get("path"):
        yield field.required(f"{path}.path")
    yield from checks.not_reserved(file.get("path", ""), f"{path}.path")
    reference, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if reference is not None:
        yield from references.field_of_pod(reference, _FIELDS, f"{path}.fieldRef")
        if resource is not None:
            rule = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield field.invalid(path, "resource", rule)
    elif resource is not None:
        yield from references.resource_of_container(resource, f"{path}.resourceFieldRef", needs_container=True)
    else:
        yield field.required(path, "one of fieldRef and resourceFieldRef is required")
    yield from mode(file.get("mode"), f"{path}.mode")


def _downward(source: Object, path: Path) -> Errors:
    yield from mode(source.get("defaultMode"), f"{path}.defaultMode")
    for item in source.get("items") or ():
        yield from _downward_file(item, path)


def _projected(volume_source: Object, path: Path) -> Errors:
    yield from mode(volume_source.get("defaultMode"), f"{path}.defaultMode")
    seen: set[str] = set()
    for n, source in enumerate(volume_source.get("sources") or ()):
        where = f"{path}.sources[{n}]"
        for kind, check in _PROJECTIONS.items():
            if source.get(kind) is not None:
                yield from check(source[kind], f"{where}.{kind}", path)
                yield from _conflicts(kind, source[kind], seen, path)
        if len(source) > 1:
            yield field.forbidden(where, "may not specify more than 1 volume type per source")


def _conflicts(kind: str, source: Object, seen: set[str], path: Path) -> Errors:
    """Two files of one path. Tokens are not compared."""
    if kind in ("serviceAccountToken", "podCertificate"):
        return
    files = [source] if kind == "clusterTrustBundle" else source.get("items") or []
    for file in files:
        name = file.get("path", "")
        if name and name in seen:
            shown = source.get("name", "") if kind in ("secret", "configMap") else name
            yield field.invalid(path, shown, "conflicting duplicate paths")
        seen.add(name)


def _projected_keys(projection: Object, path: Path, volume: Path) -> Errors:  # noqa: ARG001
    if not projection.get("name"):
        yield field.required(f"{path}.name")
    yield from checks.each(projection.get("items"), f"{path}.items", _key_to_path)


def _projected_fields(projection: Object, path: Path, volume: Path) -> Errors:  # noqa: ARG001
    for item in projection.get("items") or ():
        yield from _downward_file(item, path)


def _projected_token(projection: Object, path: Path, volume: Path) -> Errors:
    seconds = projection.get("expirationSeconds", 0)
    if seconds < 600:
        yield field.invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > 2**32:
        rule = "may not specify a duration larger than 2^32 seconds"
        yield field.invalid(f"{path}.expirationSeconds", seconds, rule)
    if not projection.get("path"):
        yield field.required(f"{volume}.path")
    else:
        yield from checks.not_reserved(projection["path"], f"{volume}.path")


def _projected_bundle(projection: Object, path: Path, volume: Path) -> Errors:  # noqa: ARG001
    name, signer, selector = projection.get("name"), projection.get("signerName"), projection.get("labelSelector")
    if name is not None and signer is not None:
        value = checks.struct_json("core/v1.ClusterTrustBundleProjection", projection)
        yield field.invalid(path, value, "only one of name and signerName may be used")
    elif name is not None:
        if not name:
            yield field.required(f"{path}.name", "must be a valid object name")
        if selector is not None:
            value = checks.struct_json("meta/v1.LabelSelector", selector)
            yield field.invalid(f"{path}.labelSelector", value, "labelSelector must be unset if name is specified")
    elif signer is not None:
        if not signer:
            yield field.required(f"{path}.signerName", "must be a valid signer name")
        yield from label_selector_errors(selector or {}, f"{path}.labelSelector")
    else:
        yield field.required(path, "either name or signerName must be specified")
    if not projection.get("path"):
        yield field.required(f"{path}.path")
    yield from checks.not_reserved(projection.get("path", ""), f"{path}.path")


_PROJECTIONS: Final[dict[str, Callable[[Object, Path, Path], Errors]]] = {
    "secret": _projected_keys,
    "configMap": _projected_keys,
    "downwardAPI": _projected_fields,
    "serviceAccountToken": _projected_token,
    "clusterTrustBundle": _projected_bundle,
}
_SOURCES: Final[dict[str, Callable[[Any, Path], Errors]]] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "secret": _keys("secretName"),
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _flocker,
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _cinder,
    "cephfs": _needs("monitors"),
    "quobyte": _quobyte,
    "downwardAPI": _downward,
    "fc": _fibre_channel,
    "flexVolume": _flex,
    "configMap": _keys("name"),
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _storage_os,
    "projected": _projected,
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
"""The checks of sources in upstream's order, in which only the first one that is given is checked."""
_ORDER: Final = tuple(_SOURCES)
_MISNAMED: Final = {"gcePersistentDisk": "persistentDisk"}
_MISNAMED_AGAIN: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
