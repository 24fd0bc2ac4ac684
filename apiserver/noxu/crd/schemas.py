"""Validation of a CRD's schema (apiextensions/validation: validateCustomResourceDefinitionValidation and below).

In this order: keywords that the status subresource forbids at the root; whether the schema is structural, and if so its
defaults, and if those are valid its CEL rules; then a walk over the whole schema in any case. Conversion failures are
reported only if there are no other errors.

A `RuleChecker` compiles the CEL rules. This module calls it where upstream does: for nodes on the spine of a structural
schema that have no errors, neither themselves nor below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from noxu.api.field import (
    FieldError,
    Path,
    Verbatim,
    child,
    forbidden,
    index,
    invalid,
    key,
    not_supported,
    required,
)
from noxu.crd.default_values import default_errors
from noxu.crd.internal import echo, go_name, go_order
from noxu.crd.lists import LIST_TYPE, MAP_TYPE, list_type_errors, map_type_errors, presence_errors
from noxu.crd.strictness import TYPES, Strictness
from noxu.crd.types import RULE, SCHEMA
from noxu.expressions import expression
from noxu.go.text import compact_json, trim_space
from noxu.schema.embedded import has_embedded
from noxu.schema.fieldpath import resolve
from noxu.schema.lint import structural_errors
from noxu.schema.pruning import META
from noxu.schema.structural import (
    NoStructuralForm,
    Structural,
    has_defaults,
    has_rules,
    is_marked,
    mark,
    parse,
)
from noxu.values import Json, Object

MAX_UINT64: Final = 2**64 - 1
RULES: Final = "x-kubernetes-validations"
REASONS: Final = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"]


class RuleSite(NamedTuple):
    """A node with rules."""

    schema: Structural
    path: Path
    root: bool  # the root of the schema or an embedded resource, which have apiVersion, kind and metadata
    cardinality: int | None  # the maximum number of values of this node in an object; None: unbounded
    uncorrelatable: Path | None  # the outermost node above whose parts have no correlated old values: no oldSelf
    echo: Callable[[int], Verbatim]  # the n-th rule in messages


class RuleChecker(Protocol):
    """Compiles the rules of one schema, and adds up their costs."""

    def check(self, site: RuleSite) -> list[FieldError]:
        """The errors of a node's rules: compilation and cost."""

    def check_default(self, schema: Structural, default: Json, path: Path, root: bool) -> list[FieldError]:
        """The errors of a default by the rules of its schema, both unchanged and newly set."""

    def totals(self, path: Path) -> list[FieldError]:
        """Errors about the most expensive rules, if all rules together cost too much. `path` is the schema's."""


class RuleCheckers(Protocol):
    """Makes a checker for a schema. Stored expressions may use features that new ones may not yet."""

    def __call__(
        self, root: Structural, *, stored_rules: frozenset[str], stored_messages: frozenset[str], limit_each: bool
    ) -> RuleChecker: ...


_AT_ROOT: Final = [
    "Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum",
    "MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items",
    "Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
]  # fmt: skip


def schema_errors(
    schema: Object, path: Path, strict: Strictness, version: str, *, status: bool, checkers: RuleCheckers | None
) -> list[FieldError]:
    """The errors in a decoded JSONSchemaProps; `status`: there is a status subresource."""
    errors: list[FieldError] = []
    if status:
        errors += _status_root_errors(schema, path)
    if schema.get("nullable"):
        errors.append(forbidden(child(path, "nullable"), "nullable cannot be true at the root"))
    checker: RuleChecker | None = None
    structural, no_form = None, ""
    if strict.structural:
        try:
            structural = parse(schema)
        except NoStructuralForm as error:
            no_form = str(error)
    if structural is not None and checkers is not None:
        checker = checkers(
            structural,
            stored_rules=strict.stored_rules,
            stored_messages=strict.stored_messages,
            limit_each=version not in strict.unchanged,
        )
    if structural is not None:
        violations = structural_errors(structural, path) or default_errors(
            structural,
            path,
            may_have_unknown=lambda: not strict.pruned_defaults,
            check_rules=checker.check_default if checker else None,
        )
        errors += violations
        if violations:
            structural = None
    walk = _Walk(strict, checker)
    walk.node(schema, path, _Context(), structural, 1, root=True)
    errors += walk.errors + walk.rule_errors
    if no_form and not errors:
        errors.append(invalid(path, "", no_form))
    if structural is not None and checker is not None:
        errors += checker.totals(path)
    return errors


def _status_root_errors(schema: Object, path: Path) -> Iterator[FieldError]:
    """Upstream cuts the status out of the schema, so only some keywords are allowed at the root."""
    for name in (field.name for field in go_order(SCHEMA) if field.name in schema):
        if name == "type":
            if schema["type"] != "object":
                why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
                yield invalid(child(path, "type"), schema["type"], why)
                return
        elif go_name(name) not in _AT_ROOT:
            allowed = " ".join(_AT_ROOT)
            why = f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
            yield invalid(path, echo(SCHEMA, schema), why)
            return


