"""How custom resources behave: the object pipeline under a structural schema."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from apiserver.api import field, meta
from apiserver.api.field import FieldError, Path
from apiserver.api.gotext import plain
from apiserver.api.structs import Struct
from apiserver.api.types import Json, Object
from apiserver.api.values import copy, equal
from apiserver.crd.versions import deprecation_warning, storage_version
from apiserver.registry import scale
from apiserver.registry.patience import Impatience, Patience, TakesLong
from apiserver.registry.pipeline import Draft
from apiserver.registry.resource import Resource, ScalePaths, Versions
from apiserver.schema import embedded, listtype, ratcheting, validation
from apiserver.schema.defaulting import default, drop_nulls
from apiserver.schema.pruning import prune
from apiserver.schema.structural import Structural

if TYPE_CHECKING:
    from apiserver.cel.validation import Validator

MAX_REPLICAS: Final = 2**31 - 1


class CustomResources:
    """The behaviour that all custom resources share; what differs is in their `Resource`."""

    unconditional_update = False
    create_on_update = False
    sorted_keys = True
    struct: Struct | None = None

    def accept(self, resource: Resource, value: Object, *, stored: bool = False) -> bool:
        fast, metadata = resource.compiled, value.get("metadata")
        if fast is None or type(metadata) is not dict or not _is_of(value, resource):
            return False
        try:
            coerced, unknown = meta.coerce(metadata)
        except ValueError:
            return False
        if unknown or (stored and not _has_generation(coerced)):
            return False
        value["metadata"] = coerced
        return fast.accepts(value)

    def decode(self, resource: Resource, value: Object) -> tuple[Object, list[str]]:
        return value, shape(resource, value, drop_malformed=False)

    def read(self, resource: Resource, value: Object) -> None:
        shape(resource, value, drop_malformed=True)
        metadata = value.get("metadata")
        if isinstance(metadata, dict) and not _has_generation(metadata):
            metadata["generation"] = 1

    def prune(self, resource: Resource, value: Object) -> Object:
        with suppress(ValueError):
            value["metadata"], _ = meta.coerce(value.get("metadata"))
        if _is_of(value, resource):
            prune(value, resource.schema, root=True)
            if resource.has_embedded:
                with suppress(ValueError):
                    embedded.coerce(value, resource.schema, drop_malformed=False)
        return value

    def convert(self, resource: Resource, value: Object) -> Object:
        """Strategy None: the apiVersion changes, and what the other version does not describe goes."""
        assert resource.versions.converter is None, "somebody has to be asked (registry.conversion)"
        value["apiVersion"] = resource.api_version
        self.read(resource, value)
        return value

    def default(self, resource: Resource, value: Object) -> None:
        default(value, resource.schema)

    def written(self, value: Object) -> Object:
        return value

    def prepare(self, draft: Draft) -> None:
        new, old, resource = draft.new, draft.old, draft.resource
        if draft.subresource == "status" and old is not None:
            draft.new = _only_status(new, old)
            return
        if resource.has_status:
            if old is not None and "status" in old:
                new["status"] = copy(old["status"])
            else:
                new.pop("status", None)
        if old is not None and not equal(_without_metadata(new), _without_metadata(old)):
            draft.metadata["generation"] = (old["metadata"].get("generation") or 0) + 1

    def validate(self, draft: Draft) -> None:
        validate(draft)
        if not draft.errors and not draft.subresource:
            draft.warnings += meta.finalizer_warnings(draft.metadata, draft.old["metadata"] if draft.old else None)

    def reset_fields(self, resource: Resource, subresource: str) -> tuple[str, ...]:
        if subresource == "status":
            return ("metadata", "spec")
        return ("status",) if resource.has_status else ()

    def selectable(self, resource: Resource, value: Object) -> dict[str, str]:
        return {path: _text_at(value, path) for path in resource.selectable_fields}

    def unknown_field_label(self, name: str) -> str:
        return f"field label not supported: {name}"


CUSTOM: Final = CustomResources()


def _is_of(value: Object, resource: Resource) -> bool:
    return value.get("kind") == resource.kind and value.get("apiVersion") == resource.api_version


def _is_of_group(value: Object, resource: Resource) -> bool:
    api_version = value.get("apiVersion")
    return isinstance(api_version, str) and api_version.rpartition("/")[0] == resource.group


def _has_generation(metadata: Object) -> bool:
    """Otherwise it was written before generations were counted."""
    return bool(metadata.get("generation"))


def shape(resource: Resource, value: Object, *, drop_malformed: bool) -> list[str]:
    """Prune, drop nulls, type metadata; in place. The paths of what went: metadata's first, embedded resources' last.

    An object of another kind keeps its body: there is no schema for it. One of another version is pruned by that one's,
    to the bone if there is no such version. Raises ValueError.
    """
    unknown: list[str] = []
    metadata = value.get("metadata")
    if metadata is not None:
        value["metadata"], unknown = meta.coerce(metadata, drop_malformed=drop_malformed)
    if value.get("kind") != resource.kind or not _is_of_group(value, resource):
        return unknown
    if value["apiVersion"] != resource.api_version:
        other = resource.versions.find(value["apiVersion"])
        return unknown + prune(value, other.schema if other else None, root=True)
    schema = resource.schema
    unknown += prune(value, schema, root=True)
    drop_nulls(value, schema)
    if resource.has_embedded:
        unknown += embedded.coerce(value, schema, drop_malformed=drop_malformed)
    return unknown


def _only_status(new: Object, old: Object) -> Object:
    """An update of /status changes the status, and who manages which fields."""
    value: Object = copy(old)
    value.pop("status", None)
    if "status" in new:
        value["status"] = new["status"]
    value["metadata"].pop("managedFields", None)
    if "managedFields" in new["metadata"]:
        value["metadata"]["managedFields"] = new["metadata"]["managedFields"]
    return value


def _without_metadata(value: Object) -> Object:
    return {name: item for name, item in value.items() if name != "metadata"}


def _text_at(value: Json, path: Path) -> str:
    """What a field selector compares: the text of a scalar, "" if it is not there."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else plain(value)


