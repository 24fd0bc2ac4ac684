"""Embedded resources (x-kubernetes-embedded-resource): apiVersion, kind and metadata are treated as in a whole object.

`coerce` brings metadata into the form of ObjectMeta; `validate` checks apiVersion, kind and metadata. Both follow the
schema to all embedded resources; the root of an object is handled by its caller.
"""

from __future__ import annotations

from noxu.api import field, meta, names
from noxu.api.field import FieldError, Path
from noxu.schema.structural import Structural, of_schema
from noxu.values import Json, Object


def has_embedded(schema: Structural | None) -> bool:
    """Whether a schema declares an embedded resource; few do."""
    return schema is not None and _has_embedded(schema)


@of_schema
def _has_embedded(schema: Structural) -> bool:
    below = (*schema.properties.values(), schema.values, schema.items)
    return schema.embedded_resource or any(map(has_embedded, below))


# -- coerce -----------------------------------------------------------------------------------------------------------


class MalformedMetadata(ValueError):
    """An apiVersion, kind or metadata of the wrong type; the message is the field error's."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


def coerce(value: Json, schema: Structural | None, path: Path = "", *, drop_malformed: bool) -> list[str]:
    """Coerce embedded metadata, in place; the paths of unknown fields that were dropped, sorted.

    Malformed fields raise Malformed, or with `drop_malformed` (objects read from storage) are dropped.
    """
    return sorted(_coerce(value, schema, path, drop_malformed))


def _coerce(value: Json, schema: Structural | None, path: Path, drop: bool) -> list[str]:
    if schema is None:
        return []
    unknown: list[str] = []
    if isinstance(value, dict):
        if schema.embedded_resource:
            unknown += _coerce_resource(value, path, drop)
        for name, item in value.items():
            item_schema = schema.properties.get(name)
            if item_schema is not None:
                unknown += _coerce(item, item_schema, field.child(path, name), drop)
            elif schema.values is not None:
                unknown += _coerce(item, schema.values, field.key(path, name), drop)
    elif isinstance(value, list) and schema.items is not None:
        for n, item in enumerate(value):
            unknown += _coerce(item, schema.items, field.index(path, n), drop)
    return unknown


def _coerce_resource(value: Object, path: Path, drop: bool) -> list[str]:
    for name in ("apiVersion", "kind"):
        if name in value and not isinstance(value[name], str):
            if not drop:
                raise MalformedMetadata(field.invalid(field.child(path, name), value[name], "must be a string"))
            del value[name]
    if "metadata" not in value:
        return []
    where = field.child(path, "metadata")
    try:
        value["metadata"], unknown = meta.coerce(value["metadata"], path=where, drop_malformed=drop)
    except ValueError as error:
        if not drop:
            raise MalformedMetadata(field.invalid(where, value["metadata"], str(error))) from None
        return []
    return unknown


# -- validate ---------------------------------------------------------------------------------------------------------


def validate(value: Json, schema: Structural | None, path: Path = "") -> list[FieldError]:
    """The errors in embedded resources."""
    if schema is None:
        return []
    errors: list[FieldError] = []
    if isinstance(value, dict):
        if schema.embedded_resource:
            errors += _resource_errors(value, path)
        for name, item in value.items():
            item_schema = schema.properties.get(name)
            if item_schema is not None:
                errors += validate(item, item_schema, field.child(path, name))
            elif schema.values is not None:
                errors += validate(item, schema.values, field.key(path, name))
    elif isinstance(value, list) and schema.items is not None:
        for n, item in enumerate(value):
            errors += validate(item, schema.items, field.index(path, n))
    return errors


def is_clean(resource: Object) -> bool:
    """Whether an embedded resource needs no coercion and has no errors; resources in it are not checked."""
    try:
        metadata = meta.coerce(resource.get("metadata", {})).metadata
    except ValueError:
        return False
    return metadata is resource.get("metadata", metadata) and not _resource_errors(resource, "")


def _resource_errors(value: Object, path: Path) -> list[FieldError]:
    errors = [field.required(field.child(path, name)) for name in ("apiVersion", "kind") if name not in value]
    for name, check in (("apiVersion", _api_version_error), ("kind", _kind_error)):
        if name in value:
            item = value[name]
            where = field.child(path, name)
            if not isinstance(item, str):
                errors.append(field.invalid(where, item, "must be a string"))
            elif error := (check(item) if item else "must not be empty"):
                errors.append(field.invalid(where, item, error))
    if "metadata" in value:
        errors += _metadata_errors(value["metadata"], field.child(path, "metadata"))
    return errors


def _api_version_error(api_version: str) -> str:
    return f"unexpected GroupVersion string: {api_version}" if api_version.count("/") > 1 else ""


def _kind_error(kind: str) -> str:
    messages = names.dns1035_label(kind.lower())
    return f"may have mixed case, but should otherwise match: {','.join(messages)}" if messages else ""


def _metadata_errors(metadata: Json, path: Path) -> list[FieldError]:
    try:
        coerced, _ = meta.coerce(metadata, drop_malformed=False)
    except ValueError as error:
        return [field.invalid(path, metadata, str(error))]
    coerced = (
        coerced if coerced.get("name") else {**coerced, "name": "fakename"}
    )  # upstream does not require a name here
    return meta.validate_object_meta(
        coerced, namespaced=bool(coerced.get("namespace")), name_rule=names.path_segment_name, path=path
    )
