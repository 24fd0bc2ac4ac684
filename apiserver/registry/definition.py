"""How CustomResourceDefinitions behave: as `apiserver.crd` says."""

from __future__ import annotations

from functools import partial
from typing import Final

from apiserver.api import meta, names
from apiserver.api.field import FieldError, Path
from apiserver.api.structs import Struct
from apiserver.api.types import Json, Object
from apiserver.crd import defaults, types, update, validation
from apiserver.crd.schemas import RuleChecker, RuleSite
from apiserver.registry.patience import Impatience, Patience
from apiserver.registry.pipeline import Draft
from apiserver.registry.resource import Resource, Versions
from apiserver.schema.structural import Structural, has_rules

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Definitions:
    """The behaviour of the one resource that makes the others."""

    unconditional_update = False
    create_on_update = False
    sorted_keys = False
    struct: Struct | None = types.CRD

    def accept(self, resource: Resource, value: Object, *, stored: bool = False) -> bool:
        return False

    def decode(self, resource: Resource, value: Object) -> tuple[Object, list[str]]:
        decoded = types.decode(value)
        if decoded.error:
            raise ValueError(decoded.error)
        return decoded.value, decoded.unknown

    def read(self, resource: Resource, value: Object) -> None:
        """What is stored was decoded when it was written."""

    def prune(self, resource: Resource, value: Object) -> Object:
        return self.decode(resource, value)[0]

    def convert(self, resource: Resource, value: Object) -> Object:
        return value

    def default(self, resource: Resource, value: Object) -> None:
        value.update(defaults.default(value))

    def written(self, value: Object) -> Object:
        return types.written(value)

    def prepare(self, draft: Draft) -> None:
        if not draft.features.ratcheting:
            draft.new = update.drop_optional_old_self(draft.new, draft.old)
        if draft.old is None:
            draft.new = update.prepare_for_create(draft.new)
        elif draft.subresource == "status":
            draft.new = update.prepare_for_status_update(draft.new, draft.old)
        else:
            draft.new = update.prepare_for_update(draft.new, draft.old)

    def validate(self, draft: Draft) -> None:
        new, old = draft.new, draft.old
        checkers = partial(rule_checker, patience=Impatience() if draft.hurried else Patience())
        if old is None:
            draft.errors += validation.validate(new, checkers=checkers)
        else:
            draft.errors += meta.validate_object_meta(
                new["metadata"], namespaced=False, name_rule=names.path_segment_name
            )
            draft.errors += meta.validate_object_meta_update(new["metadata"], old["metadata"])
            if draft.subresource == "status":
                draft.errors += validation.validate_status_update(new, old)
            else:
                draft.errors += validation.validate_update(new, old, checkers=checkers)
        if not draft.errors and not draft.subresource:
            draft.warnings += update.warnings(new, old)

    def reset_fields(self, resource: Resource, subresource: str) -> tuple[str, ...]:
        return ("spec",) if subresource == "status" else ("status",)

    def selectable(self, resource: Resource, value: Object) -> dict[str, str]:
        return {}

    def unknown_field_label(self, name: str) -> str:
        return f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def rule_checker(
    root: Structural,
    *,
    stored_rules: frozenset[str],
    stored_messages: frozenset[str],
    limit_each: bool,
    patience: Patience | Impatience | None = None,
) -> RuleChecker:
    """Who judges the x-kubernetes-validations of a schema. Raises TakesLong."""
    if not has_rules(root):
        return _NoRules()
    if patience is not None:
        patience.load("apiserver.cel.schema_rules")
    from apiserver.cel.schema_rules import SchemaRules  # few need the engine, and it is large

    return SchemaRules(
        root, stored_rules=stored_rules, stored_messages=stored_messages, limit_each=limit_each, patience=patience
    )


class _NoRules:
    def check(self, site: RuleSite) -> list[FieldError]:
        return []

    def check_default(self, schema: Structural, default: Json, path: Path, root: bool) -> list[FieldError]:
        return []

    def totals(self, path: Path) -> list[FieldError]:
        return []


def definitions_resource() -> Versions:
    resource = Resource(
        group=types.GROUP,
        version=types.VERSION,
        plural=types.RESOURCE,
        singular=types.KIND.lower(),
        kind=types.KIND,
        list_kind=f"{types.KIND}List",
        namespaced=False,
        behaviour=Definitions(),
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        verbs=VERBS,
        subresources=frozenset({"status"}),
    )
    return Versions([resource], resource)
