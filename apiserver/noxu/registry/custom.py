"""Custom resources: how they are decoded, read and written, by the structural schema of their version, and their strategy.

The strategy says what a write may change, and what it must satisfy (apiextensions-apiserver's registry strategy).

`stored_schemas` finds the schemas in the stored bytes of a definition, of which they are nearly all. It encodes the other
parts of the spec again; the schemas are what lies between. To encode a schema and to search for it would be slower.

    spec   {"group":…,"versions":[{"name":"v1",…{"openAPIV3Schema":{…}}},{"name":"v2",…{"openAPIV3Schema":{…}}}],…}
    parts  ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~     ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~     ~~~~~

A part between two schemas may occur inside of one, as a default or an example; then the schemas are not found.
"""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Final

from noxu.api import codec, field, meta
from noxu.api.errors import TOO_LARGE, Qualified, internal_error, plain_error
from noxu.api.field import FieldError, Path, Verbatim
from noxu.api.meta import is_coerced, parse_api_version
from noxu.crd import types
from noxu.crd.types import deprecation_warning, storage_version
from noxu.go import unstructured
from noxu.go.structs import Struct
from noxu.go.text import compact_json, plain
from noxu.registry import scale
from noxu.registry.draft import CLEAN, EXACT, UNKNOWN, VALID, Action, Draft, Form
from noxu.registry.resource import CUSTOM, Resource, ScalePaths, Versions
from noxu.registry.stored_object import is_valid
from noxu.registry.turns import LoopBudget, LoopBudgetExceeded, RuleBudget, in_loop
from noxu.schema import embedded, listtype, validation
from noxu.schema.completion import preserving
from noxu.schema.correlation import Correlated
from noxu.schema.defaulting import TooMuchAdded, default, drop_nulls
from noxu.schema.pruning import prune
from noxu.schema.structural import Structural
from noxu.values import Object, copy, equal, nested_field

if TYPE_CHECKING:
    from noxu.cel import RuleValidator


class CustomCodec:
    """The codec of all custom resources. Their schemas and names are in `Resource`."""

    unconditional_update = False
    create_on_update = False
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
        value["metadata"] = coerced  # in place: `fast` reads the object with its final metadata
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
            metadata["generation"] = 1  # in place: what is read is never without one

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
        value["apiVersion"] = resource.api_version  # in place: the caller owns the object
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


CODEC: Final = CustomCodec()


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
    # in place, though the metadata itself is new
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
        version = resource.versions.find(value["apiVersion"])
        return prune(value, version.schema if version else None, root=True)
    schema = resource.schema
    unknown = prune(value, schema, root=True)  # in place, as all that follows
    drop_nulls(value, schema)  # after pruning: fewer fields to look at
    if resource.has_embedded:
        unknown += embedded.coerce(value, schema, drop_malformed=drop_malformed)
    return unknown


def _text_at(value: Object, path: Path) -> str:
    """The text of the scalar at a path, "" if it is absent."""
    content = nested_field(value, path)
    return "" if content is None else plain(content)


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
        codec=CODEC,
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


# -- the strategy -----------------------------------------------------------------------------------------------------


MAX_REPLICAS: Final = 2**31 - 1


def prepare(draft: Draft) -> None:
    """Reset fields that cannot be set through this endpoint, and increment the generation."""
    new, old, resource = draft.new, draft.old, draft.request.resource
    if new.get("apiVersion") != resource.api_version or new.get("kind") != resource.kind:
        draft.outcome.of_kind = _claimed(new)  # a write to /status restores the old ones below
    if draft.request.subresource == "status" and old is not None:
        draft.new = _only_status(new, old)  # a new dict; it shares its parts with both
        return
    if "status" in resource.subresources:
        if old is not None and "status" in old:
            new["status"] = old["status"]  # the same dict in both: from here on no stage may change it
        else:
            new.pop("status", None)  # in place
    if old is not None and _differ(new, old):
        # in place; the old object keeps its own
        new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1


def _claimed(value: Object) -> Qualified:
    """The group and kind that an object claims to have; a patch may have changed them. Raises ApiError for no version."""
    group, version = parse_api_version(_api_version(value))
    if not version:
        raise internal_error("Object 'apiVersion' is missing in 'object has no apiVersion field'")
    return Qualified(group, value.get("kind") or "")


def _api_version(value: Object) -> str:
    """The apiVersion of an object, "" if it is no text, which a decoded one never is."""
    version = value.get("apiVersion")
    return version if isinstance(version, str) else ""


def _only_status(new: Object, old: Object) -> Object:
    """The old object with the new status and the new managedFields. It shares parts with both."""
    value = {**old, "metadata": dict(old["metadata"])}  # copies of what is changed below
    value.pop("status", None)
    if "status" in new:
        value["status"] = new["status"]
    value["metadata"].pop("managedFields", None)  # of the copy above, not of the old object
    if "managedFields" in new["metadata"]:
        value["metadata"]["managedFields"] = new["metadata"]["managedFields"]
    return value


