"""The kinds that an OpenAPI document describes, as definitions, so that the API of another server is served without it.

An aggregated API such as metrics.k8s.io has no CustomResourceDefinition, but its server publishes OpenAPI documents
(`kubectl get --raw /openapi/v3/apis/metrics.k8s.io/v1beta1`). A path with the action "list" names a resource, its group,
version and kind, and the schema of its objects:

    /apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods   get: x-kubernetes-action list
                                                               x-kubernetes-group-version-kind PodMetrics

Both versions of OpenAPI are read. Schemas are completed from their references; any value is allowed where a schema
refers to itself or has no type. All verbs are served, so that tests can create the objects that a server would compute.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from noxu.crd.types import API_VERSION
from noxu.values import Json, Object

MAX_NODES: Final = 100_000
"""Nodes of a schema whose references are written out."""
_COLLECTION: Final = re.compile(r"/apis/([^/]+)/([^/]+)/(namespaces/\{namespace\}/)?([^/{}]+)")
_ANY: Final[Object] = {"x-kubernetes-preserve-unknown-fields": True}
_KNOWN: Final[dict[str, Object]] = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", **_ANY},
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": {"type": "object", **_ANY},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object", **_ANY},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"x-kubernetes-int-or-string": True},
}
"""Types that custom resources describe in another way."""
_KEPT: Final = frozenset(
    {"description", "type", "format", "enum", "required", "minimum", "maximum", "minLength", "maxLength", "pattern",
     "minItems", "maxItems", "uniqueItems", "nullable", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
     "x-kubernetes-map-type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"}
)  # fmt: skip


class _ResourceVersion(NamedTuple):
    """A resource in one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    schema: Object
    subresources: Object


def definitions(documents: Iterable[Json]) -> list[Object]:
    """Definitions of all resources in the documents, with accepted names. Raises ValueError with the reason.

    A resource with several versions is stored in the first one.
    """
    by_name: dict[tuple[str, str], list[_ResourceVersion]] = {}
    for document in documents:
        for resource in _resources(document):
            by_name.setdefault((resource.group, resource.plural), []).append(resource)
    return [_definition(versions) for versions in by_name.values()]


def _definition(resource_versions: list[_ResourceVersion]) -> Object:
    first = resource_versions[0]
    names = {
        "plural": first.plural,
        "singular": first.kind.lower(),
        "kind": first.kind,
        "listKind": f"{first.kind}List",
    }
    versions = [
        {
            "name": version.version,
            "served": True,
            "storage": version is first,
            "subresources": version.subresources,
            "schema": {"openAPIV3Schema": version.schema},
        }
        for version in resource_versions
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{first.plural}.{first.group}"},
        "spec": {
            "group": first.group,
            "scope": "Namespaced" if first.namespaced else "Cluster",
            "names": names,
            "versions": versions,
        },
        "status": {"acceptedNames": names},
    }


def _resources(document: Json) -> Iterator[_ResourceVersion]:
    components = document.get("components") if isinstance(document, dict) else None
    schemas = isinstance(document, dict) and (
        document.get("definitions") or (isinstance(components, dict) and components.get("schemas"))
    )
    paths = document.get("paths") if isinstance(document, dict) else None
    if not isinstance(schemas, dict) or not isinstance(paths, dict):
        raise ValueError("this is not an OpenAPI document with paths and schemas of an API group")
    any_found = False
    for path, item in paths.items():
        place = _COLLECTION.fullmatch(path)
        get = item.get("get") if isinstance(item, dict) else None
        if place is None or not isinstance(get, dict) or get.get("x-kubernetes-action") != "list":
            continue
        group, version, namespace, plural = place.groups()
        if not namespace and f"/apis/{group}/{version}/namespaces/{{namespace}}/{plural}" in paths:
            continue  # the objects of all namespaces
        kind = (get.get("x-kubernetes-group-version-kind") or {}).get("kind")
        schema = _schema_of(schemas, group, version, kind)
        if not isinstance(kind, str) or schema is None:
            raise ValueError(f"{path} has no schema with the group, version and kind of its objects")
        object_path = f"{path}/{{name}}"
        any_found = True
        yield _ResourceVersion(
            group,
            version,
            plural,
            kind,
            bool(namespace),
            _Expansion(schemas).root(schema),
            {"status": {}} if f"{object_path}/status" in paths else {},
        )
    if not any_found:
        raise ValueError("no path of this document lists the objects of an API group")


def _schema_of(schemas: Object, group: str, version: str, kind: Json) -> Object | None:
    wanted = {"group": group, "version": version, "kind": kind}
    for schema in schemas.values():
        if isinstance(schema, dict) and wanted in (schema.get("x-kubernetes-group-version-kind") or ()):
            return schema
    return None


class _Expansion:
    """Writes out the references of one schema; `open_` are those that are being written out."""

    def __init__(self, schemas: Object) -> None:
        self.schemas = schemas
        self.nodes = 0
        self.open_: list[str] = []

    def root(self, schema: Object) -> Object:
        expanded = self.expand(schema)
        properties = expanded.setdefault("properties", {})
        properties["metadata"] = {"type": "object"}
        for name in ("apiVersion", "kind"):
            properties[name] = {"type": "string"}
        expanded["type"] = "object"
        return expanded

    def expand(self, schema: Json) -> Object:
        """Raises ValueError for a schema that becomes too large."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise ValueError(f"a schema has more than {MAX_NODES} nodes when its references are written out")
        if not isinstance(schema, dict):
            return dict(_ANY)
        reference = _reference(schema)
        if reference is not None:
            return self._follow(reference)
        expanded = {name: value for name, value in schema.items() if name in _KEPT}
        if schema.get("properties"):
            expanded["properties"] = {name: self.expand(inner) for name, inner in schema["properties"].items()}
        elif "additionalProperties" in schema and schema["additionalProperties"] is not False:
            expanded["additionalProperties"] = self.expand(schema["additionalProperties"])
        if "items" in schema:
            expanded["items"] = self.expand(schema["items"])
        if "type" not in expanded and "x-kubernetes-int-or-string" not in expanded:
            return expanded | _ANY
        if expanded.get("type") == "object" and not {"properties", "additionalProperties"} & expanded.keys():
            return expanded | _ANY
        return expanded

    def _follow(self, name: str) -> Object:
        if name in _KNOWN:
            return dict(_KNOWN[name])
        if name in self.open_ or name not in self.schemas:
            return dict(_ANY)
        self.open_.append(name)
        expanded = self.expand(self.schemas[name])
        self.open_.pop()
        return expanded


def _reference(schema: Object) -> str | None:
    """The name of the schema that `$ref`, or the only item of `allOf`, refers to."""
    of = schema.get("allOf")
    target = schema.get("$ref") or (of[0].get("$ref") if isinstance(of, list) and len(of) == 1 else None)
    return target.rpartition("/")[2] if isinstance(target, str) else None