# -- validation -------------------------------------------------------------------------------------------------------


def validate(draft: Draft) -> None:
    """All that can be wrong with an object, in upstream's order: type, metadata, schema, scale, embedded, lists, rules.

    Raises TakesLong.
    """
    new, old, resource = draft.new, draft.old, draft.resource
    if draft.hurried and resource.awaits_rules:
        raise TakesLong
    schema = resource.schema
    status = draft.subresource == "status"
    generic: list[FieldError] = []  # the checks of every update come first
    if old is None:
        of_metadata = meta.validate_object_meta(draft.metadata, namespaced=resource.namespaced)
    else:
        generic, of_metadata = meta.validate_update(draft.metadata, old["metadata"], namespaced=resource.namespaced)
    clean = draft.clean and _stays_clean(draft)
    found = _type_errors(resource, new) or of_metadata + _content_errors(draft, status=status, clean=clean)
    if schema is not None:
        if resource.has_embedded and not status and not clean:
            found += embedded.validate(new, schema)
        # KEP-4008: lists that were wrong may stay wrong
        if not clean and (old is None or not listtype.has_errors(old, schema)):
            found += listtype.validate(new, schema)
        if resource.rules is not None:
            _judge_by_rules(draft, resource.rules, schema, found)
    draft.errors += generic + found


def _stays_clean(draft: Draft) -> bool:
    """Whether the schema is still content: metadata are complete now, and the status may have become the old one."""
    new, resource = draft.new, draft.resource
    fast = resource.compiled
    if fast is None or draft.subresource:
        return draft.subresource == "status"  # which is all that is judged, and as it came
    if resource.has_status and "status" in new:
        status = copy(new["status"])
        if not (fast.accepts_status(status) and equal(status, new["status"])):  # or a default is missing
            return False
    return fast.is_complete(new)


