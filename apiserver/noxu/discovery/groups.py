"""Discovery documents: groups, versions and resources (upstream's endpoints/discovery, and its aggregated form).

The first request makes the documents from the served resources; they are cached until these change.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources
from noxu.values import Object

TERMINATING_VERBS: Final = ("delete", "deletecollection", "get", "list", "watch")
_UPDATED: Final = ("get", "patch", "update")
_SCALE: Final = {"group": "autoscaling", "version": "v1", "kind": "Scale"}


class _Subresource(NamedTuple):
    """`kind` is the kind of its bodies if that is not the resource's."""

    name: str
    verbs: tuple[str, ...]
    kind: Object | None = None


def _subresources(resource: Resource) -> Iterator[_Subresource]:
    if resource.table is None:
        for name, kind in (("status", None), ("scale", _SCALE)):
            if name in resource.subresources:
                yield _Subresource(name, _UPDATED, kind)
        return
    for part in resource.table.subresources:
        kind = {"group": part.body_group, "version": part.body_version, "kind": part.body.name} if part.body else None
        yield _Subresource(part.name, part.verbs, kind)


def storage_version_hash(resource: Resource) -> str:
    """A hash of group, storage version and kind: versions with equal hashes are stored in the same form."""
    storage = resource.versions.storage
    text = f"{storage.group}/{storage.version}/{storage.kind}"
    return b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _verbs(resource: Resource) -> list[str]:
    return list(TERMINATING_VERBS if resource.versions.deletes_instances else resource.verbs)


def api_versions(address: str) -> Object:
    """`/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": _addresses(address)}


def group_list(served_resources: ServedResources, address: str) -> Object:
    """`/apis`."""
    groups = [_group(served_resources, group, address) for group in served_resources.groups if group]
    return {"kind": "APIGroupList", "groups": groups}


def group(served_resources: ServedResources, name: str) -> Object | None:
    """`/apis/GROUP`; None for an unknown group."""
    if not name or name not in served_resources.groups:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(served_resources, name, "")}


def _group(served_resources: ServedResources, name: str, address: str) -> Object:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in served_resources.groups[name]]
    found: Object = {"name": name, "versions": versions, "preferredVersion": versions[0]}
    return {**found, "serverAddressByClientCIDRs": _addresses(address)} if address else found


def _addresses(address: str) -> list[Object]:
    return [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]


def resource_list(served_resources: ServedResources, group_name: str, version: str) -> Object | None:
    """`/api/VERSION` and `/apis/GROUP/VERSION`; None for an unknown version."""
    resources = served_resources.in_version(group_name, version)
    if not resources:
        return None
    entries = [entry for resource in resources for entry in _entries(resource)]
    group_version = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}


def _entries(resource: Resource) -> list[Object]:
    entry: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.is_stored:
        entry["storageVersionHash"] = storage_version_hash(resource)
    return [entry, *(_subresource_entry(resource, part) for part in _subresources(resource))]


def _subresource_entry(resource: Resource, part: _Subresource) -> Object:
    body = part.kind or {"kind": resource.kind}
    if (body.get("group"), body.get("version")) == (resource.group, resource.version):
        body = {"kind": body["kind"]}
    return {
        "name": f"{resource.plural}/{part.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        **body,
        "verbs": list(part.verbs),
    }


# -- aggregated discovery ---------------------------------------------------------------------------------------------


def aggregated(served_resources: ServedResources, *, core: bool) -> Object:
    """All groups in one document: the core group for `/api`, the others for `/apis`."""
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {
                    "version": version,
                    "resources": [
                        _aggregated_entry(resource) for resource in served_resources.in_version(name, version)
                    ],
                    "freshness": "Current",
                }
                for version in versions
            ],
        }
        for name, versions in served_resources.groups.items()
        if (not name) is core
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_entry(resource: Resource) -> Object:
    response_kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    entry: Object = {
        "resource": resource.plural,
        "responseKind": response_kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    subresources = [
        {"subresource": part.name, "responseKind": part.kind or response_kind, "verbs": list(part.verbs)}
        for part in _subresources(resource)
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry


def etag(document: Object) -> str:
    """A hash of the document, the same for every encoding."""
    return f'"{hashlib.sha512(codec.encode(document, sort_keys=False)).hexdigest().upper()}"'