def _differ(new: Object, old: Object) -> bool:
    """Whether two objects differ in more than their metadata. A patched object shares most fields with the old one."""
    if new.keys() != old.keys():
        return True
    for name, item in new.items():
        before = old[name]
        if item is before or name == "metadata" or (type(item) is str and item == before):
            continue
        if not equal(item, before):
            return True
    return False


def validate(draft: Draft) -> None:
    """All errors of an object, in upstream's order: type, metadata, schema, scale, embedded, lists, rules.

    Raises LoopBudgetExceeded.
    """
    new, old, resource = draft.new, draft.old, draft.resource
    if "rules" not in vars(resource) and resource.has_rules and in_loop():
        raise LoopBudgetExceeded  # importing the engine and compiling the rules
    schema = resource.schema
    status = draft.request.subresource == "status"
    generic: list[FieldError] = []  # errors of checks that every update has; they come first
    of_metadata: list[FieldError] = []
    if old is None:
        if not meta.is_sound(new["metadata"], namespaced=resource.namespaced):
            of_metadata = meta.validate_object_meta(new["metadata"], namespaced=resource.namespaced)
    else:
        generic, of_metadata = _metadata_update_errors(draft, old["metadata"])
    clean = draft.form is not UNKNOWN and _stays_clean(draft)
    if draft.form is not UNKNOWN:
        # set again if the stage is repeated in a thread
        draft.form = _form_to_store(draft, resource) if clean else CLEAN
    is_of_type = new.get("kind") == resource.kind and new.get("apiVersion") == resource.api_version
    wrong = [] if is_of_type else _type_errors(resource, new)
    if not wrong:
        wrong = of_metadata if clean and resource.scale is None else of_metadata + _content_errors(draft, status, clean)
    if schema is not None:
        if resource.has_embedded and not status and not clean:
            wrong += embedded.validate(new, schema)
        # KEP-4008: an invalid list may remain invalid
        if not clean and (old is None or not listtype.has_errors(old, schema)):
            wrong += listtype.validate(new, schema)
        if resource.rules is not None:
            _apply_rules(draft, resource.rules, schema, wrong)
    draft.outcome.errors += generic + wrong
    if not draft.outcome.errors and not draft.request.subresource and "finalizers" in new["metadata"]:
        draft.outcome.warnings += meta.finalizer_warnings(new["metadata"], old["metadata"] if old else None)


def _metadata_update_errors(draft: Draft, old: Object) -> meta.UpdateErrors:
    """The errors in the metadata of an update. An apply may leave fields that cannot be decoded, which others ignore."""
    metadata, namespaced = draft.new["metadata"], draft.resource.namespaced
    is_applied = draft.request.action is Action.APPLY and draft.form is UNKNOWN
    why = unstructured.mismatch(meta.OBJECT_META, metadata) if is_applied else ""
    if not why:
        return meta.validate_update(metadata, old, namespaced=namespaced)
    decodable = meta.coerce(metadata, drop_malformed=True).metadata
    errors = meta.validate_update(decodable, old, namespaced=namespaced)
    return errors._replace(own=[field.invalid("metadata", Verbatim(compact_json(metadata)), why)])


def _form_to_store(draft: Draft, resource: Resource) -> Form:
    """The form of a clean object as it will be stored. A write of the status keeps the rest of the old object."""
    if draft.request.subresource == "status" and not _old_is_valid(draft):
        return CLEAN
    is_exact = resource.versions.storage is resource and resource.compiled is not None and resource.compiled.is_exact
    return EXACT if is_exact else VALID


def _old_is_valid(draft: Draft) -> bool:
    return draft.stored is not None and is_valid(draft.stored.shown, draft.resource)


def _stays_clean(draft: Draft) -> bool:
    """Whether an object that the fast path accepted is still valid, with complete metadata and possibly the old status."""
    new, old, resource = draft.new, draft.old, draft.resource
    fast = resource.compiled
    if fast is None or draft.request.subresource:
        return draft.request.subresource == "status"  # only the status is validated, and it has not changed
    is_kept = old is not None and new.get("status") is old.get("status") and _old_is_valid(draft)
    if "status" in new and "status" in resource.subresources and not is_kept:
        status = copy(new["status"])
        if not (fast.accepts_status(status) and equal(status, new["status"])):  # a default is missing
            return False
    return fast.is_complete is None or fast.is_complete(new)


