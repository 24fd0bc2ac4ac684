"""The behaviour of custom resources: decoding, reading and writing, by the structural schema of their version."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from noxu.api import meta
from noxu.api.errors import TOO_LARGE, plain_error
from noxu.api.field import Path
from noxu.api.meta_shape import is_coerced
from noxu.crd.types import deprecation_warning, storage_version
from noxu.go.structs import Struct
from noxu.go.text import plain
from noxu.registry.resource import CUSTOM, Resource, ScalePaths, Versions
from noxu.schema import embedded
from noxu.schema.completion import preserving
from noxu.schema.defaulting import TooMuchAdded, default, drop_nulls
from noxu.schema.pruning import prune
from noxu.values import Object, nested_field


class CustomResources:
    """The behaviour of all custom resources. Their schemas and names are in `Resource`."""

    unconditional_update = False
    create_on_update = False
    sorted_keys = True
    struct: Struct | None = None

    def accept(self, resource: Resource, value: Object, *, stored: bool = False, old: Object | None = None) -> bool:
        fast, metadata = resource.compiled, value.get("metadata")
        if fast is None or type(metadata) is not dict or not _is_of(value, resource):
            return False
        if old is not None and is_coerced(metadata, old["metadata"]):
            return fast.accepts(value, old)
        try:
            coerced, unknown = meta.coerce(metadata)
        except ValueError:
            return False
        if unknown or (stored and not _has_generation(coerced)):
            return False
        value["metadata"] = coerced
        return fast.accepts(value, old)

    def decode(self, resource: Resource, value: Object) -> tuple[Object, list[str]]:
        if "apiVersion" in value and value["apiVersion"] is None:
            raise ValueError(".apiVersion accessor error: <nil> is of the type <nil>, expected string")
        return value, _coerce_metadata(value, drop_malformed=False)

    def prune(self, resource: Resource, value: Object) -> list[str]:
        return _shape(resource, value, drop_malformed=False)

    def read(self, resource: Resource, value: Object) -> None:
        shape_stored(resource, value)
        metadata = value.get("metadata")
        if isinstance(metadata, dict) and not _has_generation(metadata):
            metadata["generation"] = 1

    def prune_mutated(self, resource: Resource, value: Object) -> Object:
        with suppress(ValueError):
            value["metadata"], _ = meta.coerce(value.get("metadata"))
        if _is_of(value, resource):
            prune(value, resource.schema, root=True)
            if resource.has_embedded:
                with suppress(ValueError):
                    embedded.coerce(value, resource.schema, drop_malformed=False)
        return value

    def convert(self, resource: Resource, value: Object) -> Object:
        """Conversion strategy None: change the apiVersion, and prune by the schema of this version."""
        assert resource.versions.converter is None, "a webhook converts this resource (registry.conversion)"
        value["apiVersion"] = resource.api_version
        self.read(resource, value)
        return value

    def default(self, resource: Resource, value: Object) -> None:
        try:
            default(value, resource.schema)
        except TooMuchAdded:
            raise plain_error(TOO_LARGE) from None

    def written(self, value: Object) -> Object:
        return value

    def reset_fields(self, resource: Resource, subresource: str) -> tuple[str, ...]:
        if subresource == "status":
            return ("metadata", "spec")
        return ("status",) if resource.has_status else ()

    def selectable(self, resource: Resource, value: Object) -> dict[str, str]:
        return {path: _text_at(value, path) for path in resource.selectable_fields}

    def unknown_field_label(self, name: str) -> str:
        return f"field label not supported: {name}"


BEHAVIOUR: Final = CustomResources()


def _is_of(value: Object, resource: Resource) -> bool:
    return value.get("kind") == resource.kind and value.get("apiVersion") == resource.api_version


def _is_of_group(value: Object, resource: Resource) -> bool:
    api_version = value.get("apiVersion")
    return isinstance(api_version, str) and api_version.rpartition("/")[0] == resource.group


def _has_generation(metadata: Object) -> bool:
    """False for an object that was written before generations were counted."""
    return bool(metadata.get("generation"))


def shape_stored(resource: Resource, value: Object) -> list[str]:
    """Decode the metadata of a stored object and prune the object, in place; the paths of the removed fields.

    Malformed metadata is dropped, so that every stored object can be read.
    """
    return _coerce_metadata(value, drop_malformed=True) + _shape(resource, value, drop_malformed=True)


def _coerce_metadata(value: Object, *, drop_malformed: bool) -> list[str]:
    """Decode the metadata, in place; the paths of unknown fields. Raises ValueError."""
    metadata = value.get("metadata")
    if metadata is None:
        return []
    value["metadata"], unknown = meta.coerce(metadata, drop_malformed=drop_malformed)
    return unknown


def _shape(resource: Resource, value: Object, *, drop_malformed: bool) -> list[str]:
    """Prune, drop nulls and decode embedded resources, in place; the removed paths, those in embedded resources last.

    An object of another kind is not pruned. An object of another version is pruned by the schema of that version; if the
    version does not exist, only its identity remains. Raises ValueError.
    """
    if value.get("kind") != resource.kind or not _is_of_group(value, resource):
        return []
    if value["apiVersion"] != resource.api_version:
        other = resource.versions.find(value["apiVersion"])
        return prune(value, other.schema if other else None, root=True)
    schema = resource.schema
    unknown = prune(value, schema, root=True)
    drop_nulls(value, schema)
    if resource.has_embedded:
        unknown += embedded.coerce(value, schema, drop_malformed=drop_malformed)
    return unknown


def _text_at(value: Object, path: Path) -> str:
    """The text of the scalar at a path, "" if it is absent."""
    found = nested_field(value, path)
    return "" if found is None else plain(found)


# -- from a definition ------------------------------------------------------------------------------------------------


def versions_of(crd: Object, since: int, *, field_selectors: bool = True) -> Versions:
    """The resources of an established definition, with its accepted names. Without `field_selectors` no field is selectable."""
    spec = crd["spec"]
    resources = {
        version["name"]: _resource(crd, version if field_selectors else {**version, "selectableFields": None})
        for version in spec["versions"]
    }
    return Versions(list(resources.values()), resources[storage_version(crd)], since)


def _resource(crd: Object, version: Object) -> Resource:
    spec, names = crd["spec"], crd["status"]["acceptedNames"]
    subresources = version.get("subresources") or {}
    paths = subresources.get("scale")
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if spec.get("preserveUnknownFields"):
        schema = preserving(schema)
    return Resource(
        type=CUSTOM,
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        kind=names["kind"],
        list_kind=names.get("listKind") or f"{names['kind']}List",
        namespaced=spec["scope"] == "Namespaced",
        behaviour=BEHAVIOUR,
        short_names=names.get("shortNames") or (),
        categories=names.get("categories") or (),
        subresources=frozenset(name for name in ("status", "scale") if subresources.get(name) is not None),
        scale=ScalePaths(paths["specReplicasPath"], paths["statusReplicasPath"], paths.get("labelSelectorPath") or "")
        if paths
        else None,
        served=version.get("served", False),
        deprecation_text=deprecation_warning(crd, version["name"]),
        columns=version.get("additionalPrinterColumns"),
        selectable_fields=tuple(field["jsonPath"].removeprefix(".") for field in version.get("selectableFields") or ()),
        raw_schema=schema,
    )