@dataclass(frozen=True, slots=True)
class _Context:
    """Conditions for a node that come from the nodes above."""

    no_defaults: str = ""  # why defaults are forbidden, "" if they are not
    in_meta: bool = False
    uncorrelatable: Path | None = None

    def cut_off(self, path: Path) -> _Context:
        return self if self.uncorrelatable is not None else replace(self, uncorrelatable=path)


# In upstream's order; True: refused even if empty.
_UNSUPPORTED_IF_SET: Final = {
    "id": True,
    "additionalItems": True,
    "patternProperties": False,
    "definitions": False,
    "dependencies": True,
    "$ref": True,
}
_UNSUPPORTED: Final = frozenset(_UNSUPPORTED_IF_SET)


class _Walk:
    """The walk over a schema, including junctors."""

    def __init__(self, strict: Strictness, checker: RuleChecker | None) -> None:
        self.strict = strict
        self.is_creation = strict.old is None
        self.checker = checker
        self.errors: list[FieldError] = []
        self.rule_errors: list[FieldError] = []

    def node(
        self,
        schema: Object,
        path: Path,
        context: _Context,
        structural: Structural | None,
        cardinality: int | None,
        *,
        root: bool = False,
    ) -> None:
        """`structural` is the node's structural form, None if its rules are not checked."""
        if structural is not None and self.is_creation and is_marked(structural, _VALID):
            return
        errors = self.errors
        errors_before, rule_errors_before = len(errors), len(self.rule_errors)
        self.keywords(schema, path, context)
        self.spine(schema, path, context, structural, cardinality, root=root)
        self.junctors(schema, path, context)
        if schema.get("items") is not None:
            self.items(schema, path, context, structural, cardinality)
        for name, dependency in (schema.get("dependencies") or {}).items():
            if isinstance(dependency, dict):
                self.node(dependency, key(child(path, "dependencies"), name), context, None, None)
        if schema.get("x-kubernetes-preserve-unknown-fields") is False:
            where = child(path, "x-kubernetes-preserve-unknown-fields")
            errors.append(invalid(where, False, "must be true or undefined"))
        if schema.get(MAP_TYPE) is not None:
            errors += map_type_errors(schema, path)
        if LIST_TYPE in schema or "x-kubernetes-list-map-keys" in schema:
            errors += list_type_errors(schema, path, composite_sets=lambda: not self.strict.atomic_sets)
            missing = list(presence_errors(schema, path))
            if missing and self.strict.keys_present:
                errors += missing
        if rules := schema.get(RULES):
            for n, rule in enumerate(rules):
                errors += _rule_errors(rule, index(child(path, RULES), n), schema, structural)
            if len(errors) == errors_before and structural is not None and self.checker is not None:
                resource = root or structural.embedded_resource
                self.rule_errors += self.checker.check(
                    RuleSite(
                        structural, path, resource, cardinality, context.uncorrelatable, lambda n: echo(RULE, rules[n])
                    )
                )
        has_none = len(errors) == errors_before and len(self.rule_errors) == rule_errors_before
        if self.is_creation and not root and structural is not None and has_none and _is_valid_anywhere(structural):
            mark(structural, _VALID)

    def keywords(self, schema: Object, path: Path, context: _Context) -> None:
        errors = self.errors
        type_ = schema.get("type", "")
        if type_ and type_ not in TYPES and self.strict.valid_types:
            errors.append(not_supported(child(path, "type"), type_, TYPES))
        if context.no_defaults and schema.get("default") is not None:
            errors.append(forbidden(child(path, "default"), f"must not be set {context.no_defaults}"))
        if not _UNSUPPORTED.isdisjoint(schema):
            errors += [
                forbidden(child(path, name), f"{name} is not supported")
                for name, even_if_empty in _UNSUPPORTED_IF_SET.items()
                if schema.get(name) is not None and (even_if_empty or schema[name] != {})
            ]
        if type_ == "null":
            why = "type cannot be set to null, use nullable as an alternative"
            errors.append(forbidden(child(path, "type"), why))
        if isinstance(schema.get("items"), list) and schema["items"]:
            errors.append(forbidden(child(path, "items"), "items must be a schema object and not an array"))
        if context.in_meta and schema.get("x-kubernetes-embedded-resource"):
            where = child(path, "x-kubernetes-embedded-resource")
            errors.append(forbidden(where, "must not be used inside of resource meta"))
        if schema.get("uniqueItems"):
            why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
            errors.append(forbidden(child(path, "uniqueItems"), why))

    def spine(
        self,
        schema: Object,
        path: Path,
        context: _Context,
        structural: Structural | None,
        cardinality: int | None,
        *,
        root: bool,
    ) -> None:
        """additionalProperties and properties."""
        properties = schema.get("properties")
        additional = schema.get("additionalProperties")
        if additional is not None:
            below = child(path, "additionalProperties")
            if properties and additional is not True:
                why = "additionalProperties and properties are mutual exclusive"
                self.errors.append(forbidden(below, why))
            if isinstance(additional, dict):
                inner = context
                if context.in_meta:  # the defaults are ambiguous without a value
                    inner = replace(context, no_defaults="inside additionalProperties applying to object metadata")
                values = structural.values if structural else None
                self.node(additional, below, inner, values, _times(cardinality, schema))
        if not properties:
            return
        below = child(path, "properties")
        if schema.get(MAP_TYPE) not in (None, "granular", "atomic"):
            context = context.cut_off(path)
        embedding = root or schema.get("x-kubernetes-embedded-resource", False)
        field_cardinality = _times(cardinality, schema)
        for name, property_ in properties.items():
            inner = context
            if embedding and name in META:
                inner = replace(context, in_meta=True)
                if root:
                    inner = replace(inner, no_defaults=f"in top-level {name}")
            self.node(
                property_,
                f"{below}[{name}]",
                inner,
                structural.properties.get(name) if structural else None,
                field_cardinality,
            )

    def junctors(self, schema: Object, path: Path, context: _Context) -> None:
        if schema.get("not") is not None:
            self.node(schema["not"], child(path, "not"), context, None, None)
        for junctor in ("allOf", "oneOf", "anyOf"):
            for n, branch in enumerate(schema.get(junctor) or ()):
                self.node(branch, index(child(path, junctor), n), context, None, None)
        for name, definition in (schema.get("definitions") or {}).items():
            self.node(definition, key(child(path, "definitions"), name), context, None, None)

    def items(
        self, schema: Object, path: Path, context: _Context, structural: Structural | None, cardinality: int | None
    ) -> None:
        items = schema["items"]
        below = child(path, "items")
        if schema.get(LIST_TYPE) != "map":  # only items with keys are correlated
            context = context.cut_off(path)
        if isinstance(items, dict):
            inner = structural.items if structural else None
            self.node(items, below, context, inner, _times(cardinality, schema))
            return
        for n, item in enumerate(items):
            self.node(item, index(below, n), context, None, None)