def _content_errors(draft: Draft, *, status: bool, clean: bool) -> list[FieldError]:
    """What is wrong with the object beside its type and its metadata."""
    new, old, resource = draft.new, draft.old, draft.resource
    found: list[FieldError] = []
    if resource.schema is not None and not clean:
        found += _schema_errors(new, old, resource.schema, status=status, ratchet=draft.features.ratcheting)
    if resource.scale is not None:
        found += _scale_errors(new, resource.scale, spec=not status)
    return found


_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


def _judge_by_rules(draft: Draft, rules: Validator, schema: Structural, found: list[FieldError]) -> None:
    """x-kubernetes-validations, unless what was found makes them meaningless."""
    if validation.blocks_rules(found):
        found.append(field.invalid("<nil>", None, _NOT_CHECKED))
        return
    correlation = None
    if draft.old is not None and draft.features.ratcheting:
        correlation = ratcheting.Correlated(draft.new, draft.old, schema)
    patience = Impatience() if draft.hurried else Patience()
    verdict = rules.validate(draft.new, draft.old, correlation=correlation, patience=patience)
    found += verdict.errors
    draft.warnings += verdict.warnings
    draft.failed_rules = verdict.failed


def _type_errors(resource: Resource, value: Object) -> list[FieldError]:
    found = []
    for name, expected in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        if value.get(name) != expected:
            found.append(field.invalid(name, value.get(name, ""), f"must be {expected}"))
    return found


def _schema_errors(
    new: Object, old: Object | None, schema: Structural, *, status: bool, ratchet: bool
) -> list[FieldError]:
    if old is None:
        return validation.validate(new, schema)
    if not status:
        return ratcheting.validate_update(new, old, schema, ratcheting=ratchet)
    inner = schema.properties.get("status")
    if "status" not in new or inner is None:
        return []
    return ratcheting.validate_update(new["status"], old.get("status"), inner, path="status", ratcheting=ratchet)


def _scale_errors(value: Object, paths: ScalePaths, *, spec: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for path in (paths.spec_replicas, paths.status_replicas) if spec else (paths.status_replicas,):
        try:
            replicas = scale.integer_at(value, path)
        except ValueError as error:
            found.append(field.invalid(path, 0, str(error)))
            continue
        if replicas is not None and replicas < 0:
            found.append(field.invalid(path, replicas, "should be a non-negative integer"))
        elif replicas is not None and replicas > MAX_REPLICAS:
            found.append(field.invalid(path, replicas, f"should be less than or equal to {MAX_REPLICAS}"))
    if paths.label_selector:
        try:
            scale.text_at(value, paths.label_selector)
        except ValueError as error:
            found.append(field.invalid(paths.label_selector, "", str(error)))
    return found


# -- from a definition ------------------------------------------------------------------------------------------------


def versions_of(crd: Object, since: int) -> Versions:
    """The resources that an established definition serves, from the names it was given."""
    spec = crd["spec"]
    resources = {version["name"]: _resource(crd, version) for version in spec["versions"]}
    return Versions(list(resources.values()), resources[storage_version(crd)], since)


def _resource(crd: Object, version: Object) -> Resource:
    spec, names_ = crd["spec"], crd["status"]["acceptedNames"]
    subresources = version.get("subresources") or {}
    paths = subresources.get("scale")
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names_["plural"],
        singular=names_.get("singular") or names_["kind"].lower(),
        kind=names_["kind"],
        list_kind=names_.get("listKind") or f"{names_['kind']}List",
        namespaced=spec["scope"] == "Namespaced",
        behaviour=CUSTOM,
        short_names=names_.get("shortNames") or (),
        categories=names_.get("categories") or (),
        subresources=frozenset(name for name in ("status", "scale") if subresources.get(name) is not None),
        scale=ScalePaths(paths["specReplicasPath"], paths["statusReplicasPath"], paths.get("labelSelectorPath") or "")
        if paths
        else None,
        served=version.get("served", False),
        deprecation_text=deprecation_warning(crd, version["name"]),
        columns=version.get("additionalPrinterColumns"),
        selectable_fields=tuple(one["jsonPath"].removeprefix(".") for one in version.get("selectableFields") or ()),
        raw_schema=(version.get("schema") or {}).get("openAPIV3Schema"),
    )