def _content_errors(draft: Draft, status: bool, clean: bool) -> list[FieldError]:
    """The errors of the schema and of scale."""
    new, old, resource = draft.new, draft.old, draft.resource
    wrong: list[FieldError] = []
    if resource.schema is not None and not clean:
        wrong += _schema_errors(new, old, resource.schema, status=status, ratchet=draft.request.features.ratcheting)
    if resource.scale is not None:
        wrong += _scale_errors(new, resource.scale, spec=not status)
    return wrong


_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


def _apply_rules(draft: Draft, rules: RuleValidator, schema: Structural, wrong: list[FieldError]) -> None:
    """Add the errors of x-kubernetes-validations, unless errors in `wrong` prevent the evaluation."""
    if validation.blocks_rules(wrong):
        wrong.append(field.invalid("<nil>", None, _NOT_CHECKED))
        return
    correlation = None
    if draft.old is not None and draft.request.features.ratcheting:
        correlation = Correlated(draft.new, draft.old, schema)
    cpu_budget = LoopBudget() if in_loop() else RuleBudget()
    began = perf_counter()
    result = rules.validate(
        draft.new,
        draft.old,
        correlation=correlation,
        cpu_budget=cpu_budget,
        release=draft.request.features.release,
    )
    draft.outcome.rule_seconds = perf_counter() - began
    wrong += result.errors  # after those of the schema, as upstream
    draft.outcome.warnings += result.warnings
    draft.outcome.failed_rules = result.failed


def _type_errors(resource: Resource, value: Object) -> list[FieldError]:
    wrong = []
    api_version = "/".join(filter(None, parse_api_version(_api_version(value))))  # as Go prints `/v1`
    for name, actual, expected in (
        ("kind", value.get("kind", ""), resource.kind),
        ("apiVersion", api_version, resource.api_version),
    ):
        if actual != expected:
            wrong.append(field.invalid(name, actual, f"must be {expected}"))
    return wrong


def _schema_errors(
    new: Object, old: Object | None, schema: Structural, *, status: bool, ratchet: bool
) -> list[FieldError]:
    if old is None:
        return validation.validate(new, schema)
    if not status:
        return validation.validate_update(new, old, schema, ratcheting=ratchet)
    inner = schema.properties.get("status")
    if "status" not in new or inner is None:
        return []
    return validation.validate_update(new["status"], old.get("status"), inner, path="status", ratcheting=ratchet)


def _scale_errors(value: Object, paths: ScalePaths, *, spec: bool) -> list[FieldError]:
    wrong: list[FieldError] = []
    for path in (paths.spec_replicas, paths.status_replicas) if spec else (paths.status_replicas,):
        try:
            replicas = scale.integer_at(value, path)
        except ValueError as error:
            wrong.append(field.invalid(path, 0, str(error)))
            continue
        if replicas is not None and replicas < 0:
            wrong.append(field.invalid(path, replicas, "should be a non-negative integer"))
        elif replicas is not None and replicas > MAX_REPLICAS:
            wrong.append(field.invalid(path, replicas, f"should be less than or equal to {MAX_REPLICAS}"))
    if paths.label_selector:
        try:
            scale.text_at(value, paths.label_selector)
        except ValueError as error:
            wrong.append(field.invalid(paths.label_selector, "", str(error)))
    return wrong


# -- the schemas in a stored definition -------------------------------------------------------------------------------


_PLACE: Final[Object] = {"description": "the place of a schema"}
_ENCODED: Final = codec.encode(_PLACE, sort_keys=False)


def stored_schemas(stored: memoryview, spec: Object) -> dict[str, memoryview] | None:
    """The bytes of the schemas by version, of a spec whose stored bytes are its encoding; None if they are not found.

    None, too, if the schemas are served in another form than they have.
    """
    if spec.get("preserveUnknownFields"):
        return None
    names = [version["name"] for version in spec["versions"] if _has_schema(version)]
    without = {**spec, "versions": [_without_schema(version) for version in spec["versions"]]}
    first, *others = codec.encode(types.write(types.SPEC, without), sort_keys=False).split(_ENCODED)
    body = bytes(stored)
    if len(others) != len(names) or not body.startswith(first):
        return None
    schemas: dict[str, memoryview] = {}
    at = len(first)
    for n, name in enumerate(names):
        part = others[n]
        is_last = n == len(names) - 1
        end = len(body) - len(part) if is_last else body.find(part, at)
        if end < at or not body.startswith(part, end) or (not is_last and body.find(part, end + 1) >= 0):
            return None
        schemas[name] = stored[at:end]  # a view of the definition's bytes
        at = end + len(part)
    return schemas


def _has_schema(version: Object) -> bool:
    return (version.get("schema") or {}).get("openAPIV3Schema") is not None


def _without_schema(version: Object) -> Object:
    return {**version, "schema": {**version["schema"], "openAPIV3Schema": _PLACE}} if _has_schema(version) else version