def _is_valid_anywhere(s: Structural) -> bool:
    """Whether a node without errors has none anywhere else: only defaults, embedded resources and rules have a context."""
    return not (has_defaults(s) or has_embedded(s) or has_rules(s))


_VALID: Final = "valid in a new definition"
"""The mark of nodes that have no errors wherever they are: equal ones need no second walk."""


def _times(cardinality: int | None, schema: Object) -> int | None:
    """The maximum number of values of a node directly below; None if a list or map on the way is unbounded."""
    if cardinality is None:
        return None
    limit: int | None = 1
    if schema.get("type") == "array":
        limit = schema.get("maxItems")
    elif schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        limit = schema.get("maxProperties")
    return None if limit is None else min(cardinality * max(limit, 0), MAX_UINT64)


_LINE_BREAK: Final = expression(r"[\n\r]")


def _rule_errors(rule: Object, path: Path, schema: Object, structural: Structural | None) -> Iterator[FieldError]:
    """The errors in a rule before it is compiled."""
    expression = trim_space(rule["rule"])
    message, expression_of_message = rule.get("message", ""), rule.get("messageExpression", "")
    field_path = rule.get("fieldPath", "")
    text = trim_space(message)
    if not expression:
        yield required(child(path, "rule"), "rule is not specified")
    elif message and not text:
        yield invalid(child(path, "message"), message, "must be non-empty if specified")
    elif _LINE_BREAK.search(text):
        yield invalid(child(path, "message"), message, "must not contain line breaks")
    elif _LINE_BREAK.search(expression) and not text:
        yield required(child(path, "message"), "message must be specified if rule contains line breaks")
    if expression_of_message and not trim_space(expression_of_message):
        yield required(child(path, "messageExpression"), "messageExpression must be non-empty if specified")
    reason = rule.get("reason")
    if reason is not None and reason not in REASONS:
        yield not_supported(child(path, "reason"), Verbatim(compact_json(reason)), REASONS)
    if not field_path:
        return
    where = child(path, "fieldPath")
    if not trim_space(field_path):
        yield invalid(where, field_path, "must be non-empty if specified")
    if _LINE_BREAK.search(field_path):
        yield invalid(where, field_path, "must not contain line breaks")
    try:
        resolve(field_path, structural or parse(schema))
    except NoStructuralForm:
        return
    except ValueError:
        yield invalid(where, field_path, "must be a valid path")
