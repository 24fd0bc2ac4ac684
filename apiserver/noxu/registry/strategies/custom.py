"""What a write of a custom resource may change, and what it must satisfy (apiextensions-apiserver's registry strategy)."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

from noxu.api import field, meta
from noxu.api.errors import Qualified, internal_error
from noxu.api.field import FieldError, Verbatim
from noxu.api.meta import parse_api_version
from noxu.go import unstructured
from noxu.go.text import compact_json
from noxu.registry import scale
from noxu.registry.cpu_budget import LoopBudget, LoopBudgetExceeded, RuleBudget
from noxu.registry.draft import Action, Draft
from noxu.registry.entry import is_valid
from noxu.registry.resource import Resource, ScalePaths
from noxu.schema import embedded, listtype, validation
from noxu.schema.correlation import Correlated
from noxu.schema.structural import Structural
from noxu.values import Object, copy, equal

if TYPE_CHECKING:
    from noxu.cel import RuleValidator

MAX_REPLICAS: Final = 2**31 - 1


def prepare(draft: Draft) -> None:
    """Reset fields that cannot be set through this endpoint, and increment the generation."""
    new, old, resource = draft.new, draft.old, draft.request.resource
    if new.get("apiVersion") != resource.api_version or new.get("kind") != resource.kind:
        draft.claimed = _claimed(new)
    if draft.request.subresource == "status" and old is not None:
        draft.new = _only_status(new, old)
        return
    if resource.has_status:
        if old is not None and "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)
    if old is not None and _differ(new, old):
        new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1


def _claimed(value: Object) -> Qualified:
    """The group and kind that an object claims to have; a patch may have changed them. Raises ApiError for no version."""
    group, version = parse_api_version(_api_version(value))
    if not version:
        raise internal_error("Object 'apiVersion' is missing in 'object has no apiVersion field'")
    return Qualified(group, value.get("kind") or "")


def _api_version(value: Object) -> str:
    """The apiVersion of an object, "" if it is no text, which a decoded one never is."""
    found = value.get("apiVersion")
    return found if isinstance(found, str) else ""


def _only_status(new: Object, old: Object) -> Object:
    """The old object with the new status and the new managedFields. It shares parts with both."""
    value = {**old, "metadata": dict(old["metadata"])}
    value.pop("status", None)
    if "status" in new:
        value["status"] = new["status"]
    value["metadata"].pop("managedFields", None)
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
    if draft.in_loop and "rules" not in vars(resource) and resource.has_rules:
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
    clean = draft.clean and _stays_clean(draft)
    draft.valid = clean and (not status or is_valid(draft.shown, resource))  # a write of the status keeps the old rest
    found = _type_errors(resource, new) or of_metadata + _content_errors(draft, status=status, clean=clean)
    if schema is not None:
        if resource.has_embedded and not status and not clean:
            found += embedded.validate(new, schema)
        # KEP-4008: an invalid list may remain invalid
        if not clean and (old is None or not listtype.has_errors(old, schema)):
            found += listtype.validate(new, schema)
        if resource.rules is not None:
            _apply_rules(draft, resource.rules, schema, found)
    draft.outcome.errors += generic + found
    if not draft.outcome.errors and not draft.request.subresource and "finalizers" in new["metadata"]:
        draft.outcome.warnings += meta.finalizer_warnings(new["metadata"], old["metadata"] if old else None)


def _metadata_update_errors(draft: Draft, old: Object) -> meta.UpdateErrors:
    """The errors in the metadata of an update. An apply may leave fields that cannot be decoded, which others ignore."""
    metadata, namespaced = draft.new["metadata"], draft.resource.namespaced
    is_applied = draft.request.action is Action.APPLY and not draft.clean
    why = unstructured.mismatch(meta.OBJECT_META, metadata) if is_applied else ""
    if not why:
        return meta.validate_update(metadata, old, namespaced=namespaced)
    decodable = meta.coerce(metadata, drop_malformed=True).metadata
    errors = meta.validate_update(decodable, old, namespaced=namespaced)
    return errors._replace(own=[field.invalid("metadata", Verbatim(compact_json(metadata)), why)])


def _stays_clean(draft: Draft) -> bool:
    """Whether an object that the fast path accepted is still valid, with complete metadata and possibly the old status."""
    new, old, resource = draft.new, draft.old, draft.resource
    fast = resource.compiled
    if fast is None or draft.request.subresource:
        return draft.request.subresource == "status"  # only the status is validated, and it has not changed
    is_kept = old is not None and new.get("status") is old.get("status") and is_valid(draft.shown, resource)
    if resource.has_status and "status" in new and not is_kept:
        status = copy(new["status"])
        if not (fast.accepts_status(status) and equal(status, new["status"])):  # a default is missing
            return False
    return fast.is_complete is None or fast.is_complete(new)


def _content_errors(draft: Draft, *, status: bool, clean: bool) -> list[FieldError]:
    """The errors of the schema and of scale."""
    new, old, resource = draft.new, draft.old, draft.resource
    found: list[FieldError] = []
    if resource.schema is not None and not clean:
        found += _schema_errors(new, old, resource.schema, status=status, ratchet=draft.request.features.ratcheting)
    if resource.scale is not None:
        found += _scale_errors(new, resource.scale, spec=not status)
    return found


_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


def _apply_rules(draft: Draft, rules: RuleValidator, schema: Structural, found: list[FieldError]) -> None:
    """Add the errors of x-kubernetes-validations, unless errors in `found` prevent the evaluation."""
    if validation.blocks_rules(found):
        found.append(field.invalid("<nil>", None, _NOT_CHECKED))
        return
    correlation = None
    if draft.old is not None and draft.request.features.ratcheting:
        correlation = Correlated(draft.new, draft.old, schema)
    cpu_budget = LoopBudget() if draft.in_loop else RuleBudget()
    began = perf_counter()
    result = rules.validate(draft.new, draft.old, correlation=correlation, cpu_budget=cpu_budget)
    draft.outcome.rule_seconds = perf_counter() - began
    found += result.errors
    draft.outcome.warnings += result.warnings
    draft.outcome.failed_rules = result.failed


def _type_errors(resource: Resource, value: Object) -> list[FieldError]:
    found = []
    api_version = "/".join(filter(None, parse_api_version(_api_version(value))))  # as Go prints `/v1`
    for name, given, expected in (
        ("kind", value.get("kind", ""), resource.kind),
        ("apiVersion", api_version, resource.api_version),
    ):
        if given != expected:
            found.append(field.invalid(name, given, f"must be {expected}"))
    return found


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
