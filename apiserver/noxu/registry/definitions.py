"""The strategy of CustomResourceDefinitions (apiextensions-apiserver's pkg/registry/customresourcedefinition)."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import NamedTuple

from noxu import cel
from noxu.api import meta, names
from noxu.api.field import FieldError, Path
from noxu.crd import conditions, update, validation
from noxu.crd.known_definitions import digest_of_spec
from noxu.crd.schemas import RuleChecker, RuleCheckers, RuleSite
from noxu.registry.draft import Draft
from noxu.registry.turns import LoopBudget, RuleBudget, in_loop
from noxu.releases import NEWEST
from noxu.schema.structural import Structural, has_rules
from noxu.values import Json, Object


def prepare(draft: Draft) -> None:
    """Reset fields that cannot be set through this endpoint, and increment the generation."""
    if not draft.request.features.ratcheting:
        draft.new = update.drop_optional_old_self(draft.new, draft.old)  # a new object where something is dropped
    if not draft.request.features.field_selectors:
        draft.new = update.drop_selectable_fields(draft.new, draft.old)
    if draft.old is None:
        draft.new = update.prepare_for_create(draft.new)
    elif draft.request.subresource == "status":
        draft.new = update.prepare_for_status_update(draft.new, draft.old)
    else:
        draft.new = update.prepare_for_update(draft.new, draft.old)


def validate(draft: Draft) -> None:
    """All errors of a definition, in upstream's order. Raises LoopBudgetExceeded."""
    new, old = draft.new, draft.old
    cpu_budget = LoopBudget() if in_loop() else RuleBudget()
    checkers = partial(
        _timed_rule_checker,
        draft.outcome.compile_seconds,
        cpu_budget=cpu_budget,
        release=draft.request.features.release,
    )
    if old is None:
        _validate_created(draft, checkers)
        return
    draft.outcome.errors += meta.validate_object_meta(
        new["metadata"], namespaced=False, name_rule=names.path_segment_name
    )
    draft.outcome.errors += meta.validate_object_meta_update(new["metadata"], old["metadata"])
    if draft.request.subresource == "status":
        draft.outcome.errors += validation.validate_status_update(new, old)
    else:
        draft.outcome.errors += validation.validate_update(
            new, old, checkers=checkers, spec_is_valid=_spec_is_valid(draft)
        )
    if not draft.outcome.errors and not draft.request.subresource:
        draft.outcome.warnings += update.warnings(new, old, draft.request.features.release)


def _validate_created(draft: Draft, checkers: RuleCheckers) -> None:
    """The errors of a new definition. The walks of a spec that is known to be valid are skipped (`known_definitions`)."""
    specs, spec = draft.request.valid_specs, draft.new["spec"]
    digest = digest_of_spec(spec, draft.request.features) if specs is not None else ""
    warnings = specs.warnings(digest) if specs is not None else None
    draft.outcome.errors += validation.validate(draft.new, checkers=checkers, spec_is_valid=warnings is not None)
    if draft.outcome.errors:
        return
    if warnings is None:
        warnings = update.warnings(draft.new, release=draft.request.features.release)
        if specs is not None and digest and digest_of_spec(spec, draft.request.features) == digest:
            specs.add(digest, warnings)  # for the next definition with an equal spec
    draft.outcome.warnings += warnings


def _spec_is_valid(draft: Draft) -> bool:
    """Whether the spec is known to be valid."""
    specs = draft.request.valid_specs
    return specs is not None and specs.warnings(digest_of_spec(draft.new["spec"], draft.request.features)) is not None


def begin_delete(value: Object, now: str, finalizers: list[str]) -> bool:  # noqa: ARG001 - the policy has no effect here
    """Mark a definition as being deleted; whether its instances have to be deleted first."""
    metadata = value["metadata"]
    if metadata.get("deletionTimestamp"):
        return False
    metadata["deletionTimestamp"] = now  # in place: the caller's copy
    metadata["finalizers"] = [
        *(name for name in metadata.get("finalizers", ()) if name != conditions.CLEANUP_FINALIZER),
        conditions.CLEANUP_FINALIZER,
    ]
    conditions.set_condition(value, conditions.DELETION_PENDING, now)  # in place
    return True


def rule_checker(
    root: Structural,
    *,
    stored_rules: frozenset[str],
    stored_messages: frozenset[str],
    limit_each: bool,
    cpu_budget: RuleBudget | LoopBudget | None = None,
    release: int = NEWEST,
) -> RuleChecker:
    """The checker of the CEL rules of a schema, for a release of Kubernetes. Raises LoopBudgetExceeded."""
    if not has_rules(root):
        return _NoRules()
    if cpu_budget is not None:
        cpu_budget.require_imported("noxu.cel", "SchemaRules")
    return cel.SchemaRules(  # the engine takes long to import, and few CRDs need it
        root,
        stored_rules=stored_rules,
        stored_messages=stored_messages,
        limit_each=limit_each,
        cpu_budget=cpu_budget,
        release=release,
    )


def _timed_rule_checker(
    seconds: list[float],
    root: Structural,
    *,
    stored_rules: frozenset[str],
    stored_messages: frozenset[str],
    limit_each: bool,
    cpu_budget: RuleBudget | LoopBudget,
    release: int,
) -> RuleChecker:
    """A rule checker that appends to `seconds` how long it compiles the rules of each node."""
    checker = rule_checker(
        root,
        stored_rules=stored_rules,
        stored_messages=stored_messages,
        limit_each=limit_each,
        cpu_budget=cpu_budget,
        release=release,
    )
    return _Timed(checker, seconds)


class _Timed(NamedTuple):
    """A rule checker. `seconds` are those of each node with rules."""

    checker: RuleChecker
    seconds: list[float]

    def check(self, site: RuleSite) -> list[FieldError]:
        began = perf_counter()
        try:
            return self.checker.check(site)
        finally:
            self.seconds.append(perf_counter() - began)  # the list of the draft's outcome

    def check_default(self, schema: Structural, default: Json, path: Path, root: bool) -> list[FieldError]:
        return self.checker.check_default(schema, default, path, root)

    def totals(self, path: Path) -> list[FieldError]:
        return self.checker.totals(path)


class _NoRules:
    def check(self, site: RuleSite) -> list[FieldError]:
        return []

    def check_default(self, schema: Structural, default: Json, path: Path, root: bool) -> list[FieldError]:
        return []

    def totals(self, path: Path) -> list[FieldError]:
        return []
